// SPDX-License-Identifier: Apache-2.0

#include "capi/arguments.hpp"

#include <algorithm>

namespace kvtide::capi {

namespace {

constexpr auto size_bytes = sizeof(std::size_t);

/// What no struct of any version reaches: more is a size that was never set.
constexpr std::size_t longest_struct = 4'096;

/// @returns the size that a struct begins with, if it can be one
std::size_t size_of(const void* from, std::size_t ours, const char* name) {
  if (from == nullptr)
    refuse(std::string{name} + " is null; pass one whose struct_size is set");
  auto theirs = std::size_t{0};
  std::memcpy(&theirs, from, size_bytes);
  // No member crosses a multiple of 8 bytes, so none can be there by half.
  if (theirs <= size_bytes || theirs > longest_struct || theirs % 8 != 0)
    refuse("struct_size of " + std::string{name} + " is "
           + std::to_string(theirs) + "; set it to sizeof(" + name + "), which "
           + "is " + std::to_string(ours)
           + " in version " KVTIDE_PROJECT_VERSION);
  return theirs;
}

} // namespace

std::size_t check_struct(const void* from, std::size_t ours, const char* name) {
  const auto theirs = size_of(from, ours, name);
  if (theirs <= ours)
    return theirs;
  const auto* bytes = static_cast<const unsigned char*>(from);
  const auto zero = [](unsigned char byte) { return byte == 0; };
  if (!std::all_of(bytes + ours, bytes + theirs, zero))
    throw refusal{{ec::unsupported,
                   std::string{name} + " says something that version "
                     + KVTIDE_PROJECT_VERSION
                     " of libkvtide does not know: "
                     "load a later one, or leave what lies behind its first "
                     + std::to_string(ours) + " bytes zero"}};
  return theirs;
}

void copy_struct(const void* from, std::size_t theirs, void* to,
                 std::size_t ours) noexcept {
  const auto common = std::min(theirs, ours) - size_bytes;
  std::memcpy(static_cast<unsigned char*>(to) + size_bytes,
              static_cast<const unsigned char*>(from) + size_bytes, common);
}

void set_struct(void* to, const void* from, std::size_t ours,
                const char* name) {
  const auto theirs = size_of(to, ours, name);
  std::memset(static_cast<unsigned char*>(to) + size_bytes, 0,
              theirs - size_bytes);
  copy_struct(from, theirs, to, ours);
}

void check_list(const void* list, std::size_t count, std::size_t bytes_each,
                const char* name) {
  if (count == 0)
    return;
  if (list == nullptr)
    refuse(std::string{name} + " is null, but its count is "
           + std::to_string(count) + "; pass the list, or a count of 0");
  if (count > longest_list / bytes_each)
    refuse(std::string{name} + " has a count of " + std::to_string(count)
           + ", which no memory can hold; look at it");
}

void refuse_number(const char* name, std::int64_t number, std::int64_t last) {
  refuse(std::string{name} + " is " + std::to_string(number)
         + "; it must be one of the constants from 0 to "
         + std::to_string(last));
}

bool take_flag(std::uint32_t number, const char* name) {
  if (number > 1)
    refuse(std::string{name} + " is " + std::to_string(number)
           + "; it must be 1 or 0");
  return number == 1;
}

void check_reserved(std::uint32_t number, const char* name) {
  if (number != 0)
    refuse("reserved of " + std::string{name} + " is " + std::to_string(number)
           + "; it must be 0: set the whole struct to zero before its members");
}

std::string take_text(const char* text) {
  return text == nullptr ? std::string{} : std::string{text};
}

std::string take_bytes(const void* bytes, std::size_t size, const char* name) {
  check_list(bytes, size, 1, name);
  return size == 0 ? std::string{}
                   : std::string{static_cast<const char*>(bytes), size};
}

} // namespace kvtide::capi
