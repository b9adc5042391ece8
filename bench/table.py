#!/usr/bin/env python3
"""Makes a table of a run of bench-step: ratios first, then microseconds.

    bench-step --benchmark_format=json > step.json
    bench/table.py step.json [--threads 0]

Each row is one load: what `all` costs as a multiple of the direct floor, then p50 and
p99 of `begin`, `all` and the floor. See bench/README.md for what the columns mean.
With --check it fails if one of the promised ratios does not hold (make bench-gate).
"""

import argparse
import json
import re
import sys

MIDDLE = {"context": 8192, "blocks_per_chunk": 1, "ranks": 1}


def load_of(name):
    """"requests:16/context:8192/.../sliding/threads:0/..." as a dict."""
    out = {"flags": ""}
    for part in name.split("/"):
        key, _, value = part.partition(":")
        if key in ("iterations", "manual_time"):
            continue
        if value:
            out[key] = int(value)
        elif part in ("sliding", "reference"):
            out["flags"] = part
        elif part == "direct":
            out["threads"] = "direct"
    return out


def key_of(load):
    return tuple(load.get(x, 0) for x in
                 ("requests", "context", "blocks_per_chunk", "ranks", "churn", "flags"))


def read(path, threads):
    """{load: {"begin_p50": 1.0, ..., "floor_p99": 2.0}}"""
    with open(path, encoding="utf-8") as file:
        runs = json.load(file)
    rows = {}
    for run in runs["benchmarks"]:
        load = load_of(run["name"])
        if load["threads"] not in (threads, "direct"):
            continue
        figures = {name: value for name, value in run.items()
                   if re.match(r"(begin|all|floor)_p\d+$", name)}
        rows.setdefault(key_of(load), {}).update(figures)
    return runs["context"], {load: row for load, row in rows.items()
                             if "all_p50" in row and "floor_p50" in row}


def words(load):
    requests, context, blocks, ranks, churn, flags = load
    more = [f"{blocks} blocks per chunk"] if blocks != 1 else []
    more += [f"{ranks} ranks"] if ranks != 1 else []
    more += [f"{churn} end and come per step"] if churn else []
    more += ["a sliding window as well"] if flags == "sliding" else []
    more += ["reference rules"] if flags == "reference" else []
    return f"{requests:,} | {context:,} | {', '.join(more)}"


def table(rows):
    print("| requests | context | | all / floor | begin p50 | p99 | all p50 | p99 "
          "| floor p50 | p99 |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for load, row in rows.items():
        times = " | ".join(f"{row[name]:.0f}" for name in
                           ("begin_p50", "begin_p99", "all_p50", "all_p99",
                            "floor_p50", "floor_p99"))
        print(f"| {words(load)} | {row['all_p50'] / row['floor_p50']:.1f} | {times} |")


def ratios(rows):
    """(what, value, most) of each promise that this run can show."""
    def all_p50(requests, context=8192, blocks=1, flags=""):
        return rows.get((requests, context, blocks, 1, 0, flags), {}).get("all_p50")

    def ratio(what, upper, lower, most):
        return [(what, upper / lower, most)] if upper and lower else []
    middle = rows.get((1024, 8192, 1, 1, 0, ""), {})
    return (ratio("all / floor at 1,024 requests", middle.get("all_p50"),
                  middle.get("floor_p50"), 5)
            + ratio("context of 131,072 / of 1,024 tokens", all_p50(1024, 131072),
                    all_p50(1024, 1024), 1.15)
            + ratio("10,000 / 1,000 requests", all_p50(10000), all_p50(1000), 12)
            + ratio("with / without a sliding window, 1,024 requests",
                    all_p50(1024, flags="sliding"), all_p50(1024), 2)
            + ratio("with / without a sliding window, 256 requests",
                    all_p50(256, flags="sliding"), all_p50(256), 2))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="what bench-step wrote with "
                                     "--benchmark_format=json")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--check", action="store_true", help="fail if a ratio is off")
    args = parser.parse_args()
    context, rows = read(args.file, args.threads)
    if not rows:
        sys.exit(f"{args.file} has no run with threads:{args.threads} and its floor")
    print(f"{context['date']}, {context['num_cpus']} CPUs of "
          f"{context['mhz_per_cpu']} MHz, threads:{args.threads}\n")
    wrong = False
    for what, value, most in ratios(rows):
        held = value <= most
        wrong |= not held
        print(f"* {what}: {value:.2f} of at most {most:g}{'' if held else ' (!)'}")
    print()
    table(rows)
    return 1 if args.check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
