// SPDX-License-Identifier: Apache-2.0

/// @file
/// How the arguments of a call of C are read: nothing is believed that can be
/// checked. All functions throw `refusal` with a sentence that names what is
/// wrong.

#pragma once

#include "capi/border.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace kvtide::capi {

/// No list has more bytes.
inline constexpr auto longest_list = static_cast<std::size_t>(PTRDIFF_MAX);

/// Checks the size of a caller's struct and that it can be read.
/// @param from a struct that begins with its size; may be null
/// @param ours its size in this version
/// @param name e.g. "kvtide_options"
/// @returns the caller's size
std::size_t check_struct(const void* from, std::size_t ours, const char* name);

/// Copies a caller's struct over one that has the defaults: an earlier
/// version's leaves defaults behind its end.
void copy_struct(const void* from, std::size_t theirs, void* to,
                 std::size_t ours) noexcept;

/// Reads a caller's struct, of this or another version.
template <class T>
T take_struct(const T* from, const char* name, T defaults = {}) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto theirs = check_struct(from, sizeof(T), name);
  copy_struct(from, theirs, &defaults, sizeof(T));
  return defaults;
}

/// Sets a caller's struct to `from`, as much of it as there is, and the rest to
/// zero. Only its size has to be set before.
void set_struct(void* to, const void* from, std::size_t ours, const char* name);

/// The same with types.
template <class T>
void give_defaults(T* to, const char* name, const T& defaults) {
  static_assert(std::is_trivially_copyable_v<T>);
  set_struct(to, &defaults, sizeof(T), name);
}

/// @pre `bytes_each > 0`
void check_list(const void* list, std::size_t count, std::size_t bytes_each,
                const char* name);

/// Copies a list of numbers.
/// @param name e.g. "preempted"
template <class T>
std::vector<T> take_list(const T* list, std::size_t count, const char* name) {
  check_list(list, count, sizeof(T), name);
  auto out = std::vector<T>{};
  out.reserve(count); // Before any look at what a wrong count would reach.
  if (count > 0)
    out.assign(list, list + count);
  return out;
}

/// Reads a list of structs, all of one version, and makes something of each.
/// @param name of the struct
template <class T, class F>
auto take_structs(const T* list, std::size_t count, const char* name, F make,
                  const T& defaults = {}) {
  auto out = std::vector<decltype(make(defaults))>{};
  check_list(list, count, sizeof(std::size_t), name);
  if (count == 0)
    return out;
  const auto stride = check_struct(list, sizeof(T), name);
  check_list(list, count, stride, name);
  out.reserve(count);
  const auto* at = reinterpret_cast<const unsigned char*>(list);
  for (std::size_t i = 0; i < count; ++i, at += stride) {
    if (check_struct(at, sizeof(T), name) != stride)
      refuse(std::string{name}
             + ": struct_size differs within a list; all of "
               "one list are of one version");
    auto one = defaults;
    copy_struct(at, stride, &one, sizeof(T));
    out.push_back(make(one));
  }
  return out;
}

/// Reads a list of lists, e.g. blocks of each group, whose elements are plain.
template <class List, class F>
auto take_lists(const List* lists, std::size_t count, const char* name,
                F make) {
  auto out = std::vector<decltype(make(*lists))>{};
  check_list(lists, count, sizeof(List), name);
  out.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    out.push_back(make(lists[i]));
  return out;
}

/// Says that a number is none of an enumeration's.
[[noreturn]] void refuse_number(const char* name, std::int64_t number,
                                std::int64_t last);

/// Reads a number of an enumeration that counts from zero.
/// @param last the greatest enumerator
template <class Enum>
Enum take_enum(std::int32_t number, Enum last, const char* name) {
  const auto end = static_cast<std::int32_t>(last);
  if (number < 0 || number > end)
    refuse_number(name, number, end);
  return static_cast<Enum>(number);
}

/// Reads 1 or 0.
bool take_flag(std::uint32_t number, const char* name);

/// Room that a later version may use.
void check_reserved(std::uint32_t number, const char* name);

/// Null is the empty string.
std::string take_text(const char* text);

/// Bytes, which may contain zeros.
std::string take_bytes(const void* bytes, std::size_t size, const char* name);

/// @param name of the argument
/// @returns `*pointer`
template <class T>
T& not_null(T* pointer, const char* name) {
  if (pointer == nullptr)
    refuse(std::string{name} + " is null; pass a valid pointer");
  return *pointer;
}

} // namespace kvtide::capi
