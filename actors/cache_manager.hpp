// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "kvtide/options.hpp"

#include "core/cache.hpp"
#include "core/layout.hpp"
#include "messages/cache_manager.hpp"
#include "messages/publisher.hpp"
#include "messages/scheduler.hpp"

#include <caf/actor_addr.hpp>
#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kvtide {

/// Startup parameters of the cache manager.
struct cache_manager_config {
  std::shared_ptr<const core::layout> shape;
  options opts;
};

/// State of the cache manager: the host pool's book. Touched by one thread at a
/// time, as CAF runs one message of an actor after the other.
struct cache_manager_state {
  static inline const char* name = "cache-manager";

  /// Tells the publisher that the pool is gone.
  ~cache_manager_state();

  // -- message handlers -------------------------------------------------------

  void open(const msg::open_pool& x);
  void search(const msg::search& x);
  void prepare_stores(msg::prepare_stores& x);
  void prepare_load(const msg::prepare_load& x);
  void complete(const msg::complete_jobs& x);
  /// @param done the keys of its rows
  void complete(const msg::complete_job& x, std::span<const chunk_key> done);
  void reset(const msg::reset_pool& x);
  void drain_events(const msg::drain_events& x);
  void report(const msg::get_pool_report& x);
  void explain(const msg::explain_keys& x);
  void lookup_keys(const msg::lookup_keys& x);
  void read_part(const msg::get_pool_part& x);

  // -- helpers ----------------------------------------------------------------

  /// Whoever asked.
  [[nodiscard]] scheduler_cache_port sender() const;

  /// Tells the publisher which chunks came and went, if there is one.
  void tell_changes();

  /// Tells it that the pool is another one.
  void tell_anew();

  /// Sends to the publisher, which may live in another actor system.
  template <class Message>
  void tell(Message message) const;

  // -- members ----------------------------------------------------------------

  cache_manager_actor::pointer self = nullptr;
  cache_manager_config config;
  /// Without slots until `open_pool`.
  std::optional<core::cache> cache;
  /// Of the jobs at hand; kept for their room.
  std::vector<chunk_key> keys;
  /// Null if nobody wants to know what changes. No handle: that would keep an
  /// actor of another system.
  caf::actor_addr publisher;
  std::uint64_t evicted_chunks = 0;
  std::uint64_t stored_chunks = 0;
  std::uint64_t loaded_chunks = 0;
};

/// Decides which chunks lie in the host pool. Moves no bytes. Answers go to
/// whoever asked; it never speaks first.
cache_manager_actor::behavior_type
cache_manager(cache_manager_actor::stateful_pointer<cache_manager_state> self,
              cache_manager_config config);

} // namespace kvtide
