"""Patches that break the sources on purpose, and what tests say of that."""

import contextlib
import os
import re
import subprocess
import sys


class Patch:
    """A patch whose header has lines "Name: value" above the first file."""

    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path)[:-len(".patch")]
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.files = re.findall(r"^\+\+\+ b/(.*)$", self.text, re.MULTILINE)

    def field(self, name, default=None):
        found = re.search(rf"^{name}: (.*)$", self.text, re.MULTILINE)
        if found:
            return found.group(1).strip()
        if default is None:
            sys.exit(f"{self.path} has no line '{name}: ...'")
        return default

    def apply(self, tree, *options):
        """Applies it to a scratch copy, without fuzz."""
        # Else git takes the checkout around it for what is to be patched.
        outside = dict(os.environ,
                       GIT_CEILING_DIRECTORIES=os.path.dirname(tree.source))
        done = subprocess.run(["git", "apply", *options, self.path],
                              cwd=tree.source, env=outside, capture_output=True,
                              text=True)
        if done.returncode != 0:
            sys.exit(f"{self.name} does not apply; make it again:\n{done.stderr}")

    @contextlib.contextmanager
    def applied(self, tree):
        """Applies it for as long as the block lasts."""
        before = {name: tree.read(name) for name in self.files}
        self.apply(tree)
        try:
            yield
        finally:
            for name, text in before.items():
                tree.write(name, text)


def failed_cases(done):
    """Cases of a GoogleTest program that failed.

    Returns their names, and whether the program died or hung in the last of
    them, so that those behind it did not run.
    """
    failed = re.findall(r"^\[  FAILED  \] ([^ ,]*).* \(\d+ ms\)$", done.output,
                        re.MULTILINE)
    cut = done.timed_out or (not done.ok and not failed)
    if cut:
        failed += re.findall(r"^\[ RUN      \] (\S+)$", done.output,
                             re.MULTILINE)[-1:]
    return failed, cut
