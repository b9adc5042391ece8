/* SPDX-License-Identifier: Apache-2.0 */

/* kvtide from C: the KV of one request is stored, its blocks are overwritten,
 * and a second request with the same prompt gets every byte back instead of
 * computing it. Host memory stands in for that of a GPU.
 *
 *   cc -std=c99 quickstart.c $(pkg-config --cflags --libs kvtide)
 */

#include <kvtide/kvtide.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  TOKENS_PER_BLOCK = 16,
  PROMPT_TOKENS = 65, /* Four blocks, and one token that is always computed. */
  FULL_BLOCKS = 4,
  BLOCK_BYTES = 4096,
  BLOCKS = 16, /* Block 0 is a hole. */
  PATIENCE_MS = 20000
};

static unsigned char gpu[BLOCKS][BLOCK_BYTES];
static int32_t prompt[PROMPT_TOKENS];

static kvtide_runtime* runtime;
static kvtide_rank* rank;
static uint64_t step;

/* Ends the program with the sentence that an error brings. */
static void check(kvtide_status status, const char* what) {
  if (status == KVTIDE_OK)
    return;
  fprintf(stderr, "%s: %s: %s\n", what, kvtide_status_name(status),
          kvtide_last_error());
  exit(1);
}

/* What the model computes for a block of the prompt. */
static void compute(uint32_t block, int first_token) {
  size_t i;
  for (i = 0; i < BLOCK_BYTES; ++i)
    gpu[block][i]
      = (unsigned char)(prompt[first_token + (int)i % TOKENS_PER_BLOCK] * 31
                        + (int)(i / 7));
}

static void start(void) {
  kvtide_options options = {.struct_size = sizeof(options)};
  kvtide_group_options group = {.struct_size = sizeof(group)};
  kvtide_kv_tensor tensor = {.struct_size = sizeof(tensor)};
  kvtide_kv_reference reference = {.struct_size = sizeof(reference)};
  kvtide_kv_memory memory = {.struct_size = sizeof(memory)};
  kvtide_batch* answer;

  check(kvtide_group_options_init(&group), "group options");
  group.tokens_per_block = TOKENS_PER_BLOCK;
  check(kvtide_options_init(&options), "options");
  options.groups = &group;
  options.group_count = 1;
  options.blocks_per_chunk = 1;
  options.tokens_per_hash = TOKENS_PER_BLOCK;
  options.model_fingerprint = "toy";
  options.host_bytes = 1 << 20;
  check(kvtide_start(&options, &runtime), "start");

  /* One tensor, one layer. */
  tensor.base = gpu;
  tensor.bytes = sizeof(gpu);
  tensor.blocks = BLOCKS;
  tensor.block_stride = tensor.page_bytes = BLOCK_BYTES;
  reference.bytes = BLOCK_BYTES;
  check(kvtide_kv_memory_init(&memory), "memory");
  memory.tensors = &tensor;
  memory.tensor_count = 1;
  memory.references = &reference;
  memory.reference_count = 1;
  memory.model_fingerprint = "toy";
  check(kvtide_local_rank(runtime, 0, &rank), "rank");
  check(kvtide_rank_register_kv(rank, &memory), "register");
  check(
    kvtide_rank_await(rank, KVTIDE_EVENT_KV_REGISTERED, PATIENCE_MS, &answer),
    "register");
  printf("host pool: %u slots\n",
         (unsigned)kvtide_batch_at(answer, 0)->as.registered.slots);
  kvtide_batch_free(answer);
}

/* Begins a step; compute may write once this returns. Returns whether some job
 * is in flight. */
static int begin_step(const kvtide_step_row* row,
                      const kvtide_finish_call* finished) {
  kvtide_step_call call = {.struct_size = sizeof(call)};
  kvtide_batch* answer;
  uint64_t ticket;
  int pending;

  call.step = ++step;
  call.rows = row;
  call.row_count = row != NULL;
  call.finished = finished;
  call.finished_count = finished != NULL;
  check(kvtide_step(runtime, &call, &ticket), "step");
  check(kvtide_rank_begin_step(rank, step, NULL, 0), "begin step");
  check(kvtide_await(runtime, ticket, PATIENCE_MS, &answer), "plan");
  pending = kvtide_batch_at(answer, 0)->as.step_plan.pending_work != 0;
  kvtide_batch_free(answer);
  check(kvtide_rank_await(rank, KVTIDE_EVENT_STEP_READY, PATIENCE_MS, &answer),
        "ready");
  kvtide_batch_free(answer);
  return pending;
}

static void end_step(void) {
  check(kvtide_rank_end_step(rank, step, NULL, 0), "end step");
}

static void add(uint64_t request) {
  kvtide_add_request call = {.struct_size = sizeof(call)};
  kvtide_extend_keys keys = {.struct_size = sizeof(keys)};
  kvtide_hasher* hasher;

  check(kvtide_add_request_init(&call), "add");
  call.request = request;
  call.prompt_tokens = call.known_tokens = PROMPT_TOKENS;
  check(kvtide_add(runtime, &call, NULL), "add");
  check(kvtide_hasher_make(TOKENS_PER_BLOCK, NULL, 0, &hasher), "hasher");
  keys.request = request;
  keys.hash_bytes = KVTIDE_HASH_BYTES;
  check(kvtide_hasher_append(hasher, prompt, PROMPT_TOKENS, &keys.hashes,
                             &keys.hash_count),
        "hashes");
  check(kvtide_extend(runtime, &keys, NULL), "extend");
  kvtide_hasher_destroy(hasher);
}

/* Computes the tokens of a request that are not computed, then ends it. Steps
 * go on until what it leaves is stored. */
static void run_to_end(uint64_t request, uint32_t first_block, int computed) {
  uint32_t ids[FULL_BLOCKS + 1];
  kvtide_block_list table = {ids, FULL_BLOCKS + 1};
  kvtide_step_row row = {.struct_size = sizeof(row)};
  kvtide_finish_call finish = {.struct_size = sizeof(finish)};
  kvtide_batch* answer;
  uint64_t ticket;
  uint32_t i;

  for (i = 0; i <= FULL_BLOCKS; ++i)
    ids[i] = first_block + i;
  row.request = request;
  row.kind = KVTIDE_ROW_FRESH;
  row.new_blocks = &table;
  row.new_block_list_count = 1;
  row.computed = computed;
  row.scheduled = PROMPT_TOKENS - computed;
  row.known = PROMPT_TOKENS;
  begin_step(&row, NULL);
  for (i = (uint32_t)(computed / TOKENS_PER_BLOCK); i < FULL_BLOCKS; ++i)
    compute(first_block + i, (int)i * TOKENS_PER_BLOCK);
  end_step();

  finish.request = request;
  finish.reason = KVTIDE_FINISH_STOP;
  finish.known = finish.computed = PROMPT_TOKENS;
  check(kvtide_finish(runtime, &finish, &ticket), "finish");
  check(kvtide_await(runtime, ticket, PATIENCE_MS, &answer), "finish");
  kvtide_batch_free(answer);
  begin_step(NULL, &finish);
  end_step();
  while (begin_step(NULL, NULL))
    end_step();
  end_step();
}

/* Looks a request up, gives it blocks for what was found, and waits until they
 * are loaded. Returns the number of tokens. */
static int load(uint64_t request, uint32_t first_block) {
  kvtide_lookup_row row = {.struct_size = sizeof(row)};
  kvtide_allocated call = {.struct_size = sizeof(call)};
  uint32_t ids[FULL_BLOCKS];
  uint8_t hashed[FULL_BLOCKS] = {0};
  kvtide_block_list blocks = {ids, 0};
  kvtide_flag_list flags = {hashed, 0};
  kvtide_batch* batch;
  uint64_t ticket;
  int64_t tokens;
  size_t i;

  row.request = request;
  row.known_tokens = PROMPT_TOKENS;
  check(kvtide_lookup(runtime, &row, 1, &ticket), "lookup");
  check(kvtide_await(runtime, ticket, PATIENCE_MS, &batch), "lookup");
  tokens = kvtide_batch_at(batch, 0)->as.lookup.hits[0].tokens;
  kvtide_batch_free(batch);
  if (tokens == 0)
    return 0;

  blocks.count = flags.count = (size_t)tokens / TOKENS_PER_BLOCK;
  for (i = 0; i < blocks.count; ++i)
    ids[i] = first_block + (uint32_t)i;
  call.request = request;
  call.external = tokens;
  call.blocks = &blocks;
  call.block_list_count = 1;
  call.hashed = &flags;
  call.hashed_list_count = 1;
  check(kvtide_allocate(runtime, &call, NULL), "allocate");
  begin_step(NULL, NULL); /* The ranks hear of the load. */
  end_step();
  for (;;) {
    check(kvtide_wait(runtime, PATIENCE_MS), "load");
    check(kvtide_poll(runtime, &batch), "poll");
    for (i = 0; i < kvtide_batch_size(batch); ++i) {
      const kvtide_event* event = kvtide_batch_at(batch, i);
      if (event->kind == KVTIDE_EVENT_CALL_FAILED) {
        fprintf(stderr, "%s\n", event->as.failed.text);
        exit(1);
      }
      if (event->kind == KVTIDE_EVENT_LOAD_DONE
          && event->as.load.request == request) {
        kvtide_batch_free(batch);
        return (int)tokens;
      }
    }
    kvtide_batch_free(batch);
  }
}

int main(void) {
  static unsigned char computed[FULL_BLOCKS][BLOCK_BYTES];
  kvtide_batch* answer;
  uint64_t ticket;
  int tokens;
  int same;
  int i;

  for (i = 0; i < PROMPT_TOKENS; ++i)
    prompt[i] = i * i % 127;
  start();

  add(1);
  run_to_end(1, 1, 0);
  memcpy(computed, gpu[1], sizeof(computed));
  memset(gpu, 0xaa, sizeof(gpu)); /* Somebody else needs the blocks. */

  add(2);
  tokens = load(2, 8);
  same = tokens == FULL_BLOCKS * TOKENS_PER_BLOCK
      && memcmp(computed, gpu[8], sizeof(computed)) == 0;
  run_to_end(2, 8, tokens);

  check(kvtide_shutdown(runtime, PATIENCE_MS, &ticket), "shutdown");
  check(kvtide_await(runtime, ticket, PATIENCE_MS, &answer), "shutdown");
  kvtide_batch_free(answer);
  check(kvtide_get_stats(runtime, &ticket), "stats");
  check(kvtide_await(runtime, ticket, PATIENCE_MS, &answer), "stats");
  printf("%u chunks stored, %u loaded\n",
         (unsigned)kvtide_batch_at(answer, 0)->as.stats->stored_chunks,
         (unsigned)kvtide_batch_at(answer, 0)->as.stats->loaded_chunks);
  kvtide_batch_free(answer);
  kvtide_destroy(runtime);
  puts(same ? "every byte came back" : "wrong bytes came back");
  return same ? 0 : 1;
}
