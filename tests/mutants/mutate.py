#!/usr/bin/env python3
"""Checks the tests: changes the code here and there and sees who notices.

    tests/mutants/mutate.py [--area actors|gpu|net] [--seed N] [--count N] [--jobs N]
                            [--keep-killed]

Mutants come from all function bodies of an area: core/ and actors/, gpu/, or net/
(mutants.py says which changes). A sample by seed, without replacement, is built
in a scratch copy, one change at a time, and tested, cheapest first, until
something fails. What does not compile makes room for the next one of the sample.
Writes docs/mutants.md, mutants_gpu.md or mutants_net.md.
Exits with 0 if at least 95 % of the mutants that change behaviour were killed;
tests/mutants/equivalent.txt says of which ones nobody can see a difference, and why.
"""

import argparse
import concurrent.futures
import datetime
import glob
import hashlib
import itertools
import json
import os
import queue
import random
import re
import signal
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from mutants import KINDS, mutants_of  # noqa: E402
from scratch_tree import (  # noqa: E402
    ScratchTree, at_least_one, interruptible, run, say)

PLENTY = 95  # Percent that must be killed.


class Killer:
    """A program whose failure kills a mutant."""

    def __init__(self, target, *arguments):
        self.target = target
        self.arguments = arguments
        self.limit = None  # Seconds; from a run without a mutant.

    @property
    def name(self):
        return self.target + (" " + " ".join(self.arguments[:2])
                              if self.target.startswith("kvtide") else "")

    def run(self, tree, limit):
        arguments = list(self.arguments)
        if self.target.endswith("_tests"):
            arguments += ["--gtest_fail_fast", "--gtest_brief=1"]
        return run([tree.program(self.target)] + arguments, limit,
                   cwd=tree.source)


VECTORS = "tests/conformance/vectors"
EXPLORE = Killer("kvtide-explore", "--scenario", "all", "--seeds", "1..60",
                 "--no-progress", "--shrink-runs", "0")
# Groups in order of cost; a group is built when its turn comes.
FOR_CORE = [Killer("core_tests")]
FOR_FACADE = [Killer("facade_tests")]
FOR_ALL = [Killer("actors_tests")]
LAST = [EXPLORE,
        Killer("kvtide-conformance", "--delivery", "direct", VECTORS),
        Killer("kvtide-conformance", "--delivery", "by_engine", VECTORS),
        Killer("messages_tests"), Killer("gpu_tests"),
        Killer("explore_tests")]
# The host engine and what all engines share, then the CUDA engine on the
# stand-in with the newer form of the batch call.
FOR_GPU = [Killer("gpu_tests")]
FOR_CUDA = [Killer("gpu_stand_in_13_tests")]
# Real sockets and certificates.
FOR_NET = [Killer("net_tests")]
# What the engine's thread calls; it has a test program of its own.
FACADE_FILES = ("actors/alarm.hpp", "actors/event_queue.hpp",
                "actors/ready_fd.cpp", "actors/ready_fd.hpp")


def groups_of_actors(file):
    first = FOR_CORE if file.startswith("core/") else []
    facade = FOR_FACADE if file in FACADE_FILES else []
    return [group for group in (first, facade, FOR_ALL, LAST) if group]


def groups_of_gpu(file):
    return [FOR_CUDA] if file.startswith("gpu/cuda/") else [FOR_GPU, FOR_CUDA]


def groups_of_net(file):
    return [FOR_NET]


class Area:
    """Sources that are changed together, who has to notice, and where that is
    written down."""

    def __init__(self, sources, groups_for, killers, page, words):
        self.sources = sources
        self.groups_for = groups_for
        self.killers = killers
        self.page = page
        self.words = words


AREAS = {
    "actors": Area(
        ("core/*.cpp", "core/*.hpp", "actors/*.cpp", "actors/*.hpp"),
        groups_of_actors, FOR_CORE + FOR_FACADE + FOR_ALL + LAST, "mutants.md",
        ["`tests/mutants/mutate.py` changes one place of `core/` or `actors/` and "
         "runs the",
         "tests until one fails: the program of the layer, all actors, the "
         "explorer (60",
         "schedules of each scenario), the recorded vectors in both deliveries, "
         "the rest. Not",
         "changed: declarations, assertions, and what only the log or the "
         "allocator notices."]),
    "gpu": Area(
        ("gpu/*.cpp", "gpu/*.hpp", "gpu/cuda/*.cpp", "gpu/cuda/*.hpp"),
        groups_of_gpu, FOR_GPU + FOR_CUDA, "mutants_gpu.md",
        ["`tests/mutants/mutate.py --area gpu` changes one place of `gpu/` and "
         "runs the tests of",
         "this layer until one fails: those of the host engine, and those of the "
         "CUDA engine on",
         "the stand-in. Not changed: declarations, assertions, what only the log "
         "or the allocator",
         "notices, kernels, and `no_cuda.cpp`, which these programs do not "
         "contain."]),
    "net": Area(
        ("net/*.cpp", "net/*.hpp"), groups_of_net, FOR_NET, "mutants_net.md",
        ["`tests/mutants/mutate.py --area net` changes one place of `net/` and "
         "runs `net_tests`:",
         "joins, losses and intruders over sockets of this machine. Not changed: "
         "declarations,",
         "assertions, and what only the log notices."]),
}
# Not part of the programs that look for mutants.
LEFT_OUT = ("gpu/cuda/no_cuda.cpp",)


# -- one mutant -----------------------------------------------------------------


def reason_of(killer, done):
    """Who noticed, in a few words."""
    if done.timed_out:
        return f"{killer.name}: time limit"
    if killer.target.endswith("_tests"):
        failed = re.search(r"^\[  FAILED  \] ([^ ,]+)", done.output, re.MULTILINE)
        if failed:
            return f"{killer.target}: {failed.group(1)}"
    if killer is EXPLORE:
        where = re.search(r"scenario (\S+) seed (\d+): broken", done.output)
        rule = re.search(r"^  rule: (\S+)", done.output, re.MULTILINE)
        if where and rule:
            return (f"{killer.target}: {where.group(1)} seed {where.group(2)}, "
                    f"{rule.group(1)}")
    how = f"status {done.status}" if done.status >= 0 else f"signal {-done.status}"
    return f"{killer.name}: {how}"


# Of the source; not of the compiler or the machine.
_COMPILER_ERROR = re.compile(r":\d+:\d+: error: |undefined reference")


class BuildFailure(Exception):
    """A build failed, and not because a mutant does not compile."""


def examine(tree, area, mutant, jobs):
    """Who killed it; "" if nobody did, None if it does not compile."""
    before = tree.read(mutant.file)
    tree.write(mutant.file, mutant.apply(before))
    try:
        for group in area.groups_for(mutant.file):
            built = tree.build(sorted({k.target for k in group}), jobs)
            if not built.ok:
                if not _COMPILER_ERROR.search(built.output):
                    raise BuildFailure(f"{mutant.key}:\n{built.output[-2000:]}")
                return None
            for killer in group:
                done = killer.run(tree, killer.limit)
                if done.timed_out:  # A busy machine, or a loop without an end?
                    done = killer.run(tree, 3 * killer.limit)
                if not done.ok:
                    return reason_of(killer, done)
        return ""
    finally:
        tree.write(mutant.file, before)


# -- the sample -----------------------------------------------------------------


def all_mutants(area):
    out = []
    for pattern in area.sources:
        for path in sorted(glob.glob(os.path.join(ROOT, pattern))):
            if os.path.relpath(path, ROOT) in LEFT_OUT:
                continue
            with open(path, encoding="utf-8") as file:
                out += mutants_of(os.path.relpath(path, ROOT), file.read())
    return out


class KnownKills:
    """Kills of earlier runs over the same product sources: more tests do not
    undo them."""

    def __init__(self, use):
        self.path = os.path.join(ROOT, "build", "mutants", "kills.json")
        digest = hashlib.sha256()
        for folder in ("include", "core", "gpu", "messages", "actors"):
            for path in sorted(glob.glob(os.path.join(ROOT, folder, "**", "*.?pp"),
                                         recursive=True)):
                with open(path, "rb") as file:
                    digest.update(file.read())
        self.sources = digest.hexdigest()
        self.kills = {}
        self.lock = threading.Lock()
        if use and os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                self.kills = json.load(file).get(self.sources, {})

    def name(self, mutant):
        return f"{mutant.start} {mutant.key}"

    def get(self, mutant):
        return self.kills.get(self.name(mutant))

    def add(self, mutant, killed_by):
        if not killed_by or killed_by.endswith("time limit"):
            return
        with self.lock:
            self.kills[self.name(mutant)] = killed_by
            with open(self.path + ".new", "w", encoding="utf-8") as file:
                json.dump({self.sources: self.kills}, file)
            os.replace(self.path + ".new", self.path)


def sample(area, pool, trees, arguments):
    """Examines mutants until `count` of them compiled.
    @returns [(mutant, killed by)], and how many did not compile"""
    known = KnownKills(arguments.keep_killed)
    free = queue.Queue()
    for tree in trees:
        free.put(tree)

    def work(mutant):
        killed_by = known.get(mutant)
        if killed_by is None:
            tree = free.get()
            try:
                killed_by = examine(tree, area, mutant,
                                    arguments.build_jobs)
            finally:
                free.put(tree)
            known.add(mutant, killed_by)
        say(f"{mutant.file}:{mutant.line} {mutant.kind} {mutant.change}: "
            + ("does not compile" if killed_by is None
               else killed_by or "SURVIVES"))
        return mutant, killed_by

    seen, broken, rest = [], 0, iter(pool)
    with concurrent.futures.ThreadPoolExecutor(len(trees)) as workers:
        while len(seen) < arguments.count:
            missing = arguments.count - len(seen)
            batch = list(itertools.islice(rest, missing))
            if not batch:
                break
            for mutant, killed_by in workers.map(work, batch):
                if killed_by is None:
                    broken += 1
                else:
                    seen.append((mutant, killed_by))
    return seen, broken


# -- scratch copies -------------------------------------------------------------


def prepare(area, number, jobs):
    """A copy that is built and passes everything."""
    tree = ScratchTree(ROOT, os.path.join("mutants", str(number)))
    tree.sync()
    # No optimisation and no debug information: built as often as run.
    tree.configure("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0")
    say(f"building copy {number} without a mutant")
    built = tree.build(sorted({k.target for k in area.killers}), jobs)
    if not built.ok:
        sys.exit(f"the build fails without a mutant:\n{built.output[-4000:]}")
    return tree


def time_limits(area, tree):
    """Everybody must be content; who takes much longer later on hangs."""
    for killer in area.killers:
        start = time.monotonic()
        done = killer.run(tree, 1800)
        if not done.ok:
            sys.exit(f"{killer.name} fails without a mutant:\n"
                     f"{done.output[-4000:]}")
        killer.limit = 30 + 5 * (time.monotonic() - start)


# -- report ---------------------------------------------------------------------


def read_equivalent():
    """{key: why nobody can tell it from the code as it is}"""
    out, key = {}, None
    path = os.path.join(ROOT, "tests", "mutants", "equivalent.txt")
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.startswith("#") or not line.strip():
                continue
            if not line[0].isspace():
                key = line.strip()
                out[key] = ""
            elif key:
                out[key] = f"{out[key]} {line.strip()}".strip()
    return out


def cell(text):
    return text.replace("|", "\\|")


def write_table(area, seen, broken, total, arguments):
    equivalent = read_equivalent()
    survivors = [m for m, killed_by in seen if not killed_by]
    same = [m for m in survivors if m.key in equivalent]
    changing = len(seen) - len(same)
    killed = len(seen) - len(survivors)
    late = sum(killed_by.endswith("time limit") for _, killed_by in seen)
    verdict = f"{killed} of {changing} that change behaviour are killed"
    kinds = ", ".join(f"{sum(m.kind == kind for m, _ in seen)} {kind}"
                      for kind in KINDS)
    lines = [
        "# Mutants", "", *area.words, "",
        f"Written on {datetime.date.today().isoformat()} by `make mutants "
        f"SEED={arguments.seed} COUNT={arguments.count}"
        + (f" MUTANTS_ARGS='--area {arguments.area}'"
           if arguments.area != "actors" else "") + f"`, of {total} mutants: "
        f"{kinds}; {broken} that did not compile were replaced.", "",
        f"**{verdict}**; {len(same)} are equivalent, "
        f"{len(survivors) - len(same)} survive. Of the killed, {late} ran into "
        "a time limit.", ""]
    open_ones = [m for m in survivors if m.key not in equivalent]
    for title, chosen in (("Survivors", open_ones), ("Equivalent mutants", same)):
        if not chosen:
            continue
        lines += [f"## {title}", "", "| mutant | function | kind | change | why "
                  "equivalent |", "| --- | --- | --- | --- | --- |"]
        for m in chosen:
            lines.append(f"| `{m.file}:{m.line}` | `{m.function}` | {m.kind} | "
                         f"{cell(m.change)} | {cell(equivalent.get(m.key, '-'))} |")
        lines.append("")
    lines += ["## Killed", "", "| mutant | function | kind | change | killed by |",
              "| --- | --- | --- | --- | --- |"]
    for m, killed_by in seen:
        if killed_by:
            lines.append(f"| `{m.file}:{m.line}` | `{m.function}` | {m.kind} | "
                         f"{cell(m.change)} | {cell(killed_by)} |")
    with open(os.path.join(ROOT, "docs", area.page), "w",
              encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    say(verdict)
    for m in open_ones:
        say(f"survivor, to be killed or put into equivalent.txt:\n{m.key}")
    return killed * 100 >= PLENTY * changing


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--area", choices=sorted(AREAS), default="actors")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=at_least_one, default=60)
    parser.add_argument("--jobs", type=at_least_one, default=1,
                        help="mutants at the same time, each in a copy of its own")
    parser.add_argument("--build-jobs", type=at_least_one,
                        default=os.cpu_count())
    parser.add_argument("--keep-killed", action="store_true",
                        help="believe earlier kills of the same product sources")
    parser.add_argument("--list", action="store_true",
                        help="only name the sample")
    arguments = parser.parse_args()
    area = AREAS[arguments.area]
    pool = all_mutants(area)
    total = len(pool)
    random.Random(arguments.seed).shuffle(pool)
    if arguments.list:
        for m in pool[:arguments.count]:
            print(m.key)
        return 0
    trees = [prepare(area, n + 1, arguments.build_jobs)
             for n in range(arguments.jobs)]
    time_limits(area, trees[0])
    try:
        seen, broken = sample(area, pool, trees, arguments)
    except BuildFailure as failure:
        sys.exit(f"the build failed, no table is written: {failure}")
    return 0 if write_table(area, seen, broken, total, arguments) else 1


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # "--list | head"
    sys.exit(interruptible(main))
