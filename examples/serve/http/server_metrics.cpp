// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/server_metrics.hpp"

#include "examples/serve/http/engine_families.hpp"

#include <iterator>
#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sstream>
#include <utility>

namespace serve {

namespace {

using prometheus::BuildCounter;
using prometheus::BuildGauge;
using prometheus::BuildHistogram;
using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

// Seconds, a factor of about two apart.
const auto buckets = Histogram::BucketBoundaries{
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};

double to_seconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

} // namespace

struct server_metrics::impl {
  Counter& dropped(const char* why) {
    return drops.Add({{"why", why}});
  }

  Counter& left(const char* phase) {
    return disconnects.Add({{"phase", phase}});
  }

  prometheus::Registry registry;

  Gauge& connections = BuildGauge()
                         .Name("serve_connections")
                         .Help("Connections that are open.")
                         .Register(registry)
                         .Add({});
  Counter& refused
    = BuildCounter()
        .Name("serve_refused_connections_total")
        .Help("Connections that were turned away, as there were too many.")
        .Register(registry)
        .Add({});
  Family<Counter>& disconnects
    = BuildCounter()
        .Name("serve_disconnects_total")
        .Help("Clients that went away, by what they waited for.")
        .Register(registry);
  Family<Counter>& drops
    = BuildCounter()
        .Name("serve_dropped_clients_total")
        .Help("Clients that the server hung up on, by reason.")
        .Register(registry);
  Family<Counter>& answers = BuildCounter()
                               .Name("serve_answers_total")
                               .Help("Answers, by status code.")
                               .Register(registry);
  Gauge& completions
    = BuildGauge()
        .Name("serve_open_completions")
        .Help("Completions whose end the engine has not told yet.")
        .Register(registry)
        .Add({});
  Histogram& first_tokens
    = BuildHistogram()
        .Name("serve_time_to_first_token_seconds")
        .Help("From the whole request until its first token.")
        .Register(registry)
        .Add({}, buckets);
  Histogram& durations
    = BuildHistogram()
        .Name("serve_completion_seconds")
        .Help("From the whole request until its answer was complete.")
        .Register(registry)
        .Add({}, buckets);

  // Named once, so that each has a line before it has a value.
  Counter& slow_readers = dropped("slow_reader");
  Counter& slow_requests = dropped("slow_request");
  Counter& too_much_ahead = dropped("too_much_ahead");
  Counter& half_requests = left("half_request");
  Counter& before_first = left("before_first_token");
  Counter& in_the_middle = left("in_the_middle");
  Counter& while_answering = left("while_answering");
};

server_metrics::server_metrics() : impl_(std::make_unique<impl>()) {
  // nop
}

server_metrics::~server_metrics() = default;

void server_metrics::connection_opened() {
  impl_->connections.Increment();
}

void server_metrics::connection_closed() {
  impl_->connections.Decrement();
}

void server_metrics::connection_refused() {
  impl_->refused.Increment();
}

void server_metrics::disconnected(disconnect_phase phase) {
  switch (phase) {
    case disconnect_phase::half_request:
      return impl_->half_requests.Increment();
    case disconnect_phase::before_first_token:
      return impl_->before_first.Increment();
    case disconnect_phase::in_the_middle:
      return impl_->in_the_middle.Increment();
    case disconnect_phase::while_answering:
      return impl_->while_answering.Increment();
  }
}

void server_metrics::client_dropped(client_fault why) {
  switch (why) {
    case client_fault::slow_reader:
      return impl_->slow_readers.Increment();
    case client_fault::slow_request:
      return impl_->slow_requests.Increment();
    case client_fault::too_much_ahead:
      return impl_->too_much_ahead.Increment();
  }
}

void server_metrics::answered(unsigned status) {
  impl_->answers.Add({{"status", std::to_string(status)}}).Increment();
}

void server_metrics::completion_started() {
  impl_->completions.Increment();
}

void server_metrics::completion_ended() {
  impl_->completions.Decrement();
}

void server_metrics::first_token(std::chrono::nanoseconds waited) {
  impl_->first_tokens.Observe(to_seconds(waited));
}

void server_metrics::completed(std::chrono::nanoseconds taken) {
  impl_->durations.Observe(to_seconds(taken));
}

std::string server_metrics::text(const engine_stats& engine) const {
  auto families = impl_->registry.Collect();
  auto more = engine_families(engine);
  families.insert(families.end(), std::make_move_iterator(more.begin()),
                  std::make_move_iterator(more.end()));
  auto out = std::ostringstream{};
  prometheus::TextSerializer{}.Serialize(out, families);
  return std::move(out).str();
}

} // namespace serve
