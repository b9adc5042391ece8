// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/serve_options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>

namespace serve {

namespace {

// A whole number from `low` to `high`, and nothing else: CLI11 alone takes "-1"
// for a large one.
template <class T>
void add_number(CLI::App& app, const char* name, T& target, T low, T high,
                const std::string& text) {
  const auto range = std::to_string(low) + " to " + std::to_string(high);
  const auto check = [low, high, range](const std::string& given) {
    auto value = T{};
    const auto* end = given.data() + given.size();
    const auto parsed = std::from_chars(given.data(), end, value);
    const auto good = parsed.ec == std::errc{} && parsed.ptr == end
                   && value >= low && value <= high;
    return good ? std::string{}
                : given + " is not a whole number from " + range;
  };
  app
    .add_option(name, target,
                text + " (" + range + "; default " + std::to_string(target)
                  + ")")
    ->type_name("N")
    ->check(CLI::Validator{check, ""});
}

// "64MiB": a whole number and a unit, all units being powers of 1,024.
std::optional<std::uint64_t> read_size(std::string_view given) {
  auto number = std::uint64_t{0};
  const auto* end = given.data() + given.size();
  const auto parsed = std::from_chars(given.data(), end, number);
  if (parsed.ec != std::errc{})
    return std::nullopt;
  const auto unit
    = std::string_view{parsed.ptr, static_cast<std::size_t>(end - parsed.ptr)};
  constexpr auto units
    = std::array<std::string_view, 4>{"", "KiB", "MiB", "GiB"};
  const auto* found = std::find(units.begin(), units.end(), unit);
  const auto shift = 10 * (found - units.begin());
  if (found == units.end()
      || number > std::numeric_limits<std::uint64_t>::max() >> shift)
    return std::nullopt;
  return number << shift;
}

void add_size(CLI::App& app, const char* name, std::uint64_t& target,
              const std::string& text) {
  const auto check = [](const std::string& given) {
    return read_size(given)
           ? std::string{}
           : given
               + " is not a whole number of bytes, KiB, MiB or GiB below 2^64 "
                 "bytes, for example 1536MiB";
  };
  app
    .add_option_function<std::string>(
      name,
      [&target](const std::string& given) {
        target = read_size(given).value_or(target);
      },
      text + " (bytes, KiB, MiB or GiB; default " + std::to_string(target)
        + ")")
    ->type_name("SIZE")
    ->check(CLI::Validator{check, ""});
}

// Seconds with a fraction, up to a day.
void add_seconds(CLI::App& app, const char* name,
                 std::chrono::milliseconds& target, const std::string& text) {
  const auto read = [](const std::string& given, double& value) {
    const auto* end = given.data() + given.size();
    const auto parsed = std::from_chars(given.data(), end, value);
    return parsed.ec == std::errc{} && parsed.ptr == end && value >= 0
        && value <= 86'400;
  };
  const auto check = [read](const std::string& given) {
    auto value = 0.0;
    return read(given, value)
           ? std::string{}
           : given + " is not a number of seconds from 0 to 86400";
  };
  const auto set = [read, &target](const std::string& given) {
    auto value = 0.0;
    if (read(given, value))
      target
        = std::chrono::milliseconds{static_cast<std::int64_t>(value * 1'000)};
  };
  auto standard = std::ostringstream{};
  standard << static_cast<double>(target.count()) / 1'000;
  app
    .add_option_function<std::string>(
      name, set, text + " (seconds; default " + standard.str() + ")")
    ->type_name("S")
    ->check(CLI::Validator{check, ""});
}

// "127.0.0.1:8000", or "[::1]:8000"; the server itself checks the address.
bool split_endpoint(std::string_view given, server_options& to) {
  const auto colon = given.rfind(':');
  if (colon == std::string_view::npos)
    return false;
  auto address = given.substr(0, colon);
  const auto port = given.substr(colon + 1);
  if (address.size() > 2 && address.front() == '[' && address.back() == ']')
    address = address.substr(1, address.size() - 2);
  const auto* end = port.data() + port.size();
  const auto parsed = std::from_chars(port.data(), end, to.port);
  to.address = address;
  return !address.empty() && parsed.ec == std::errc{} && parsed.ptr == end;
}

void add_engine_options(CLI::App& app, engine_options& to,
                        std::int64_t& latency) {
  constexpr auto most = std::int32_t{1'000'000};
  const auto choice = [&app](const char* name, auto set, const char* first,
                             const char* second, const char* text) {
    const auto check = [first, second](const std::string& given) {
      return given == first || given == second
             ? std::string{}
             : given + " is neither " + first + " nor " + second;
    };
    app
      .add_option_function<std::string>(
        name, [set, second](const std::string& given) { set(given == second); },
        std::string{text} + " (" + first + ", the default, or " + second + ")")
      ->type_name("WORD")
      ->check(CLI::Validator{check, ""});
  };
  choice(
    "--model",
    [&to](bool second) {
      to.variant = second ? model_variant::sliding_window
                          : model_variant::full_attention;
    },
    "full", "sliding",
    "Attention of the model: all layers full, or every "
    "other one with a sliding window");
  choice(
    "--policy",
    [&to](bool second) {
      to.policy
        = second ? kvtide::eviction_policy::arc : kvtide::eviction_policy::lru;
    },
    "lru", "arc", "What leaves the host pool first");
  add_number(app, "--seed", to.seed, std::uint64_t{0},
             std::numeric_limits<std::uint64_t>::max(), "Of the weights");
  add_number(app, "--max-tokens", to.max_tokens, 2, most,
             "Longest request, prompt and answer, in tokens");
  add_number(app, "--device-blocks", to.device_blocks, 2u, 10'000'000u,
             "Blocks of device memory");
  add_number(app, "--tokens-per-block", to.tokens_per_block, 1, 1'024,
             "Tokens per block");
  add_number(app, "--blocks-per-chunk", to.blocks_per_chunk, 1, 1'024,
             "Blocks that are stored and loaded together");
  add_size(app, "--host-pool", to.host_bytes,
           "Pool in host memory; 0 turns offloading off");
  add_number(app, "--max-batch", to.max_batch, 1u, 65'536u,
             "Requests that run or load at the same time");
  add_number(app, "--step-tokens", to.step_tokens, 1, most,
             "Tokens that one step computes at most");
  add_number(app, "--queue", to.queue_limit, 1u, 1'000'000u,
             "Requests that wait before more get status 429");
  add_size(app, "--copy-rate", to.copy_bytes_per_second,
           "Bytes per second that are copied in each direction; 0 is as fast "
           "as the memory");
  add_number(app, "--copy-latency", latency, std::int64_t{0},
             std::int64_t{1'000'000}, "Microseconds added to each copy");
  add_seconds(app, "--job-deadline", to.job_deadline,
              "Longest time that a copy may take");
}

void add_server_options(CLI::App& app, server_options& to,
                        std::uint64_t& header, std::uint64_t& body,
                        std::uint64_t& unsent) {
  const auto check = [](const std::string& given) {
    auto ignored = server_options{};
    return split_endpoint(given, ignored)
           ? std::string{}
           : given + " is not ADDRESS:PORT, for example 127.0.0.1:8000";
  };
  app
    .add_option_function<std::string>(
      "--listen",
      [&to](const std::string& given) { split_endpoint(given, to); },
      "Numeric address and port; port 0 lets the system choose (default "
      "127.0.0.1:0)")
    ->type_name("ADDRESS:PORT")
    ->check(CLI::Validator{check, ""});
  add_number(app, "--max-connections", to.max_connections, std::size_t{1},
             std::size_t{1'000'000}, "Clients at the same time; more get 503");
  add_size(app, "--max-header", header, "Longest header of a request");
  add_size(app, "--max-body", body, "Longest body of a request");
  add_size(app, "--max-unsent", unsent,
           "What of a stream may wait for a client that reads slowly, before "
           "its completion is aborted");
  add_seconds(app, "--request-timeout", to.request_timeout,
              "Longest time from a request's first byte to its last");
  add_seconds(app, "--idle-timeout", to.idle_timeout,
              "Longest time between two requests of a connection");
  add_seconds(app, "--write-timeout", to.write_timeout,
              "Longest time that a client may read nothing");
  add_seconds(app, "--drain", to.drain,
              "After SIGTERM or SIGINT, for completions to finish");
}

} // namespace

std::variant<serve_options, early_exit> parse_options(int argc,
                                                      const char* const* argv) {
  auto out = serve_options{};
  auto header = std::uint64_t{out.http.max_header_bytes};
  auto body = std::uint64_t{out.http.max_body_bytes};
  auto unsent = std::uint64_t{out.http.max_unsent_bytes};
  auto app = CLI::App{"Serves completions of a small transformer over "
                      "HTTP/1.1, its KV cache kept in host memory by kvtide. "
                      "Prints one line with the address once it listens; "
                      "SIGTERM or SIGINT ends it.",
                      "kvtide-serve"};
  add_server_options(app, out.http, header, body, unsent);
  auto latency = std::int64_t{0};
  add_engine_options(app, out.engine, latency);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return early_exit{0, app.help()};
  } catch (const CLI::ParseError& failure) {
    return early_exit{2, "kvtide-serve: " + std::string{failure.what()}
                           + "\nRun with --help for the options."};
  }
  constexpr auto most = std::uint64_t{1} << 30;
  if (header < 256 || header > most || body > most || unsent > most)
    return early_exit{2, "kvtide-serve: --max-header must be 256 to 1GiB, "
                         "--max-body and --max-unsent at most 1GiB."};
  out.engine.copy_latency = std::chrono::microseconds{latency};
  out.http.max_header_bytes = static_cast<std::size_t>(header);
  out.http.max_body_bytes = static_cast<std::size_t>(body);
  out.http.max_unsent_bytes = static_cast<std::size_t>(unsent);
  out.http.completions.max_tokens = out.engine.max_tokens;
  return out;
}

} // namespace serve
