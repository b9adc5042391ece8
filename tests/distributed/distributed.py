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

The same seed and kinds of faults give the same faults; when they meet what is up
to the machine. What the machine does not allow (namespaces, netem) is left out,
with the reason; kills and stops never are. A run that the machine held up, so
that its faults came too late, is done again. At the end it says what all runs
were, and how to repeat one that failed. Ends with 0 if all runs are good, else
with 1; its processes end with it, however it ends.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from cables import Cable, why_no_namespaces, why_no_netem
from faults import KINDS, LINK_KINDS, Plan, write_trace
from outcome import check, describe, fail, result_of, summary
from processes import (Failure, HeldUp, Process, die_with_parent,
                       free_port)

RANKS = 4
READY_SECONDS = 40
STOP_SECONDS = 10
# Tries of a run that the machine holds up.
TRIES = 3
# Too small for all conversations: their prefixes come back from the host.
MODEL = ("--device-blocks", "500", "--host-bytes", "8MiB", "--clock", "real",
         "--layers", "2", "--tokens-per-block", "16")
TITLE = (" seed  ranks dir pool   steps  loads away  bare  late  wait ms  "
         "faults, seconds after the start")


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
        # All ranks have joined the replay, and it ends at this moment.
        self.joined = False
        self.until = None
        # Seconds from the kill of a replay until the next one had all ranks.
        self.restarted = None
        self.joins = []
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

    def start_replay(self, seconds):
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
                   *self.shared, *MODEL, "--repeat-seconds", str(seconds),
                   "--pace-us", str(self.args.pace_us), "--max-running", "6",
                   "--seed", str(self.plan.seed), "--json", self.report,
                   "--no-progress", "--join-timeout", str(READY_SECONDS))
        self.replay = Process("replay", command, self.log)
        self.joined = False
        self.seconds = seconds

    def wait_for_ranks(self):
        if self.joined:
            return
        _, when = self.replay.wait_for("all ranks are here", READY_SECONDS)
        self.joined = True
        self.until = when + self.seconds
        if self.restarted is not None:
            self.joins.append(when - self.restarted)

    def begin(self, fault):
        fault.began = time.time()
        victim = self.workers[fault.victim]
        self.log.write(f"{fault.began:.3f} test: {fault}\n")
        if fault.kind == "kill":
            fault.struck = victim.is_alive()
            victim.kill()
        elif fault.kind in ("stop", "nap"):
            fault.struck = victim.is_alive()
            victim.send(signal.SIGSTOP)
        elif fault.kind == "cut":
            self.cables[fault.victim].set("down")
        elif fault.kind == "loss":
            self.cables[fault.victim].spoil(True)
        elif fault.kind == "restart":
            left = self.until - time.time()
            self.replay.kill()
            self.restarted = fault.began
            if os.path.exists(self.report):
                os.unlink(self.report)
            self.start_replay(max(1, round(left)))

    def end(self, fault):
        if fault.kind == "kill":
            if not self.workers[fault.victim].is_alive():
                self.start_worker(fault.victim)
                fault.next_life = self.workers[fault.victim]
        elif fault.kind in ("stop", "nap"):
            self.workers[fault.victim].send(signal.SIGCONT)
        elif fault.kind == "cut":
            self.cables[fault.victim].set("up")
            self.cables[fault.victim].wait_until_it_carries()
        elif fault.kind == "loss":
            self.cables[fault.victim].spoil(False)
        fault.ended = time.time()
        self.log.write(f"{fault.ended:.3f} test: end of {fault}\n")

    def carry_out_faults(self):
        """All of the plan. A fault meets an engine with all its ranks: before
        the next one begins, those end that keep a new engine from starting."""
        start = time.monotonic()
        events = self.plan.events()
        while events:
            at, begins, fault = events.pop(0)
            time.sleep(max(0, start + at - time.monotonic()))
            if begins and not self.joined:
                for event in [x for x in events if x[2].began]:
                    events.remove(event)
                    self.end(event[2])
                self.wait_for_ranks()
            if self.joined and not self.replay.is_alive():
                if time.monotonic() > start + at + 1:
                    raise HeldUp(f"{fault} came too late")
                fail("ended", f"the replay ended before {fault}: "
                              f"{self.replay.status(1)} "
                              f"{self.replay.lines[-3:]}")
            (self.begin if begins else self.end)(fault)
        self.wait_for_ranks()
        left = self.until - time.time()
        if left < self.plan.calm - 1:
            raise HeldUp(f"{left:.1f} s are left behind the last fault")

    def carry_out(self):
        """Returns the status of the replay and what it reports."""
        for index, late in enumerate(self.plan.late):
            if not late:
                self.start_worker(index)
        # A link takes its time to be up again.
        self.start_replay(round(self.plan.seconds)
                          + (3 if self.plan.spread else 0))
        for index, late in enumerate(self.plan.late):
            if late:
                self.start_worker(index)
        self.wait_for_ranks()
        self.carry_out_faults()
        status = self.replay.status(self.plan.seconds + 120)
        if not os.path.exists(self.report):
            fail("ended", f"the replay's status is {status}: "
                          f"{self.replay.lines[-4:]}")
        with open(self.report, encoding="utf-8") as file:
            report = json.load(file)
        for worker in self.workers:
            worker.send(signal.SIGTERM)
        for worker in self.workers:
            last = worker.status(STOP_SECONDS)
            if last != 0:
                fail("ended", f"{worker.name} ended with {last}: "
                              f"{worker.lines[-3:]}")
        return status, report

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


# -- all of it ----------------------------------------------------------------


def allowed_kinds(args):
    """Returns the kinds of faults, and why others are left out."""
    kinds = [kind for kind in args.faults.split(",") if kind]
    for kind in kinds:
        if kind not in KINDS:
            sys.exit(f"distributed.py: {kind} is none of {', '.join(KINDS)}")
    skipped = {}
    if any(kind in LINK_KINDS for kind in kinds):
        reason = why_no_namespaces()
        if reason:
            skipped = {kind: f"no network namespace can be made: {reason}"
                       for kind in kinds if kind in LINK_KINDS}
        elif "loss" in kinds:
            reason = why_no_netem()
            if reason:
                skipped = {"loss": reason}
    for kind, reason in skipped.items():
        kinds.remove(kind)
        print(f"skipped: {kind}: {reason}", flush=True)
    return kinds, skipped


def try_one(args, plan, result):
    folder = tempfile.mkdtemp(prefix="kvt-")
    path = os.path.join(folder, "log")
    cables = []
    good = False
    with open(path, "w", encoding="utf-8") as log:
        try:
            for index in range(len(plan.layout) if plan.spread else 0):
                cables.append(Cable(args.first_net + index).__enter__())
            one = Run(args, plan, folder, log, cables)
            try:
                status, report = one.carry_out()
            finally:
                one.clean_up()
            result["wrong"] = report["bytes"]["mismatches"]
            result["left"] = sum(report["left_over"].values())
            result["wait_ms"] = report["timing"]["longest_wait_ms"]
            result["gap_ms"] = report["timing"]["longest_gap_ms"]
            result["joins"] = one.joins
            result["drain_s"] = report["timing"]["drain_seconds"]
            check(args, plan, status, report)
            result.update(result_of(args, plan, report))
            print(describe(plan, report, result), flush=True)
            good = True
        finally:
            for cable in cables:
                cable.__exit__()
            if good or not args.keep:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                print(f"{plan.seed:>5}  its log is {path}", flush=True)


def run_one(args, seed, kinds):
    """Returns what became of it."""
    for left in reversed(range(TRIES)):
        plan = Plan(args, seed, kinds)
        result = {"seed": seed, "kinds": [one.kind for one in plan.faults],
                  "failure": None, "wrong": 0, "left": 0}
        try:
            try_one(args, plan, result)
        except HeldUp as held:
            reason = held
            if left > 0:
                print(f"{seed:>5}  held up by the machine, again: {reason}",
                      flush=True)
                continue
            result["failure"] = "else"
        except Failure as failure:
            reason = failure
            result["failure"] = getattr(failure, "kind", "else")
        if result["failure"]:
            print(f"{seed:>5}  failed, {result['failure']}: {reason}; "
                  f"{plan.describe().strip()}: {plan.happenings()}", flush=True)
        return result


def run_beside(args, seeds, kinds):
    """As many runs at the same time as were asked for, each lot in a process of
    its own."""
    with tempfile.TemporaryDirectory(prefix="kvt-") as folder:
        children = []
        for lot in range(args.at_once):
            path = os.path.join(folder, f"{lot}.json")
            options = [f"--{name.replace('_', '-')}={value}" for name, value in
                       (("seeds", ",".join(map(str, seeds[lot::args.at_once]))),
                        ("faults", ",".join(kinds)), ("results", path),
                        ("first_net", 10 * lot),
                        ("faults_per_run", args.faults_per_run),
                        ("detection", args.detection), ("calm", args.calm),
                        ("pace_us", args.pace_us))]
            if args.direction:
                options.append(f"--direction={args.direction}")
            if args.pool is not None:
                options.append("--pool" if args.pool else "--no-pool")
            if args.keep:
                options.append("--keep")
            children.append((path, subprocess.Popen(
                (sys.executable, __file__, args.replay, args.worker,
                 *options), preexec_fn=die_with_parent)))
        try:
            for _, child in children:
                child.wait()
        finally:
            for _, child in children:
                child.terminate()
                child.wait()
        out = []
        for path, _ in children:
            with open(path, encoding="utf-8") as file:
                out += json.load(file)
        return sorted(out, key=lambda one: one["seed"])


def run_all(args, seeds, kinds, skipped):
    if not args.results:
        print(TITLE, flush=True)
    if args.at_once > 1:
        results = run_beside(args, seeds, kinds)
    else:
        results = [run_one(args, seed, kinds) for seed in seeds]
    if args.results:
        with open(args.results, "w", encoding="utf-8") as file:
            json.dump(results, file)
        return
    for line in summary(results, skipped):
        print(line)
    bad = [one["seed"] for one in results if one["failure"]]
    if bad:
        sys.exit(f"to repeat one: {sys.argv[0]} {args.replay} {args.worker} "
                 f"--faults {','.join(kinds)} --keep --seed {bad[0]}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("replay", help="kvtide-replay")
    parser.add_argument("worker", help="kvtide-worker")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1, help="of the first run")
    parser.add_argument("--seeds", help="of all runs, such as 1,5,9, instead")
    parser.add_argument("--faults", default=",".join(KINDS),
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
                        help="seconds behind the last fault, and twice the "
                             "detection time")
    parser.add_argument("--pace-us", type=int, default=2_000,
                        help="microseconds that a step takes at least")
    parser.add_argument("--keep", action="store_true",
                        help="keep the log of a run that failed")
    parser.add_argument("--at-once", type=int, default=1,
                        help="runs at the same time")
    parser.add_argument("--results", help=argparse.SUPPRESS)
    parser.add_argument("--first-net", type=int, default=0,
                        help=argparse.SUPPRESS)
    parser.add_argument("--time-limit", type=float, default=0,
                        help="seconds for all of it; 0: none")
    args = parser.parse_args()
    if args.time_limit:
        signal.signal(signal.SIGALRM, lambda *_: sys.exit(
            f"distributed.py: not done after {args.time_limit} s"))
        signal.setitimer(signal.ITIMER_REAL, args.time_limit)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended from outside"))
    kinds, skipped = allowed_kinds(args)
    if not kinds:
        print("skipped: nothing is left to be tested")
        return
    seeds = ([int(one) for one in args.seeds.split(",") if one] if args.seeds
             else list(range(args.seed, args.seed + args.runs)))
    run_all(args, seeds, kinds, skipped)


if __name__ == "__main__":
    main()
