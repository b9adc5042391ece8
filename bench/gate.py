#!/usr/bin/env python3
"""Holds what a step costs to bounds, in figures that no other load disturbs.

    bench/gate.py --program build/release/bin/bench-counts [--update]

Runs the scenarios of bench/bounds.json: instructions per step by callgrind,
allocations and messages per step as bench-counts counts them. Fails if a figure is
above its bound, or so far below that the bound has become loose. `--update` writes
the figures of this run as new bounds, with some room for other library versions.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BOUNDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bounds.json")
ROOM = 1.03   # A new bound leaves so much.
LOOSE = 0.80  # Below so much of its bound a figure asks for a new one.
TOGGLE = "kvtide_counted_step"
WARM_UP = 32  # Steps that callgrind sees besides those that bench-counts counts.


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}:\n"
                 f"{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def figures_of(text):
    """{"messages": 12.0, "messages step": 1.0, ...}"""
    return {name: float(value)
            for name, value in re.findall(r"^([^:\n]+): ([0-9.]+)$", text, re.MULTILINE)}


def messages(program, options):
    found = figures_of(run([program, *options])[0])
    return {name: value for name, value in found.items()
            if name.startswith("messages")}


def allocations(program, options):
    return {"allocations": figures_of(
        run([program, *options, "--allocations"])[0])["allocations"]}


def instructions(program, options, valgrind, steps):
    with tempfile.TemporaryDirectory() as scratch:
        _, log = run([valgrind, "--tool=callgrind", f"--toggle-collect={TOGGLE}",
                      f"--callgrind-out-file={scratch}/out", program, *options,
                      "--allocations"])
    found = re.search(r"Collected : (\d+)", log)
    if not found or int(found.group(1)) == 0:
        sys.exit("callgrind counted nothing:\n" + log)
    return {"instructions": int(found.group(1)) / (steps + WARM_UP)}


def measure(program, valgrind, scenario):
    steps = scenario["steps"]
    options = [*scenario["options"], "--steps", str(steps)]
    out = messages(program, options)
    out.update(allocations(program, options))
    if valgrind:
        out.update(instructions(program, options, valgrind, steps))
    return out


def bound_of(name, value):
    """Messages are exact; the rest depends a little on libraries."""
    return value if name.startswith("messages") else float(round(value * ROOM))


def check(name, figures, bounds):
    """Prints a table. @returns what is wrong, one sentence each."""
    wrong = []
    print(f"{name}")
    for what in sorted(set(figures) | set(bounds)):
        value, bound = figures.get(what), bounds.get(what)
        shown = "-" if value is None else f"{value:,.1f}"
        limit = "-" if bound is None else f"{bound:,.1f}"
        print(f"  {what:<28} {shown:>14} of {limit:>14}")
        if value is None:
            if what != "instructions":
                wrong.append(f"{name}: {what} was not counted")
        elif bound is None:
            wrong.append(f"{name}: {what} has no bound; run with --update")
        elif value > bound:
            wrong.append(f"{name}: {what} is {value:,.1f}, above {bound:,.1f}")
        elif value < bound * LOOSE:
            wrong.append(f"{name}: {what} is {value:,.1f}, far below its bound of "
                         f"{bound:,.1f}; run with --update")
    return wrong


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="path of bench-counts")
    parser.add_argument("--update", action="store_true", help="write new bounds")
    args = parser.parse_args()
    if not os.access(args.program, os.X_OK):
        sys.exit(f"{args.program} is not there; build the target bench-counts")
    valgrind = shutil.which("valgrind")
    if not valgrind:
        print("valgrind is not installed: instructions are not counted")
        if args.update:
            sys.exit("New bounds need it.")
    with open(BOUNDS, encoding="utf-8") as file:
        scenarios = json.load(file)
    wrong = []
    for scenario in scenarios:
        figures = measure(args.program, valgrind, scenario)
        if args.update:
            scenario["bounds"] = {name: bound_of(name, value)
                                  for name, value in sorted(figures.items())}
        wrong += check(scenario["name"], figures, scenario.get("bounds", {}))
    if args.update:
        with open(BOUNDS, "w", encoding="utf-8") as file:
            json.dump(scenarios, file, indent=2)
            file.write("\n")
    for sentence in wrong:
        print(sentence, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
