# SPDX-License-Identifier: Apache-2.0
"""Children whose lines can be waited for, and that do not outlive a test."""

import ctypes
import random
import re
import signal
import socket
import subprocess
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
# Below those that the system takes for outgoing connections.
PORTS = (15_000, 32_000)


class Failure(Exception):
    """A check that does not hold."""


class HeldUp(Exception):
    """The machine took so long that a run says nothing."""


def die_with_parent():
    """So that a process does not outlive a test that was killed."""
    LIBC.prctl(1, signal.SIGKILL)


def free_port():
    while True:
        port = random.SystemRandom().randrange(*PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("0.0.0.0", port))
                return port
            except OSError:
                pass


class Process:
    """A child whose lines can be waited for."""

    def __init__(self, name, command, log):
        self.name = name
        self.log = log
        self.lines = []
        self.moments = []  # When each of them came, as wall time.
        self.news = threading.Condition()
        self.child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, preexec_fn=die_with_parent,
            start_new_session=True)
        self.readers = [
            threading.Thread(target=self.read, args=(stream,), daemon=True)
            for stream in (self.child.stdout, self.child.stderr)]
        for reader in self.readers:
            reader.start()

    def read(self, stream):
        for line in stream:
            with self.news:
                self.moments.append(time.time())
                self.lines.append(line.rstrip("\n"))
                self.news.notify_all()
            self.log.write(f"{time.time():.3f} {self.name}: {line}")
            self.log.flush()

    def wait_for(self, pattern, seconds):
        """Returns the first line that has a match, and when it came."""
        until = time.monotonic() + seconds
        seen = 0
        with self.news:
            while True:
                for line, when in list(zip(self.lines, self.moments))[seen:]:
                    if re.search(pattern, line):
                        return line, when
                seen = len(self.lines)
                left = until - time.monotonic()
                if left <= 0 or self.child.poll() is not None:
                    raise Failure(f"{self.name} never said \"{pattern}\": "
                                  f"{self.lines[-3:]}")
                self.news.wait(min(left, 0.2))

    def is_alive(self):
        return self.child.poll() is None

    def send(self, number):
        if self.is_alive():
            self.child.send_signal(number)

    def kill(self):
        """SIGKILL also ends who is stopped."""
        self.send(signal.SIGKILL)
        self.child.wait()

    def status(self, seconds):
        """Waits for the end."""
        try:
            self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"{self.name} does not end within {seconds:.0f} s: "
                          f"{self.lines[-3:]}") from None
        for reader in self.readers:
            reader.join(5)
        return self.child.returncode
