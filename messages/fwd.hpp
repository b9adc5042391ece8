// SPDX-License-Identifier: Apache-2.0

/// @file
/// Names of all message types and their CAF type ids. The only file that calls
/// `CAF_ADD_TYPE_ID`. Append inside a block: the ids are positional, and
/// reordering breaks peers built from another revision.

#pragma once

#include "kvtide/answers.hpp"
#include "kvtide/calls.hpp"
#include "kvtide/kv_memory.hpp"

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/type_id.hpp>

namespace kvtide::msg {

// scheduler
struct add;
struct extend;
struct lookup;
struct decline;
struct allocate;
struct step;
struct outputs;
struct truncate;
struct finish;
struct reset;
struct get_stats;
struct get_snapshot;
struct take_events;
struct shutdown;
struct advance;
struct sleep;
struct wake;
struct explain;
struct worker_ready;
struct worker_left;
struct transfers_done;
struct ticked;
struct timer;
struct store_offer;
struct load_offer;
struct search_result;
struct stores_prepared;
struct load_prepared;
struct rolled_back;
struct cache_events;
struct pool_report;
struct explained;

// engine side, besides the public answers
struct snapshot_answer;

// request
struct plan_store;
struct plan_load;
struct retire;

// cache_manager
struct open_pool;
struct search;
struct prepare_stores;
struct prepare_load;
struct complete_jobs;
struct release_promise;
struct release_slots;
struct reset_pool;
struct drain_events;
struct get_pool_report;
struct lookup_keys;
struct touch_keys;
struct key_states;
struct explain_keys;
struct get_pool_part;

// gpu_worker
struct begin_step;
struct stores;
struct tick;
struct register_kv;
struct unregister_kv;
struct await_step;
struct end_step;
struct get_rank_stats;
struct memory_registered;
struct memory_unregistered;
struct copies_done;
struct fence_made;
struct device_ticked;
struct device_breach;
struct report_again;
struct pause;

// device
struct register_memory;
struct unregister_memory;
struct submit_jobs;
struct make_fence;
struct device_tick;
struct device_woke;

// ports
struct watch_scheduler;
struct watch_rank;

// ranks of other processes
struct knock;
struct join;
struct join_refused;
struct joined;
struct attach;
struct steps_taken;
struct chunks_kept;
struct seat;
struct host_rank;

// replicas and their directory
struct enroll;
struct enrolled;
struct withdraw;
struct publish;
struct published;
struct ask_replicas;
struct replicas_found;
struct watch_pool;
struct pool_changed;
struct pool_part;
struct pool_gone;
struct route;

} // namespace kvtide::msg

// clang-format off

// What crosses processes.
CAF_BEGIN_TYPE_ID_BLOCK(kvtide_wire, caf::first_custom_type_id)
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::knock))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::join))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::join_refused))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::joined))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::begin_step))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::stores))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::tick))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::worker_ready))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::transfers_done))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::ticked))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::report_again))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::worker_left))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::pause))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::steps_taken))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::chunks_kept))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::seat))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::enroll))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::enrolled))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::withdraw))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::publish))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::published))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::ask_replicas))
  CAF_ADD_TYPE_ID(kvtide_wire, (kvtide::msg::replicas_found))
CAF_END_TYPE_ID_BLOCK(kvtide_wire)

// What never leaves its process: these carry pointers, or have no reason to.
CAF_BEGIN_TYPE_ID_BLOCK(kvtide_local, caf::id_block::kvtide_wire::end)
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::add))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::extend))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::lookup))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::decline))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::allocate))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::step))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::outputs))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::truncate))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::finish))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::reset))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::get_stats))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::get_snapshot))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::take_events))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::shutdown))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::advance))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::timer))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::store_offer))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::load_offer))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::search_result))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::stores_prepared))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::load_prepared))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::rolled_back))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::cache_events))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::pool_report))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::snapshot_answer))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::plan_store))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::plan_load))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::retire))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::open_pool))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::search))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::prepare_stores))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::prepare_load))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::complete_jobs))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::release_promise))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::release_slots))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::reset_pool))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::drain_events))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::get_pool_report))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::lookup_keys))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::touch_keys))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::key_states))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::register_kv))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::unregister_kv))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::await_step))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::end_step))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::memory_registered))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::memory_unregistered))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::copies_done))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::fence_made))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::device_ticked))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::register_memory))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::unregister_memory))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::submit_jobs))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::make_fence))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::device_tick))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::device_woke))
  // Public answers, as the engine's and the rank's side hear them.
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::lookup_answer))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::step_plan))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::finish_answer))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::stats_answer))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::events_answer))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::call_done))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::call_failed))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::load_done))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::load_failed))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::blocks_released))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::rank_lost))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::rank_back))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::overload))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::kv_registered))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::kv_unregistered))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::step_ready))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::rank_failed))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::rank_stats))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::get_rank_stats))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::device_breach))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::cache_lost))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::watch_scheduler))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::watch_rank))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::sleep))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::wake))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::explain))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::explain_keys))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::explained))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::explain_answer))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::attach))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::host_rank))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::get_pool_part))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::watch_pool))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::pool_changed))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::pool_part))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::pool_gone))
  CAF_ADD_TYPE_ID(kvtide_local, (kvtide::msg::route))
CAF_END_TYPE_ID_BLOCK(kvtide_local)

// clang-format on

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::lookup_answer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::step_plan)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::finish_answer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::stats_answer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::events_answer)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::call_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::call_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::load_done)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::load_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::blocks_released)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::rank_lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::rank_back)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::overload)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::kv_registered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::kv_unregistered)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::step_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::rank_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::rank_stats)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::cache_lost)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(kvtide::explain_answer)
