// SPDX-License-Identifier: Apache-2.0

/// @file
/// Numbers as few bytes, and back from bytes that nobody can trust.

#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace kvtide {

/// Small differences of either sign as small numbers: 0, -1, 1, -2, ...
template <class Unsigned>
[[nodiscard]] constexpr Unsigned folded(Unsigned difference) noexcept {
  const auto negative
    = static_cast<Unsigned>(difference >> (sizeof(Unsigned) * 8 - 1));
  return static_cast<Unsigned>((difference << 1) ^ (Unsigned{0} - negative));
}

template <class Unsigned>
[[nodiscard]] constexpr Unsigned unfolded(Unsigned x) noexcept {
  return static_cast<Unsigned>((x >> 1) ^ (Unsigned{0} - (x & 1)));
}

/// Appends to a string.
class byte_writer {
public:
  explicit byte_writer(std::string& out) : out_(out) {
    // nop
  }

  void byte(std::uint8_t x) {
    out_.push_back(static_cast<char>(x));
  }

  /// LEB128: seven bits per byte, low ones first.
  void number(std::uint64_t x) {
    for (; x >= 0x80; x >>= 7)
      byte(static_cast<std::uint8_t>(x | 0x80));
    byte(static_cast<std::uint8_t>(x));
  }

  /// Few bytes if `x` is near `expected`.
  template <class Unsigned>
  void near(Unsigned x, Unsigned expected) {
    number(folded(static_cast<Unsigned>(x - expected)));
  }

  /// Eight bytes, low ones first.
  void fixed(std::uint64_t x) {
    for (int i = 0; i < 8; ++i)
      byte(static_cast<std::uint8_t>(x >> (8 * i)));
  }

  void raw(const void* data, std::size_t size) {
    out_.append(static_cast<const char*>(data), size);
  }

private:
  std::string& out_;
};

/// Reads what a `byte_writer` wrote. What is missing reads as zero, and from
/// then on the reader has failed and is at its end.
class byte_reader {
public:
  explicit byte_reader(std::string_view bytes)
    : at_(bytes.data()), end_(bytes.data() + bytes.size()) {
    // nop
  }

  [[nodiscard]] std::size_t remaining() const noexcept {
    return static_cast<std::size_t>(end_ - at_);
  }

  [[nodiscard]] bool failed() const noexcept {
    return failed_;
  }

  void fail() noexcept {
    failed_ = true;
    at_ = end_;
  }

  std::uint8_t byte() noexcept {
    if (at_ != end_)
      return static_cast<std::uint8_t>(*at_++);
    fail();
    return 0;
  }

  std::uint64_t number() noexcept {
    std::uint64_t result = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto part = byte();
      const auto bits = std::uint64_t{part} & 0x7F;
      if ((bits << shift) >> shift != bits)
        break; // More than 64 bits.
      result |= bits << shift;
      if (part < 0x80)
        return failed_ ? 0 : result;
    }
    fail();
    return 0;
  }

  template <class Unsigned>
  Unsigned near(Unsigned expected) noexcept {
    const auto difference = number();
    const auto narrow = static_cast<Unsigned>(difference);
    if (narrow != difference)
      fail();
    return static_cast<Unsigned>(expected + unfolded(narrow));
  }

  std::uint64_t fixed() noexcept {
    std::uint64_t result = 0;
    for (int i = 0; i < 8; ++i)
      result |= std::uint64_t{byte()} << (8 * i);
    return result;
  }

  /// A number of things that take `each` bytes or more: fails if so many cannot
  /// follow, so that nobody reserves memory for them.
  std::size_t count(std::size_t each = 1) noexcept {
    const auto result = number();
    if (result > remaining() / each)
      fail();
    return failed_ ? 0 : static_cast<std::size_t>(result);
  }

  /// @returns where `size` bytes lie, or null after a failure.
  const char* raw(std::size_t size) noexcept {
    if (size > remaining())
      fail();
    if (failed_)
      return nullptr;
    const auto* result = at_;
    at_ += size;
    return result;
  }

private:
  const char* at_;
  const char* end_;
  bool failed_ = false;
};

/// Packs numbers of `width` bits each; the last byte is filled up with zeros.
/// To be closed.
class bit_writer {
public:
  bit_writer(byte_writer& out, int width) : out_(out), width_(width) {
    assert(width > 0 && width <= 32);
  }

  void put(std::uint32_t x) {
    bits_ |= std::uint64_t{x} << held_;
    for (held_ += width_; held_ >= 8; held_ -= 8, bits_ >>= 8)
      out_.byte(static_cast<std::uint8_t>(bits_));
  }

  void close() {
    if (held_ > 0)
      out_.byte(static_cast<std::uint8_t>(bits_));
  }

private:
  byte_writer& out_;
  int width_;
  std::uint64_t bits_ = 0;
  int held_ = 0;
};

/// Reads what a `bit_writer` wrote.
class bit_reader {
public:
  bit_reader(byte_reader& in, int width) : in_(in), width_(width) {
    assert(width > 0 && width <= 32);
  }

  std::uint32_t get() noexcept {
    for (; held_ < width_; held_ += 8)
      bits_ |= std::uint64_t{in_.byte()} << held_;
    const auto result = bits_ & ((std::uint64_t{1} << width_) - 1);
    bits_ >>= width_;
    held_ -= width_;
    return static_cast<std::uint32_t>(result);
  }

private:
  byte_reader& in_;
  int width_;
  std::uint64_t bits_ = 0;
  int held_ = 0;
};

} // namespace kvtide
