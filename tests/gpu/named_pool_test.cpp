// SPDX-License-Identifier: Apache-2.0

#include "kvtide/gpu.hpp"

#include "gpu/named_pool.hpp"
#include "tests/gpu/named_pool_home.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace kvtide::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What a child does until it is killed, or for so long; then it ends by
/// itself.
template <class F>
pid_t fork_and(F f) {
  const auto child = ::fork();
  if (child == 0) {
    ::alarm(60); // Whatever becomes of the test.
    f();
    ::_exit(0);
  }
  return child;
}

int kill_and_wait(pid_t child) {
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

/// Both ends of a pipe.
struct pipe_ends {
  pipe_ends() {
    if (::pipe(ends) != 0)
      std::abort();
  }

  ~pipe_ends() {
    ::close(ends[0]);
    ::close(ends[1]);
  }

  void say() const {
    const char byte = 0;
    if (::write(ends[1], &byte, 1) != 1)
      std::abort();
  }

  void hear() const {
    char byte = 0;
    if (::read(ends[0], &byte, 1) != 1)
      std::abort();
  }

  int ends[2] = {};
};

class NamedPool : public ::testing::Test {
protected:
  void open() {
    const auto refused = home.open();
    ASSERT_EQ(refused.code, ec::none) << refused.text;
  }

  /// What a slot of the table begins with, and how far apart they are.
  void flip_in_file(std::uint64_t offset) {
    std::fstream file{home.path(),
                      std::ios::in | std::ios::out | std::ios::binary};
    file.seekg(static_cast<std::streamoff>(offset));
    const auto byte = static_cast<char>(file.get() ^ 4);
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(byte);
  }

  [[nodiscard]] std::string note() const {
    return home.named().note();
  }

  named_pool_home home;
};

// -- what is kept -------------------------------------------------------------

TEST_F(NamedPool, IsNewOnceAndKeepsWhatWasStored) {
  open();
  EXPECT_THAT(home.kept(), IsEmpty());
  EXPECT_THAT(note(), HasSubstr("is new"));
  EXPECT_THAT(home.pool->status().notes, ElementsAre(note()));
  home.store(3, 30);
  home.store(5, 50);
  home.store(3, 31); // Another chunk in its place.
  open();
  ASSERT_THAT(home.kept(), ElementsAre(3, 5));
  EXPECT_EQ(home.named().kept()[0].key, (content_digest{31, ~31ULL}));
  EXPECT_TRUE(home.is_filled(3, 31));
  EXPECT_TRUE(home.is_filled(5, 50));
  EXPECT_THAT(note(), HasSubstr("has kept 2 chunks"));
  open(); // Twice: whoever finds them keeps them.
  EXPECT_THAT(home.kept(), ElementsAre(3, 5));
}

TEST_F(NamedPool, KeepsPagesThatAreTouchedAtStart) {
  home.config.memory.prefault = true;
  open();
  home.store(3, 30);
  open();
  EXPECT_TRUE(home.is_filled(3, 30));
}

TEST_F(NamedPool, ASlotThatWasBeingWrittenOrForgottenIsNotKept) {
  open();
  for (slot_id slot = 0; slot < 4; ++slot)
    home.store(slot, slot);
  home.table().start_writing(1);
  home.table().forget(2);
  open();
  EXPECT_THAT(home.kept(), ElementsAre(0, 3));
}

TEST_F(NamedPool, AFlippedByteIsNotKept) {
  open();
  for (slot_id slot = 0; slot < 4; ++slot)
    home.store(slot, slot);
  const auto offset = home.named().slots_offset();
  home.close();
  flip_in_file(offset + 2 * named_pool_home::slot_bytes + 77);
  open();
  EXPECT_THAT(home.kept(), ElementsAre(0, 1, 3));
  EXPECT_THAT(note(), HasSubstr("1 more were damaged"));
  open(); // It was forgotten for good.
  EXPECT_THAT(note(), Not(HasSubstr("damaged")));
}

TEST_F(NamedPool, AFlippedBitOfAnEntryIsNotKept) {
  // From the length on: after the state and four bytes that nobody uses.
  for (std::uint64_t byte = 8; byte < 56; ++byte) {
    named_pool_home other;
    ASSERT_EQ(other.open().code, ec::none);
    other.store(0, 7);
    other.store(1, 8);
    other.close();
    const auto entry = std::uint64_t{64} * (2 + 1);
    std::fstream file{other.path(),
                      std::ios::in | std::ios::out | std::ios::binary};
    file.seekg(static_cast<std::streamoff>(entry + byte));
    const auto flipped = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(entry + byte));
    file.put(flipped);
    file.close();
    ASSERT_EQ(other.open().code, ec::none);
    ASSERT_THAT(other.kept(), ElementsAre(0)) << byte;
  }
}

TEST_F(NamedPool, IsCheckedByManyThreads) {
  named_pool_home large{1000};
  large.config.named->check_threads = 4;
  ASSERT_EQ(large.open().code, ec::none);
  for (slot_id slot = 0; slot < 1000; slot += 3)
    large.store(slot, slot);
  ASSERT_EQ(large.open().code, ec::none);
  EXPECT_EQ(large.kept().size(), 334u);
}

// -- what does not fit --------------------------------------------------------

TEST_F(NamedPool, IsMadeAnewIfItDoesNotFitAndSaysWhy) {
  const auto expect_new = [&](const std::string& why) {
    open();
    EXPECT_THAT(home.kept(), IsEmpty());
    EXPECT_THAT(note(), HasSubstr(why));
    EXPECT_EQ(home.at(3)[5], std::byte{0});
    home.store(3, 30);
    open();
    EXPECT_THAT(home.kept(), ElementsAre(3));
  };
  open();
  home.store(3, 30);
  home.memory.model_fingerprint = "other";
  expect_new("another model");
  home.memory.references[0].layer = 1;
  expect_new("another form");
  home.config.host_bytes *= 2;
  expect_new("has 16 slots and 32 are wanted");
  home.close();
  flip_in_file(9); // The version.
  expect_new("another version");
  home.close();
  flip_in_file(1);
  expect_new("never finished");
  home.close();
  ::truncate(home.path().c_str(), 4096);
  expect_new("too short");
  home.close();
  ::truncate(home.path().c_str(), 7);
  expect_new("too short");
}

TEST_F(NamedPool, APoolThatCouldNotBeFinishedLeavesNoMemoryBehind) {
  home.config.memory.limit_bytes = 1; // Refuses the slots.
  EXPECT_EQ(home.open().code, ec::out_of_memory);
  struct stat found {};
  ASSERT_EQ(::stat(home.path().c_str(), &found), 0);
  EXPECT_EQ(found.st_blocks, 0);
  home.config.memory.limit_bytes = 0;
  open();
  EXPECT_THAT(note(), HasSubstr("is new"));
}

// -- crashes ------------------------------------------------------------------

TEST_F(NamedPool, AProcessThatIsKilledInTheMiddleOfAStoreLeavesTheOthers) {
  pipe_ends half_done;
  const auto child = fork_and([&] {
    if (home.open().code != ec::none)
      return;
    home.store(1, 10);
    home.store(2, 20);
    home.table().start_writing(2);
    home.fill(2, 21);
    home.at(2)[64] = std::byte{0};
    half_done.say();
    ::pause();
  });
  half_done.hear();
  EXPECT_TRUE(WIFSIGNALED(kill_and_wait(child)));
  open();
  EXPECT_THAT(home.kept(), ElementsAre(1));
}

TEST_F(NamedPool, AProcessThatIsKilledAtAnyMomentLeavesNoTornSlot) {
  std::mt19937_64 rng{7};
  std::size_t kept = 0;
  for (int round = 0; round < 20; ++round) {
    pipe_ends turns;
    const auto child = fork_and([&] {
      if (home.open().code != ec::none)
        return;
      for (std::uint64_t key = 1;; ++key) {
        home.store(static_cast<slot_id>(key % 7), key * 1000);
        turns.say();
      }
    });
    for (auto count = 1 + rng() % 300; count > 0; --count)
      turns.hear();
    ASSERT_TRUE(WIFSIGNALED(kill_and_wait(child)));
    open();
    // What is not kept was being written, which is one at most.
    EXPECT_THAT(note(), Not(HasSubstr("damaged")));
    for (const auto& x : home.named().kept())
      ASSERT_TRUE(home.is_filled(x.slot, x.key.low)) << x.slot;
    kept += home.kept().size();
    home.close();
  }
  EXPECT_GT(kept, 20u);
}

// -- owners -------------------------------------------------------------------

TEST_F(NamedPool, HasOneOwnerInAProcess) {
  open();
  named_pool_home other;
  other.config.named->folder = home.folder;
  const auto refused = other.open();
  EXPECT_EQ(refused.code, ec::out_of_order);
  EXPECT_THAT(refused.text, HasSubstr("is in use"));
  other.config.named->rank = 1; // Another rank has another pool.
  EXPECT_EQ(other.open().code, ec::none);
  home.close();
  other.config.named->rank = 0;
  EXPECT_EQ(other.open().code, ec::none);
}

TEST_F(NamedPool, HasOneOwnerAmongProcessesUntilThatIsKilled) {
  pipe_ends ready;
  const auto child = fork_and([&] {
    if (home.open().code == ec::none)
      home.store(4, 40);
    ready.say();
    ::pause();
  });
  ready.hear();
  const auto refused = home.open();
  EXPECT_EQ(refused.code, ec::out_of_order);
  EXPECT_THAT(refused.text, HasSubstr(home.path()));
  kill_and_wait(child);
  open();
  EXPECT_THAT(home.kept(), ElementsAre(4));
}

TEST_F(NamedPool, IsThisUsersAlone) {
  open();
  home.close();
  struct stat found {};
  ASSERT_EQ(::stat(home.path().c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  ::chmod(home.path().c_str(), 0640);
  auto refused = home.open();
  EXPECT_EQ(refused.code, ec::invalid_options);
  EXPECT_THAT(refused.text, HasSubstr("may be used by others"));
  ::unlink(home.path().c_str());
  ASSERT_EQ(::symlink("/dev/null", home.path().c_str()), 0);
  EXPECT_EQ(home.open().code, ec::unsupported);
}

TEST_F(NamedPool, IsRefusedWhereItsFileCannotBeMade) {
  home.config.named->folder = home.folder + "/none";
  const auto refused = home.open();
  EXPECT_EQ(refused.code, ec::unsupported);
  EXPECT_THAT(refused.text, HasSubstr("open ended with"));
}

TEST_F(NamedPool, HasANameThatIsNoPath) {
  for (const auto* name : {"", "a/b", "../a", "a b", "a\nb", "\xC3\xA4"}) {
    home.config.named->name = name;
    EXPECT_EQ(home.open().code, ec::invalid_options) << name;
    EXPECT_EQ(remove_named_pool(name, 0).code, ec::invalid_options) << name;
  }
  home.config.named->name = std::string(65, 'a');
  EXPECT_EQ(home.open().code, ec::invalid_options);
  home.config.named->name = "A-z_0.9";
  EXPECT_EQ(home.open().code, ec::none);
}

TEST_F(NamedPool, IsRemovedIfNobodyHasIt) {
  const auto remove
    = [&] { return named_pool_file::remove("pool", 0, home.folder).code; };
  EXPECT_EQ(remove(), ec::none); // None is there.
  open();
  home.store(3, 30);
  EXPECT_EQ(remove(), ec::out_of_order);
  home.close();
  EXPECT_EQ(remove(), ec::none);
  EXPECT_FALSE(std::filesystem::exists(home.path()));
  open();
  EXPECT_THAT(home.kept(), IsEmpty());
  // Whatever lies there belongs to nobody else in these tests.
  EXPECT_EQ(
    remove_named_pool("test-of-a-pool-that-nobody-has", 4'000'000'000).code,
    ec::none);
}

// -- memory -------------------------------------------------------------------

TEST_F(NamedPool, HasNoHugePagesToAskFor) {
  home.config.memory.huge_pages = huge_page_use::required;
  const auto refused = home.open();
  EXPECT_EQ(refused.code, ec::out_of_memory);
  EXPECT_THAT(refused.text, HasSubstr("huge=always"));
  home.config.memory.huge_pages = huge_page_use::if_available;
  open();
  EXPECT_THAT(home.pool->status().memory.notes,
              ElementsAre(HasSubstr("huge=always")));
}

TEST_F(NamedPool, ALimitOnTheSizeOfFilesIsAnErrorAndNotASignal) {
  const auto child = fork_and([&] {
    auto limit = ::rlimit{1024, 1024};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::_exit(home.open().code == ec::out_of_memory ? 42 : 1);
  });
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST_F(NamedPool, AFullFileSystemIsAnErrorThatSaysHowMuchIsFree) {
  const auto child = fork_and([&] {
    // A mount that nobody else sees.
    if (::unshare(CLONE_NEWNS) != 0
        || ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0
        || ::mount("none", home.folder.c_str(), "tmpfs", 0, "size=700k") != 0)
      ::_exit(7);
    home.config.host_bytes = 1 << 20; // And half as much for the table.
    const auto refused = home.open();
    if (refused.code != ec::out_of_memory
        || refused.text.find("are free in") == std::string::npos)
      ::_exit(1);
    struct stat found {};
    ::stat(home.path().c_str(), &found);
    if (found.st_blocks != 0)
      ::_exit(2);
    home.config.host_bytes = 64 << 20; // The table alone is too much.
    if (home.open().code != ec::out_of_memory)
      ::_exit(3);
    home.config.host_bytes = 64 << 10;
    ::_exit(home.open().code == ec::none ? 42 : 4);
  });
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 7)
    GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

} // namespace
} // namespace kvtide::gpu
