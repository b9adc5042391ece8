"""A copy of the tracked files that scripts may break and build."""

import argparse
import os
import shutil
import signal
import subprocess
import sys


def say(text):
    """Progress, for whoever waits."""
    print(text, file=sys.stderr, flush=True)


class Result:
    """What a program did: its status, output, and whether it ran too long."""

    def __init__(self, status, output, timed_out=False):
        self.status = status
        self.output = output
        self.timed_out = timed_out

    @property
    def ok(self):
        return self.status == 0 and not self.timed_out


class ScratchTree:
    """Sources and a build folder below build/<name>."""

    def __init__(self, root, name):
        self.root = root
        self.source = os.path.join(root, "build", name, "source")
        self.folder = os.path.join(root, "build", name, "build")

    def path(self, name):
        return os.path.join(self.source, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def sync(self):
        """Makes it equal to the tracked files; what is equal keeps its time, so
        that it is not built again."""
        names = subprocess.run(["git", "ls-files", "-z"], cwd=self.root,
                               check=True, capture_output=True)
        wanted = set(filter(None, names.stdout.decode().split("\0")))
        for name in sorted(wanted):
            self._copy(name)
        for folder, _, files in os.walk(self.source):
            for file in files:
                path = os.path.join(folder, file)
                if os.path.relpath(path, self.source) not in wanted:
                    os.remove(path)

    def _copy(self, name):
        there, here = os.path.join(self.root, name), self.path(name)
        if not os.path.isfile(there):
            return  # Removed, and not yet committed.
        with open(there, "rb") as file:
            content = file.read()
        if os.path.isfile(here):
            with open(here, "rb") as file:
                if file.read() == content:
                    return
        os.makedirs(os.path.dirname(here), exist_ok=True)
        shutil.copy(there, here)

    def configure(self, *options):
        command = ["cmake", "-S", self.source, "-B", self.folder,
                   "-DKVTIDE_PRECOMPILE_CAF=ON", "-DKVTIDE_BUILD_BENCHMARKS=OFF",
                   "-DKVTIDE_BUILD_EXAMPLES=OFF", *options]
        if shutil.which("ninja") and not os.path.exists(
                os.path.join(self.folder, "CMakeCache.txt")):
            command += ["-G", "Ninja"]
        done = run(command, limit=600)
        if not done.ok:
            sys.exit(f"cmake failed:\n{done.output}")

    def build(self, targets, jobs):
        environment = dict(os.environ, CCACHE_BASEDIR=self.root,
                           CCACHE_NOHASHDIR="1")
        return run(["cmake", "--build", self.folder, "-j", str(jobs),
                    "--target", *targets], limit=7200, env=environment)

    def program(self, name):
        return os.path.join(self.folder, "bin", name)


_running = set()  # Process groups.


def stop_all():
    """Ends whatever `run` has started, on any thread."""
    for group in list(_running):
        _kill(group)


def interruptible(main):
    """Calls `main`; an interrupt ends what it has started, in one line."""
    try:
        return main()
    except KeyboardInterrupt:
        stop_all()
        say("interrupted; no table was written")
        sys.stderr.flush()
        os._exit(130)  # Threads may still wait for what was ended.


def at_least_one(text):
    """For argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1 on")
    return int(text)


def _kill(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command, limit, **how):
    """Runs a program for at most `limit` seconds, its output in one text."""
    # A session of its own: what it has started ends with it.
    process = subprocess.Popen(command, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True,
                               errors="replace", start_new_session=True, **how)
    _running.add(process.pid)
    try:
        output, _ = process.communicate(timeout=limit)
        return Result(process.returncode, output)
    except subprocess.TimeoutExpired:
        _kill(process.pid)
        output, _ = process.communicate()
        return Result(process.returncode, output, timed_out=True)
    except BaseException:  # Such as an interrupt, which it did not get.
        _kill(process.pid)
        raise
    finally:
        _running.discard(process.pid)
