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
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "support"))
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


class Patch:
    """A broken rule: what it says of itself, and which tests failed."""

    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path)[:-len(".patch")]
        with open(path, encoding="utf-8") as file:
            text = file.read()
        self.rule = self._field(text, "Rule")
        self.test = self._field(text, "Test")
        self.what = text.split("\n\n", 2)[1].replace("\n", " ")
        self.files = re.findall(r"^\+\+\+ b/(.*)$", text, re.MULTILINE)
        self.failed = []

    def _field(self, text, name):
        found = re.search(rf"^{name}: (.*)$", text, re.MULTILINE)
        if not found:
            sys.exit(f"{self.path} has no line '{name}: ...'")
        return found.group(1).strip()


def apply(tree, patch, *options):
    """Applies a patch to the scratch copy, without fuzz."""
    # Else git takes the checkout around it for what is to be patched.
    outside = dict(os.environ,
                   GIT_CEILING_DIRECTORIES=os.path.dirname(tree.source))
    done = subprocess.run(["git", "apply", *options, patch.path],
                          cwd=tree.source, env=outside, capture_output=True,
                          text=True)
    if done.returncode != 0:
        sys.exit(f"{patch.name} does not apply; make it again:\n{done.stderr}")


def failing_tests(tree):
    done = run([tree.program(TESTS), f"--gtest_filter={FILTER}"], LONGEST)
    failed = re.findall(r"^\[  FAILED  \] ([^ ,]*).* \(\d+ ms\)$", done.output,
                        re.MULTILINE)
    if done.timed_out or (not done.ok and not failed):
        # It died or hung there.
        failed += re.findall(r"^\[ RUN      \] (\S+)$", done.output,
                             re.MULTILINE)[-1:]
    return failed


def build(tree, jobs, why):
    done = tree.build([TESTS], jobs)
    if not done.ok:
        sys.exit(f"the build fails {why}:\n{done.output[-4000:]}")


def break_rule(tree, patch, jobs):
    before = {name: tree.read(name) for name in patch.files}
    apply(tree, patch)
    try:
        build(tree, jobs, f"with {patch.name}")
        patch.failed = failing_tests(tree)
    finally:
        for name, text in before.items():
            tree.write(name, text)
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
    every = [Patch(path) for path in sorted(glob.glob(os.path.join(HERE,
                                                                   "*.patch")))]
    patches = [x for x in every if arguments.only in x.name]
    if not patches:
        parser.error(f"no patch has '{arguments.only}' in its name")
    tree = ScratchTree(ROOT, "broken-gpu")
    tree.sync()
    for patch in patches:
        apply(tree, patch, "--check")
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
