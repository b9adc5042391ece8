#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills, stops and cuts off kvtide-worker processes while kvtide-replay runs.

    distributed.py REPLAY WORKER [--runs 1] [--seed 1] [--faults kill,stop]

Each run starts a replay with one rank of its own and three in other processes,
on loopback or in network namespaces, and at seeded moments

    kill     ends a process by SIGKILL and starts it again
    stop     stops one (SIGSTOP) for longer than the detection time
    nap      stops one for less
    cut      takes the link of one down and up again (namespaces)
    loss     lets that link drop packets and delay them for a while (netem)
    restart  ends the replay by SIGKILL and starts another one, while the
             workers live on

Every byte that is served is compared by the replay. A run is good if the replay
ends with 0, found no wrong byte, left nothing over, never waited longer than the
detection time and a second, and used the cache again after each return; and if
the workers end with 0 when they are told to.

The same seed gives the same faults; when they meet what is up to the machine.
What the machine does not allow (namespaces, netem) is left out, with the reason;
kills and stops never are. Ends with 0 if all runs are good, else with 1; its
processes end with it, however it ends.
"""

import argparse
import ctypes
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

RANKS = 4
READY_SECONDS = 40
STOP_SECONDS = 10
KINDS = ("kill", "stop", "nap", "cut", "loss", "restart")
LINK_KINDS = ("cut", "loss")
LAYOUTS = (((1,), (2,), (3,)), ((1, 2, 3),), ((1,), (2, 3)))
ROWS = 64
# Too small for all conversations: their prefixes come back from the host.
MODEL = ("--device-blocks", "500", "--host-bytes", "8MiB", "--clock", "real",
         "--layers", "2", "--tokens-per-block", "16")


class Failure(Exception):
    """A check that does not hold."""


# -- processes ----------------------------------------------------------------


def die_with_parent():
    """So that a process does not outlive a test that was killed."""
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)


class Process:
    """A child whose lines can be waited for."""

    def __init__(self, name, command, log):
        self.name = name
        self.log = log
        self.lines = []
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
                self.lines.append(line.rstrip("\n"))
                self.news.notify_all()
            self.log.write(f"{time.time():.3f} {self.name}: {line}")
            self.log.flush()

    def wait_for(self, pattern, seconds):
        """Returns the match of the first line that has one."""
        until = time.monotonic() + seconds
        seen = 0
        with self.news:
            while True:
                for line in self.lines[seen:]:
                    found = re.search(pattern, line)
                    if found:
                        return found
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


# -- networks -----------------------------------------------------------------


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


def why_no_namespaces():
    try:
        with Cable(99):
            return None
    except (Failure, OSError) as failure:
        return str(failure)


def why_no_netem():
    try:
        with Cable(98) as cable:
            cable.spoil(True)
            return None
    except (Failure, OSError) as failure:
        return str(failure)


def free_port():
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def write_trace(path, seed):
    """Short conversations that share prefixes, 512 tokens at a time."""
    rng = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for row in range(ROWS):
            talk, shared = rng.randrange(12), rng.randint(1, 3)
            own = rng.randint(0, 1)
            ids = [1000 * talk + n for n in range(shared)]
            ids += [100_000 + 10 * row + n for n in range(own)]
            file.write(json.dumps({
                "timestamp": 50 * row,
                "input_length": 512 * len(ids) - rng.randint(0, 400),
                "output_length": rng.randint(2, 40), "hash_ids": ids}) + "\n")


# -- what happens -------------------------------------------------------------


class Fault:
    def __init__(self, kind, at, span, victim):
        self.kind = kind
        self.at = at
        self.span = span
        self.victim = victim
        self.began = None

    def __str__(self):
        return f"{self.kind}@{self.at:.1f}+{self.span:.1f}"


class Plan:
    """One run, as its seed says."""

    def __init__(self, args, seed, kinds):
        rng = random.Random(seed)
        self.seed = seed
        self.layout = rng.choice(LAYOUTS)
        self.dials = [rng.random() < 0.5 for _ in self.layout]
        if args.direction:
            self.dials = [args.direction == "in"] * len(self.layout)
        self.late = [rng.random() < 0.5 for _ in self.layout]
        self.pool = rng.random() < 0.5 if args.pool is None else args.pool
        self.by_engine = rng.random() < 0.25
        self.spread = False
        detection = args.detection
        self.faults = []
        at = rng.uniform(0.5, 2.0)
        for _ in range(args.faults_per_run or rng.randint(1, 3)):
            kind = rng.choice(kinds)
            span = {"kill": rng.uniform(0, 1.5),
                    "stop": rng.uniform(1.4, 2.5),
                    "nap": rng.uniform(0.1, 0.6),
                    "cut": rng.uniform(0.3, 2.5),
                    "loss": rng.uniform(0.5, 1.5),
                    "restart": 0}[kind] * detection
            self.faults.append(
                Fault(kind, at, span, rng.randrange(len(self.layout))))
            self.spread = self.spread or kind in LINK_KINDS
            # Most come one after the other; some while the last is not over.
            at += (rng.uniform(0.1, 1.0) if rng.random() < 0.25
                   else span + rng.uniform(1.5, 2.5) * detection + 1)
        last = max(one.at + one.span for one in self.faults)
        self.seconds = int(last + 2 * detection + args.calm + 1)

    def events(self):
        """Begins and ends of all faults, in order."""
        out = []
        for one in self.faults:
            out.append((one.at, True, one))
            out.append((one.at + one.span, False, one))
        return sorted(out, key=lambda event: event[0])


class Run:
    """Carries a plan out."""

    def __init__(self, args, plan, folder, log, cables):
        self.args = args
        self.plan = plan
        self.folder = folder
        self.log = log
        self.cables = cables
        self.workers = [None] * len(plan.layout)
        self.replay = None
        self.replays = 0
        self.report = os.path.join(folder, "report.json")
        self.listen = free_port()
        self.ports = [free_port() for _ in plan.layout]
        self.shared = ("--detection-ms", str(int(args.detection * 1000)))
        if plan.spread:
            self.shared += ("--insecure",)
        if plan.pool:
            self.shared += ("--pool-name", self.pool_name())
        if plan.by_engine:
            self.shared += ("--delivery", "by_engine")

    def pool_name(self):
        return f"kvt-test-{os.getpid()}-{self.plan.seed}"

    # Everybody reaches the replay at its end of the own cable.
    def replay_address(self, index):
        host = (self.cables[index].here_address if self.plan.spread
                else "127.0.0.1")
        return f"{host}:{self.listen}"

    def worker_address(self, index):
        host = (self.cables[index].there_address if self.plan.spread
                else "127.0.0.1")
        return f"{host}:{self.ports[index]}"

    def start_worker(self, index):
        ranks = self.plan.layout[index]
        command = () if not self.plan.spread else (
            "ip", "netns", "exec", self.cables[index].space)
        where = (("--scheduler", self.replay_address(index))
                 if self.plan.dials[index]
                 else ("--listen", self.worker_address(index)))
        command += (self.args.worker, "--ranks", ",".join(map(str, ranks)),
                    "--total-ranks", str(RANKS), "--engine", self.folder,
                    *where, *self.shared, *MODEL)
        self.workers[index] = Process(f"worker {ranks}", command, self.log)

    def start_replay(self):
        places = ["here"] + [None] * (RANKS - 1)
        for index, ranks in enumerate(self.plan.layout):
            for rank in ranks:
                places[rank] = ("dials" if self.plan.dials[index]
                                else self.worker_address(index))
        listen = ()
        if "dials" in places:
            host = "0.0.0.0" if self.plan.spread else "127.0.0.1"
            listen = ("--listen", f"{host}:{self.listen}")
        trace = os.path.join(self.folder, "trace.jsonl")
        write_trace(trace, self.plan.seed)
        command = (self.args.replay, "--trace", trace, "--workers",
                   ",".join(places), "--lane", self.folder, *listen,
                   *self.shared, *MODEL, "--repeat-seconds", str(self.plan.seconds), "--pace-us",
                   str(self.args.pace_us), "--max-running", "6", "--seed",
                   str(self.plan.seed), "--json", self.report,
                   "--no-progress", "--join-timeout", str(READY_SECONDS))
        self.replay = Process("replay", command, self.log)
        self.replays += 1

    def begin(self, fault):
        fault.began = time.time()
        victim = self.workers[fault.victim]
        self.log.write(f"{fault.began:.3f} test: {fault}\n")
        if fault.kind == "kill":
            victim.kill()
        elif fault.kind in ("stop", "nap"):
            victim.send(signal.SIGSTOP)
        elif fault.kind == "cut":
            self.cables[fault.victim].set("down")
        elif fault.kind == "loss":
            self.cables[fault.victim].spoil(True)
        elif fault.kind == "restart":
            self.replay.kill()
            self.start_replay()
            self.replay.wait_for("all ranks are here", READY_SECONDS)

    def end(self, fault):
        self.log.write(f"{time.time():.3f} test: end of {fault}\n")
        if fault.kind == "kill":
            if not self.workers[fault.victim].is_alive():
                self.start_worker(fault.victim)
        elif fault.kind in ("stop", "nap"):
            self.workers[fault.victim].send(signal.SIGCONT)
        elif fault.kind == "cut":
            self.cables[fault.victim].set("up")
        elif fault.kind == "loss":
            self.cables[fault.victim].spoil(False)

    def carry_out(self):
        """Returns what the replay reports."""
        for index, late in enumerate(self.plan.late):
            if not late:
                self.start_worker(index)
        self.start_replay()
        for index, late in enumerate(self.plan.late):
            if late:
                self.start_worker(index)
        self.replay.wait_for("all ranks are here", READY_SECONDS)
        start = time.monotonic()
        for at, begins, fault in self.plan.events():
            time.sleep(max(0, start + at - time.monotonic()))
            if not self.replay.is_alive():
                raise Failure(f"the replay ended before {fault}: "
                              f"{self.replay.status(1)} "
                              f"{self.replay.lines[-3:]}")
            (self.begin if begins else self.end)(fault)
        status = self.replay.status(self.plan.seconds + 120)
        if status != 0:
            raise Failure(f"the replay's status is {status}: "
                          f"{self.replay.lines[-4:]}{self.leftovers()}")
        with open(self.report, encoding="utf-8") as file:
            report = json.load(file)
        for worker in self.workers:
            worker.send(signal.SIGTERM)
        for worker in self.workers:
            status = worker.status(STOP_SECONDS)
            if status != 0:
                raise Failure(f"{worker.name} ended with {status}: "
                              f"{worker.lines[-3:]}")
        return report

    def leftovers(self):
        try:
            with open(self.report, encoding="utf-8") as file:
                report = json.load(file)
            left = {name: value for name, value in report["left_over"].items()
                    if value}
            return (f"; left over: {left}, wrong bytes: "
                    f"{report['bytes']['mismatches']}, "
                    f"{report['bytes'].get('first_mismatch')}, "
                    f"{report['first_failure']}")
        except (OSError, ValueError):
            return ""

    def clean_up(self):
        for process in (*self.workers, self.replay):
            if process is not None:
                process.kill()
        for cable, _ in zip(self.cables, self.plan.layout):
            if self.plan.spread:
                subprocess.run(("tc", "qdisc", "del", "dev", cable.here,
                                "root"), capture_output=True)
                cable.set("up")
        for name in os.listdir("/dev/shm"):
            if self.pool_name() in name:
                os.unlink(os.path.join("/dev/shm", name))


# -- what is checked ----------------------------------------------------------


def check(args, plan, report):
    """Returns seconds from each fault's begin to the first hit behind it."""
    left = {name: value for name, value in report["left_over"].items() if value}
    if report["bytes"]["mismatches"] or left:
        raise Failure(f"{report['bytes']['mismatches']} wrong bytes, left "
                      f"over: {left}")
    timing = report["timing"]
    limit = 1000 * (args.detection + 1)
    if timing["longest_wait_ms"] > limit:
        raise Failure(f"the engine waited {timing['longest_wait_ms']:.0f} ms "
                      f"in {timing['longest_wait_call']}, more than {limit:.0f}")
    outages = timing["outages"]
    for one in outages:
        if one["back"] is None or one["hit"] is None:
            raise Failure(f"the cache did not serve again: {one}")
    last_restart = max((one.began for one in plan.faults
                        if one.kind == "restart"), default=0)
    times = []
    for fault in plan.faults:
        ranks = plan.layout[fault.victim]
        known = [one for one in outages
                 if one["rank"] in ranks and one["back"] >= fault.began]
        if fault.kind == "kill" and fault.began > last_restart and not known:
            raise Failure(f"nobody noticed {fault}")
        if fault.kind in ("kill", "stop", "cut") and known:
            hit = max(one["hit"] for one in known
                      if one["lost"] < fault.began + fault.span + 0.5) \
                if any(one["lost"] < fault.began + fault.span + 0.5
                       for one in known) else None
            if hit is not None:
                times.append((fault.kind, plan.pool, hit - fault.began,
                              fault.span))
    return times


def describe(plan, report, times):
    timing = report["timing"]
    return (f"{plan.seed:>5}  {'+'.join(str(len(x)) for x in plan.layout):<5} "
            f"{''.join('i' if x else 'o' for x in plan.dials):<3} "
            f"{'named' if plan.pool else '-':<5} "
            f"{report['steps']:>6} "
            f"{report['runtime']['loaded_chunks']:>6} "
            f"{len(timing['outages']):>4} "
            f"{timing['steps_without_cache']:>6} "
            f"{report['runtime']['late_messages']:>5} "
            f"{timing['longest_wait_ms']:>7.0f}  "
            + ", ".join(map(str, plan.faults))
            + ("; to the first hit: " if times else "")
            + ", ".join(f"{one[2]:.1f} s" for one in times))


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def summary(all_times):
    lines = []
    for kind in ("kill", "stop", "cut"):
        for pool in (False, True):
            # Without the time for which the test kept the rank away.
            some = [one[2] - one[3] for one in all_times
                    if one[0] == kind and one[1] == pool]
            if some:
                lines.append(
                    f"from the end of a {kind} to the first hit, "
                    f"{'named' if pool else 'unnamed'} pools: p50 "
                    f"{percentile(some, 0.5):.2f} s, max {max(some):.2f} s "
                    f"({len(some)})")
    return lines


# -- all of it ----------------------------------------------------------------


def allowed_kinds(args):
    kinds = [kind for kind in args.faults.split(",") if kind]
    for kind in kinds:
        if kind not in KINDS:
            raise Failure(f"{kind} is none of {', '.join(KINDS)}")
    if any(kind in LINK_KINDS for kind in kinds):
        reason = why_no_namespaces()
        if reason:
            print("skipped: no link is cut or spoiled, as no network namespace "
                  f"can be made: {reason}")
            kinds = [kind for kind in kinds if kind not in LINK_KINDS]
    if "loss" in kinds:
        reason = why_no_netem()
        if reason:
            print(f"skipped: no link is spoiled: {reason}")
            kinds.remove("loss")
    return kinds


def run_one(args, plan):
    folder = tempfile.mkdtemp(prefix="kvt-")
    path = os.path.join(folder, "log")
    cables = []
    good = False
    with open(path, "w", encoding="utf-8") as log:
        try:
            if plan.spread:
                for index in range(len(plan.layout)):
                    cables.append(Cable(index).__enter__())
            one = Run(args, plan, folder, log, cables)
            try:
                report = one.carry_out()
            finally:
                one.clean_up()
            times = check(args, plan, report)
            print(describe(plan, report, times), flush=True)
            good = True
            return times
        finally:
            for cable in cables:
                cable.__exit__()
            if good or not args.keep:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                print(f"{plan.seed:>5}  its log is {path}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("replay", help="kvtide-replay")
    parser.add_argument("worker", help="kvtide-worker")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--faults", default="kill,stop,nap,cut,loss,restart",
                        help="kinds to choose from")
    parser.add_argument("--faults-per-run", type=int, default=0,
                        help="0: one to three")
    parser.add_argument("--direction", choices=("in", "out"),
                        help="whether workers dial in or are dialed; both "
                             "unless given")
    parser.add_argument("--pool", action=argparse.BooleanOptionalAction,
                        help="whether host pools outlive their process; both "
                             "unless given")
    parser.add_argument("--detection", type=float, default=2.0,
                        help="seconds")
    parser.add_argument("--calm", type=float, default=3.0,
                        help="seconds behind the last fault")
    parser.add_argument("--pace-us", type=int, default=2_000,
                        help="microseconds that a step takes at least")
    parser.add_argument("--keep", action="store_true",
                        help="keep the log of a run that failed")
    parser.add_argument("--time-limit", type=float, default=0,
                        help="seconds for all of it; 0: none")
    args = parser.parse_args()
    if args.time_limit:
        signal.signal(signal.SIGALRM, lambda *_: sys.exit(
            f"distributed.py: not done after {args.time_limit} s"))
        signal.setitimer(signal.ITIMER_REAL, args.time_limit)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    try:
        kinds = allowed_kinds(args)
    except Failure as failure:
        sys.exit(f"distributed.py: {failure}")
    if not kinds:
        print("skipped: nothing is left to be tested")
        return
    print(" seed  ranks dir pool   steps  loads away  bare  late  wait ms  "
          "faults, seconds after the start")
    failed = 0
    all_times = []
    for number in range(args.runs):
        plan = Plan(args, args.seed + number, kinds)
        try:
            all_times += run_one(args, plan)
        except Failure as failure:
            failed += 1
            print(f"{plan.seed:>5}  failed: {failure}; "
                  f"{', '.join(map(str, plan.faults))}", flush=True)
    for line in summary(all_times):
        print(line)
    print(f"{args.runs - failed} of {args.runs} runs are good")
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
