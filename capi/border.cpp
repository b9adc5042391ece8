// SPDX-License-Identifier: Apache-2.0

#include "capi/border.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <system_error>

namespace kvtide::capi {

namespace {

/// An array of the thread's own: to say that memory has run out takes none.
thread_local char sentence[1'024] = "";

} // namespace

void refuse(std::string text) {
  throw refusal{{ec::invalid_argument, std::move(text)}};
}

void time_out(std::int64_t milliseconds) {
  throw refusal{{ec::timeout, "nothing came within "
                                + std::to_string(milliseconds)
                                + " ms; wait longer, or poll later"}};
}

void check(const error& reason) {
  if (reason.code != ec::none)
    throw refusal{reason};
}

void keep_sentence(const char* text) noexcept {
  const auto size = std::min(std::strlen(text), sizeof(sentence) - 1);
  std::memcpy(sentence, text, size);
  sentence[size] = '\0';
}

kvtide_status keep_exception() noexcept {
  try {
    throw;
  } catch (const refusal& why) {
    keep_sentence(why.what());
    return static_cast<kvtide_status>(why.reason().code);
  } catch (const std::bad_alloc&) {
    keep_sentence("out of memory: the call had no effect; free some and call "
                  "again");
    return KVTIDE_OUT_OF_MEMORY;
  } catch (const std::length_error&) {
    keep_sentence(
      "out of memory: a list of the call is longer than any memory; "
      "look at its count");
    return KVTIDE_OUT_OF_MEMORY;
  } catch (const std::system_error& why) {
    // The system refuses a thread, say.
    keep_sentence(why.what());
    return KVTIDE_OUT_OF_MEMORY;
  } catch (const std::exception& why) {
    keep_sentence(why.what());
    return KVTIDE_INTERNAL;
  } catch (...) {
    keep_sentence("an unknown exception got as far as the border of kvtide; "
                  "please report it");
    return KVTIDE_INTERNAL;
  }
}

} // namespace kvtide::capi

const char* kvtide_last_error(void) {
  return kvtide::capi::sentence;
}
