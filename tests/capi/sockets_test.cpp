// SPDX-License-Identifier: Apache-2.0

/// @file
/// A runtime of one process talks to nobody else. This program's `socket` and
/// `socketpair` are those of the whole process, libkvtide.so included, so that
/// a socket which is closed again counts, too.

#include "tests/capi/c_world.hpp"

#include <atomic>
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

std::atomic<int> opened{0};

} // namespace

extern "C" {

int socket(int domain, int type, int protocol) noexcept {
  ++opened;
  return static_cast<int>(::syscall(SYS_socket, domain, type, protocol));
}

int socketpair(int domain, int type, int protocol, int* fds) noexcept {
  ++opened;
  return static_cast<int>(
    ::syscall(SYS_socketpair, domain, type, protocol, fds));
}

} // extern "C"

namespace kvtide::test {
namespace {

/// Finds a function as the dynamic linker does for any library's call.
template <class Function>
Function* found(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

class CSockets : public CWorld {};

TEST_F(CSockets, AreCountedWhoeverOpensThem) {
  const auto before = opened.load();
  const auto one = found<decltype(::socket)>("socket")(AF_UNIX, SOCK_DGRAM, 0);
  ASSERT_GE(one, 0);
  ::close(one);
  int two[2] = {-1, -1};
  ASSERT_EQ(
    found<decltype(::socketpair)>("socketpair")(AF_UNIX, SOCK_DGRAM, 0, two),
    0);
  ::close(two[0]);
  ::close(two[1]);
  EXPECT_EQ(opened, before + 2);
}

TEST_F(CSockets, AreNotOpenedByARuntimeThatServes) {
  const auto before = opened.load();
  ASSERT_NO_FATAL_FAILURE(serve());
  add(1, 13, 3);
  const std::uint32_t ids[] = {1, 2, 3, 4};
  const auto table = kvtide_block_list{ids, 4};
  run_step({row(1, 0, 13, table)});
  while (only(run_step({})).as.step_plan.pending_work != 0) {}
  rt.reset();
  EXPECT_EQ(opened, before);
}

} // namespace
} // namespace kvtide::test
