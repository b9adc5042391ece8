// SPDX-License-Identifier: Apache-2.0

/// @file
/// Which blocks are free, and when those that a request had are free again.

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/ids.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace epoll_loop {

/// Blocks of an engine that come back with what the runtime says. A block has
/// one owner at a time: it is free, a request's, waits for the answer to its
/// request's `finish`, or is nobody's while a late copy may still write it.
///
/// Threads: one at a time.
class block_book {
public:
  using block_list = std::vector<kvtide::block_id>;

  /// @param last blocks 1 to `last` are free; 0 is a hole
  explicit block_book(kvtide::block_id last) {
    for (auto id = last; id > 0; --id)
      free_.push_back(id);
  }

  [[nodiscard]] std::size_t free() const noexcept {
    return free_.size();
  }

  /// Adds free blocks to a request's `mine` until it has `count`, or none is
  /// left.
  /// @returns whether it has `count`
  bool fill(block_list& mine, std::size_t count) {
    while (mine.size() < count && !free_.empty())
      mine.push_back(take());
    return mine.size() >= count;
  }

  /// `finish` was called; `answered` frees the blocks.
  void end(kvtide::request_id request, block_list mine) {
    ending_[request] = std::move(mine);
  }

  /// Takes the blocks that a late copy may still write from whoever has them:
  /// `blocks_released` is all that frees them, whether it comes before the
  /// answer to `finish` or after it.
  /// @param x with `use_new_blocks`
  /// @param mine blocks of the request if it goes on, null if it has ended;
  ///             others take their places
  /// @returns false if too few are free: `mine` has less blocks then, and the
  ///          request has to end
  bool lose(const kvtide::load_failed& x, block_list* mine) {
    const auto is_lost = [&x](kvtide::block_id block) {
      return std::count(x.blocks.begin(), x.blocks.end(), block) > 0;
    };
    if (mine == nullptr) {
      if (const auto at = ending_.find(x.request); at != ending_.end())
        erase_if(at->second, is_lost);
      return true;
    }
    if (free_.size() < x.blocks.size()) {
      erase_if(*mine, is_lost);
      return false;
    }
    for (auto& block : *mine)
      if (is_lost(block))
        block = take();
    return true;
  }

  void answered(const kvtide::finish_answer& x) {
    const auto at = ending_.find(x.request);
    if (at == ending_.end())
      return;
    for (auto block : at->second)
      if (std::count(x.held.begin(), x.held.end(), block) == 0)
        free_.push_back(block);
    ending_.erase(at);
  }

  void released(const kvtide::blocks_released& x) {
    free_.insert(free_.end(), x.blocks.begin(), x.blocks.end());
  }

private:
  template <class Predicate>
  static void erase_if(block_list& from, Predicate what) {
    from.erase(std::remove_if(from.begin(), from.end(), what), from.end());
  }

  /// @pre one is free
  kvtide::block_id take() {
    const auto out = free_.back();
    free_.pop_back();
    return out;
  }

  block_list free_;
  /// Blocks of requests whose `finish` has no answer yet.
  std::map<kvtide::request_id, block_list> ending_;
};

} // namespace epoll_loop
