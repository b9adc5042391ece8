# SPDX-License-Identifier: Apache-2.0
"""Whether a run is good, and what many runs say together."""

import os

from faults import KINDS
from processes import Failure

# A copy takes milliseconds. A report that was lost would be asked for after
# twice the deadline of jobs, 20 s.
DRAIN_SECONDS = 10
FAILURES = ("wrong bytes", "left over", "waited too long", "ended", "not back",
            "else")


def fail(kind, text):
    failure = Failure(text)
    failure.kind = kind
    raise failure


# -- one run ------------------------------------------------------------------


class Impact:
    """A fault, and what the engine noticed of it."""

    def __init__(self, fault, outages, ranks, detection):
        self.fault = fault
        self.outages = [
            one for one in outages
            if one["rank"] in ranks
            and fault.began - 0.1 <= one["lost"] <= fault.ended + detection + 1]
        # A restart starts anew what the engine knows.
        self.hit = (max(one["hit"] for one in self.outages)
                    if self.outages else None)
        self.over = max([fault.ended + detection + 1]
                        + [one["hit"] for one in self.outages])

    def is_apart(self, others):
        return all(one is self or one.over < self.fault.began
                   or self.over < one.fault.began for one in others)


def check(args, plan, status, report):
    """Raises what is wrong."""
    wrong = report["bytes"]["mismatches"]
    left = {name: value for name, value in report["left_over"].items() if value}
    if wrong:
        fail("wrong bytes", f"{wrong} wrong bytes, first "
                            f"{report['bytes'].get('first_mismatch')}, left "
                            f"over {left}")
    if left:
        fail("left over", f"left over: {left}, {report['first_failure']}")
    if status != 0:
        fail("ended", f"the replay's status is {status}")
    timing = report["timing"]
    if timing["drain_seconds"] > DRAIN_SECONDS:
        fail("left over", f"the last jobs took {timing['drain_seconds']:.1f} s "
                          "to end")
    limit = 1000 * (args.detection + 1)
    # Of processes that are stopped one after the other, each may be waited for.
    if (timing["longest_wait_ms"] > limit
            or timing["longest_gap_ms"] > limit * plan.most_stopped()):
        fail("waited too long",
             f"the engine waited {timing['longest_wait_ms']:.0f} ms in "
             f"{timing['longest_wait_call']} and "
             f"{timing['longest_gap_ms']:.0f} ms between two steps, more than "
             f"{limit:.0f}; the load average is {os.getloadavg()[0]:.1f} with "
             f"{os.cpu_count()} cores")
    for one in timing["outages"]:
        if one["back"] is None or one["hit"] is None:
            fail("not back", f"the cache did not serve again: {one}")
    if report["runtime"]["loaded_chunks"] == 0:
        fail("not back", "nothing was loaded at all")


def impacts_of(args, plan, report):
    """Of those that the engine which wrote the report was there for."""
    last_restart = max((one.began for one in plan.faults
                        if one.kind == "restart"), default=0)
    out = [Impact(one, report["timing"]["outages"], plan.layout[one.victim],
                  args.detection)
           for one in plan.faults
           if one.began > last_restart and one.kind != "restart"]
    for one in out:
        if (one.fault.kind in ("kill", "stop") and one.fault.struck
                and not one.outages and one.is_apart(out)):
            fail("else", f"nobody noticed {one.fault}")
    return out


def result_of(args, plan, report):
    """What the summary needs, as JSON has it."""
    impacts = impacts_of(args, plan, report)
    times = []
    for one in impacts:
        if one.outages and one.is_apart(impacts):
            times.append({"kind": one.fault.kind, "pool": plan.pool,
                          "from_begin": one.hit - one.fault.began,
                          "from_end": one.hit - one.fault.ended,
                          "kept": one.fault.kept})
    return {"times": times}


def describe(plan, report, result):
    timing = report["timing"]
    times = ", ".join(f"{one['from_begin']:.2f} s" for one in result["times"])
    return (f"{plan.describe()} "
            f"{report['steps']:>6} "
            f"{report['runtime']['loaded_chunks']:>6} "
            f"{len(timing['outages']):>4} "
            f"{timing['steps_without_cache']:>6} "
            f"{report['runtime']['late_messages']:>5} "
            f"{timing['longest_gap_ms']:>7.0f}  {plan.happenings()}"
            + (f"; to the first hit: {times}" if times else ""))


# -- all of them --------------------------------------------------------------


def spread_of(values):
    """Median, least and most."""
    values = sorted(values)
    if not values:
        return f"{'-':>21}"
    middle = len(values) // 2
    median = (values[middle] if len(values) % 2
              else (values[middle - 1] + values[middle]) / 2)
    return f"{median:>7.2f}{values[0]:>7.2f}{values[-1]:>7.2f}"


def line_of_times(name, times):
    return (f"  {name:<22}{len(times):>4} "
            f"{spread_of([one['from_begin'] for one in times])} "
            f"{spread_of([one['from_end'] for one in times])}")


def summary(results, skipped):
    lines = ["", "what happened   runs  times"]
    for kind in KINDS:
        if kind in skipped:
            lines.append(f"  {kind:<12} skipped: {skipped[kind]}")
            continue
        with_it = [one for one in results if kind in one["kinds"]]
        count = sum(one["kinds"].count(kind) for one in results)
        if count:
            lines.append(f"  {kind:<12} {len(with_it):>5} {count:>6}")
    times = [x for one in results for x in one.get("times", ())]
    lines += ["", "seconds to the first hit, where    from the begin        "
                  "from the end",
              "no other fault was near      runs median  least   most  median  "
              "least   most"]
    for kind in ("kill", "stop", "nap", "cut", "loss"):
        some = [one for one in times if one["kind"] == kind]
        if kind != "kill":
            if some:
                lines.append(line_of_times(kind, some))
            continue
        plain = [one for one in some if not one["pool"]]
        named = [one for one in some if one["pool"]]
        lines.append(line_of_times("kill, memory lost", plain))
        lines.append(line_of_times("kill, memory found", named))
        if named:
            kept = sorted(one["kept"] or 0 for one in named)
            lines.append(f"    chunks found again: median "
                         f"{kept[len(kept) // 2]}, {kept[0]} to {kept[-1]}")
    joins = [x for one in results for x in one.get("joins", ())]
    if joins:
        lines.append(f"  restart, until all ranks had joined the next engine: "
                     f"median, least, most{spread_of(joins)}")
    waits = [one["wait_ms"] for one in results if "wait_ms" in one]
    drains = [one["drain_s"] for one in results if "drain_s" in one]
    if waits:
        gaps = [one["gap_ms"] for one in results if "gap_ms" in one]
        lines += ["", f"longest wait of the engine: {max(waits):.0f} ms in a "
                      f"call, {max(gaps):.0f} ms between two steps; longest "
                      f"drain: {max(drains):.2f} s"]
    lines.append(f"wrong bytes: {sum(one['wrong'] for one in results)}; left "
                 f"over: {sum(one['left'] for one in results)}")
    bad = [one for one in results if one["failure"]]
    for kind in FAILURES:
        seeds = [str(one["seed"]) for one in bad if one["failure"] == kind]
        if seeds:
            lines.append(f"{kind}: seeds {', '.join(seeds)}")
    lines.append(f"{len(results) - len(bad)} of {len(results)} runs are good")
    return lines
