// SPDX-License-Identifier: Apache-2.0

/// @file
/// Whatever allocation fails, a call of C ends with a status. This program's
/// operator new is that of the whole process, libkvtide.so included.

#include "tests/capi/c_world.hpp"

#include <cstdlib>
#include <functional>
#include <new>

namespace {

/// Allocations of this thread until one fails; below zero none does.
thread_local int until_failure = -1;

bool fails_now() noexcept {
  return until_failure >= 0 && until_failure-- == 0;
}

} // namespace

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return fails_now() ? nullptr : std::malloc(size == 0 ? 1 : size);
}

void* operator new(std::size_t size) {
  auto* out = operator new(size, std::nothrow);
  if (out == nullptr)
    throw std::bad_alloc{};
  return out;
}

void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto step = static_cast<std::size_t>(alignment);
  const auto whole = (size / step + 1) * step;
  auto* out = fails_now() ? nullptr : std::aligned_alloc(step, whole);
  if (out == nullptr)
    throw std::bad_alloc{};
  return out;
}

void operator delete(void* memory) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace kvtide::test {
namespace {

/// Makes a call again and again, each time with a later allocation that fails,
/// until it succeeds.
/// @returns how often it failed
int fail_each_allocation(const std::function<kvtide_status()>& call) {
  for (auto failed = 0;; ++failed) {
    until_failure = failed;
    const auto status = call();
    const auto unused = until_failure >= 0;
    until_failure = -1;
    if (status == KVTIDE_OK && unused)
      return failed;
    if (status == KVTIDE_OK)
      continue; // Sorting does with less memory, say.
    EXPECT_EQ(status, KVTIDE_OUT_OF_MEMORY) << why(status);
    EXPECT_STRNE(kvtide_last_error(), "");
    if (status != KVTIDE_OUT_OF_MEMORY)
      return failed;
  }
}

/// Without a cache, calls are answered on this thread: no actor is told of what
/// this test does.
class CMemory : public CWorld {
protected:
  CMemory() {
    opts.host_bytes = 0;
  }
};

TEST_F(CMemory, StartsOnlyWithAllThatItNeeds) {
  EXPECT_GT(fail_each_allocation([&] {
              kvtide_runtime* made = nullptr;
              const auto status = kvtide_start(&opts, &made);
              kvtide_destroy(made);
              return status;
            }),
            3);
}

TEST_F(CMemory, TakesCallsWholeOrNotAtAll) {
  ASSERT_NO_FATAL_FAILURE(start());
  auto call = sized<kvtide_add_request>();
  call.tenant = "a name that is too long for a string without an allocation";
  EXPECT_GT(
    fail_each_allocation([&] { return kvtide_add(rt.get(), &call, nullptr); }),
    0);
  const std::uint32_t ids[] = {1, 2, 3};
  const auto table = kvtide_block_list{ids, 3};
  const auto rows = row(1, 0, 12, table);
  auto one = sized<kvtide_step_call>();
  one.step = 1;
  one.rows = &rows;
  one.row_count = 1;
  auto ticket = std::uint64_t{0};
  EXPECT_GT(
    fail_each_allocation([&] { return kvtide_step(rt.get(), &one, &ticket); }),
    2);
}

TEST_F(CMemory, LosesNoEventThatItCouldNotDescribe) {
  ASSERT_NO_FATAL_FAILURE(start());
  std::uint64_t tickets[3] = {};
  for (auto& ticket : tickets)
    EXPECT_OK(kvtide_get_stats(rt.get(), &ticket));
  kvtide_batch* out = nullptr;
  EXPECT_GT(fail_each_allocation([&] { return kvtide_poll(rt.get(), &out); }),
            1);
  const auto made = batch{out};
  ASSERT_EQ(kvtide_batch_size(out), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(kvtide_batch_at(out, i)->ticket, tickets[i]);
}

TEST_F(CMemory, LosesNoEventThatItCouldNotHandOut) {
  ASSERT_NO_FATAL_FAILURE(start());
  std::uint64_t tickets[2] = {};
  for (auto& ticket : tickets)
    EXPECT_OK(kvtide_get_stats(rt.get(), &ticket));
  kvtide_batch* out = nullptr;
  EXPECT_GT(fail_each_allocation(
              [&] { return kvtide_await(rt.get(), tickets[1], 0, &out); }),
            1);
  EXPECT_EQ(only(batch{out}).ticket, tickets[1]);
  EXPECT_EQ(only(answer_to(tickets[0])).ticket, tickets[0]);
}

TEST_F(CMemory, MakesHashersOnlyWithAllThatTheyNeed) {
  kvtide_hasher* hasher = nullptr;
  const auto salt = std::string(100, 's');
  EXPECT_GT(fail_each_allocation([&] {
              return kvtide_hasher_make(4, salt.data(), salt.size(), &hasher);
            }),
            1);
  kvtide_hasher_destroy(hasher);
}

} // namespace
} // namespace kvtide::test
