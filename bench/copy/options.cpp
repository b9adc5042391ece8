// SPDX-License-Identifier: Apache-2.0

#include "bench/copy/options.hpp"

#include <array>
#include <charconv>
#include <functional>
#include <optional>
#include <string_view>
#include <utility>

namespace kvtide::bench {

namespace {

// A loop of our own and no library: this program is also built on machines
// with a GPU that have a compiler and nothing to install from.

error wrong(const std::string& what) {
  return {ec::invalid_argument, what + "; see bench-copy --help"};
}

/// Of a list that commas part.
std::vector<std::string> parts_of(std::string_view text) {
  auto out = std::vector<std::string>{};
  for (;;) {
    const auto comma = text.find(',');
    out.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos)
      return out;
    text.remove_prefix(comma + 1);
  }
}

/// @returns nothing if `text` is not a number from `least` to `most`; K, M and
///          G behind it stand for KiB, MiB and GiB
std::optional<std::uint64_t>
number_of(std::string_view text, std::uint64_t least, std::uint64_t most) {
  auto shift = 0;
  if (!text.empty())
    if (const auto at = std::string_view{"KMG"}.find(text.back());
        at != std::string_view::npos) {
      shift = 10 * static_cast<int>(at + 1);
      text.remove_suffix(1);
    }
  auto out = std::uint64_t{0};
  const auto* end = text.data() + text.size();
  const auto [stopped, code] = std::from_chars(text.data(), end, out);
  if (text.empty() || code != std::errc{} || stopped != end
      || out > (most >> shift) || (out << shift) < least)
    return std::nullopt;
  return out << shift;
}

/// One option with a value.
struct option {
  std::string_view name;
  /// @returns false if the value is not one of this option
  std::function<bool(const std::string&)> take;
  const char* expects;
};

template <class T>
std::function<bool(const std::string&)>
list_into(std::vector<T>& out,
          std::function<std::optional<T>(const std::string&)> parse) {
  return [&out, parse = std::move(parse)](const std::string& text) {
    out.clear();
    for (const auto& part : parts_of(text)) {
      const auto parsed = parse(part);
      if (!parsed)
        return false;
      out.push_back(*parsed);
    }
    return true;
  };
}

template <class T>
std::function<bool(const std::string&)> number_into(T& out, std::uint64_t least,
                                                    std::uint64_t most) {
  return [&out, least, most](const std::string& text) {
    const auto parsed = number_of(text, least, most);
    if (parsed)
      out = static_cast<T>(*parsed);
    return parsed.has_value();
  };
}

template <class T, std::size_t N>
std::function<std::optional<T>(const std::string&)>
one_of(const std::array<std::pair<const char*, T>, N>& known) {
  return [&known](const std::string& text) -> std::optional<T> {
    for (const auto& [name, value] : known)
      if (text == name)
        return value;
    return std::nullopt;
  };
}

constexpr auto directions = std::array{std::pair{"store", direction::store},
                                       std::pair{"load", direction::load},
                                       std::pair{"both", direction::both}};

constexpr auto paths = std::array{std::pair{"automatic", copy_path::automatic},
                                  std::pair{"batch", copy_path::batch},
                                  std::pair{"plain", copy_path::plain},
                                  std::pair{"kernel", copy_path::kernel}};

constexpr auto devices = std::array{std::pair{"auto", device_choice::automatic},
                                    std::pair{"host", device_choice::host},
                                    std::pair{"cuda", device_choice::cuda}};

std::vector<option> options_into(copy_options& out) {
  constexpr auto largest = std::uint64_t{1} << 30;
  return {
    {"--device",
     [&out, known = one_of(devices)](const std::string& text) {
       const auto parsed = known(text);
       out.device = parsed.value_or(out.device);
       return parsed.has_value();
     },
     "auto, host or cuda"},
    {"--gpu", number_into(out.gpu, 0, 255), "the number of a GPU"},
    {"--fragments",
     list_into<std::uint64_t>(
       out.fragments,
       [](const std::string& x) { return number_of(x, 1, largest); }),
     "bytes from 1 to 1G, as in 4K,64K,1M"},
    {"--counts",
     list_into<std::uint64_t>(out.counts,
                              [](const std::string& x) {
                                return x == "fill"
                                       ? std::optional{std::uint64_t{0}}
                                       : number_of(x, 1, largest);
                              }),
     "numbers of fragments, or fill, as in 16,256,fill"},
    {"--batch", number_into(out.batch_bytes, 1, largest),
     "bytes from 1 to 1G, as in 64M"},
    {"--jobs",
     list_into<std::uint64_t>(
       out.jobs, [](const std::string& x) { return number_of(x, 1, 65'536); }),
     "numbers of jobs from 1 to 65536, as in 1,64"},
    {"--directions", list_into<direction>(out.directions, one_of(directions)),
     "some of store,load,both"},
    {"--paths", list_into<copy_path>(out.paths, one_of(paths)),
     "some of automatic,batch,plain,kernel"},
    {"--rounds", number_into(out.rounds, 1, 100'000), "a number from 1 on"},
    {"--decode-iterations", number_into(out.decode_iterations, 1, 100'000),
     "a number from 1 on"},
    {"--decode-rounds", number_into(out.decode_rounds, 1, 10'000),
     "a number from 1 on"},
    {"--only",
     [&out](const std::string& text) {
       out.copies = text == "copies";
       out.decode = text == "decode";
       return out.copies || out.decode;
     },
     "copies or decode"},
    {"--json",
     [&out](const std::string& text) {
       out.json_file = text;
       return !text.empty();
     },
     "the name of a file"},
  };
}

/// Sets what `--quick` changes; what is named beside it stays as named.
void make_quick(copy_options& out) {
  out.quick = true;
  out.fragments = {4u << 10, 64u << 10};
  out.counts = {16};
  out.rounds = 2;
  out.decode_iterations = 4;
  out.decode_rounds = 1;
}

} // namespace

const char* name_of(direction value) noexcept {
  return directions[static_cast<std::size_t>(value)].first;
}

const char* name_of(copy_path value) noexcept {
  return paths[static_cast<std::size_t>(value)].first;
}

std::string size_text(std::uint64_t bytes) {
  constexpr auto units = std::array{" B", " KiB", " MiB", " GiB"};
  auto unit = std::size_t{0};
  while (unit + 1 < units.size() && bytes > 0 && bytes % 1'024 == 0) {
    bytes /= 1'024;
    ++unit;
  }
  return std::to_string(bytes) + units[unit];
}

const char* help_text() noexcept {
  return R"(bench-copy [options]

How fast a copy engine moves batches of fragments, beside the same bytes by one
large copy and by one copy per fragment, in turns in the same run; and, on a
GPU, what a decode-like loop feels of loads beside it.

  --device auto|host|cuda   auto (default): the GPU if there is one, else host
  --gpu N                   number of the GPU (0)
  --fragments LIST          bytes per fragment (4K,16K,64K,256K,1M,4M)
  --counts LIST             fragments per batch; fill: as many as make --batch
                            (16,256,fill)
  --batch BYTES             most bytes of a batch, per direction (64M)
  --jobs LIST               jobs per batch (cuda: 1; host: 1,64)
  --directions LIST         store, load, both at once (all three)
  --paths LIST              automatic, batch, plain, kernel (all; cuda alone)
  --rounds N                rounds behind the warm-up (21)
  --only copies|decode      one of the two parts
  --decode-iterations N     iterations per load and round (200)
  --decode-rounds N         (10)
  --quick                   few bytes and rounds: whether it works, not how fast
  --check                   host alone: fail below 90 % of memcpy with fragments
                            of 64 KiB in 64 MiB
  --json FILE               results as JSON as well; - is standard output
  --help

Progress goes to standard error, tables to standard output. Ends with 0; with 1
if a copy failed or --check does; with 2 if an option is wrong or asks for
nothing that could be measured; with 77 if
there is no such device; with 130 after an interrupt, with what was measured.
)";
}

result<copy_options> parse_options(int argc, const char* const* argv) {
  auto out = copy_options{};
  out.fragments
    = {4u << 10, 16u << 10, 64u << 10, 256u << 10, 1u << 20, 4u << 20};
  out.counts = {16, 256, 0};
  out.directions = {direction::store, direction::load, direction::both};
  out.paths = {copy_path::automatic, copy_path::batch, copy_path::plain,
               copy_path::kernel};
  for (auto i = 0; i < argc; ++i) {
    if (i > 0)
      out.command += ' ';
    out.command += argv[i];
  }
  for (auto i = 1; i < argc; ++i)
    if (argv[i] == std::string_view{"--quick"})
      make_quick(out);
  const auto known = options_into(out);
  for (auto i = 1; i < argc; ++i) {
    auto name = std::string{argv[i]};
    if (name == "--quick")
      continue;
    if (name == "--help" || name == "-h") {
      out.help = true;
      return out;
    }
    if (name == "--check") {
      out.check = true;
      continue;
    }
    auto value = std::optional<std::string>{};
    if (const auto sign = name.find('='); sign != std::string::npos) {
      value = name.substr(sign + 1);
      name.resize(sign);
    }
    const option* found = nullptr;
    for (const auto& one : known)
      if (one.name == name)
        found = &one;
    if (found == nullptr)
      return wrong("there is no option " + name);
    if (!value && ++i < argc)
      value = argv[i];
    if (!value || !found->take(*value))
      return wrong(name + " takes " + found->expects + ", not "
                   + (value ? '\'' + *value + '\'' : "nothing"));
  }
  if (out.check && (out.device == device_choice::cuda || !out.copies))
    return wrong("--check holds copies of the host engine to their promise: it "
                 "goes with --device host and without --only decode");
  return out;
}

} // namespace kvtide::bench
