// SPDX-License-Identifier: Apache-2.0

#include "tests/conformance/replay.hpp"

#include "tests/conformance/connector_replay.hpp"
#include "tests/conformance/pool_replay.hpp"
#include "tests/conformance/recorder.hpp"
#include "tests/conformance/worker_replay.hpp"

namespace kvtide::conformance {

namespace {

void play(const connector_scenario& content, const replay_options& opts,
          stage& actors, recorder& out) {
  connector_replay{content, opts.delivery, actors, out}.run();
}

void play(const pool_scenario& content, const replay_options&, stage& actors,
          recorder& out) {
  pool_replay{content, actors, out}.run();
}

void play(const worker_scenario& content, const replay_options&, stage& actors,
          recorder& out) {
  worker_replay{content, actors, out}.run();
}

} // namespace

replay_result replay(const scenario& file, const replay_options& opts) {
  auto out = recorder{file.path, opts.trace};
  stage actors{out.stage_config(opts.stub)};
  std::visit([&](const auto& content) { play(content, opts, actors, out); },
             file.content);
  return {out.mismatches(), actors.handled()};
}

} // namespace kvtide::conformance
