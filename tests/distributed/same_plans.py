#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays in simulated time with four ranks in one process, then with three of
them in other processes, and demands the same plan for every step, bit for bit.

    same_plans.py REPLAY WORKER
"""

import argparse
import json
import os
import signal
import sys
import tempfile

sys.dont_write_bytecode = True

from faults import write_trace
from processes import Failure, Process, free_port

SHARED = ("--device-blocks", "500", "--host-bytes", "4MiB")
WAIT_SECONDS = 60
VARIANTS = (
    # Ranks per process, who dials, and more options.
    (((1,), (2,), (3,)), True, ()),
    (((1,), (2, 3)), False, ()),
    (((1, 2, 3),), True, ("--delivery", "by_engine")),
)


def replay(args, folder, log, name, workers, more):
    """Returns the plans, and the report without what depends on wall time."""
    plans = os.path.join(folder, f"{name}.plans")
    report = os.path.join(folder, f"{name}.json")
    process = Process(
        "replay",
        (args.replay, "--trace", os.path.join(folder, "trace.jsonl"), *SHARED,
         *more, *workers, "--plan-log", plans, "--json", report,
         "--no-progress"), log)
    try:
        status = process.status(args.seconds)
    finally:
        process.kill()
    if status != 0:
        raise Failure(f"{name}: the replay's status is {status}: "
                      f"{process.lines[-3:]}")
    with open(plans, "rb") as file, open(report, encoding="utf-8") as text:
        values = json.load(text)
        del values["timing"]
        return file.read(), values


def with_workers(args, folder, log, layout, dial, more):
    port = free_port()
    places = ["here"] + [None] * 3
    children = []
    try:
        for ranks in layout:
            own = port if dial else free_port()
            for rank in ranks:
                places[rank] = "dials" if dial else f"127.0.0.1:{own}"
            where = "--scheduler" if dial else "--listen"
            children.append(Process(
                f"worker {ranks}",
                (args.worker, "--ranks", ",".join(map(str, ranks)),
                 "--total-ranks", "4", "--engine", folder, where,
                 f"127.0.0.1:{own}", *SHARED, *more), log))
        for child in children:
            child.wait_for("ready for an engine", WAIT_SECONDS)
        listen = ("--listen", f"127.0.0.1:{port}") if dial else ()
        out = replay(args, folder, log, "elsewhere",
                     ("--workers", ",".join(places), "--lane", folder,
                      *listen), more)
        for child in children:
            child.send(signal.SIGTERM)
        for child in children:
            if child.status(10) != 0:
                raise Failure(f"{child.name}: {child.lines[-3:]}")
        return out
    finally:
        for child in children:
            child.kill()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("replay", help="kvtide-replay")
    parser.add_argument("worker", help="kvtide-worker")
    parser.add_argument("--seconds", type=float, default=100,
                        help="limit of each replay")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kvt-") as folder, \
            open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
        write_trace(os.path.join(folder, "trace.jsonl"), 1)
        try:
            for layout, dial, more in VARIANTS:
                here, expected = replay(args, folder, log, "here",
                                        ("--ranks", "4"), more)
                there, found = with_workers(args, folder, log, layout, dial,
                                            more)
                steps = here.count(b"\n")
                jobs = here.count(b"; load ") + here.count(b"; store ")
                if there != here:
                    mine, theirs = here.split(b"\n"), there.split(b"\n")
                    first = next((i for i, (a, b) in
                                  enumerate(zip(mine, theirs)) if a != b),
                                 min(len(mine), len(theirs)))
                    raise Failure(
                        f"{layout}: plans differ from step {first + 1} on: "
                        f"{mine[first:first + 1]} and "
                        f"{theirs[first:first + 1]}")
                if found != expected:
                    raise Failure(f"{layout}: the reports differ: {expected} "
                                  f"and {found}")
                if not expected["runtime"]["loaded_chunks"]:
                    raise Failure("nothing was loaded, so nothing was shown")
                print(f"{layout}: {steps} steps with {jobs} jobs, all the same")
        except Failure as failure:
            log.flush()
            with open(log.name, encoding="utf-8") as text:
                sys.stderr.write("".join(text.readlines()[-20:]))
            sys.exit(f"same_plans.py: {failure}")


if __name__ == "__main__":
    main()
