// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/result.hpp"

#include "gpu/cuda/copy_kernel.hpp"
#include "gpu/cuda/pinned_buffer.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace kvtide::gpu {

/// Tables for `launch_copy_pieces`, in pinned memory that is taken at start. A
/// table is free again when whoever took it is gone: after its kernel.
class piece_tables {
public:
  /// Pieces in one table.
  static constexpr std::uint32_t capacity = 8'192;

  class table {
  public:
    table(piece_tables& home, std::uint32_t index) noexcept
      : home_(&home), index_(index) {
      // nop
    }

    table(const table&) = delete;

    table& operator=(const table&) = delete;

    ~table() {
      home_->free_.push_back(index_);
    }

    /// `capacity` pieces, for the host to write.
    [[nodiscard]] copy_piece* host() const noexcept {
      return home_->host_ + std::size_t{index_} * capacity;
    }

    /// The same for the device to read.
    [[nodiscard]] const copy_piece* device() const noexcept {
      return home_->device_ + std::size_t{index_} * capacity;
    }

  private:
    piece_tables* home_;
    std::uint32_t index_;
  };

  [[nodiscard]] static result<std::unique_ptr<piece_tables>>
  make(std::uint32_t count) {
    auto memory = make_pinned_buffer(std::uint64_t{count} * capacity
                                     * sizeof(copy_piece));
    if (!memory)
      return memory.failure();
    auto device = device_address_of(memory.value().get());
    if (!device)
      return device.failure();
    return std::unique_ptr<piece_tables>{
      new piece_tables{std::move(memory).value(), device.value(), count}};
  }

  /// Null if all are in use.
  [[nodiscard]] std::unique_ptr<table> take() {
    if (free_.empty())
      return nullptr;
    const auto index = free_.back();
    free_.pop_back();
    return std::make_unique<table>(*this, index);
  }

  /// Leaks the memory (G7).
  void abandon() noexcept {
    memory_.release();
  }

private:
  piece_tables(pinned_buffer memory, void* device, std::uint32_t count)
    : memory_(std::move(memory)),
      host_(static_cast<copy_piece*>(memory_.get())),
      device_(static_cast<const copy_piece*>(device)) {
    for (std::uint32_t i = 0; i < count; ++i)
      free_.push_back(i);
  }

  pinned_buffer memory_;
  copy_piece* host_;
  const copy_piece* device_;
  std::vector<std::uint32_t> free_;
};

} // namespace kvtide::gpu
