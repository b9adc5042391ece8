#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kvtide from Python: what examples/c/quickstart.c does, in an event loop.

    KVTIDE_LIBRARY=build/release/libkvtide.so examples/python/quickstart.py

The KV of one request is stored, its blocks are overwritten, and a second request
with the same prompt gets every byte back instead of computing it. A bytearray
stands in for the memory of a GPU. Meanwhile the loop goes on with other work.
"""

import asyncio
import ctypes
import itertools
import sys

import kvtide

TOKENS_PER_BLOCK = 16
FULL_BLOCKS = 4
BLOCK_BYTES = 4096
BLOCKS = 16  # Block 0 is a hole.
PROMPT = [i * i % 127 for i in range(FULL_BLOCKS * TOKENS_PER_BLOCK + 1)]
PATIENCE = 60


def computed(index):
    """What the model computes for a block of the prompt."""
    tokens = PROMPT[index * TOKENS_PER_BLOCK:(index + 1) * TOKENS_PER_BLOCK]
    return bytes((31 * tokens[i % len(tokens)] + i // 7) % 256
                 for i in range(BLOCK_BYTES))


class Engine:
    """Steps of one request at a time."""

    def __init__(self, runtime, gpu):
        self.runtime, self.gpu = runtime, gpu
        self.steps = itertools.count(1)

    def block(self, number):
        return slice(number * BLOCK_BYTES, (number + 1) * BLOCK_BYTES)

    async def step(self, rows=(), finished=(), compute=lambda: None):
        """@returns whether some job is in flight"""
        number = next(self.steps)
        plan, _ = await asyncio.gather(
            self.runtime.step(number, rows, finished),
            self.runtime.rank.begin_step(number))
        compute()
        self.runtime.rank.end_step(number)
        return plan.pending_work

    async def load(self, request, first_block):
        """@returns how many tokens of the prompt need not be computed"""
        hit, = await self.runtime.lookup([(request, 0, len(PROMPT))])
        if hit.tokens == 0:
            return 0
        count = hit.tokens // TOKENS_PER_BLOCK
        loaded = self.runtime.allocate(
            request, hit.tokens, range(first_block, first_block + count))
        await self.step()  # The rank hears of the load.
        await loaded
        return hit.tokens

    async def run(self, request, first_block, done):
        """Computes what is not `done` and ends the request."""
        def compute():
            for index in range(done // TOKENS_PER_BLOCK, FULL_BLOCKS):
                self.gpu[self.block(first_block + index)] = computed(index)

        table = list(range(first_block, first_block + FULL_BLOCKS + 1))
        known = len(PROMPT)
        await self.step([(request, kvtide.FRESH, table, done, known - done, known)],
                        compute=compute)
        end = (request, kvtide.STOP, known, known)
        await self.runtime.finish(*end)
        await self.step(finished=[end])
        while await self.step():
            pass


async def tick(counter):
    """Stands for all else that a server does in its loop."""
    while True:
        counter.append(None)
        await asyncio.sleep(0)


async def main():
    gpu = bytearray(BLOCKS * BLOCK_BYTES)
    view = (ctypes.c_char * len(gpu)).from_buffer(gpu)
    runtime = kvtide.Runtime(
        kvtide.load_library(), tokens_per_block=TOKENS_PER_BLOCK,
        blocks_per_chunk=1, tokens_per_hash=TOKENS_PER_BLOCK,
        model_fingerprint="toy", host_bytes=1 << 20)
    ticks = []
    ticking = asyncio.create_task(tick(ticks))
    pool = await runtime.rank.register_kv(
        ctypes.addressof(view), len(gpu), BLOCKS, BLOCK_BYTES, "toy")
    print(f"host pool: {pool.slots} slots")
    engine = Engine(runtime, gpu)

    runtime.add(1, PROMPT)
    await engine.run(1, first_block=1, done=0)
    gpu[:] = b"\xaa" * len(gpu)  # Somebody else needs the blocks.

    runtime.add(2, PROMPT)
    tokens = await engine.load(2, first_block=8)
    same = tokens == FULL_BLOCKS * TOKENS_PER_BLOCK and all(
        gpu[engine.block(8 + index)] == computed(index)
        for index in range(FULL_BLOCKS))
    await engine.run(2, first_block=8, done=tokens)

    await runtime.shutdown(PATIENCE * 1000)
    # A call that makes no sense comes back with a sentence.
    try:
        await runtime.shutdown(0)
        same = False
    except kvtide.Error as error:
        print(f"as it should be: {error}")
    stats = await runtime.stats()
    print(f"{stats['stored_chunks']} chunks stored, {stats['loaded_chunks']} "
          f"loaded, the loop went round {len(ticks)} times")
    await runtime.rank.unregister_kv()
    ticking.cancel()
    runtime.close()
    print("every byte came back" if same else "wrong bytes came back")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(asyncio.wait_for(main(), PATIENCE)))
