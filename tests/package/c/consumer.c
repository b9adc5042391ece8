/* SPDX-License-Identifier: Apache-2.0 */

#include <kvtide/kvtide.h>
#include <stdio.h>

int main(void) {
  kvtide_options options = {.struct_size = sizeof(options)};
  kvtide_runtime* runtime;
  kvtide_batch* answer;
  uint64_t ticket;
  int status = kvtide_options_init(&options);
  options.host_bytes = 1 << 20;
  if (status == KVTIDE_OK)
    status = kvtide_start(&options, &runtime);
  if (status != KVTIDE_OK) {
    puts(kvtide_last_error());
    return 1;
  }
  status = kvtide_get_stats(runtime, &ticket);
  if (status == KVTIDE_OK)
    status = kvtide_await(runtime, ticket, 20000, &answer);
  if (status == KVTIDE_OK)
    kvtide_batch_free(answer);
  kvtide_destroy(runtime);
  return status == KVTIDE_OK && kvtide_version() == KVTIDE_VERSION ? 0 : 1;
}
