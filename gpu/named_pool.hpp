// SPDX-License-Identifier: Apache-2.0

/// @file
/// A host pool whose memory outlives its process: the file, what it says of its
/// slots, and which of them are still what it says.

#pragma once

#include "kvtide/result.hpp"

#include "gpu/named_pool_file.hpp"
#include "gpu/named_pool_table.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kvtide::gpu {

struct named_pool_config {
  /// See `named_pool_file::open`.
  std::string name;

  rank_id rank = 0;

  /// Required.
  digest_function digest = nullptr;

  /// Threads that compare the bytes of a pool that was found with their
  /// digests; zero means one per core, at most 8.
  std::uint32_t check_threads = 0;

  /// Hears now and then, on the calling thread, how far that has come. May be
  /// empty.
  std::function<void(const std::string&)> say;

  /// Another one for tests.
  std::string folder = named_pool_folder;
};

/// Owns the file and the mapping of the table; the slots are mapped by whoever
/// owns this. Calls that name a slot come from one thread at a time.
class named_pool {
public:
  /// Finds the pool, or makes it anew if there is none that fits. Its slots are
  /// not there before `complete`.
  /// @returns the errors of `named_pool_file::open`, or `ec::out_of_memory`
  [[nodiscard]] static result<std::shared_ptr<named_pool>>
  open(const named_pool_config& config, const pool_identity& identity);

  named_pool(const named_pool&) = delete;

  named_pool& operator=(const named_pool&) = delete;

  /// The content stays.
  ~named_pool();

  /// Where the slots lie in the file.
  [[nodiscard]] int descriptor() const noexcept {
    return file_.descriptor();
  }

  [[nodiscard]] std::uint64_t slots_offset() const noexcept {
    return table_bytes_;
  }

  /// The memory of the slots is there. Looks, in parallel, which of them still
  /// hold what the table says, and forgets the others. Blocks as long as that
  /// takes: about a tenth of a second per GiB and thread.
  /// @param slots their first byte; kept, and must stay mapped
  void complete(std::byte* slots);

  /// What `complete` has found, by slot.
  [[nodiscard]] const std::vector<slot_content>& kept() const noexcept {
    return kept_;
  }

  /// One sentence for the log: what was found, or why nothing.
  [[nodiscard]] const std::string& note() const noexcept {
    return note_;
  }

  [[nodiscard]] named_pool_table& table() noexcept {
    return table_;
  }

  /// Of the first `content.bytes` bytes of its slot. Safe from any thread,
  /// while nobody writes them.
  [[nodiscard]] content_digest digest_of(const slot_content& content) const;

private:
  named_pool(named_pool_file file, const named_pool_config& config,
             const pool_identity& identity, std::byte* table,
             std::uint64_t table_bytes);

  void check();

  named_pool_file file_;
  named_pool_config config_;
  pool_identity identity_;
  std::byte* mapped_;
  std::uint64_t table_bytes_;
  named_pool_table table_;
  /// Why the file that was found is made anew; set if `is_new_`.
  std::string misfit_;
  bool is_new_ = false;
  std::byte* slots_ = nullptr;
  std::vector<slot_content> kept_;
  std::string note_;
};

} // namespace kvtide::gpu
