// SPDX-License-Identifier: Apache-2.0

/// @file
/// Options of the command line that refuse what makes no sense, with a
/// sentence.

#pragma once

#include <CLI/CLI.hpp>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>

namespace kvtide::replay {

/// A value and its name on the command line.
template <class Enum>
struct word {
  Enum value;
  const char* text;
};

template <class Enum, std::size_t N>
[[nodiscard]] const char* find_word(const word<Enum> (&words)[N],
                                    Enum value) noexcept {
  for (const auto& known : words)
    if (known.value == value)
      return known.text;
  return "?";
}

/// Accepts numbers from `low` to `high`. CLI11 alone would take "-1" for a
/// large number, and "nan" for one in any range.
template <class T>
void add_number(CLI::App& app, const char* name, T& target, T low, T high,
                const std::string& text) {
  const auto to_text = [](T value) {
    auto out = std::ostringstream{};
    out << value;
    return out.str();
  };
  const auto range = to_text(low) + " to " + to_text(high);
  const auto any = high == std::numeric_limits<T>::max();
  const auto check = [low, high, range](const std::string& given) {
    auto value = T{};
    const auto* end = given.data() + given.size();
    const auto parsed = std::from_chars(given.data(), end, value);
    const auto good = parsed.ec == std::errc{} && parsed.ptr == end
                   && value >= low && value <= high;
    return good ? std::string{} : given + " is not a number from " + range;
  };
  app
    .add_option(name, target,
                text + " (" + (any ? "" : range + ", ") + "default "
                  + to_text(target) + ")")
    ->type_name("N")
    ->check(CLI::Validator{check, ""});
}

template <class Enum, std::size_t N>
void add_choice(CLI::App& app, const char* name, Enum& target,
                const word<Enum> (&words)[N], const std::string& text) {
  auto names = std::string{};
  for (const auto& known : words)
    names += (names.empty() ? "" : ", ") + std::string{known.text};
  const auto check = [&words, names](const std::string& given) {
    for (const auto& known : words)
      if (given == known.text)
        return std::string{};
    return given + " is none of " + names;
  };
  const auto set = [&target, &words](const std::string& given) {
    for (const auto& known : words)
      if (given == known.text)
        target = known.value;
  };
  app
    .add_option_function<std::string>(name, set,
                                      text + " (" + names + "; default "
                                        + find_word(words, target) + ")")
    ->type_name("WORD")
    ->check(CLI::Validator{check, ""});
}

/// Accepts "64MiB"; all units are powers of 1,024.
inline void add_size(CLI::App& app, const char* name, std::uint64_t& target,
                     const char* text) {
  // What the library takes for a number of bytes wraps below zero, and a unit
  // alone counts as one.
  const auto starts_with_digit = [](const std::string& given) {
    const auto ok = !given.empty() && given[0] >= '0' && given[0] <= '9';
    return ok ? std::string{}
              : given + " is not a number of bytes such as 64MiB";
  };
  app.add_option(name, target, text)
    ->transform(CLI::AsSizeValue(false).description(""))
    ->transform(CLI::Validator{starts_with_digit, ""}) // Runs first.
    ->type_name("SIZE");
}

/// Two flags for the two values of one setting.
inline void add_switch(CLI::App& app, const char* on, const char* off,
                       bool& target, const char* on_text,
                       const char* off_text) {
  auto* const first = app.add_flag_callback(
    on, [&target] { target = true; }, on_text);
  app
    .add_flag_callback(
      off, [&target] { target = false; }, off_text)
    ->excludes(first);
}

} // namespace kvtide::replay
