# SPDX-License-Identifier: Apache-2.0
"""Network namespaces, and links to them that can be cut and spoiled."""

import os
import socket
import subprocess
import threading
import time

from processes import LIBC, Failure, HeldUp

CLONE_NEWNET = 0x40000000
# A new link, or one that is up again, may take seconds on a busy machine.
LINK_SECONDS = 20


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)}: {done.stderr.strip()}")


class Cable:
    """A network namespace, and a link from here to it."""

    def __init__(self, number):
        base = f"kvt{os.getpid() % 100000}"
        self.space = f"{base}n{number}"
        self.here, self.there = f"{base}a{number}", f"{base}b{number}"
        net = f"10.213.{number}"
        self.here_address, self.there_address = f"{net}.1", f"{net}.2"

    def __enter__(self):
        try:
            run("ip", "netns", "add", self.space)
            run("ip", "link", "add", self.here, "type", "veth", "peer", "name",
                self.there, "netns", self.space)
            run("ip", "addr", "add", f"{self.here_address}/30", "dev",
                self.here)
            run("ip", "link", "set", self.here, "up")
            self.inside("ip", "addr", "add", f"{self.there_address}/30", "dev",
                        self.there)
            self.inside("ip", "link", "set", self.there, "up")
            self.inside("ip", "link", "set", "lo", "up")
            self.wait_until_it_carries()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for command in (("ip", "link", "del", self.here),
                        ("ip", "netns", "del", self.space)):
            subprocess.run(command, capture_output=True)

    def inside(self, *command):
        run("ip", "netns", "exec", self.space, *command)

    def set(self, state):
        """Of the far end: packets vanish, and nobody here is told."""
        self.inside("ip", "link", "set", self.there, state)

    def spoil(self, on):
        if on:
            run("tc", "qdisc", "add", "dev", self.here, "root", "netem",
                "delay", "20ms", "10ms", "loss", "5%")
        else:
            run("tc", "qdisc", "del", "dev", self.here, "root")

    def wait_until_it_carries(self):
        """That is the machine's business, and no part of what is tested."""
        reached = threading.Event()
        with socket.socket() as listener:
            listener.bind((self.here_address, 0))
            listener.listen(64)
            prober = threading.Thread(
                target=self.probe, args=(listener.getsockname(), reached),
                daemon=True)
            prober.start()
            prober.join(LINK_SECONDS + 5)
        if not reached.is_set():
            raise HeldUp(f"a link carried nothing for {LINK_SECONDS} s")

    def probe(self, address, reached):
        """On a thread of its own, which stays in the namespace."""
        with open(f"/var/run/netns/{self.space}", "rb") as space:
            if LIBC.setns(space.fileno(), CLONE_NEWNET) != 0:
                return
        until = time.monotonic() + LINK_SECONDS
        while time.monotonic() < until:
            try:
                with socket.create_connection(address, 0.25):
                    reached.set()
                    return
            except OSError:
                time.sleep(0.02)


def why_no_namespaces():
    try:
        with Cable(99):
            return None
    except (Failure, HeldUp, OSError) as failure:
        return str(failure)


def why_no_netem():
    try:
        with Cable(98) as cable:
            cable.spoil(True)
            return None
    except (Failure, HeldUp, OSError) as failure:
        return str(failure)
