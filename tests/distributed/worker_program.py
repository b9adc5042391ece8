#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kvtide-worker says, where, and with which status it ends.

    worker_program.py WORKER
"""

import os
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from processes import Failure, Process, free_port


def refuse(worker, word, *options):
    """Status 2, nothing on stdout, one line on stderr that has the word, besides
    what the network logs."""
    done = subprocess.run((worker, *options), capture_output=True, text=True,
                          timeout=30)
    own = [line for line in done.stderr.splitlines()
           if not line.startswith("[")]
    good = (done.returncode == 2 and done.stdout == "" and len(own) == 1
            and word in own[0] and own[0].startswith("kvtide-worker: "))
    if not good:
        raise Failure(f"{options}: status {done.returncode}, {done.stdout!r}, "
                      f"{done.stderr!r}")


def check(worker, folder, log):
    done = subprocess.run((worker, "--help"), capture_output=True, text=True,
                          timeout=30)
    if done.returncode != 0 or "--scheduler HOST:PORT" not in done.stdout:
        raise Failure(f"--help: {done.returncode} {done.stdout!r}")
    one = os.path.join(folder, "one.sock")
    base = ("--total-ranks", "4", "--engine", one, "--ranks")
    refuse(worker, "--ranks")
    refuse(worker, "either --scheduler or --listen", *base, "1")
    refuse(worker, "no rank 4", *base, "4", "--scheduler", "127.0.0.1:7")
    refuse(worker, "several ranks", *base, "1-2", "--scheduler", "127.0.0.1:7")
    refuse(worker, "", *base, "1", "--scheduler", "nonsense")
    refuse(worker, "", *base, "1", "--listen", "0.0.0.0:0")  # No certificate.
    refuse(worker, "", *base, "1", "--listen", "127.0.0.1:0", "--certificate",
           "/no/such/file", "--private-key", "/no/such/file", "--trusted",
           "/no/such/file")
    refuse(worker, "listened", "--total-ranks", "4", "--ranks", "1", "--engine",
           "/no/such/folder/x", "--scheduler", "127.0.0.1:7")
    # What is no socket is nobody's to remove.
    with open(one, "w", encoding="utf-8") as file:
        file.write("precious")
    refuse(worker, "no socket", *base, "1", "--scheduler", "127.0.0.1:7")
    with open(one, encoding="utf-8") as file:
        if file.read() != "precious":
            raise Failure("it has changed a file that was there")
    os.remove(one)
    # It waits for both sides, and ends when it is told to.
    for where in (("--scheduler", f"127.0.0.1:{free_port()}"),
                  ("--listen", "127.0.0.1:0")):
        for number in (signal.SIGTERM, signal.SIGINT):
            child = Process("worker", (worker, *base, "1", *where), log)
            try:
                if where[0] == "--listen":
                    child.wait_for(r"^listening on 127\.0\.0\.1:\d+$", 30)
                child.wait_for("^rank 1 ready for an engine at ", 30)
                refuse(worker, "another process", *base, "1", *where)
                began = time.monotonic()
                child.send(number)
                status = child.status(5)
                if status != 0 or child.lines[-1] != "ended":
                    raise Failure(f"{where}: status {status}: {child.lines}")
                print(f"{where[0]}, signal {number.name}: ended after "
                      f"{time.monotonic() - began:.2f} s")
            finally:
                child.kill()
            if os.path.exists(one):
                raise Failure("it left its socket behind")


def main():
    with tempfile.TemporaryDirectory(prefix="kvt-") as folder, \
            open(os.path.join(folder, "log"), "w", encoding="utf-8") as log:
        try:
            check(sys.argv[1], folder, log)
        except Failure as failure:
            sys.exit(f"worker_program.py: {failure}")


if __name__ == "__main__":
    main()
