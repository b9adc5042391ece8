// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/engine_families.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <prometheus/client_metric.h>
#include <prometheus/metric_type.h>
#include <string>
#include <utility>

namespace serve {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

/// A value and what it is of, under the one label of its family.
struct labelled {
  std::string label;
  double value = 0;
};

/// Collects families in the order in which they are named.
class families {
public:
  void gauge(const char* name, const char* help, std::uint64_t value) {
    add(MetricType::Gauge, name, help, "", {{"", to_double(value)}});
  }

  void counter(const char* name, const char* help, double value) {
    add(MetricType::Counter, name, help, "", {{"", value}});
  }

  void counter(const char* name, const char* help, std::uint64_t value) {
    counter(name, help, to_double(value));
  }

  void add(MetricType type, const char* name, const char* help,
           const char* label, const std::vector<labelled>& values) {
    auto family = MetricFamily{};
    family.name = name;
    family.help = help;
    family.type = type;
    for (const auto& one : values) {
      auto metric = ClientMetric{};
      if (*label != '\0')
        metric.label.push_back({label, one.label});
      if (type == MetricType::Gauge)
        metric.gauge.value = one.value;
      else
        metric.counter.value = one.value;
      family.metric.push_back(std::move(metric));
    }
    all_.push_back(std::move(family));
  }

  // Exact up to 2^53.
  static double to_double(std::uint64_t value) {
    return static_cast<double>(value);
  }

  std::vector<MetricFamily> take() {
    return std::move(all_);
  }

private:
  std::vector<MetricFamily> all_;
};

std::vector<labelled>
by(std::initializer_list<std::pair<const char*, std::uint64_t>> values) {
  auto out = std::vector<labelled>{};
  for (const auto& [label, value] : values)
    out.push_back({label, families::to_double(value)});
  return out;
}

void add_engine(const engine_stats& of, families& to) {
  to.add(MetricType::Gauge, "serve_requests",
         "Requests in the engine now, by what they do.", "state",
         by({{"waiting", of.waiting},
             {"loading", of.loading},
             {"running", of.running}}));
  to.add(MetricType::Gauge, "serve_device_blocks",
         "Blocks of device memory, by state. 'held' ones may still be written "
         "by a load of nobody's.",
         "state",
         by({{"free", of.free_blocks},
             {"held", of.held_blocks},
             {"used", of.device_blocks - of.free_blocks - of.held_blocks}}));
  to.gauge("serve_cache_alive",
           "1 while the engine uses the host cache; 0 if it is off or lost.",
           of.cache_alive ? 1 : 0);
  to.add(MetricType::Counter, "serve_completions_total",
         "Completions that the engine took or refused, by how they ended.",
         "outcome",
         by({{"submitted", of.submitted},
             {"refused", of.refused},
             {"completed", of.completed},
             {"aborted", of.aborted}}));
  to.add(MetricType::Counter, "serve_aborts_total",
         "Aborted completions, by what the request was doing.", "state",
         by({{"queued", of.aborted_queued},
             {"asking", of.aborted_asking},
             {"loading", of.aborted_loading},
             {"running", of.aborted_running},
             {"preempted", of.aborted_preempted}}));
  to.counter("serve_steps_total", "Steps of the engine.", of.steps);
  to.counter("serve_computed_tokens_total",
             "Tokens that were put through the model.", of.computed_tokens);
  to.counter("serve_output_tokens_total", "Tokens of answers.",
             of.output_tokens);
  to.counter("serve_prompt_tokens_total",
             "Tokens of prompts, counted at each admission.", of.prompt_tokens);
  to.add(MetricType::Counter, "serve_hit_tokens_total",
         "Tokens of prompts that were not computed, by where they were found.",
         "from",
         by({{"device", of.device_hit_tokens}, {"host", of.host_hit_tokens}}));
  to.counter("serve_preemptions_total",
             "Requests that gave up their blocks to others.", of.preemptions);
  to.add(MetricType::Counter, "serve_loads_total",
         "Loads from the host pool, by outcome.", "outcome",
         by({{"done", of.loads_done}, {"failed", of.loads_failed}}));
  to.counter("serve_cache_troubles_total",
             "Times the cache lost a rank or its book and went on.",
             of.cache_troubles);
  to.counter("serve_refused_calls_total",
             "Calls of the engine that the cache refused.", of.refused_calls);
}

void add_cache(const kvtide::stats& of, families& to) {
  to.gauge("kvtide_tracked_requests", "Requests that the cache knows.",
           of.tracked_requests);
  to.gauge("kvtide_jobs_in_flight", "Copy jobs that have not ended.",
           of.jobs_in_flight);
  to.gauge("kvtide_host_slots", "Slots of the host pool, a chunk each.",
           of.host_slots);
  to.add(MetricType::Gauge, "kvtide_host_slots_by_state",
         "Slots of the host pool, by state; one may be in several.", "state",
         by({{"free", of.free_slots},
             {"pinned", of.pinned_slots},
             {"held", of.held_slots},
             {"writing", of.writing_slots},
             {"quarantined", of.quarantined_slots}}));
  to.gauge("kvtide_watched_blocks", "Device blocks whose reuse is watched.",
           of.watched_blocks);
  to.gauge("kvtide_sliding_entries", "Entries of the index of sliding windows.",
           of.sliding_entries);
  to.counter("kvtide_steps_total", "Steps that the cache planned.", of.steps);
  to.counter("kvtide_lookups_total", "Requests that were looked up.",
             of.lookups);
  to.counter("kvtide_deferrals_total", "Lookups that were put off.",
             of.deferrals);
  to.counter("kvtide_hit_tokens_total", "Tokens that lookups found.",
             of.hit_tokens);
  to.add(MetricType::Counter, "kvtide_jobs_total", "Copy jobs, by direction.",
         "kind", by({{"store", of.store_jobs}, {"load", of.load_jobs}}));
  to.counter("kvtide_failed_jobs_total", "Copy jobs that failed.",
             of.failed_jobs);
  to.add(MetricType::Counter, "kvtide_chunks_total",
         "Chunks of the host pool, by what happened to them.", "what",
         by({{"stored", of.stored_chunks},
             {"loaded", of.loaded_chunks},
             {"evicted", of.evicted_chunks}}));
  to.counter("kvtide_refused_stores_total",
             "Offers, or parts of them, that the host pool had no room for.",
             of.refused_stores);
  to.counter("kvtide_flushed_jobs_total",
             "Store jobs that a step waited for before it wrote.",
             of.flushed_jobs);
  auto rules = std::vector<labelled>{};
  for (auto i = std::size_t{0}; i < of.order_errors_by_rule.size(); ++i)
    rules.push_back({i == 0 ? "calls" : std::string{"S"} + std::to_string(i),
                     families::to_double(of.order_errors_by_rule[i])});
  to.add(MetricType::Counter, "kvtide_order_errors_total",
         "Messages that came in an order which a rule excludes.", "rule",
         rules);
  to.counter("kvtide_late_messages_total",
             "Messages of earlier lives and connections of ranks, ignored.",
             of.late_messages);
  to.counter("kvtide_lost_requests_total",
             "Requests that went on without the cache.", of.lost_requests);
  to.counter("kvtide_lost_caches_total",
             "Times the book of the host pool was lost.", of.lost_caches);
}

void add_rank(const kvtide::rank_stats& of, families& to) {
  to.counter("kvtide_copied_bytes_total",
             "Bytes that ended jobs copied, in both directions.",
             of.copied_bytes);
  to.counter("kvtide_copy_seconds_total", "Wall time of copying them.",
             std::chrono::duration<double>(of.copy_time).count());
  to.counter("kvtide_late_jobs_total", "Copy jobs that missed their deadline.",
             of.late_jobs);
  to.counter("kvtide_rank_order_errors_total",
             "As kvtide_order_errors_total, of what the rank saw.",
             of.order_errors);
  to.counter("kvtide_rank_late_messages_total",
             "Messages of earlier connections to the scheduler, ignored by the "
             "rank.",
             of.late_messages);
}

} // namespace

std::vector<MetricFamily> engine_families(const engine_stats& stats) {
  auto to = families{};
  add_engine(stats, to);
  add_cache(stats.cache, to);
  add_rank(stats.rank, to);
  return to.take();
}

} // namespace serve
