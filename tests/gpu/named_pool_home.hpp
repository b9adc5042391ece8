// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "gpu/host_pool_memory.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace kvtide::gpu {

/// Good enough to tell contents of tests apart.
inline content_digest toy_digest(const void* data, std::size_t size) {
  auto out = content_digest{0x9E37'79B9'7F4A'7C15U, 0xC2B2'AE3D'27D4'EB4FU};
  for (std::size_t i = 0; i < size; ++i) {
    const auto x = static_cast<const std::uint8_t*>(data)[i];
    out.low = (out.low ^ x) * 0x100'0000'01B3U;
    out.high = (out.high + x) * 0x9E37'79B9'7F4A'7C15U ^ out.high >> 29;
  }
  return out;
}

/// A folder of its own in shared memory, and a pool of `slots` slots of 128
/// bytes in it, which comes and goes as its processes do.
class named_pool_home {
public:
  static constexpr std::uint64_t slot_bytes = 128;

  explicit named_pool_home(std::uint64_t slots = 16) {
    auto pattern = std::string{"/dev/shm/kvtide-test-XXXXXX"};
    folder = ::mkdtemp(pattern.data());
    memory.tensors.push_back(
      {tensor.data(), tensor.size(), memory_kind::host, 8, 64, 64});
    memory.references.push_back({0, 0, 0, 0, 64});
    memory.model_fingerprint = "model";
    config.host_bytes = slots * slot_bytes;
    auto& named = config.named.emplace();
    named.name = "pool";
    named.digest = toy_digest;
    named.folder = folder;
  }

  named_pool_home(const named_pool_home&) = delete;

  named_pool_home& operator=(const named_pool_home&) = delete;

  ~named_pool_home() {
    pool.reset();
    std::filesystem::remove_all(folder);
  }

  /// As a new process does.
  error open() {
    pool.reset();
    pool = std::make_unique<host_pool_memory>();
    const auto shape
      = make_geometry(memory, 1, 2, memory_domain::host_only).value();
    const auto opened = pool->open(shape, memory, config);
    if (!opened) {
      pool.reset();
      return opened.failure();
    }
    base = opened.value().base;
    return {};
  }

  void close() {
    pool.reset();
  }

  [[nodiscard]] named_pool& named() const {
    return *pool->named();
  }

  [[nodiscard]] named_pool_table& table() const {
    return named().table();
  }

  [[nodiscard]] std::byte* at(slot_id slot) const {
    return base + slot * slot_bytes;
  }

  [[nodiscard]] static slot_content content(slot_id slot, std::uint64_t key) {
    return {slot, slot_bytes, {key, ~key}};
  }

  /// Bytes that say which key they belong to.
  void fill(slot_id slot, std::uint64_t key) const {
    for (std::uint64_t i = 0; i < slot_bytes; ++i)
      at(slot)[i] = static_cast<std::byte>(key * 31 + i);
  }

  [[nodiscard]] bool is_filled(slot_id slot, std::uint64_t key) const {
    for (std::uint64_t i = 0; i < slot_bytes; ++i)
      if (at(slot)[i] != static_cast<std::byte>(key * 31 + i))
        return false;
    return true;
  }

  void store(slot_id slot, std::uint64_t key) const {
    table().start_writing(slot);
    fill(slot, key);
    const auto what = content(slot, key);
    table().finish_writing(what, named().digest_of(what));
  }

  [[nodiscard]] std::vector<slot_id> kept() const {
    std::vector<slot_id> out;
    for (const auto& x : named().kept())
      out.push_back(x.slot);
    return out;
  }

  [[nodiscard]] std::string path() const {
    return folder + "/kvtide-pool-rank0";
  }

  std::string folder;
  std::array<std::byte, 8 * 64> tensor{};
  kv_memory memory;
  host_pool_config config;
  std::unique_ptr<host_pool_memory> pool;
  std::byte* base = nullptr;
};

} // namespace kvtide::gpu
