// SPDX-License-Identifier: Apache-2.0

#include "gpu/numa_node.hpp"

#include "gpu/memory_limits.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#ifdef KVTIDE_HAS_NUMA
#include <numa.h>
#include <numaif.h>
#endif

namespace kvtide::gpu {

namespace {

constexpr std::uint64_t kib = std::uint64_t{1} << 10;

std::string folder_of(const std::string& root, int node) {
  return root + "/sys/devices/system/node/node" + std::to_string(node);
}

/// Reads a list like "0-1,4".
std::vector<int> nodes_with_memory(const std::string& root) {
  std::vector<int> nodes;
  std::ifstream list{root + "/sys/devices/system/node/has_memory"};
  for (std::string range; std::getline(list, range, ',');) {
    std::istringstream words{range};
    int first = 0;
    if (!(words >> first))
      break;
    auto last = first;
    if (words.peek() == '-') {
      words.get();
      if (!(words >> last))
        break;
    }
    for (auto node = first; node <= last; ++node)
      nodes.push_back(node);
  }
  return nodes;
}

std::optional<std::uint64_t> free_bytes_of(const std::string& root, int node,
                                           std::uint64_t page_bytes) {
  if (page_bytes > base_page_bytes()) {
    std::ifstream pages{folder_of(root, node) + "/hugepages/hugepages-"
                        + std::to_string(page_bytes / kib)
                        + "kB/free_hugepages"};
    if (std::uint64_t count = 0; pages >> count)
      return count * page_bytes;
    return {};
  }
  std::ifstream table{folder_of(root, node) + "/meminfo"};
  // Lines like "Node 0 MemFree:  1234 kB".
  for (std::string line; std::getline(table, line);) {
    std::istringstream words{line};
    std::string text;
    std::string name;
    int number = 0;
    std::uint64_t kilobytes = 0;
    if (words >> text >> number >> name >> kilobytes && name == "MemFree:")
      return kilobytes * kib;
  }
  return {};
}

int prefer_node(std::byte* data, std::uint64_t bytes, int node) {
#ifdef KVTIDE_HAS_NUMA
  if (::numa_available() < 0)
    return ENOSYS;
  auto* mask = ::numa_allocate_nodemask();
  ::numa_bitmask_setbit(mask, static_cast<unsigned>(node));
  const auto code
    = ::mbind(data, bytes, MPOL_PREFERRED, mask->maskp, mask->size + 1, 0) == 0
      ? 0
      : errno;
  ::numa_bitmask_free(mask);
  return code;
#else
  (void)data;
  (void)bytes;
  (void)node;
  return ENOSYS;
#endif
}

/// What to do about an errno value.
std::string advice(int code) {
  switch (code) {
    case ENOSYS:
      return "build kvtide with libnuma (Debian: libnuma-dev) on a kernel that "
             "has NUMA";
    case EPERM:
      return "allow the call mbind in the container's seccomp profile, or add "
             "the capability SYS_NICE";
    default:
      return "start the process with numactl --preferred";
  }
}

} // namespace

numa_system this_numa_system(const std::string& root) {
  numa_system machine;
  machine.nodes = nodes_with_memory(root);
  machine.free_bytes = [root](int node, std::uint64_t page_bytes) {
    return free_bytes_of(root, node, page_bytes);
  };
  machine.prefer = prefer_node;
  return machine;
}

node_choice choose_node(std::byte* data, std::uint64_t bytes,
                        std::uint64_t page_bytes, int node,
                        const numa_system& machine) {
  if (machine.nodes.size() < 2)
    return {};
  const auto name = "NUMA node " + std::to_string(node);
  if (!std::binary_search(machine.nodes.begin(), machine.nodes.end(), node))
    return {{},
            "the host pool is not on " + name
              + ": the machine has no such node with memory; name one of those "
                "in /sys/devices/system/node/has_memory"};
  const auto free = machine.free_bytes(node, page_bytes);
  if (const auto code = machine.prefer(data, bytes, node); code != 0)
    return {{},
            "the host pool is not bound to " + name + ": \""
              + std::strerror(code) + "\"; " + advice(code)};
  if (free && *free < bytes)
    return {
      node,
      name + " has " + in_words(*free) + " free, so at least "
        + in_words(bytes - *free)
        + " of the host pool come from other nodes, which is slower; free "
          "memory there (its file cache counts as used), or lower "
          "host_bytes"};
  return {node, {}};
}

} // namespace kvtide::gpu
