#!/usr/bin/env python3
"""Plants known races and shows that the explorer finds them.

    tests/planted/run.py [--only PART-OF-A-NAME] [--jobs N] [--seeds N]

Each tests/planted/*.patch is applied to a scratch copy of the tracked files; the
explorer then looks for it, and the plain tests run. The table goes to
docs/planted.md, if all patches took part. Exits with 0 only if every race was
found and named with the rule that its patch says.
"""

import argparse
import datetime
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from patches import Patch, failed_cases  # noqa: E402
from scratch_tree import (  # noqa: E402
    ScratchTree, at_least_one, interruptible, run, say)

PLAIN = ["core_tests", "messages_tests", "gpu_tests", "actors_tests",
         "facade_tests"]
EXPLORER = "kvtide-explore"
# Seconds after which a program is taken for one that hangs.
LONGEST = 120


class Race(Patch):
    """A planted race: what it says of itself, and what came of it."""

    def __init__(self, path):
        super().__init__(path)
        self.failure = self.field("Failure")
        self.rule = self.field("Rule")
        # Who makes the copies in the explorer.
        self.device = self.field("Device", "desk")
        self.hazards = re.findall(r"\b[A-Z]{3}-\d\d\b", self.text)
        self.found = None
        self.tests = None


class Found:
    """Where the explorer met it."""

    def __init__(self, scenario, seed, schedules, rule):
        self.scenario = scenario
        self.seed = seed
        self.schedules = schedules
        self.rule = rule


# -- explorer -------------------------------------------------------------------


def scenarios_of(tree):
    done = run([tree.program(EXPLORER), "--list"], LONGEST)
    return [line.split()[0] for line in done.output.splitlines() if line.strip()]


def batches(most):
    """Ranges of seeds that grow: most races are found by the first few."""
    first, size = 1, 10
    while first <= most:
        last = min(most, first + size - 1)
        yield first, last
        first, size = last + 1, size * 4


def explore(tree, most, device="desk"):
    """The first finding over all scenarios, or None."""
    names = scenarios_of(tree)
    schedules = 0
    for first, last in batches(most):
        for name in names:
            done = run([tree.program(EXPLORER), "--scenario", name, "--device",
                        device, "--seeds", f"{first}..{last}", "--no-progress",
                        "--shrink-runs", "0"], 7200)
            if done.ok:
                schedules += last - first + 1
                continue
            seed = re.search(r"seed (\d+): broken", done.output)
            rule = re.search(r"^  rule: (\S+)$", done.output, re.MULTILINE)
            if not seed or not rule:
                say(done.output[-2000:])
                return Found(name, first, schedules, "none: the explorer failed")
            seed = int(seed.group(1))
            return Found(name, seed, schedules + seed - first + 1, rule.group(1))
    return None


# -- plain tests ----------------------------------------------------------------


class Tests:
    """How many cases of each program passed, and which failed."""

    def __init__(self):
        self.passed = {}
        self.failed = []
        # By program: why it did not come to its end.
        self.cut = {}


def run_tests(tree):
    tests = Tests()
    for program in PLAIN:
        done = run([tree.program(program)], LONGEST)
        passed = re.findall(r"^\[       OK \] ", done.output, re.MULTILINE)
        failed, cut = failed_cases(done)
        if cut:
            tests.cut[program] = "time limit" if done.timed_out else "crash"
        tests.passed[program] = len(passed)
        tests.failed += failed
    return tests


def green(tests, whole):
    """"all", or the programs that have lost some."""
    out = [f"`{program}`: {tests.passed[program]} of {total}"
           + (f", then {tests.cut[program]}" if program in tests.cut else "")
           for program, total in whole.passed.items()
           if tests.passed[program] < total]
    return ", ".join(out) if out else "all"


def witness(patch):
    """A test that fails, best one that is named after the rule or the hazard."""
    hazards = [x.replace("-", "_") for x in patch.hazards]
    ranked = [lambda x: x.startswith(f"Order.{patch.rule}_"),
              lambda x: any(h in x for h in hazards),
              lambda x: re.search(rf"\.{patch.rule}(?!\d)", x),
              lambda x: True]
    for fits in ranked:
        for name in patch.tests.failed:
            if fits(name):
                return f"`{name}`"
    return "none"


# -- report ---------------------------------------------------------------------


def write_table(patches, whole):
    total = sum(whole.passed.values())
    lines = [
        "# Planted races", "",
        "Each patch in `tests/planted/` re-creates a failure that other systems "
        "had in",
        "public, or removes a rule. The schedule explorer has to find it and "
        "name the rule",
        "that its header names. A seed is one schedule of one scenario; all "
        "scenarios take",
        "their first seeds before any takes more.", "",
        f"Written by `make planted` on {datetime.date.today().isoformat()}; "
        f"{total} plain tests",
        "(" + ", ".join(f"`{name}`" for name in PLAIN) + ")",
        "pass without a patch.", "",
        "| patch | failure | found in | seed | schedules | rule | plain tests "
        "that stayed green | one that fails |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for patch in patches:
        found = patch.found
        scenario = found.scenario if found else "not found"
        if found and patch.device != "desk":
            scenario += f", --device {patch.device}"
        where = ([scenario, str(found.seed), str(found.schedules), found.rule]
                 if found else [scenario, "-", "-", "-"])
        lines.append("| " + " | ".join(
            [f"`{patch.name}`", patch.failure, *where,
             green(patch.tests, whole), witness(patch)]) + " |")
    with open(os.path.join(ROOT, "docs", "planted.md"), "w",
              encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def plant(tree, patch, arguments):
    """Builds with the patch, explores, runs the plain tests, takes it out."""
    with patch.applied(tree):
        done = tree.build([EXPLORER, *PLAIN], arguments.jobs)
        if not done.ok:
            sys.exit(f"{patch.name} does not build:\n{done.output[-4000:]}")
        patch.found = explore(tree, arguments.seeds, patch.device)
        patch.tests = run_tests(tree)


def judge(patch):
    """Says what came of it; false if that is wrong."""
    found = patch.found
    if not found:
        say(f"{patch.name}: NOT FOUND")
        return False
    right = found.rule == patch.rule
    say(f"{patch.name}: {found.scenario} seed {found.seed}, {found.schedules} "
        f"schedules, {found.rule}" + ("" if right else f", NOT {patch.rule}")
        + f"; {len(patch.tests.failed)} plain tests fail, "
          f"{witness(patch)}")
    return right


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="patches with this in the name")
    parser.add_argument("--jobs", type=at_least_one, default=os.cpu_count())
    parser.add_argument("--seeds", type=at_least_one, default=10000,
                        help="seeds of each scenario to try")
    arguments = parser.parse_args()
    paths = sorted(glob.glob(os.path.join(ROOT, "tests", "planted", "*.patch")))
    every = [Race(path) for path in paths]
    patches = [x for x in every if arguments.only in x.name]
    if not patches:
        parser.error(f"no patch has '{arguments.only}' in its name; there are "
                     + ", ".join(x.name for x in every))
    tree = ScratchTree(ROOT, "planted")
    tree.sync()
    for patch in every:
        patch.apply(tree, "--check")
    say("building without a patch")
    tree.configure("-DCMAKE_BUILD_TYPE=Release")
    done = tree.build([EXPLORER, *PLAIN], arguments.jobs)
    if not done.ok:
        sys.exit(f"the build fails without a patch:\n{done.output[-4000:]}")
    whole = run_tests(tree)
    if whole.failed or explore(tree, 40) or explore(tree, 16, "cuda"):
        sys.exit("tests or the explorer fail without a patch: "
                 + ", ".join(whole.failed))
    right = True
    for patch in patches:
        plant(tree, patch, arguments)
        right = judge(patch) and right
    if patches == every and arguments.seeds == parser.get_default("seeds"):
        write_table(patches, whole)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(interruptible(main))
