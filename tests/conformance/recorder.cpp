// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/recorder.hpp"

#include <algorithm>
#include <utility>

namespace kvtide::conformance {

namespace {

constexpr auto longest_value = std::size_t{400};

std::string text_of(const json& value) {
  auto text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > longest_value)
    text.replace(longest_value, std::string::npos, "...");
  return text;
}

bool is_list_of_objects(const json& value) {
  return value.is_array() && !value.empty()
      && std::all_of(value.begin(), value.end(),
                     [](const json& item) { return item.is_object(); });
}

} // namespace

recorder::recorder(std::string path, std::ostream* trace)
  : path_(std::move(path)), trace_(trace) {
  // nop
}

void recorder::enter(std::size_t line, std::string what) {
  line_ = line;
  what_ = std::move(what);
  if (trace_ != nullptr)
    *trace_ << place() << what_ << '\n';
}

void recorder::complain(const std::string& text) {
  if (!enough())
    mismatches_.push_back(place() + what_ + ": " + text);
}

void recorder::compare(const json& want, const json& got) {
  compare("", want, got);
}

void recorder::give_up(const std::string& text) {
  complain(text);
  hopeless_ = true;
}

stage::config recorder::stage_config(std::optional<handler_name> stub) const {
  auto cfg = stage::config{};
  cfg.stub = std::move(stub);
  if (trace_ != nullptr)
    cfg.on_message
      = [this](const std::string& sender, const handler_name& handler) {
          *trace_ << place() << "  " << sender << " -> " << handler.actor
                  << ": " << handler.message << '\n';
        };
  return cfg;
}

std::string recorder::place() const {
  return path_ + ':' + std::to_string(line_) + ": ";
}

void recorder::compare(const std::string& what, const json& want,
                       const json& got) {
  if (want == got)
    return;
  // The smallest part that differs says most.
  if (want.is_object() && got.is_object()) {
    for (const auto& [name, value] : want.items())
      compare(what.empty() ? name : what + '.' + name, value,
              got.contains(name) ? got[name] : json{});
  } else if (is_list_of_objects(want) && is_list_of_objects(got)
             && want.size() == got.size()) {
    for (std::size_t i = 0; i < want.size(); ++i)
      compare(what + '[' + std::to_string(i) + ']', want[i], got[i]);
  } else {
    complain((what.empty() ? what : what + ": ") + "got " + text_of(got)
             + ", want " + text_of(want));
  }
}

} // namespace kvtide::conformance
