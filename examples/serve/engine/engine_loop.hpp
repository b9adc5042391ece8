// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/runtime.hpp"

#include "examples/serve/engine/block_tables.hpp"
#include "examples/serve/engine/cache_link.hpp"
#include "examples/serve/engine/compute_stream.hpp"
#include "examples/serve/engine/device_memory.hpp"
#include "examples/serve/engine/engine_options.hpp"
#include "examples/serve/engine/engine_stats.hpp"
#include "examples/serve/engine/inbox.hpp"
#include "examples/serve/engine/planner.hpp"
#include "examples/serve/engine/retired_cache.hpp"
#include "examples/serve/engine/stats_board.hpp"
#include "examples/serve/model/transformer.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace serve {

/// The engine's thread: hears what clients, the cache and compute say, plans
/// steps ahead of what is known, and sleeps when there is nothing to do.
///
/// Two steps are in flight at most. Step k + 1 is planned, and told to the
/// cache, while step k computes: what k samples is not known by then, so k + 1
/// takes it from where compute left it.
///
/// Thread-safety: one thread makes, runs and destroys it. What others share
/// with it is the inbox, the board and the count of the queued.
class engine_loop {
public:
  engine_loop(const engine_options& opts, inbox& door, stats_board& board,
              std::atomic<std::uint32_t>& queued);

  engine_loop(const engine_loop&) = delete;
  engine_loop& operator=(const engine_loop&) = delete;
  ~engine_loop();

  /// Starts the cache.
  [[nodiscard]] kvtide::error start();

  /// Serves until it hears `stop_request`, then ends what there is. Copies may
  /// run on, which the destructor waits for.
  [[nodiscard]] stop_report run();

private:
  using clock = std::chrono::steady_clock;

  struct step_in_flight {
    std::uint64_t number = 0;
    /// Of the cache's life that knows the step.
    std::uint64_t cache_life = 0;
    kvtide::step_id step = 0;
    kvtide::ticket_id ticket = 0;
    std::vector<planned_row> rows;
    /// Until it is launched.
    std::optional<std::vector<compute_row>> compute;
  };

  /// A request that ended, until the cache has said which blocks are free.
  struct parted {
    kvtide::request_id request = 0;
    block_table table;
  };

  // -- turns (engine_loop.cpp) ------------------------------------------------

  /// Hears everything there is.
  void hear();
  /// Asks and plans as long as there is something to.
  void act();
  /// Sleeps until somebody says something, or until `deadline`.
  void sleep(std::optional<clock::time_point> deadline);
  void publish();
  /// Without planning.
  [[nodiscard]] bool hear_until(const std::function<bool()>& holds,
                                clock::time_point deadline);
  void hear(submitted& what);
  void hear(const abort_request& what);
  void hear(const stats_wanted& what);
  void hear(const stop_request& what);
  void hear(const retired_cache_gone& what);
  void hear(const compute_done& what);
  void ask_stats();
  [[nodiscard]] stop_report end();
  /// Ends what the cache has to do, in order.
  void part_from_cache(clock::time_point deadline);

  // -- steps and requests (engine_steps.cpp) ----------------------------------

  void ask();
  /// @returns false if there was nothing to do in it.
  bool step(bool even_if_idle = false);
  void launch(step_in_flight& what, bool known_to_cache);
  void take(sequence& seq, token_id token);
  /// New tokens may complete hashes; the cache wants them.
  void send_hashes(sequence& seq);
  void tell_of(const sequence_ptr& seq);
  void leave_queue(sequence& seq);
  void end(const sequence_ptr& seq, completion_end why);

  // -- what the cache says (engine_cache.cpp) ---------------------------------

  void hear(const kvtide::lookup_answer& what);
  void hear(const kvtide::finish_answer& what);
  void hear(const kvtide::stats_answer& what);
  void hear(const kvtide::call_done& what);
  void hear(const kvtide::call_failed& what);
  void hear(const kvtide::load_done& what);
  void hear(const kvtide::load_failed& what);
  void hear(const kvtide::blocks_released& what);
  void hear(const kvtide::rank_lost& what);
  void hear(const kvtide::overload& what);
  void hear(const kvtide::cache_lost& what);
  void hear(const kvtide::runtime_lost& what);
  void hear(const kvtide::step_ready& what);
  void hear(const kvtide::rank_failed& what);
  void hear(const kvtide::rank_stats& what);
  /// Answers to calls that this engine does not make, plans that the rank has
  /// directly, and notices of what it heard in another way.
  template <class Other>
  void hear(const Other&) {
    // nop
  }

  /// One of the two to a question.
  void take_answer();
  /// Goes on with another cache, or without one.
  void restart_cache();
  /// Takes the cache out of use. Blocks until its copies have ended, but not
  /// for longer than `patience`: then it is put aside, and the blocks that may
  /// still be written with it.
  void retire_cache(std::chrono::milliseconds patience);
  void keep_back(kvtide::request_id request,
                 const std::vector<kvtide::block_id>& blocks);
  void note_trouble(std::string sentence);

  engine_options opts_;
  inbox& inbox_;
  stats_board& board_;
  std::atomic<std::uint32_t>& queued_;
  engine_stats stats_;
  transformer model_;
  device_memory memory_;
  block_tables tables_;
  planner planner_;

  std::unordered_map<completion_id, sequence_ptr> live_;
  std::deque<step_in_flight> in_flight_;
  std::uint64_t next_number_ = 0;
  /// For the next step: who finished since the last one.
  std::vector<kvtide::finish_call> finished_;

  /// Declared behind the memory that its copies touch.
  std::unique_ptr<cache_link> cache_;
  /// Without a cache behind it. Made at the start, so that nothing can be in
  /// the way when it is needed.
  std::unique_ptr<cache_link> spare_;
  std::uint64_t cache_life_ = 0;
  /// Caches out of use whose copies run, by their lives.
  std::map<std::uint64_t, retired_cache> retired_;
  std::uint32_t restarts_ = 0;
  /// A cache that cannot be used any more; replaced at the end of the turn.
  bool cache_broken_ = false;
  kvtide::step_id next_step_ = 0;
  std::unordered_map<kvtide::ticket_id, std::vector<sequence_ptr>> asked_;
  std::unordered_map<kvtide::ticket_id, parted> parted_;
  /// Blocks of nobody that a load may still write.
  std::unordered_map<kvtide::request_id, std::vector<kvtide::block_id>> held_;
  std::optional<kvtide::ticket_id> shutdown_;

  /// The question to the cache that is under way, and how many of its two
  /// answers are missing.
  std::uint64_t question_ = 0;
  std::uint32_t answers_missing_ = 0;
  std::uint64_t answered_ = 0;

  /// When whoever was told to ask again gets a step to do so.
  std::optional<clock::time_point> patience_ends_;
  std::optional<clock::time_point> stop_at_;

  /// Declared last: ends before anything that it touches.
  std::unique_ptr<compute_stream> compute_;
};

} // namespace serve
