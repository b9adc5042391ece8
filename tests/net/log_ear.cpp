// SPDX-License-Identifier: Apache-2.0

#include "tests/net/log_ear.hpp"

#include "tests/support/ear.hpp"

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

namespace kvtide::test {

namespace {

class memory_sink final : public spdlog::sinks::base_sink<std::mutex> {
public:
  void forget() {
    const auto guard = std::lock_guard{mutex_};
    lines_.clear();
  }

  std::vector<std::string> lines() {
    const auto guard = std::lock_guard{mutex_};
    return lines_;
  }

  std::string await(const std::string& part) {
    auto guard = std::unique_lock{mutex_};
    auto found = std::string{};
    said_.wait_for(guard, patience, [&] {
      for (const auto& line : lines_)
        if (line.find(part) != std::string::npos)
          found = line;
      return !found.empty();
    });
    return found;
  }

private:
  void sink_it_(const spdlog::details::log_msg& msg) override {
    lines_.emplace_back(msg.payload.data(), msg.payload.size());
    said_.notify_all();
  }

  void flush_() override {
    // nop
  }

  std::vector<std::string> lines_;
  std::condition_variable said_;
};

/// Before the library asks for its logger the first time.
const auto sink = [] {
  auto out = std::make_shared<memory_sink>();
  spdlog::register_logger(std::make_shared<spdlog::logger>("kvtide", out));
  return out;
}();

} // namespace

log_ear::log_ear() {
  sink->forget();
}

std::size_t log_ear::count(const std::string& part) const {
  const auto lines = sink->lines();
  return static_cast<std::size_t>(
    std::count_if(lines.begin(), lines.end(), [&](const auto& x) {
      return x.find(part) != std::string::npos;
    }));
}

std::string log_ear::await(const std::string& part) const {
  return sink->await(part);
}

std::string log_ear::text() const {
  auto out = std::string{};
  for (const auto& line : sink->lines())
    out += line + "\n";
  return out;
}

} // namespace kvtide::test
