#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""Fails unless epoll-loop, with far more requests to serve than it has time
for, ends cleanly on each signal that asks it to.

    tests/examples/ends_on_a_signal.py build/release/bin/epoll-loop
"""

import re
import signal
import subprocess
import sys


def check(program, number):
    with subprocess.Popen([program, "1000000000"], stdout=subprocess.PIPE,
                          text=True) as loop:
        first = loop.stdout.readline()
        loop.send_signal(number)
        rest = loop.stdout.read()
    said = first + rest
    print(said, end="")
    if loop.returncode != 0:
        sys.exit(f"it ended with {loop.returncode} on {number.name}")
    if not first.startswith("serving"):
        sys.exit("it did not serve when the signal came")
    if "aborting what runs" not in rest or not re.search(r", 0 wrong;", rest):
        sys.exit(f"it did not say that it ended cleanly on {number.name}")


if __name__ == "__main__":
    for one in (signal.SIGTERM, signal.SIGINT):
        check(sys.argv[1], one)
