// SPDX-License-Identifier: Apache-2.0

#include "kvtide/kvtide.h"

// CMake's project() has the same numbers.
static_assert(KVTIDE_VERSION == KVTIDE_PROJECT_VERSION_NUMBER);

uint32_t kvtide_version(void) {
  return KVTIDE_VERSION;
}

const char* kvtide_version_string(void) {
  return KVTIDE_PROJECT_VERSION;
}
