#!/usr/bin/env python3
"""Breaks rules of the CUDA engine and shows that tests fail.

    tests/gpu/cuda_broken/run.py [--only PART-OF-A-NAME] [--jobs N]

Each patch beside this file takes one rule out of gpu/ in a scratch copy of the
tracked files. The CUDA tests on the stand-in are then built, and the test that
the patch names has to fail. The table goes into docs/gpu.md, if all patches took
part. Exits with 0 only if every patch was noticed as its header says.
"""

import argparse
import glob
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
from patches import Patch, failed_cases  # noqa: E402
from scratch_tree import (  # noqa: E402
    ScratchTree, at_least_one, interruptible, run, say)

TESTS = "gpu_stand_in_13_tests"
# The engine's own tests; those that all engines share take longer.
FILTER = "cuda_*-cuda_calibration.*"
# Seconds after which the tests are taken for ones that hang.
LONGEST = 120
PAGE = os.path.join(ROOT, "docs", "gpu.md")
BEGIN = "<!-- Written by make broken-gpu. -->"
END = "<!-- End of what make broken-gpu writes. -->"


class BrokenRule(Patch):
    """A broken rule: what it says of itself, and which tests failed."""

    def __init__(self, path):
        super().__init__(path)
        self.rule = self.field("Rule")
        self.test = self.field("Test")
        self.what = self.text.split("\n\n", 2)[1].replace("\n", " ")
        self.failed = []


def failing_tests(tree):
    done = run([tree.program(TESTS), f"--gtest_filter={FILTER}"], LONGEST)
    return failed_cases(done)[0]


def build(tree, jobs, why):
    done = tree.build([TESTS], jobs)
    if not done.ok:
        sys.exit(f"the build fails {why}:\n{done.output[-4000:]}")


def break_rule(tree, patch, jobs):
    with patch.applied(tree):
        build(tree, jobs, f"with {patch.name}")
        patch.failed = failing_tests(tree)
    noticed = patch.test in patch.failed
    say(f"{patch.name}: " + (f"{len(patch.failed)} tests fail" if noticed else
                             f"NOT NOTICED by {patch.test}, but by "
                             f"{patch.failed}"))
    return noticed


def write_table(patches):
    lines = ["| rule | broken how | test that fails | tests that fail |",
             "| --- | --- | --- | --- |"]
    for patch in patches:
        lines.append(f"| {patch.rule} | {patch.what} | `{patch.test}` "
                     f"| {len(patch.failed)} |")
    with open(PAGE, encoding="utf-8") as file:
        text = file.read()
    head, rest = text.split(BEGIN, 1)
    tail = rest.split(END, 1)[1]
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(head + "\n".join([BEGIN, "", *lines, "", END]) + tail)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", default="", help="patches with this in the name")
    parser.add_argument("--jobs", type=at_least_one, default=os.cpu_count())
    arguments = parser.parse_args()
    paths = sorted(glob.glob(os.path.join(HERE, "*.patch")))
    every = [BrokenRule(path) for path in paths]
    patches = [x for x in every if arguments.only in x.name]
    if not patches:
        parser.error(f"no patch has '{arguments.only}' in its name")
    tree = ScratchTree(ROOT, "broken-gpu")
    tree.sync()
    for patch in patches:
        patch.apply(tree, "--check")
    say("building without a patch")
    tree.configure("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0")
    build(tree, arguments.jobs, "without a patch")
    failed = failing_tests(tree)
    if failed:
        sys.exit("tests fail without a patch: " + ", ".join(failed))
    noticed = [break_rule(tree, patch, arguments.jobs) for patch in patches]
    if patches == every:
        write_table(patches)
    return 0 if all(noticed) else 1


if __name__ == "__main__":
    sys.exit(interruptible(main))
