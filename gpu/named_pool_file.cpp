// SPDX-License-Identifier: Apache-2.0

#include "gpu/named_pool_file.hpp"

#include "kvtide/gpu.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kvtide::gpu {

namespace {

constexpr std::size_t longest_name = 64;

bool is_name(const std::string& name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz"
                                       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789._-";
  return !name.empty() && name.size() <= longest_name
      && std::all_of(name.begin(), name.end(), [&](char x) {
           return allowed.find(x) != std::string_view::npos;
         });
}

error refused(const std::string& path, const std::string& what, int code) {
  return {ec::unsupported, "the host pool " + path + " cannot be had: " + what
                             + " ended with \"" + std::strerror(code)
                             + "\"; allow it, or leave pool_name empty"};
}

/// Others could read the KV of all users, or have put the file there.
error fault_of(const std::string& path, const struct stat& found) {
  auto why = std::string{};
  if (!S_ISREG(found.st_mode))
    why = "is no file";
  else if (found.st_uid != ::geteuid())
    why = "belongs to another user";
  else if ((found.st_mode & 077) != 0)
    why = "may be used by others";
  else
    return {};
  return {ec::invalid_options, "the host pool " + path + " " + why
                                 + ": remove it, or choose another pool_name"};
}

bool is_still_at(const std::string& path, const struct stat& opened) {
  struct stat now {};
  return ::lstat(path.c_str(), &now) == 0 && now.st_dev == opened.st_dev
      && now.st_ino == opened.st_ino;
}

} // namespace

error fault_of_pool_name(const std::string& name) {
  if (is_name(name))
    return {};
  return {ec::invalid_options,
          "pool_name is \"" + name.substr(0, longest_name)
            + "\"; it must have 1 to " + std::to_string(longest_name)
            + " letters, digits, dots, hyphens or underscores"};
}

result<named_pool_file> named_pool_file::open(const std::string& name,
                                              rank_id rank,
                                              const std::string& folder) {
  if (auto fault = fault_of_pool_name(name); fault.code != ec::none)
    return fault;
  const auto path = folder + "/kvtide-" + name + "-rank" + std::to_string(rank);
  for (;;) {
    const auto file
      = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
      return refused(path, "open", errno);
    auto made = named_pool_file{file, path};
    struct stat found {};
    if (::fstat(file, &found) != 0)
      return refused(path, "fstat", errno);
    if (auto fault = fault_of(path, found); fault.code != ec::none)
      return fault;
    if (::flock(file, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK)
        return refused(path, "flock", errno);
      return error{ec::out_of_order,
                   "the host pool " + path
                     + " is in use, by another process, a child that it left "
                       "behind, or an earlier rank of this one: end that "
                       "first, or choose another pool_name"};
    }
    if (is_still_at(path, found))
      return made;
    // It was removed between the two calls.
  }
}

error named_pool_file::remove(const std::string& name, rank_id rank,
                              const std::string& folder) {
  if (auto fault = fault_of_pool_name(name); fault.code != ec::none)
    return fault;
  const auto path = folder + "/kvtide-" + name + "-rank" + std::to_string(rank);
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT)
    return {};
  auto mine = open(name, rank, folder);
  if (!mine)
    return mine.failure();
  if (::unlink(path.c_str()) != 0)
    return refused(path, "unlink", errno);
  return {};
}

named_pool_file::named_pool_file(named_pool_file&& other) noexcept
  : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {
  // nop
}

named_pool_file& named_pool_file::operator=(named_pool_file&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(path_, other.path_);
  return *this;
}

named_pool_file::~named_pool_file() {
  if (file_ >= 0)
    ::close(file_);
}

int named_pool_file::renew(std::uint64_t bytes) noexcept {
  ::rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur)
    return EFBIG; // Trying would end the process.
  if (::ftruncate(file_, 0) != 0
      || ::ftruncate(file_, static_cast<off_t>(bytes)) != 0)
    return errno;
  return 0;
}

std::uint64_t named_pool_file::bytes() const noexcept {
  struct stat found {};
  return ::fstat(file_, &found) == 0 ? static_cast<std::uint64_t>(found.st_size)
                                     : 0;
}

error remove_named_pool(const std::string& name, rank_id rank) {
  return named_pool_file::remove(name, rank);
}

} // namespace kvtide::gpu
