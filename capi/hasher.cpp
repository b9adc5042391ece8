// SPDX-License-Identifier: Apache-2.0

/// @file
/// Prefix hashes for engines that have none.

#include "kvtide/prefix_hasher.hpp"

#include "capi/arguments.hpp"

#include <memory>
#include <utility>

using namespace kvtide::capi;

struct kvtide_hasher {
  kvtide_hasher(std::int32_t tokens_per_hash, std::string salt)
    : maker(tokens_per_hash, std::move(salt)) {
    // nop
  }

  kvtide::prefix_hasher maker;
  /// The hashes that were made last, one behind the other.
  std::vector<unsigned char> bytes;
};

kvtide_status kvtide_hasher_make(int32_t tokens_per_hash, const void* salt,
                                 size_t salt_bytes, kvtide_hasher** hasher) {
  return guarded([&] {
    auto& out = not_null(hasher, "hasher");
    if (tokens_per_hash < 1)
      refuse("tokens_per_hash is " + std::to_string(tokens_per_hash)
             + "; it must be at least 1");
    out = std::make_unique<kvtide_hasher>(tokens_per_hash,
                                          take_bytes(salt, salt_bytes, "salt"))
            .release();
  });
}

kvtide_status kvtide_hasher_append(kvtide_hasher* hasher, const int32_t* tokens,
                                   size_t token_count, const void** hashes,
                                   size_t* hash_count) {
  return guarded([&] {
    auto& to = not_null(hasher, "hasher");
    auto& list = not_null(hashes, "hashes");
    auto& count = not_null(hash_count, "hash_count");
    check_list(tokens, token_count, sizeof(*tokens), "tokens");
    const auto made = to.maker.append(tokens, token_count);
    to.bytes.clear();
    for (const auto& one : made)
      to.bytes.insert(to.bytes.end(), one.data(), one.data() + one.size());
    list = to.bytes.data();
    count = to.bytes.size() / KVTIDE_HASH_BYTES;
  });
}

uint64_t kvtide_hasher_made(const kvtide_hasher* hasher) {
  return hasher == nullptr ? 0 : hasher->maker.made();
}

void kvtide_hasher_destroy(kvtide_hasher* hasher) {
  delete hasher;
}
