// SPDX-License-Identifier: Apache-2.0

/// @file
/// What engines copy between in tests.

#pragma once

#include "gpu/copy_engine.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace kvtide::gpu {

/// Memory of both sides. Its blocks may be a GPU's, so bytes go in and out by
/// copies, which are over when the call returns.
class memory_home {
public:
  virtual ~memory_home() = default;

  virtual std::uint8_t* blocks() = 0;

  virtual std::uint8_t* slots() = 0;

  virtual void write(std::uint8_t* dst, const std::uint8_t* src,
                     std::size_t bytes) {
    std::copy_n(src, bytes, dst);
  }

  virtual void read(std::uint8_t* dst, const std::uint8_t* src,
                    std::size_t bytes) {
    std::copy_n(src, bytes, dst);
  }
};

/// Both sides on the host.
class host_home final : public memory_home {
public:
  host_home(std::size_t block_bytes, std::size_t slot_bytes)
    : blocks_(block_bytes), slots_(slot_bytes) {
    // nop
  }

  std::uint8_t* blocks() override {
    return blocks_.data();
  }

  std::uint8_t* slots() override {
    return slots_.data();
  }

private:
  std::vector<std::uint8_t> blocks_;
  std::vector<std::uint8_t> slots_;
};

inline std::unique_ptr<memory_home> make_host_home(std::size_t block_bytes,
                                                   std::size_t slot_bytes) {
  return std::make_unique<host_home>(block_bytes, slot_bytes);
}

/// Blocks and slots of one fragment each, zero at first, and jobs between them.
class test_memory {
public:
  static constexpr std::size_t unit = 64;

  using home_maker = std::unique_ptr<memory_home> (*)(std::size_t block_bytes,
                                                      std::size_t slot_bytes);

  test_memory(std::size_t blocks, std::size_t slots,
              home_maker make = make_host_home)
    : home_(make(blocks * unit, slots * unit)), block_count_(blocks),
      slot_count_(slots) {
    for (std::size_t i = 0; i < blocks; ++i)
      fill_block(i, 0);
    for (std::size_t i = 0; i < slots; ++i)
      fill_slot(i, 0);
  }

  memory_home& home() {
    return *home_;
  }

  std::uint8_t* block(std::size_t i) {
    return home_->blocks() + i * unit;
  }

  std::uint8_t* slot(std::size_t i) {
    return home_->slots() + i * unit;
  }

  void fill_block(std::size_t i, std::uint8_t value) {
    fill(block(i), value);
  }

  void fill_slot(std::size_t i, std::uint8_t value) {
    fill(slot(i), value);
  }

  /// The byte that fills a place, or nothing if it holds several.
  std::optional<int> block_content(std::size_t i) {
    return content(block(i));
  }

  std::optional<int> slot_content(std::size_t i) {
    return content(slot(i));
  }

  /// Row i goes between `blocks[i]` and `slots[i]`.
  copy_job job(job_id id, job_kind kind, const std::vector<std::size_t>& blocks,
               const std::vector<slot_id>& slots) {
    copy_job made;
    made.id = id;
    made.kind = kind;
    made.slots = slots;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      auto* device = block(blocks[i]);
      auto* host = slot(slots[i]);
      made.fragments.push_back(
        kind == job_kind::store
          ? fragment{host, device, unit, static_cast<std::uint32_t>(i)}
          : fragment{device, host, unit, static_cast<std::uint32_t>(i)});
    }
    return made;
  }

  copy_job store(job_id id, std::size_t from, slot_id to) {
    return job(id, job_kind::store, {from}, {to});
  }

  copy_job load(job_id id, slot_id from, std::size_t to) {
    return job(id, job_kind::load, {to}, {from});
  }

  /// All bytes of both sides.
  std::vector<std::uint8_t> bytes() {
    auto out = std::vector<std::uint8_t>((block_count_ + slot_count_) * unit);
    home_->read(out.data(), block(0), block_count_ * unit);
    home_->read(out.data() + block_count_ * unit, slot(0), slot_count_ * unit);
    return out;
  }

private:
  void fill(std::uint8_t* place, std::uint8_t value) {
    const auto bytes = std::vector<std::uint8_t>(unit, value);
    home_->write(place, bytes.data(), unit);
  }

  std::optional<int> content(const std::uint8_t* place) {
    auto bytes = std::vector<std::uint8_t>(unit);
    home_->read(bytes.data(), place, unit);
    const auto same = std::all_of(bytes.begin(), bytes.end(), [&bytes](auto x) {
      return x == bytes.front();
    });
    return same ? std::optional<int>{bytes.front()} : std::nullopt;
  }

  std::unique_ptr<memory_home> home_;
  std::size_t block_count_;
  std::size_t slot_count_;
};

} // namespace kvtide::gpu
