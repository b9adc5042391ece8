#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""What examples/python/kvtide.py promises to those who await in any order, who
stop waiting, and who forget that they have closed it.

    KVTIDE_LIBRARY=build/release/libkvtide.so tests/examples/asyncio_test.py
"""

import asyncio
import ctypes
import pathlib
import sys
import unittest

sys.path.insert(
    0, str(pathlib.Path(__file__).parents[2] / "examples" / "python"))

import kvtide  # noqa: E402

PATIENCE = 30  # Seconds. Only something broken is waited for so long.
BLOCKS, BLOCK_BYTES = 8, 64
DELIVERY_BY_ENGINE = 1


def soon(awaitable):
    return asyncio.wait_for(awaitable, PATIENCE)


class Fixture(unittest.IsolatedAsyncioTestCase):
    def start(self, **options):
        self.runtime = kvtide.Runtime(
            kvtide.load_library(), host_bytes=1 << 16, blocks_per_chunk=1,
            **options)
        self.rank = self.runtime.rank
        self.addCleanup(self.runtime.close)

    async def serve(self, **options):
        self.start(**options)
        self.gpu = (ctypes.c_char * (BLOCKS * BLOCK_BYTES))()
        await soon(self.rank.register_kv(
            ctypes.addressof(self.gpu), len(self.gpu), BLOCKS, BLOCK_BYTES))

    def said_ready(self):
        """@returns an event that is set once kvtide has said so of a step"""
        said, take = asyncio.Event(), self.rank._take

        def listen(event):
            take(event)
            if event.kind == kvtide.STEP_READY:
                said.set()

        self.rank._take = listen
        return said


class Steps(Fixture):
    async def test_may_be_awaited_after_they_are_ready(self):
        await self.serve()
        said = self.said_ready()
        await soon(self.runtime.step(1))
        await soon(said.wait())
        self.assertEqual((await soon(self.rank.begin_step(1))).step, 1)
        self.assertEqual((await soon(self.rank.begin_step(1))).step, 1)

    async def test_are_not_taken_for_one_another(self):
        await self.serve()
        said = self.said_ready()
        first = asyncio.create_task(self.rank.begin_step(1))
        await asyncio.sleep(0)
        first.cancel()
        second = asyncio.create_task(self.rank.begin_step(2))
        await soon(asyncio.gather(self.runtime.step(1), self.runtime.step(2)))
        await soon(said.wait())
        self.assertFalse(second.done(), "step 1 has not ended")
        self.assertEqual((await soon(self.rank.begin_step(1))).step, 1)
        self.rank.end_step(1)
        self.assertEqual((await soon(second)).step, 2)
        self.rank.end_step(2)
        self.assertEqual(self.rank._ready, {}, "what has ended is forgotten")

    async def test_may_be_awaited_by_several(self):
        await self.serve()
        each = [asyncio.create_task(self.rank.begin_step(1)) for _ in range(3)]
        await asyncio.sleep(0)
        each.pop(0).cancel()
        await soon(self.runtime.step(1))
        ready = await soon(asyncio.gather(*each))
        self.assertEqual([one.step for one in ready], [1, 1])

    async def test_hand_each_plan_on_once(self):
        await self.serve(delivery=DELIVERY_BY_ENGINE)
        plan = await soon(self.runtime.step(1))
        ready = await soon(asyncio.gather(
            *(self.rank.begin_step(1, plan.bytes) for _ in range(2))))
        ready.append(await soon(self.rank.begin_step(1, plan.bytes)))
        self.assertEqual([one.step for one in ready], [1, 1, 1])
        self.rank.end_step(1)
        # A plan that came twice would end this one with an error.
        plan = await soon(self.runtime.step(2))
        ready = await soon(self.rank.begin_step(2, plan.bytes))
        self.assertEqual(ready.step, 2)


class Closed(Fixture):
    async def test_runtimes_refuse_every_call(self):
        self.start()
        self.runtime.close()
        for call in (self.runtime.stats, lambda: self.runtime.step(1),
                     lambda: self.runtime.lookup([]),
                     lambda: self.runtime.shutdown(0),
                     lambda: self.rank.register_kv(0, 0, 0, 0),
                     lambda: self.rank.begin_step(1),
                     self.rank.unregister_kv):
            with self.assertRaisesRegex(RuntimeError, "is closed"):
                await soon(call())
        for call in (lambda: self.runtime.add(1, [1]),
                     lambda: self.runtime.allocate(1, 16, [1]),
                     lambda: self.rank.end_step(1)):
            with self.assertRaisesRegex(RuntimeError, "is closed"):
                call()

    async def test_runtimes_may_be_closed_again(self):
        self.start()
        self.runtime.close()
        self.runtime.close()

    async def test_runtimes_cancel_what_was_awaited(self):
        await self.serve()
        step = asyncio.create_task(self.rank.begin_step(1))
        await asyncio.sleep(0)
        self.runtime.close()
        with self.assertRaises(asyncio.CancelledError):
            await soon(step)


class Options(Fixture):
    async def test_that_do_not_exist_are_named(self):
        with self.assertRaisesRegex(TypeError, "'nonsense'"):
            self.start(nonsense=3)
        self.start()
        with self.assertRaisesRegex(TypeError, "'nonsense'"):
            self.runtime.add(1, [1], nonsense=3)


if __name__ == "__main__":
    unittest.main()
