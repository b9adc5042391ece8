// SPDX-License-Identifier: Apache-2.0

#include "gpu/page_mapping.hpp"

#include "gpu/memory_limits.hpp"
#include "gpu/numa_node.hpp"
#include "gpu/parallel_fault.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utility>

namespace kvtide::gpu {

namespace {

/// MFD_NOEXEC_SEAL, which headers have since Linux 6.3.
constexpr unsigned never_executed = 8;

/// Memory is reserved in steps of this. A signal makes the kernel give back
/// what the call has reserved so far, so a step takes less time (a millisecond)
/// than lies between two signals of a profiler.
constexpr std::uint64_t reserve_step = std::uint64_t{4} << 20;

std::string quoted(int code) {
  return std::string{"\""} + std::strerror(code) + "\"";
}

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

/// What a call that gets memory ended with. A lack of memory speaks for itself.
std::string refused_call(const std::string& name, int code) {
  auto text = name + " ended with " + quoted(code);
  if (code == EPERM || code == EACCES || code == ENOSYS || code == EOPNOTSUPP)
    text += ", so this system or sandbox does not offer it: allow it there, or "
            "do not reserve the host pool at start";
  return text;
}

page_mapping dropped_if_failed(page_mapping made) {
  if (made.data != nullptr && !made.failure.empty())
    ::munmap(std::exchange(made.data, nullptr), made.bytes);
  return made;
}

/// A file without a name that dies with its mapping. It lies on a mount of the
/// kernel's own, so neither the size of /dev/shm nor a container's counts; the
/// memory limit of the control group does.
int open_nameless(unsigned flags) {
  const auto* name = "kvtide-host-pool";
  // Where vm.memfd_noexec is 2, files that could be executed are refused; an
  // older kernel does not know the flag.
  const auto file = ::memfd_create(name, flags | MFD_CLOEXEC | never_executed);
  if (file >= 0 || errno != EINVAL)
    return file;
  return ::memfd_create(name, flags | MFD_CLOEXEC);
}

/// Gets the memory of a file, from the node that its mapping asks for.
/// @returns zero or an errno value.
int reserve(int file, std::uint64_t offset, std::uint64_t bytes) {
  for (std::uint64_t i = 0; i < bytes;) {
    const auto step = std::min(reserve_step, bytes - i);
    if (::fallocate(file, 0, static_cast<off_t>(offset + i),
                    static_cast<off_t>(step))
        == 0)
      i += step;
    else if (errno != EINTR)
      return errno;
  }
  return 0;
}

/// Why the kernel would not give that much, or nothing. Asked before, because
/// the kernel's answer to such a call may be to end a process.
std::string lack_of(std::uint64_t bytes) {
  if (const auto limit = control_group_memory_limit(); limit && bytes > *limit)
    return "the memory limit of this process's control group is "
         + in_words(*limit) + ": raise it (memory.max, docker --memory)";
  if (const auto free = available_memory_bytes(); free && bytes > *free)
    return "only " + in_words(*free)
         + " are available (MemAvailable in /proc/meminfo)";
  return {};
}

/// Why a file must not become that large, or nothing. Asked before, because
/// the kernel ends a process that goes on.
std::string file_limit_of(std::uint64_t bytes) {
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
      && bytes > limit.rlim_cur)
    return "the limit on the size of files is " + in_words(limit.rlim_cur)
         + " and counts here: raise it (ulimit -f, LimitFSIZE= of a unit)";
  return {};
}

/// What to do for huge pages that the system did not give.
std::string huge_page_advice(std::uint64_t bytes, std::uint64_t page) {
  if (page == 0)
    return {};
  return "; the pool takes " + std::to_string(round_up(bytes, page) / page)
       + " pages of " + std::to_string(page >> 10) + " KiB and "
       + std::to_string(huge_pages_here().free_pages)
       + " are free: raise /proc/sys/vm/nr_hugepages by the difference, soon "
         "after boot";
}

/// Decides where the pages of a mapping come from, before the first is found.
void prepare(std::byte* data, std::uint64_t bytes, std::uint64_t page,
             const host_memory_options& opts, host_memory_facts& facts) {
  // A child that wrote to private pages would make the kernel copy them, and a
  // copy engine must never meet such a copy (G5). A kernel without the advice
  // is no reason not to start.
  (void)::madvise(data, bytes, MADV_DONTFORK);
  if (!opts.numa_node)
    return;
  auto choice
    = choose_node(data, bytes, page, *opts.numa_node,
                  opts.machine != nullptr ? *opts.machine : this_numa_system());
  facts.numa_node = choice.node;
  if (!choice.note.empty())
    facts.notes.push_back(std::move(choice.note));
}

std::string no_room_in(const file_place& place) {
  auto text = place.folder + " has no room for it";
  if (struct statvfs there{}; ::fstatvfs(place.file, &there) == 0)
    text = "only " + in_words(there.f_bavail * there.f_frsize) + " are free in "
         + place.folder;
  return text
       + ": remove pools that nobody needs, or enlarge it (mount -o "
         "remount,size=, docker --shm-size)";
}

/// Why a named pool cannot have its memory, or nothing. What its file has
/// already counts.
std::string lack_of_room(const file_place& place, std::uint64_t bytes) {
  if (auto why = file_limit_of(place.offset + bytes); !why.empty())
    return why;
  struct stat known {};
  struct statvfs there {};
  if (::fstat(place.file, &known) != 0 || ::fstatvfs(place.file, &there) != 0)
    return "the system says " + quoted(errno);
  const auto has = static_cast<std::uint64_t>(known.st_blocks) * 512;
  const auto missing = bytes > has ? bytes - has : 0;
  const auto is_limited = there.f_blocks > 0;
  if (is_limited && missing > there.f_bavail * there.f_frsize)
    return no_room_in(place);
  return missing > 0 ? lack_of(missing) : std::string{};
}

/// Touches the pages, if `opts` says so.
/// @returns what was wrong.
std::string fault_in(std::byte* data, std::uint64_t bytes, std::uint64_t page,
                     const host_memory_options& opts) {
  if (!opts.prefault)
    return {};
  const auto code = fault_in_parallel(data, bytes, page, opts.prefault_threads);
  return code == 0 ? std::string{}
                   : "touching the pages ended with " + quoted(code);
}

/// Memory of a nameless file. Unlike private memory it can be had at once
/// without being touched, and is given whole or refused.
/// @param flags zero or MFD_HUGETLB.
page_mapping map_file(std::uint64_t bytes, unsigned flags, std::uint64_t page,
                      const host_memory_options& opts,
                      host_memory_facts& facts) {
  auto made = page_mapping{nullptr, round_up(bytes, page), page, {}};
  made.failure = file_limit_of(made.bytes);
  if (!made.failure.empty())
    return made;
  const auto file = open_nameless(flags);
  if (file < 0) {
    made.failure = refused_call("memfd_create", errno);
    return made;
  }
  void* raw = MAP_FAILED;
  if (::ftruncate(file, static_cast<off_t>(made.bytes)) == 0)
    raw = ::mmap(nullptr, made.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                 0);
  if (raw == MAP_FAILED) {
    made.failure = "the system says " + quoted(errno);
  } else {
    made.data = static_cast<std::byte*>(raw);
    prepare(made.data, made.bytes, page, opts, facts);
    // Where faulting the pages in returns errors it reserves them as well, and
    // in parallel: clearing them is what takes the time. Whoever asks for
    // ordinary pages has asked before whether they are there; huge ones were
    // set aside when they were mapped.
    const auto later = opts.prefault && faults_return_errors();
    if (const auto code = later ? 0 : reserve(file, 0, made.bytes); code != 0)
      made.failure = refused_call("fallocate", code);
    else
      made.failure = fault_in(made.data, made.bytes, page, opts);
  }
  ::close(file); // The mapping keeps the memory.
  return dropped_if_failed(made);
}

/// For memory that is not reserved: pages come when they are touched, small
/// pools cost nothing at start, and the kernel may use transparent huge pages,
/// which it rarely does for the memory of a file.
page_mapping map_lazily(std::uint64_t bytes, const host_memory_options& opts,
                        host_memory_facts& facts) {
  const auto page = base_page_bytes();
  auto made = page_mapping{nullptr, round_up(bytes, page), page, {}};
  auto* raw = ::mmap(nullptr, made.bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) {
    made.failure = "the system says " + quoted(errno);
    return made;
  }
  made.data = static_cast<std::byte*>(raw);
  prepare(made.data, made.bytes, page, opts, facts);
  made.failure = fault_in(made.data, made.bytes, page, opts);
  return dropped_if_failed(made);
}

page_mapping map_huge(std::uint64_t bytes, const host_memory_options& opts,
                      host_memory_facts& facts) {
  const auto page = huge_pages_here().page_bytes;
  auto made = page_mapping{};
  if (page > 0)
    made = map_file(bytes, MFD_HUGETLB, page, opts, facts);
  else
    made.failure = "the kernel names none";
  if (!made.failure.empty())
    made.failure = "there are not enough huge pages: " + made.failure
                 + huge_page_advice(bytes, page);
  return made;
}

page_mapping map_reserved(std::uint64_t bytes, const host_memory_options& opts,
                          host_memory_facts& facts) {
  if (auto why = lack_of(bytes); !why.empty())
    return {nullptr, 0, 0, std::move(why)};
  return map_file(bytes, 0, base_page_bytes(), opts, facts);
}

} // namespace

page_mapping map_file_pages(const file_place& place, std::uint64_t bytes,
                            const host_memory_options& opts,
                            host_memory_facts& facts) {
  const auto page = base_page_bytes();
  auto made = page_mapping{nullptr, round_up(bytes, page), page, {}};
  if (opts.huge_pages == huge_page_use::required) {
    made.failure = "a named pool lies in a file of a file system, which has no "
                   "huge pages to ask for: do not require them, or mount "
                 + place.folder + " with huge=always";
    return made;
  }
  if (opts.huge_pages == huge_page_use::if_available)
    facts.notes.push_back("the host pool is in the pages of " + place.folder
                          + ", which are huge only if it is mounted with "
                            "huge=always: it has a name");
  made.failure = lack_of_room(place, made.bytes);
  if (!made.failure.empty())
    return made;
  auto* raw = ::mmap(nullptr, made.bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                     place.file, static_cast<off_t>(place.offset));
  if (raw == MAP_FAILED) {
    made.failure = "the system says " + quoted(errno);
    return made;
  }
  made.data = static_cast<std::byte*>(raw);
  prepare(made.data, made.bytes, page, opts, facts);
  // Always: where a file system is full, a page that is only touched ends the
  // process.
  if (const auto code = reserve(place.file, place.offset, made.bytes);
      code == ENOSPC)
    made.failure = no_room_in(place);
  else if (code != 0)
    made.failure = refused_call("fallocate", code);
  else
    made.failure = fault_in(made.data, made.bytes, page, opts);
  return dropped_if_failed(made);
}

page_mapping map_pages(std::uint64_t bytes, const host_memory_options& opts,
                       host_memory_facts& facts) {
  if (opts.huge_pages != huge_page_use::off) {
    auto tried = facts;
    auto made = map_huge(bytes, opts, tried);
    if (made.data != nullptr)
      facts = std::move(tried);
    if (made.data != nullptr || opts.huge_pages == huge_page_use::required)
      return made;
    facts.notes.push_back("the host pool is in ordinary pages, "
                          + made.failure);
  }
  if (opts.reserve || opts.huge_pages != huge_page_use::off)
    return map_reserved(bytes, opts, facts);
  return map_lazily(bytes, opts, facts);
}

} // namespace kvtide::gpu
