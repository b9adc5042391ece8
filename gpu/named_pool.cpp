// SPDX-License-Identifier: Apache-2.0

#include "gpu/named_pool.hpp"

#include "gpu/memory_limits.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <utility>

namespace kvtide::gpu {

namespace {

/// Slots that one thread compares before it takes the next ones.
constexpr std::uint32_t check_share = 16;

/// See gpu/page_mapping.cpp: a signal undoes a call that reserves memory.
constexpr std::uint64_t reserve_step = std::uint64_t{4} << 20;

/// Between two sentences about a check that takes long.
constexpr auto say_every = std::chrono::seconds{10};

error no_table(const std::string& path, int code) {
  const auto* hint = code == ENOSPC || code == ENOMEM || code == EFBIG
                     ? ": there is no room for it, so remove pools that "
                       "nobody needs, or lower host_bytes"
                     : "";
  return {ec::out_of_memory, "the host pool " + path + " cannot be made: \""
                               + std::strerror(code) + "\"" + hint};
}

} // namespace

result<std::shared_ptr<named_pool>>
named_pool::open(const named_pool_config& config,
                 const pool_identity& identity) {
  auto opened = named_pool_file::open(config.name, config.rank, config.folder);
  if (!opened)
    return opened.failure();
  auto file = std::move(opened).value();
  const auto bytes
    = named_pool_table::bytes_for(identity.slots, base_page_bytes());
  const auto all = bytes + identity.slots * identity.slot_bytes;
  const auto found = file.bytes();
  const auto map = [&] {
    return ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                  file.descriptor(), 0);
  };
  // Where no memory is behind the table, touching it ends the process.
  const auto reserve = [&] {
    for (std::uint64_t i = 0; i < bytes;) {
      const auto step = std::min(reserve_step, bytes - i);
      if (::fallocate(file.descriptor(), 0, static_cast<off_t>(i),
                      static_cast<off_t>(step))
          == 0)
        i += step;
      else if (errno != EINTR)
        return errno;
    }
    return 0;
  };
  auto misfit = std::string{};
  void* raw = MAP_FAILED;
  if (found > 0 && found < bytes) {
    misfit = "it is too short";
  } else if (found > 0) {
    if (const auto code = reserve(); code != 0)
      return no_table(file.path(), code);
    raw = map();
    if (raw == MAP_FAILED)
      return no_table(file.path(), errno);
    misfit
      = named_pool_table{static_cast<std::byte*>(raw), config.digest}.misfit(
        identity);
    if (misfit.empty() && found < all)
      misfit = "it is too short";
  }
  const auto is_new = found == 0 || !misfit.empty();
  if (is_new) {
    if (raw != MAP_FAILED)
      ::munmap(std::exchange(raw, MAP_FAILED), bytes);
    auto code = file.renew(all);
    if (code == 0)
      code = reserve();
    if (code == 0)
      raw = map();
    if (code != 0 || raw == MAP_FAILED) {
      const auto failure = no_table(file.path(), code != 0 ? code : errno);
      (void)file.renew(0);
      return failure;
    }
  }
  auto* table = static_cast<std::byte*>(raw);
  auto made = std::shared_ptr<named_pool>{
    new named_pool{std::move(file), config, identity, table, bytes}};
  made->is_new_ = is_new;
  made->misfit_ = std::move(misfit);
  return made;
}

named_pool::named_pool(named_pool_file file, const named_pool_config& config,
                       const pool_identity& identity, std::byte* table,
                       std::uint64_t table_bytes)
  : file_(std::move(file)), config_(config), identity_(identity),
    mapped_(table), table_bytes_(table_bytes), table_(table, config.digest) {
  (void)::madvise(mapped_, table_bytes_, MADV_DONTFORK);
}

named_pool::~named_pool() {
  if (is_new_ && slots_ == nullptr)
    (void)file_.renew(0); // Nobody needs what it has of its memory.
  ::munmap(mapped_, table_bytes_);
}

void named_pool::complete(std::byte* slots) {
  slots_ = slots;
  if (!is_new_)
    return check();
  // Not before the slots are there: a pool without them is none.
  table_.begin(identity_);
  note_ = "the host pool " + file_.path() + " is new";
  if (!misfit_.empty())
    note_ += ": what was there is gone, because " + misfit_;
}

content_digest named_pool::digest_of(const slot_content& content) const {
  return config_.digest(slots_ + content.slot * identity_.slot_bytes,
                        content.bytes);
}

void named_pool::check() {
  const auto started = std::chrono::steady_clock::now();
  std::atomic<std::uint32_t> next{0};
  std::atomic<std::uint32_t> lost{0};
  std::vector<std::uint8_t> is_kept(identity_.slots);
  const auto look = [&](slot_id slot) {
    const auto content = table_.content(slot);
    if (content && digest_of(*content) == table_.noted_digest(slot)) {
      is_kept[slot] = 1;
      return;
    }
    lost += content.has_value();
    table_.forget(slot);
  };
  const auto work = [&](const auto& between) {
    for (;;) {
      const auto first = next.fetch_add(check_share);
      if (first >= identity_.slots)
        return;
      const auto last = std::min(identity_.slots - first, check_share) + first;
      for (auto slot = first; slot < last; ++slot)
        look(slot);
      between(last);
    }
  };
  auto threads = config_.check_threads;
  if (threads == 0)
    threads = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
  std::vector<std::thread> helpers;
  try {
    for (std::uint32_t i = 1; i < threads && i * check_share < identity_.slots;
         ++i)
      helpers.emplace_back([&] { work([](slot_id) {}); });
  } catch (const std::system_error&) {
    // A limit on threads makes it slower, not wrong.
  }
  auto said = started;
  work([&](slot_id done) {
    const auto now = std::chrono::steady_clock::now();
    if (!config_.say || now - said < say_every)
      return;
    said = now;
    config_.say("checking the host pool " + file_.path() + ": "
                + std::to_string(done) + " of "
                + std::to_string(identity_.slots) + " slots");
  });
  for (auto& helper : helpers)
    helper.join();
  for (slot_id slot = 0; slot < identity_.slots; ++slot)
    if (is_kept[slot] != 0)
      kept_.push_back(*table_.content(slot));
  note_ = "the host pool " + file_.path() + " has kept "
        + std::to_string(kept_.size()) + " chunks of an earlier process";
  if (lost > 0)
    note_ += "; " + std::to_string(lost.load())
           + " more were damaged and are forgotten";
}

} // namespace kvtide::gpu
