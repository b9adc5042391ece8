// SPDX-License-Identifier: Apache-2.0

#include "gpu/memory_limits.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

namespace kvtide::gpu {

namespace {

constexpr std::uint64_t kib = std::uint64_t{1} << 10;
constexpr std::uint64_t mib = std::uint64_t{1} << 20;

/// The first number in `text`, if there is one and it fits.
std::optional<std::uint64_t> number_in(std::string_view text) {
  const auto first = text.find_first_of("0123456789");
  if (first == std::string_view::npos)
    return {};
  std::uint64_t value = 0;
  const auto* end = text.data() + text.size();
  if (std::from_chars(text.data() + first, end, value).ec != std::errc{})
    return {};
  return value;
}

/// The number behind `name` in the kernel's table of memory.
std::optional<std::uint64_t> entry_of(const std::string& root,
                                      std::string_view name) {
  std::ifstream table{root + "/proc/meminfo"};
  for (std::string line; std::getline(table, line);)
    if (line.rfind(name, 0) == 0)
      return number_in(std::string_view{line}.substr(name.size()));
  return {};
}

/// Lowers `lowest` to the limits of a control group and of those above it.
/// @param path ends without a slash; a container may not see all of it.
void lower_to(const std::string& mount, std::string path,
              const std::string& file, std::optional<std::uint64_t>& lowest) {
  while (true) {
    std::ifstream limit{mount + path + file};
    // An unlimited group says "max", or a number beyond every address.
    if (std::string text; std::getline(limit, text))
      if (const auto bytes = number_in(text);
          bytes && *bytes < std::uint64_t{1} << 62)
        lowest = std::min(lowest.value_or(*bytes), *bytes);
    if (path.empty())
      return;
    path.erase(path.rfind('/'));
  }
}

} // namespace

std::uint64_t base_page_bytes() noexcept {
  const auto bytes = ::sysconf(_SC_PAGESIZE);
  return bytes > 0 ? static_cast<std::uint64_t>(bytes) : 4'096;
}

std::optional<std::uint64_t> available_memory_bytes(const std::string& root) {
  if (const auto kilobytes = entry_of(root, "MemAvailable:"))
    return *kilobytes * kib;
  return {};
}

std::optional<std::uint64_t>
control_group_memory_limit(const std::string& root) {
  std::optional<std::uint64_t> lowest;
  std::ifstream groups{root + "/proc/self/cgroup"};
  // Lines like "0::/a/b" (version 2) and "4:memory:/a/b" (version 1).
  for (std::string line; std::getline(groups, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    const auto controllers = line.substr(first + 1, second - first - 1);
    auto path = line.substr(second + 1);
    if (path.empty() || path.front() != '/')
      continue;
    if (path.back() == '/')
      path.pop_back();
    if (controllers.empty())
      lower_to(root + "/sys/fs/cgroup", path, "/memory.max", lowest);
    else if (controllers.find("memory") != std::string::npos)
      lower_to(root + "/sys/fs/cgroup/memory", path, "/memory.limit_in_bytes",
               lowest);
  }
  return lowest;
}

huge_page_facts huge_pages_here(const std::string& root) {
  const auto free = entry_of(root, "HugePages_Free:").value_or(0);
  const auto promised = entry_of(root, "HugePages_Rsvd:").value_or(0);
  return {entry_of(root, "Hugepagesize:").value_or(0) * kib,
          free - std::min(free, promised)};
}

std::optional<std::uint64_t> memory_lock_limit() noexcept {
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0
      || limit.rlim_cur == RLIM_INFINITY)
    return {};
  return limit.rlim_cur;
}

std::string in_words(std::uint64_t bytes) {
  return std::to_string(bytes) + " bytes (" + std::to_string(bytes / mib)
       + " MiB)";
}

} // namespace kvtide::gpu
