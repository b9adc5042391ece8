# SPDX-License-Identifier: Apache-2.0
"""kvtide for asyncio, with ctypes alone: no build step.

The structs below are those of include/kvtide/kvtide.h that an engine needs to
store and load; the project's tests compare their layout with the library's. Take
this file as a beginning of your own.

    runtime = kvtide.Runtime(kvtide.load_library(), host_bytes=1 << 30)
    await runtime.rank.register_kv(...)
    hits = await runtime.lookup([(request, local_tokens, known_tokens)])

Calls go out at once, in the order in which they are made, and each `await` ends
when the event loop sees the answer. Nothing here starts a thread, and nothing but
a process that ends waits for kvtide. After `close` every call raises a
`RuntimeError`, and what was awaited is cancelled.
"""

import asyncio
import ctypes as c
import os
from collections import namedtuple

# -- errors ----------------------------------------------------------------------

OK, TIMEOUT = 0, 10


class Error(Exception):
    """What kvtide says to a call that had no effect."""

    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


# -- structs ---------------------------------------------------------------------


class Sized(c.Structure):
    """A struct that begins with its size."""

    def __init__(self, **members):
        super().__init__(struct_size=c.sizeof(self), **members)


class kvtide_group_options(Sized):
    _fields_ = [("struct_size", c.c_size_t),
                ("tokens_per_block", c.c_int32),
                ("sliding_window_tokens", c.c_int32),
                ("draft", c.c_uint32),
                ("reserved", c.c_uint32)]


class kvtide_options(Sized):
    _fields_ = [("struct_size", c.c_size_t),
                ("groups", c.POINTER(kvtide_group_options)),
                ("group_count", c.c_size_t),
                ("model_fingerprint", c.c_char_p),
                ("host_bytes", c.c_uint64),
                ("blocks_per_chunk", c.c_int32),
                ("tokens_per_hash", c.c_int32),
                ("ranks", c.c_uint32),
                ("policy", c.c_int32),
                ("store_threshold", c.c_uint32),
                ("offload_prompt_only", c.c_uint32),
                ("enable_prefix_caching", c.c_uint32),
                ("cache_events", c.c_uint32),
                ("rules", c.c_int32),
                ("max_deferrals", c.c_uint32),
                ("promise_steps", c.c_uint32),
                ("store_retries", c.c_uint32),
                ("max_store_jobs", c.c_uint32),
                ("delivery", c.c_int32),
                ("device", c.c_int32),
                ("order_checks", c.c_int32),
                ("actor_threads", c.c_uint32),
                ("reserved", c.c_uint32),
                ("job_deadline_ms", c.c_int64),
                ("idle_delay_ms", c.c_int64),
                ("copy_latency_us", c.c_int64),
                ("copy_bytes_per_second", c.c_uint64),
                ("cuda", c.c_void_p)]


class kvtide_add_request(Sized):
    _fields_ = [("struct_size", c.c_size_t),
                ("request", c.c_uint64),
                ("prompt_tokens", c.c_int64),
                ("known_tokens", c.c_int64),
                ("cap", c.c_int64),
                ("no_read", c.c_uint32),
                ("no_store", c.c_uint32),
                ("prompt_only", c.c_uint32),
                ("priority", c.c_int32),
                ("time_to_live", c.c_uint32),
                ("reserved", c.c_uint32),
                ("tenant", c.c_char_p)]


class kvtide_extend_keys(Sized):
    _fields_ = [("struct_size", c.c_size_t),
                ("request", c.c_uint64),
                ("first", c.c_uint64),
                ("hashes", c.c_void_p),
                ("hash_bytes", c.c_size_t),
                ("hash_count", c.c_size_t),
                ("token_ids", c.POINTER(c.c_int32)),
                ("token_id_count", c.c_size_t),
                ("parent", c.c_void_p),
                ("parent_bytes", c.c_size_t)]


class kvtide_lookup_row(Sized):
    _fields_ = [("struct_size", c.c_size_t),
                ("request", c.c_uint64),
                ("local", c.c_int64),
                ("known_tokens", c.c_int64)]


class kvtide_block_list(c.Structure):
    _fields_ = [("ids", c.POINTER(c.c_uint32)),
                ("count", c.c_size_t)]


class kvtide_flag_list(c.Structure):
    _fields_ = [("flags", c.POINTER(c.c_uint8)),
                ("count", c.c_size_t)]


class kvtide_allocated(Sized):
    _fields_ = [("struct_size", c.c_size_t),
                ("request", c.c_uint64),
                ("external", c.c_int64),
                ("blocks", c.POINTER(kvtide_block_list)),
                ("block_list_count", c.c_size_t),
                ("hashed", c.POINTER(kvtide_flag_list)),
                ("hashed_list_count", c.c_size_t)]


class kvtide_finish_call(Sized):
    _fields_ = [("struct_size", c.c_size_t),
                ("request", c.c_uint64),
                ("reason", c.c_int32),
                ("reserved", c.c_uint32),
                ("known", c.c_int64),
                ("computed", c.c_int64)]


class kvtide_step_row(Sized):
    _fields_ = [("struct_size", c.c_size_t),
                ("request", c.c_uint64),
                ("kind", c.c_int32),
                ("reserved", c.c_uint32),
                ("new_blocks", c.POINTER(kvtide_block_list)),
                ("new_block_list_count", c.c_size_t),
                ("computed", c.c_int64),
                ("scheduled", c.c_int64),
                ("known", c.c_int64)]


class kvtide_step_call(Sized):
    _fields_ = [("struct_size", c.c_size_t),
                ("step", c.c_uint64),
                ("rows", c.POINTER(kvtide_step_row)),
                ("row_count", c.c_size_t),
                ("preempted", c.POINTER(c.c_uint64)),
                ("preempted_count", c.c_size_t),
                ("finished", c.POINTER(kvtide_finish_call)),
                ("finished_count", c.c_size_t)]


class kvtide_kv_tensor(Sized):
    _fields_ = [("struct_size", c.c_size_t),
                ("base", c.c_void_p),
                ("bytes", c.c_uint64),
                ("block_stride", c.c_uint64),
                ("page_bytes", c.c_uint64),
                ("blocks", c.c_uint32),
                ("kind", c.c_int32)]


class kvtide_kv_reference(Sized):
    _fields_ = [("struct_size", c.c_size_t),
                ("group", c.c_uint32),
                ("layer", c.c_uint32),
                ("tensor", c.c_uint32),
                ("reserved", c.c_uint32),
                ("offset", c.c_uint64),
                ("bytes", c.c_uint64)]


class kvtide_kv_memory(Sized):
    _fields_ = [("struct_size", c.c_size_t),
                ("rank", c.c_uint32),
                ("device", c.c_int32),
                ("tensors", c.POINTER(kvtide_kv_tensor)),
                ("tensor_count", c.c_size_t),
                ("references", c.POINTER(kvtide_kv_reference)),
                ("reference_count", c.c_size_t),
                ("streams", c.POINTER(c.c_uint64)),
                ("stream_count", c.c_size_t),
                ("writer", c.c_uint32),
                ("writers", c.c_uint32),
                ("model_fingerprint", c.c_char_p)]


class kvtide_id_list(c.Structure):
    _fields_ = [("ids", c.POINTER(c.c_uint64)),
                ("count", c.c_size_t)]


class kvtide_lookup_hit(c.Structure):
    _fields_ = [("request", c.c_uint64),
                ("tokens", c.c_int64),
                ("promise", c.c_uint64),
                ("ask_again", c.c_uint32),
                ("reserved", c.c_uint32)]


class kvtide_lookup_answer(c.Structure):
    _fields_ = [("hits", c.POINTER(kvtide_lookup_hit)),
                ("hit_count", c.c_size_t)]


class kvtide_step_plan(c.Structure):
    _fields_ = [("step", c.c_uint64),
                ("loads", c.c_void_p),
                ("load_count", c.c_size_t),
                ("stores", c.c_void_p),
                ("store_count", c.c_size_t),
                ("flush", kvtide_id_list),
                ("bytes", c.c_void_p),
                ("byte_count", c.c_size_t),
                ("pending_work", c.c_uint32),
                ("reserved", c.c_uint32)]


class kvtide_finish_answer(c.Structure):
    _fields_ = [("request", c.c_uint64),
                ("held", kvtide_block_list)]


class kvtide_stats(c.Structure):
    _fields_ = [("struct_size", c.c_size_t)] + [
        (name, c.c_uint64) for name in
        """tracked_requests jobs_in_flight host_slots free_slots
           quarantined_slots pinned_slots held_slots writing_slots watched_blocks
           sliding_entries steps lookups deferrals hit_tokens store_jobs load_jobs
           failed_jobs stored_chunks loaded_chunks evicted_chunks refused_stores
           flushed_jobs resets order_errors""".split()
    ] + [("order_errors_by_rule", c.c_uint64 * 14),
         ("lost_requests", c.c_uint64),
         ("lost_caches", c.c_uint64),
         ("late_messages", c.c_uint64)]


class kvtide_call_done(c.Structure):
    _fields_ = [("in_flight", kvtide_id_list)]


class kvtide_failure(c.Structure):
    _fields_ = [("request", c.c_uint64),
                ("text", c.c_char_p),
                ("code", c.c_int32),
                ("reserved", c.c_uint32)]


class kvtide_load_end(c.Structure):
    _fields_ = [("request", c.c_uint64),
                ("job", c.c_uint64),
                ("first_bad_token", c.c_int64),
                ("blocks", kvtide_block_list),
                ("use_new_blocks", c.c_uint32),
                ("reserved", c.c_uint32)]


class kvtide_kv_registered(c.Structure):
    _fields_ = [("slots", c.c_uint64),
                ("slot_bytes", c.c_uint64),
                ("code", c.c_int32),
                ("reserved", c.c_uint32),
                ("text", c.c_char_p),
                ("notes", c.POINTER(c.c_char_p)),
                ("note_count", c.c_size_t)]


class kvtide_step_ready(c.Structure):
    _fields_ = [("step", c.c_uint64),
                ("fence_handle", c.c_uint64),
                ("fence_kind", c.c_int32),
                ("reserved", c.c_uint32)]


class _as(c.Union):
    _fields_ = [("lookup", kvtide_lookup_answer),
                ("step_plan", kvtide_step_plan),
                ("finish", kvtide_finish_answer),
                ("stats", c.POINTER(kvtide_stats)),
                ("done", kvtide_call_done),
                ("failed", kvtide_failure),
                ("load", kvtide_load_end),
                ("registered", kvtide_kv_registered),
                ("ready", kvtide_step_ready)]


class kvtide_event(c.Structure):
    _anonymous_ = ["as"]
    _fields_ = [("struct_size", c.c_size_t),
                ("kind", c.c_int32),
                ("rank", c.c_uint32),
                ("ticket", c.c_uint64),
                ("as", _as)]


(LOOKUP, STEP_PLAN, FINISH, STATS, CALL_DONE, CALL_FAILED, LOAD_DONE,
 LOAD_FAILED, RUNTIME_LOST) = 1, 2, 3, 4, 6, 7, 8, 9, 15
KV_REGISTERED, KV_UNREGISTERED, STEP_READY, RANK_FAILED = 101, 102, 103, 104

# -- functions -------------------------------------------------------------------

_SIGNATURES = {
    "kvtide_options_init": [c.POINTER(kvtide_options)],
    "kvtide_group_options_init": [c.POINTER(kvtide_group_options)],
    "kvtide_add_request_init": [c.POINTER(kvtide_add_request)],
    "kvtide_kv_memory_init": [c.POINTER(kvtide_kv_memory)],
    "kvtide_start": [c.POINTER(kvtide_options), c.POINTER(c.c_void_p)],
    "kvtide_add": [c.c_void_p, c.POINTER(kvtide_add_request),
                   c.POINTER(c.c_uint64)],
    "kvtide_extend": [c.c_void_p, c.POINTER(kvtide_extend_keys),
                      c.POINTER(c.c_uint64)],
    "kvtide_lookup": [c.c_void_p, c.POINTER(kvtide_lookup_row), c.c_size_t,
                      c.POINTER(c.c_uint64)],
    "kvtide_allocate": [c.c_void_p, c.POINTER(kvtide_allocated),
                        c.POINTER(c.c_uint64)],
    "kvtide_finish": [c.c_void_p, c.POINTER(kvtide_finish_call),
                      c.POINTER(c.c_uint64)],
    "kvtide_step": [c.c_void_p, c.POINTER(kvtide_step_call),
                    c.POINTER(c.c_uint64)],
    "kvtide_get_stats": [c.c_void_p, c.POINTER(c.c_uint64)],
    "kvtide_shutdown": [c.c_void_p, c.c_int64, c.POINTER(c.c_uint64)],
    "kvtide_poll": [c.c_void_p, c.POINTER(c.c_void_p)],
    "kvtide_local_rank": [c.c_void_p, c.c_uint32, c.POINTER(c.c_void_p)],
    "kvtide_rank_register_kv": [c.c_void_p, c.POINTER(kvtide_kv_memory)],
    "kvtide_rank_unregister_kv": [c.c_void_p],
    "kvtide_rank_begin_step": [c.c_void_p, c.c_uint64, c.c_void_p, c.c_size_t],
    "kvtide_rank_end_step": [c.c_void_p, c.c_uint64, c.POINTER(c.c_uint64),
                             c.c_size_t],
    "kvtide_rank_poll": [c.c_void_p, c.POINTER(c.c_void_p)],
    "kvtide_hasher_make": [c.c_int32, c.c_void_p, c.c_size_t,
                           c.POINTER(c.c_void_p)],
    "kvtide_hasher_append": [c.c_void_p, c.POINTER(c.c_int32), c.c_size_t,
                             c.POINTER(c.c_void_p), c.POINTER(c.c_size_t)],
}

_OTHERS = {
    "kvtide_last_error": ([], c.c_char_p),
    "kvtide_destroy": ([c.c_void_p], None),
    "kvtide_event_fd": ([c.c_void_p], c.c_int),
    "kvtide_rank_event_fd": ([c.c_void_p], c.c_int),
    "kvtide_batch_size": ([c.c_void_p], c.c_size_t),
    "kvtide_batch_at": ([c.c_void_p, c.c_size_t], c.POINTER(kvtide_event)),
    "kvtide_batch_free": ([c.c_void_p], None),
    "kvtide_hasher_destroy": ([c.c_void_p], None),
}


class Library:
    """The functions. Those that return a status raise `Error` instead."""

    def __init__(self, path):
        self._dll = c.CDLL(path)
        for name, (arguments, result) in _OTHERS.items():
            function = getattr(self._dll, name)
            function.argtypes, function.restype = arguments, result
            setattr(self, name, function)
        for name, arguments in _SIGNATURES.items():
            function = getattr(self._dll, name)
            function.argtypes, function.restype = arguments, c.c_int32
            setattr(self, name, self._checked(function))

    def _checked(self, function):
        def call(*arguments):
            status = function(*arguments)
            if status != OK:
                raise Error(status, self.kvtide_last_error().decode())
        return call


def load_library(path=None):
    """@param path of the library; else that of KVTIDE_LIBRARY, else installed."""
    return Library(path or os.environ.get("KVTIDE_LIBRARY", "libkvtide.so.0.1"))


# -- what an engine uses ---------------------------------------------------------

Hit = namedtuple("Hit", "request tokens promise ask_again")
Plan = namedtuple("Plan", "step flush pending_work bytes")
Pool = namedtuple("Pool", "slots slot_bytes notes")
Ready = namedtuple("Ready", "step fence_kind fence_handle")

FRESH, RUNNING, RESUMED = 0, 1, 2
STOP, LENGTH, REPETITION, ABORT, FINISH_ERROR, IGNORED = range(6)


def _numbers(kind, numbers):
    return (kind * len(numbers))(*numbers)


def _fill(struct, members):
    """Sets members by their names. ctypes itself would take any name."""
    known = {name for name, _ in struct._fields_}
    for name, value in members.items():
        if name not in known:
            raise TypeError(f"{type(struct).__name__} has no member {name!r}")
        text = isinstance(value, str)
        setattr(struct, name, value.encode() if text else value)


def _block_lists(groups):
    """One list of block ids for each group."""
    lists = [kvtide_block_list(_numbers(c.c_uint32, ids), len(ids))
             for ids in groups]
    return (kvtide_block_list * len(lists))(*lists)


class _Inbox:
    """Polls one side of a runtime when its event fd says so."""

    def __init__(self, library, handle, poll, fd):
        self._library, self._open_handle, self._poll = library, handle, poll
        self._fd = fd(handle)
        self._waiting = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._on_readable)

    @property
    def _handle(self):
        if self._open_handle is None:
            raise RuntimeError("this runtime is closed: make another one")
        return self._open_handle

    def _close(self):
        """No call gets a handle from here on: it may be gone."""
        self._open_handle = None
        self._loop.remove_reader(self._fd)
        for future in self._waiting.values():
            future.cancel()

    def answer_to(self, key):
        """A future that ends when somebody calls `_settle` with this key. Who asks
        for the same has the same one."""
        future = self._waiting.get(key)
        if future is None or future.done():
            future = self._waiting[key] = self._loop.create_future()
        return future

    def _settle(self, key, value=None, error=None):
        future = self._waiting.pop(key, None)
        if future is None or future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def _fail_all(self, error):
        for key in list(self._waiting):
            self._settle(key, error=error)

    def _on_readable(self):
        batch = c.c_void_p()
        self._poll(self._handle, c.byref(batch))
        try:
            for index in range(self._library.kvtide_batch_size(batch)):
                # Valid until the batch is freed: whatever stays is copied.
                self._take(self._library.kvtide_batch_at(batch, index).contents)
        finally:
            self._library.kvtide_batch_free(batch)


class Rank(_Inbox):
    """The side that owns the GPU. From `Runtime.rank`."""

    def __init__(self, library, handle):
        super().__init__(library, handle, library.kvtide_rank_poll,
                         library.kvtide_rank_event_fd)
        # By step: that it may be computed, from when kvtide says so to its end.
        self._ready = {}

    async def register_kv(self, base, bytes, blocks, block_bytes,
                          model_fingerprint=""):
        """One tensor with one layer. The memory must stay until unregistered."""
        tensor = kvtide_kv_tensor(base=base, bytes=bytes, blocks=blocks,
                                  block_stride=block_bytes,
                                  page_bytes=block_bytes)
        reference = kvtide_kv_reference(bytes=block_bytes)
        memory = kvtide_kv_memory()
        self._library.kvtide_kv_memory_init(memory)
        memory.tensors, memory.tensor_count = c.pointer(tensor), 1
        memory.references, memory.reference_count = c.pointer(reference), 1
        memory.model_fingerprint = model_fingerprint.encode()
        self._library.kvtide_rank_register_kv(self._handle, memory)
        return await self.answer_to(KV_REGISTERED)

    async def unregister_kv(self):
        self._library.kvtide_rank_unregister_kv(self._handle)
        await self.answer_to(KV_UNREGISTERED)

    async def begin_step(self, step, plan=b""):
        """Ends when compute of the step may be enqueued, behind the fence: not
        before `end_step` of the one before it. May be awaited again, also after a
        timeout, until the step ends."""
        handle, key = self._handle, (STEP_READY, step)
        # A rank takes each plan once.
        if key not in self._waiting and not (plan and step in self._ready):
            self._library.kvtide_rank_begin_step(handle, step, plan or None,
                                                 len(plan))
        # Without a plan, kvtide may have said so before it was asked.
        if step in self._ready:
            return self._ready[step]
        # Whoever stops waiting does not stop the others.
        return await asyncio.shield(self.answer_to(key))

    def end_step(self, step, events=()):
        self._library.kvtide_rank_end_step(
            self._handle, step, _numbers(c.c_uint64, events), len(events))
        self._ready = {one: ready for one, ready in self._ready.items()
                       if one > step}

    def _take(self, event):
        if event.kind == KV_REGISTERED:
            pool = event.registered
            if pool.code != OK:
                error = Error(pool.code, pool.text.decode())
                return self._settle(KV_REGISTERED, error=error)
            notes = [pool.notes[i].decode() for i in range(pool.note_count)]
            self._settle(KV_REGISTERED, Pool(pool.slots, pool.slot_bytes, notes))
        elif event.kind == KV_UNREGISTERED:
            self._settle(KV_UNREGISTERED)
        elif event.kind == STEP_READY:
            ready = Ready(event.ready.step, event.ready.fence_kind,
                          event.ready.fence_handle)
            self._ready[ready.step] = ready
            self._settle((STEP_READY, ready.step), ready)
        elif event.kind == RANK_FAILED:
            self._fail_all(Error(event.failed.code, event.failed.text.decode()))


class Runtime(_Inbox):
    """A runtime with one KV group and one rank. Make it in a running loop."""

    def __init__(self, library, *, tokens_per_block=16, **options):
        group = kvtide_group_options()
        library.kvtide_group_options_init(group)
        group.tokens_per_block = tokens_per_block
        opts = kvtide_options()
        library.kvtide_options_init(opts)
        opts.groups, opts.group_count = c.pointer(group), 1
        _fill(opts, options)
        handle = c.c_void_p()
        library.kvtide_start(opts, c.byref(handle))
        super().__init__(library, handle, library.kvtide_poll,
                         library.kvtide_event_fd)
        side = c.c_void_p()
        library.kvtide_local_rank(handle, 0, c.byref(side))
        self.rank = Rank(library, side)
        self.tokens_per_hash = opts.tokens_per_hash
        # Notices that nobody waits for: (kind, request, rank).
        self.notices = []

    def close(self):
        """Blocks until no copy is running; `shutdown` comes first. No effect if
        it is closed already."""
        if self._open_handle is None:
            return
        handle = self._open_handle
        self.rank._close()
        self._close()
        self._library.kvtide_destroy(handle)

    # -- calls without an answer -------------------------------------------------

    def add(self, request, tokens, **members):
        """Tells of a request and of the hashes of its prompt."""
        call = kvtide_add_request()
        self._library.kvtide_add_request_init(call)
        call.request = request
        call.prompt_tokens = call.known_tokens = len(tokens)
        _fill(call, members)
        self._send("kvtide_add", call)
        hasher, hashes, count = c.c_void_p(), c.c_void_p(), c.c_size_t()
        self._library.kvtide_hasher_make(self.tokens_per_hash, None, 0,
                                         c.byref(hasher))
        try:
            self._library.kvtide_hasher_append(
                hasher, _numbers(c.c_int32, tokens), len(tokens),
                c.byref(hashes), c.byref(count))
            self._send("kvtide_extend",
                       kvtide_extend_keys(request=request, hashes=hashes,
                                          hash_bytes=16, hash_count=count))
        finally:
            self._library.kvtide_hasher_destroy(hasher)

    def allocate(self, request, external, blocks):
        """@returns a future that ends when compute may read the loaded blocks"""
        tables = _block_lists([blocks])
        hashed = _numbers(c.c_uint8, [0] * len(blocks))
        flags = (kvtide_flag_list * 1)(kvtide_flag_list(hashed, len(blocks)))
        self._send("kvtide_allocate",
                   kvtide_allocated(request=request, external=external,
                                    blocks=tables, block_list_count=1,
                                    hashed=flags, hashed_list_count=1))
        return self.answer_to(("load", request))

    # -- calls with an answer ----------------------------------------------------

    async def lookup(self, rows):
        """@param rows of (request, local tokens, known tokens)"""
        each = [kvtide_lookup_row(request=request, local=local,
                                  known_tokens=known)
                for request, local, known in rows]
        return await self._ask("kvtide_lookup",
                               (kvtide_lookup_row * len(each))(*each), len(each))

    async def step(self, step, rows=(), finished=()):
        """@param rows of (request, kind, blocks, computed, scheduled, known)"""
        each = []
        for request, kind, blocks, computed, scheduled, known in rows:
            row = kvtide_step_row(request=request, kind=kind, computed=computed,
                                  scheduled=scheduled, known=known)
            if blocks:
                row.new_blocks = _block_lists([blocks])
                row.new_block_list_count = 1
            each.append(row)
        ended = [self._finish_call(*one) for one in finished]
        return await self._ask("kvtide_step", kvtide_step_call(
            step=step,
            rows=(kvtide_step_row * len(each))(*each), row_count=len(each),
            finished=(kvtide_finish_call * len(ended))(*ended),
            finished_count=len(ended)))

    async def finish(self, request, reason, known, computed):
        """@returns blocks that may not be used again yet"""
        return await self._ask(
            "kvtide_finish", self._finish_call(request, reason, known, computed))

    async def stats(self):
        return await self._ask("kvtide_get_stats")

    async def shutdown(self, deadline_ms):
        """@returns jobs that are still in flight"""
        return await self._ask("kvtide_shutdown", deadline_ms)

    # -- inside ------------------------------------------------------------------

    @staticmethod
    def _finish_call(request, reason, known, computed):
        return kvtide_finish_call(request=request, reason=reason, known=known,
                                  computed=computed)

    def _send(self, name, *arguments):
        ticket = c.c_uint64()
        getattr(self._library, name)(self._handle, *arguments, c.byref(ticket))
        return ticket.value

    async def _ask(self, name, *arguments):
        return await self.answer_to(self._send(name, *arguments))

    def _take(self, event):
        if event.kind == LOOKUP:
            hits = [event.lookup.hits[i] for i in range(event.lookup.hit_count)]
            self._settle(event.ticket, [
                Hit(hit.request, hit.tokens, hit.promise, bool(hit.ask_again))
                for hit in hits])
        elif event.kind == STEP_PLAN:
            plan = event.step_plan
            self._settle(event.ticket, Plan(
                plan.step, plan.flush.ids[:plan.flush.count],
                bool(plan.pending_work),
                c.string_at(plan.bytes, plan.byte_count)))
        elif event.kind == FINISH:
            held = event.finish.held
            self._settle(event.ticket, held.ids[:held.count])
        elif event.kind == STATS:
            stats = event.stats.contents
            self._settle(event.ticket, {
                name: getattr(stats, name)
                for name, kind in stats._fields_ if kind is c.c_uint64})
        elif event.kind == CALL_DONE:
            jobs = event.done.in_flight
            self._settle(event.ticket, jobs.ids[:jobs.count])
        elif event.kind == CALL_FAILED:
            error = Error(event.failed.code, event.failed.text.decode())
            if event.ticket in self._waiting:
                self._settle(event.ticket, error=error)
            else:
                self._settle(("load", event.failed.request), error=error)
                self.notices.append((event.kind, event.failed.request, error))
        elif event.kind == LOAD_DONE:
            self._settle(("load", event.load.request))
        elif event.kind == LOAD_FAILED:
            self._settle(("load", event.load.request), error=Error(
                LOAD_FAILED, f"recompute from token {event.load.first_bad_token}"))
        elif event.kind == RUNTIME_LOST:
            self._fail_all(Error(event.failed.code, event.failed.text.decode()))
        else:
            self.notices.append((event.kind, 0, event.rank))
