#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts kvtide-serve under the load of clients that come, share prefixes, and go.

    load.py PROGRAM [--requests 5000] [--disconnects 2000] [--clients 256] ...

First a server without offloading says what the model answers to each prompt.
Then one with small pools gets all requests, from many clients at a time; some
of them go away: right after connecting, in the middle of sending, while their
request is queued or loads, before the first token, or in the middle of the
answer. Everybody else must get exactly the expected text, nothing may be left
over afterwards, and the server, told to stop while clients wait, must end with
status 0.

A request counts if the server certainly has all of it: clients that send less, or
reset a connection on which they have heard nothing, come on top. That as many
requests came and were aborted as was wanted is what the server's counters say.

Loopback only. The same seed gives the same requests and plans; when a client
goes relative to what the server does is up to the machine. Ends with 0 if all
checks hold, else with 1; its servers end with it, however it ends.
"""

import argparse
import asyncio
import collections
import ctypes
import json
import random
import re
import signal
import socket
import struct
import sys
import time

# With a whole request.
MOMENTS = ("at once", "after a while", "first token", "middle")
# On top: the server sees a part of the request, or what a reset has left of it.
RESET_MOMENTS = ("at once, reset", "after a while, reset")
TORN_MOMENTS = ("connect", "half header", "half body") + RESET_MOMENTS
# With many clients a request spends its time in the queue. So the last ones
# come from few: then it spends it loading, and in the model.
CALM_SHARE = 0.2
CALM_CLIENTS = 6
LONGEST_ANSWER = 24
ANSWER_SECONDS = 120
STOP_SECONDS = 30

# What must be zero when everybody is gone.
LEFT_OVER = (
    "serve_open_completions",
    'serve_requests{state="waiting"}',
    'serve_requests{state="loading"}',
    'serve_requests{state="running"}',
    'serve_device_blocks{state="used"}',
    'serve_device_blocks{state="held"}',
    "kvtide_tracked_requests",
    "kvtide_jobs_in_flight",
    'kvtide_host_slots_by_state{state="pinned"}',
    'kvtide_host_slots_by_state{state="held"}',
    'kvtide_host_slots_by_state{state="writing"}',
    'kvtide_host_slots_by_state{state="quarantined"}',
)
# What must never have happened.
TROUBLE = (
    "serve_refused_calls_total",
    "serve_cache_troubles_total",
    "kvtide_failed_jobs_total",
    "kvtide_late_jobs_total",
    "kvtide_rank_order_errors_total",
    "kvtide_lost_requests_total",
    "kvtide_lost_caches_total",
)


class Failure(Exception):
    """A check that does not hold."""


class Cut(Failure):
    """The server stopped before the answer was complete."""


# -- the server ---------------------------------------------------------------


def die_with_parent():
    """So that a server does not outlive a test that was killed."""
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)


class Server:
    """A process of kvtide-serve, ended with the block."""

    def __init__(self, program, *options):
        self.command = (program, "--listen", "127.0.0.1:0") + options
        self.process = None
        self.port = None

    async def __aenter__(self):
        self.process = await asyncio.create_subprocess_exec(
            *self.command, stdout=asyncio.subprocess.PIPE,
            preexec_fn=die_with_parent)
        try:
            line = await asyncio.wait_for(self.process.stdout.readline(), 30)
            found = re.fullmatch(rb"listening on 127\.0\.0\.1:(\d+)\n", line)
            if not found:
                raise Failure(f"the server does not say where it is: {line!r}")
            self.port = int(found.group(1))
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_):
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()

    def check_alive(self):
        if self.process.returncode is not None:
            raise Failure(f"the server ended: {self.process.returncode}")

    async def stop(self):
        """Returns its last words."""
        self.process.terminate()
        words, _ = await asyncio.wait_for(self.process.communicate(),
                                          STOP_SECONDS)
        if self.process.returncode != 0:
            raise Failure(f"the server's status is {self.process.returncode} "
                          f"after SIGTERM: {words!r}")
        return words.decode()


# -- HTTP ---------------------------------------------------------------------


class Client:
    """One connection."""

    def __init__(self, reader, writer):
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, port):
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    def go(self, reset):
        """Goes away; with `reset` at once and rudely."""
        if reset:
            self.writer.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def send(self, data):
        self.writer.write(data)
        await self.writer.drain()

    async def header(self):
        """Returns the status and the fields of an answer."""
        text = (await self.reader.readuntil(b"\r\n\r\n")).decode("ascii")
        status, *lines = text.split("\r\n")
        fields = {name.lower(): value for name, value in
                  (line.split(": ", 1) for line in lines if line)}
        return int(status.split(" ")[1]), fields

    async def body(self, fields):
        return await self.reader.readexactly(int(fields["content-length"]))

    async def events(self):
        """Yields the data of each server-sent event of a chunked answer."""
        while True:
            size = int(await self.reader.readuntil(b"\r\n"), 16)
            chunk = await self.reader.readexactly(size + 2)
            if size == 0:
                return
            for event in chunk[:-2].decode("ascii").split("\n\n"):
                if event:
                    yield event[len("data: "):]

    async def get(self, target):
        await self.send(f"GET {target} HTTP/1.1\r\nHost: load\r\n\r\n".encode())
        status, fields = await self.header()
        body = await self.body(fields)
        if status != 200:
            raise Failure(f"{target} says {status}: {body!r}")
        return body.decode()


def completion(plan):
    body = json.dumps({"prompt": plan.prompt, "max_tokens": plan.max_tokens,
                       "stream": plan.stream, "cache_salt": plan.salt}).encode()
    return (b"POST /v1/completions HTTP/1.1\r\nHost: load\r\n"
            b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            % len(body)), body


# -- what is asked ------------------------------------------------------------


class Plan:
    """One request, and what its client does."""

    def __init__(self, rng, prompts, moment):
        # A few prompts are asked for often, most rarely.
        self.prompt = prompts[int(len(prompts) * rng.random() ** 2)]
        self.max_tokens = rng.randint(4, LONGEST_ANSWER)
        self.stream = moment in ("first token", "middle") or rng.random() < 0.5
        self.salt = rng.choice(("", "", "", "tenant"))
        self.moment = moment
        self.reset = rng.random() < 0.5 and moment not in MOMENTS[:2]
        self.reset = self.reset or moment in RESET_MOMENTS
        # In the time that others wait for their first token.
        self.wait = rng.uniform(0, 1.3)
        self.part = rng.random()
        self.reuse = rng.random() < 0.7


def make_prompts(rng, count):
    """Prompts that share prefixes of several lengths."""
    letters = "abcdefghijklmnopqrstuvwxyz ,."
    text = lambda least, most: "".join(
        rng.choice(letters) for _ in range(rng.randint(least, most)))
    stems = [text(64, 192) for _ in range(max(2, count // 12))]
    middles = [rng.choice(stems) + text(16, 96)
               for _ in range(max(2, count // 4))]
    return [rng.choice(middles if rng.random() < 0.7 else stems) + text(1, 40)
            for _ in range(count)]


def make_plans(rng, prompts, requests, disconnects, torn):
    """Returns the plans of the storm, and of the calm behind it."""
    calm, calm_left = int(requests * CALM_SHARE), int(disconnects * CALM_SHARE)
    storm_left = disconnects - calm_left
    storm = [MOMENTS[i % len(MOMENTS)] for i in range(storm_left)]
    storm += [None] * (requests - calm - storm_left)
    storm += [TORN_MOMENTS[i % len(TORN_MOMENTS)] for i in range(torn)]
    after = ["after a while"] * calm_left + [None] * (calm - calm_left)
    rng.shuffle(storm)
    rng.shuffle(after)
    return ([Plan(rng, prompts, moment) for moment in storm],
            [Plan(rng, prompts, moment) for moment in after])


# -- how it is asked ----------------------------------------------------------


class Results:
    def __init__(self):
        self.completed = 0
        self.left = collections.Counter()
        self.first_token = []
        self.wrong = []

    def usual_wait(self):
        """Seconds until a first token, as of late."""
        late = sorted(self.first_token[-31:])
        return late[len(late) // 2] if late else 0.05


async def answer(client, plan, results, began):
    """Reads a whole answer; returns its text as bytes."""
    status, fields = await client.header()
    if status != 200:
        kind = Cut if status == 503 else Failure
        raise kind(f"status {status}: {(await client.body(fields))!r}")
    if not plan.stream:
        choice = json.loads(await client.body(fields))["choices"][0]
        return choice["text"].encode("latin-1"), choice["finish_reason"]
    text, reason, last = b"", None, None
    async for data in client.events():
        last = data
        if data != "[DONE]":
            event = json.loads(data)
            if "choices" not in event:
                cut = event["error"]["code"] == "shutting_down"
                raise (Cut if cut else Failure)(f"an event says {data}")
            choice = event["choices"][0]
            if not text and choice["text"]:
                results.first_token.append(time.monotonic() - began)
            text += choice["text"].encode("latin-1")
            reason = choice["finish_reason"]
    if last != "[DONE]":
        raise Failure("a stream ended without [DONE]")
    return text, reason


async def stay(client, plan, expected, results):
    head, body = completion(plan)
    began = time.monotonic()
    await client.send(head + body)
    text, reason = await asyncio.wait_for(
        answer(client, plan, results, began), ANSWER_SECONDS)
    wanted = expected[plan.prompt][:plan.max_tokens]
    if text != wanted or reason != "length":
        results.wrong.append(f"{plan.prompt!r}: {text!r} ({reason}), "
                             f"not {wanted!r}")
    results.completed += 1


async def leave(client, plan, results):
    """Sends a request, or a part of it, and goes."""
    head, body = completion(plan)
    if plan.moment == "half header":
        await client.send(head[:1 + int(plan.part * (len(head) - 2))])
        await asyncio.sleep(plan.part / 100)
    elif plan.moment == "half body":
        await client.send(head + body[:int(plan.part * len(body))])
        await asyncio.sleep(plan.part / 100)
    elif plan.moment != "connect":
        await client.send(head + body)
    if plan.moment.startswith("after a while"):
        # Queued, loading or running: the server counts which.
        await asyncio.sleep(plan.wait * results.usual_wait())
    elif plan.moment in ("first token", "middle"):
        status, fields = await client.header()
        if status != 200:
            raise Failure(f"status {status}")
        until = 1
        if plan.moment == "middle":
            until += int(plan.part * (plan.max_tokens - 2))
        async for data in client.events():
            until -= 1
            if until == 0:
                break
    client.go(plan.reset)
    results.left[plan.moment] += 1


async def work(server, plans, expected, results):
    """One client after the other, until there are no plans."""
    client = None
    while plans:
        plan = plans.pop()
        if client is None or plan.moment is not None or not plan.reuse:
            if client is not None:
                client.go(False)
            client = await Client.connect(server.port)
        if plan.moment is None:
            await stay(client, plan, expected, results)
        else:
            await asyncio.wait_for(leave(client, plan, results),
                                   ANSWER_SECONDS)
            client = None
    if client is not None:
        client.go(False)


async def all_of(coroutines):
    """Waits for all, or for the first that fails."""
    tasks = [asyncio.ensure_future(one) for one in coroutines]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def wait_for_the_end(server, plan, expected):
    """Asks, and takes what a server says that is about to stop."""
    try:
        client = await Client.connect(server.port)
        head, body = completion(plan)
        await client.send(head + body)
        text, _ = await answer(client, plan, Results(), 0)
    except Cut:
        return "cut off"
    except (OSError, EOFError, asyncio.IncompleteReadError):
        return "not served"
    if text != expected[plan.prompt][:plan.max_tokens]:
        raise Failure(f"wrong answer at the end: {plan.prompt!r}: {text!r}")
    return "answered"


async def stop_with_clients(server, plans, expected):
    """Returns the server's last words, and how many clients heard what."""
    tasks = [asyncio.ensure_future(wait_for_the_end(server, plan, expected))
             for plan in plans]
    try:
        # Any moment is as good: nobody knows how far the requests are.
        await asyncio.sleep(0.05)
        words = await server.stop()
        heard = await asyncio.wait_for(asyncio.gather(*tasks), STOP_SECONDS)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return words, collections.Counter(heard)


# -- what is checked ----------------------------------------------------------


async def metrics(server):
    client = await Client.connect(server.port)
    try:
        page = await asyncio.wait_for(client.get("/metrics"), 30)
    finally:
        client.go(False)
    lines = (line.rsplit(" ", 1) for line in page.splitlines()
             if not line.startswith("#"))
    return {name: float(value) for name, value in lines}


async def drained(server, seconds):
    """Returns the metrics once nothing is left over."""
    until = time.monotonic() + seconds
    while True:
        values = await metrics(server)
        left = {name: values[name] for name in LEFT_OVER if values[name] != 0}
        # The one that asks is a connection itself.
        if values["serve_connections"] != 1:
            left["serve_connections"] = values["serve_connections"]
        if not left:
            return values
        if time.monotonic() > until:
            raise Failure(f"left over after {seconds} s: {left}")
        await asyncio.sleep(0.05)


def check(values, args, results):
    if results.wrong:
        raise Failure(f"{len(results.wrong)} wrong answers, the first: "
                      + results.wrong[0])
    trouble = {name: values[name] for name in TROUBLE if values[name] != 0}
    trouble.update({name: value for name, value in values.items()
                    if name.startswith("kvtide_order_errors") and value != 0})
    if trouble:
        raise Failure(f"there was trouble: {trouble}")
    outcome = lambda name: int(
        values[f'serve_completions_total{{outcome="{name}"}}'])
    ended = outcome("completed") + outcome("aborted")
    if outcome("submitted") != ended:
        raise Failure(f"{outcome('submitted')} were submitted, {ended} ended")
    # Nobody knows how many of these the server had whole.
    reset = sum(results.left[moment] for moment in RESET_MOMENTS)
    if not args.requests <= outcome("submitted") <= args.requests + reset:
        raise Failure(f"{outcome('submitted')} whole requests came, not "
                      f"{args.requests} and up to {reset}")
    if outcome("aborted") - reset < args.demand_aborts:
        raise Failure(f"{outcome('aborted')} requests were aborted, not "
                      f"{args.demand_aborts} besides the {reset} that were "
                      "reset: the others were answered before their clients "
                      "went; let more go")
    for state in args.demand.split(",") if args.demand else ():
        if values[f'serve_aborts_total{{state="{state}"}}'] == 0:
            raise Failure(f"nobody left while {state}; make the pools smaller "
                          "or the load larger, as this was to be tested")
    for name in ('serve_loads_total{outcome="done"}',
                 'kvtide_chunks_total{what="evicted"}'):
        if values[name] == 0:
            raise Failure(f"{name} is 0: the pools are too large for this test")


def percentile(times, share):
    times = sorted(times)
    return 1_000 * times[min(len(times) - 1, int(share * len(times)))]


def table(values, results, seconds):
    outcome = lambda name: int(
        values[f'serve_completions_total{{outcome="{name}"}}'])
    total = lambda moments: sum(results.left[moment] for moment in moments)
    rows = [("whole requests sent", results.completed + total(MOMENTS)),
            ("answered, all as expected", results.completed),
            ("went away", total(MOMENTS))]
    rows += [(f"  {moment}", results.left[moment]) for moment in MOMENTS]
    rows += [("on top, torn", total(TORN_MOMENTS))]
    rows += [(f"  {moment}", results.left[moment]) for moment in TORN_MOMENTS]
    rows += [("submitted to the engine", outcome("submitted")),
             ("completed by the engine", outcome("completed")),
             ("aborted by the engine", outcome("aborted"))]
    rows += [(f"  while {state}",
              int(values[f'serve_aborts_total{{state="{state}"}}']))
             for state in ("queued", "asking", "loading", "running",
                           "preempted")]
    times = results.first_token
    rows += [("time to first token, p50", f"{percentile(times, 0.5):.1f} ms"),
             ("time to first token, p99", f"{percentile(times, 0.99):.1f} ms"),
             ("hit tokens, device",
              int(values['serve_hit_tokens_total{from="device"}'])),
             ("hit tokens, host",
              int(values['serve_hit_tokens_total{from="host"}'])),
             ("computed tokens", int(values["serve_computed_tokens_total"])),
             ("loads", int(values['serve_loads_total{outcome="done"}'])),
             ("chunks stored",
              int(values['kvtide_chunks_total{what="stored"}'])),
             ("chunks evicted",
              int(values['kvtide_chunks_total{what="evicted"}'])),
             ("preemptions", int(values["serve_preemptions_total"])),
             ("seconds", f"{seconds:.1f}")]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value:>9}" for name, value in rows)


# -- all of it ----------------------------------------------------------------


async def expected_answers(args, prompts):
    """What a server without offloading answers, one request at a time."""
    model = ("--model", args.model)
    expected = {}
    async with Server(args.program, "--host-pool", "0", "--seed",
                      str(args.expect_seed), *model) as server:
        client = await Client.connect(server.port)
        for prompt in prompts:
            plan = Plan(random.Random(0), [prompt], None)
            plan.max_tokens, plan.stream = LONGEST_ANSWER, False
            head, body = completion(plan)
            await client.send(head + body)
            text, _ = await asyncio.wait_for(
                answer(client, plan, Results(), 0), ANSWER_SECONDS)
            if len(text) != LONGEST_ANSWER:
                raise Failure(f"{len(text)} bytes for {prompt!r}")
            expected[prompt] = text
        client.go(False)
        await server.stop()
    return expected


async def run(args):
    rng = random.Random(args.seed)
    prompts = make_prompts(rng, args.prompts)
    expected = await expected_answers(args, prompts)
    if len(set(expected.values())) < len(prompts) // 2:
        raise Failure("the answers hardly depend on the prompts")
    storm, calm = make_plans(rng, prompts, args.requests, args.disconnects,
                             args.torn)
    results = Results()
    async with Server(
            args.program, "--model", args.model,
            "--device-blocks", str(args.device_blocks),
            "--host-pool", args.host_pool,
            "--copy-latency", str(args.copy_latency),
            "--max-batch", "24", "--drain", "0.2") as server:
        began = time.monotonic()
        try:
            for plans, clients in ((storm, args.clients),
                                   (calm, CALM_CLIENTS)):
                await all_of(work(server, plans, expected, results)
                             for _ in range(clients))
        except (OSError, EOFError, asyncio.IncompleteReadError) as failure:
            await asyncio.sleep(0.5)
            server.check_alive()
            raise Failure(f"a client was hung up on: {failure!r}") from failure
        seconds = time.monotonic() - began
        server.check_alive()
        values = await drained(server, args.drain)
        client = await Client.connect(server.port)
        await asyncio.wait_for(client.get("/healthz"), 10)
        client.go(False)
        print(table(values, results, seconds))
        check(values, args, results)
        waiting = [Plan(rng, prompts, None) for _ in range(args.clients)]
        words, heard = await stop_with_clients(server, waiting, expected)
        print("told to stop while", args.clients, "clients wait:",
              ", ".join(f"{count} {what}" for what, count in heard.items()))
        print(words.strip())
        if "0 lost in the engine; left over: 0 requests, 0 copies, 0 pinned " \
           "and 0 held slots" not in words:
            raise Failure("something was left over at the end")


async def bounded(args):
    task = asyncio.ensure_future(run(args))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    await asyncio.wait_for(task, args.time_limit)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("program", help="kvtide-serve")
    parser.add_argument("--requests", type=int, default=5_000,
                        help="whole ones")
    parser.add_argument("--disconnects", type=int, default=2_000,
                        help="how many of the requests' clients go away")
    parser.add_argument("--torn", type=int, default=500,
                        help="how many clients more go in the middle of their "
                             "request, or with a reset before the answer")
    parser.add_argument("--demand-aborts", type=int, default=1_500,
                        help="how many requests the server must have aborted")
    parser.add_argument("--clients", type=int, default=256,
                        help="how many at a time")
    parser.add_argument("--prompts", type=int, default=240,
                        help="different ones")
    parser.add_argument("--model", default="full", help="full or sliding")
    parser.add_argument("--device-blocks", type=int, default=64)
    parser.add_argument("--host-pool", default="4MiB")
    parser.add_argument("--copy-latency", type=int, default=5_000,
                        help="microseconds")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--expect-seed", type=int, default=1,
                        help="another than 1 expects the answers of another "
                             "model; to see this test fail")
    parser.add_argument("--demand", default="queued,loading,running",
                        help="states in which somebody must have left")
    parser.add_argument("--drain", type=float, default=20,
                        help="seconds until nothing may be left over")
    parser.add_argument("--time-limit", type=float, default=600,
                        help="seconds for all of it")
    args = parser.parse_args()
    if not 0 <= args.disconnects < args.requests or args.clients < 1:
        parser.error("some clients must stay")
    try:
        asyncio.run(bounded(args))
    except Failure as failure:
        sys.exit(f"load.py: {failure}")
    except (asyncio.TimeoutError, asyncio.CancelledError):
        sys.exit(f"load.py: not done after {args.time_limit} s, or ended from "
                 "outside")


if __name__ == "__main__":
    main()
