# SPDX-License-Identifier: Apache-2.0
"""What a seed says: where ranks live, and what happens to them when."""

import json
import random
import re

LINK_KINDS = ("cut", "loss")
KINDS = ("kill", "stop", "nap", *LINK_KINDS, "restart")
LAYOUTS = (((1,), (2,), (3,)), ((1, 2, 3),), ((1,), (2, 3)))
ROWS = 64


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


class Fault:
    def __init__(self, kind, at, span, victim):
        self.kind = kind
        self.at = at
        self.span = span
        self.victim = victim
        # When it really did, as wall time.
        self.began = None
        self.ended = None
        # Of a kill or a stop: there was a process.
        self.struck = True
        # Of a kill: the process that followed.
        self.next_life = None

    @property
    def kept(self):
        """Chunks that the next process found in its host pools."""
        if self.next_life is None:
            return None
        found = (re.search(r"has kept (\d+) chunks", line)
                 for line in self.next_life.lines)
        return sum(int(one.group(1)) for one in found if one)

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
        # What the ranks need to be back behind the last one, and to serve.
        self.calm = 2 * detection + args.calm
        self.seconds = last + self.calm + 1

    def events(self):
        """Begins and ends of all faults, in order."""
        out = []
        for one in self.faults:
            out.append((one.at, True, one))
            out.append((one.at + one.span, False, one))
        return sorted(out, key=lambda event: event[0])

    def most_stopped(self):
        """Processes that are stopped at the same time, at least one."""
        stops = [one for one in self.faults if one.kind in ("stop", "nap")]
        return max([1] + [len({two.victim for two in stops
                               if two.at <= one.at < two.at + two.span})
                          for one in stops])

    def describe(self):
        return (f"{self.seed:>5}  "
                f"{'+'.join(str(len(x)) for x in self.layout):<5} "
                f"{''.join('i' if x else 'o' for x in self.dials):<3} "
                f"{'named' if self.pool else '-':<5}")

    def happenings(self):
        return ", ".join(map(str, self.faults))
