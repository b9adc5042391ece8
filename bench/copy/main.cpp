// SPDX-License-Identifier: Apache-2.0

// How fast do the engines copy, and what does decode feel of it? See --help and
// bench/README.md.

#include "bench/copy/copy_site.hpp"
#include "bench/copy/decode_feel.hpp"
#include "bench/copy/machine.hpp"
#include "bench/copy/promise.hpp"
#include "gpu/cuda/devices.hpp"

#include <cstdio>
#include <iostream>
#include <utility>

namespace kvtide::bench {
namespace {

enum exit_code : int {
  success = 0,
  failure = 1,
  wrong_option = 2,
  /// As test drivers have it for "skipped".
  no_device = 77,
  was_interrupted = 130,
};

void say(const std::string& text) {
  std::fprintf(stderr, "bench-copy: %s\n", text.c_str());
}

int end_with(const error& why, int code) {
  say(why.text);
  return code;
}

/// Fills in the device and sets the defaults that depend on it.
error choose_device(copy_options& options, run_facts& facts) {
  auto found = result<gpu::device_facts>{error{ec::unsupported, "host"}};
  if (options.device != device_choice::host)
    found = gpu::facts_of(options.gpu);
  if (!found && options.device == device_choice::cuda)
    return found.failure();
  if (!found && options.device == device_choice::automatic)
    say(found.failure().text + "; the host engine is measured");
  options.device = found ? device_choice::cuda : device_choice::host;
  facts.device = found ? "cuda" : "host";
  if (options.jobs.empty())
    options.jobs = found ? std::vector<std::uint64_t>{1}
                         : std::vector<std::uint64_t>{1, 64};
  if (found) {
    facts.device_name = found.value().name;
    facts.pci_bus_id = found.value().pci_bus_id;
    facts.driver_version = found.value().driver_version;
    facts.runtime_version = found.value().runtime_version;
  }
  return {};
}

error measure(const copy_options& options, results& out) {
  const auto cuda = options.device == device_choice::cuda;
  if (options.copies) {
    auto site = cuda ? make_cuda_site(options) : make_host_site(options);
    if (!site)
      return site.failure();
    if (auto failed = measure_copies(*site.value(), options, out.copies);
        failed.code != ec::none)
      return failed;
    // The link is as wide as it gets right behind copies.
    if (cuda)
      add_link(out.facts, out.facts.pci_bus_id);
  }
  if (!options.decode || !cuda || interrupted())
    return {};
  auto felt = measure_decode(options);
  if (!felt)
    return felt.failure();
  out.decode = std::move(felt).value();
  if (out.facts.link.empty())
    add_link(out.facts, out.facts.pci_bus_id);
  return {};
}

int run(int argc, char** argv) {
  auto parsed = parse_options(argc, argv);
  if (!parsed)
    return end_with(parsed.failure(), wrong_option);
  auto options = std::move(parsed).value();
  if (options.help) {
    std::cout << help_text();
    return success;
  }
  auto out = results{};
  out.facts = facts_of_machine();
  out.facts.command = options.command;
  out.rounds = options.rounds;
  if (auto missing = choose_device(options, out.facts);
      missing.code != ec::none)
    return end_with(missing, no_device);
  if (options.device == device_choice::host && !options.copies)
    return end_with({ec::invalid_argument,
                     "the decode loop needs a GPU; see bench-copy --help"},
                    wrong_option);
  if (options.check && options.device != device_choice::host)
    return end_with({ec::invalid_argument, "--check needs --device host"},
                    wrong_option);
  if (auto refused = can_be_written(options.json_file);
      refused.code != ec::none)
    return end_with(refused, wrong_option);
  take_interrupts();
  // What was measured is shown whatever came then.
  const auto failed = measure(options, out);
  print_table(out, std::cout);
  if (!options.json_file.empty())
    if (const auto refused = write_json(out, options.json_file);
        refused.code != ec::none)
      return end_with(refused, failure);
  if (failed.code != ec::none)
    return end_with(failed, failed.code == ec::invalid_argument ? wrong_option
                                                                : failure);
  if (interrupted())
    return end_with({ec::timeout, "interrupted; the results are not complete"},
                    was_interrupted);
  if (options.check)
    if (const auto broken = check_host_promise(out); broken.code != ec::none)
      return end_with(broken, failure);
  return success;
}

} // namespace
} // namespace kvtide::bench

int main(int argc, char** argv) {
  return kvtide::bench::run(argc, argv);
}
