// SPDX-License-Identifier: Apache-2.0

#include "messages/join_terms.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace kvtide {

namespace {

/// Numbers as they are counted, low byte first; strings and lists behind their
/// length.
class writer {
public:
  template <class T>
  void put(T x) {
    auto bits = static_cast<std::uint64_t>(x);
    for (std::size_t i = 0; i < sizeof(T); ++i, bits >>= 8)
      out_.push_back(static_cast<char>(bits & 0xFF));
  }

  void put(const std::string& x) {
    put(static_cast<std::uint32_t>(x.size()));
    out_ += x;
  }

  [[nodiscard]] std::string take() {
    return std::move(out_);
  }

private:
  std::string out_;
};

/// Reads what `writer` wrote. Behind the end everything is zero.
class reader {
public:
  explicit reader(const std::string& bytes) : bytes_(bytes) {
    // nop
  }

  template <class T>
  void get(T& x) {
    auto bits = std::uint64_t{0};
    for (std::size_t i = 0; i < sizeof(T) && has(1); ++i)
      bits |= std::uint64_t{static_cast<std::uint8_t>(bytes_[at_++])}
           << (8 * i);
    x = static_cast<T>(bits);
  }

  void get(bool& x) {
    get_below(x, 2);
  }

  void get(std::string& x) {
    auto size = std::uint32_t{0};
    get(size);
    if (!has(size))
      return;
    x = bytes_.substr(at_, size);
    at_ += size;
  }

  /// One byte, which is damaged if it is too large.
  template <class T>
  void get_below(T& x, std::uint8_t end) {
    auto value = std::uint8_t{0};
    get(value);
    good_ = good_ && value < end;
    x = static_cast<T>(value);
  }

  /// So many bytes follow; else nothing is good any more.
  [[nodiscard]] bool has(std::size_t bytes) {
    good_ = good_ && bytes <= bytes_.size() - at_;
    return good_;
  }

  [[nodiscard]] bool good() const noexcept {
    return good_;
  }

  [[nodiscard]] bool at_end() const noexcept {
    return at_ == bytes_.size();
  }

private:
  const std::string& bytes_;
  std::size_t at_ = 0;
  bool good_ = true;
};

constexpr std::size_t group_bytes = 4 + 4 + 1;

// -- words --------------------------------------------------------------------

/// What a peer says goes into a sentence and a log line: short, and in print.
std::string quoted(const std::string& text) {
  constexpr std::size_t longest = 64;
  auto out = text.substr(0, longest);
  std::replace_if(
    out.begin(), out.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return '"' + out + (text.size() > longest ? "...\"" : "\"");
}

const char* name_of(rule_set x) {
  switch (x) {
    case rule_set::reference:
      return "reference";
    case rule_set::reference_committed:
      return "reference_committed";
    case rule_set::safe:
      break;
  }
  return "safe";
}

const char* name_of(plan_delivery x) {
  return x == plan_delivery::direct ? "direct" : "by_engine";
}

error differs(const std::string& field, const std::string& ours,
              const std::string& theirs) {
  return {ec::invalid_options,
          field + " is " + ours + " at the scheduler and " + theirs
            + " at the rank; give both processes the same options"};
}

template <class T>
error differs(const std::string& field, T ours, T theirs) {
  return differs(field, std::to_string(ours), std::to_string(theirs));
}

error fault_of(const std::string& name, const group_options& ours,
               const group_options& theirs) {
  if (ours.tokens_per_block != theirs.tokens_per_block)
    return differs(name + ".tokens_per_block", ours.tokens_per_block,
                   theirs.tokens_per_block);
  if (ours.sliding_window_tokens != theirs.sliding_window_tokens)
    return differs(name + ".sliding_window_tokens", ours.sliding_window_tokens,
                   theirs.sliding_window_tokens);
  if (ours.draft != theirs.draft)
    return differs(name + ".draft", int{ours.draft}, int{theirs.draft});
  return {};
}

} // namespace

join_terms terms_of(const options& opts, rank_id rank, std::uint64_t life) {
  auto out = join_terms{};
  out.rank = rank;
  out.life = life;
  out.ranks = opts.ranks;
  out.groups = opts.groups;
  out.blocks_per_chunk = opts.blocks_per_chunk;
  out.tokens_per_hash = opts.tokens_per_hash;
  out.model_fingerprint = opts.model_fingerprint;
  out.rules = opts.rules;
  out.delivery = opts.delivery;
  out.virtual_time = opts.device == device_kind::host_virtual;
  return out;
}

std::string encode_terms(const join_terms& terms) {
  auto out = writer{};
  out.put(terms.rank);
  out.put(terms.life);
  out.put(terms.ranks);
  out.put(static_cast<std::uint32_t>(terms.groups.size()));
  for (const auto& group : terms.groups) {
    out.put(group.tokens_per_block);
    out.put(group.sliding_window_tokens);
    out.put(std::uint8_t{group.draft});
  }
  out.put(terms.blocks_per_chunk);
  out.put(terms.tokens_per_hash);
  out.put(terms.model_fingerprint);
  out.put(static_cast<std::uint8_t>(terms.rules));
  out.put(static_cast<std::uint8_t>(terms.delivery));
  out.put(std::uint8_t{terms.virtual_time});
  return out.take();
}

result<join_terms> decode_terms(const std::string& bytes) {
  auto in = reader{bytes};
  auto out = join_terms{};
  in.get(out.rank);
  in.get(out.life);
  in.get(out.ranks);
  auto groups = std::uint32_t{0};
  in.get(groups);
  if (in.has(std::size_t{groups} * group_bytes))
    out.groups.resize(groups);
  for (auto& group : out.groups) {
    in.get(group.tokens_per_block);
    in.get(group.sliding_window_tokens);
    in.get(group.draft);
  }
  in.get(out.blocks_per_chunk);
  in.get(out.tokens_per_hash);
  in.get(out.model_fingerprint);
  in.get_below(out.rules, 3);
  in.get_below(out.delivery, 2);
  in.get(out.virtual_time);
  if (!in.good() || !in.at_end())
    return error{
      ec::invalid_argument,
      "what the rank says of itself is damaged: use the same version "
      "of the library in all processes"};
  return out;
}

error fault_of(const join_terms& ours, const join_terms& theirs) {
  if (ours.ranks != theirs.ranks)
    return differs("options.ranks", ours.ranks, theirs.ranks);
  if (ours.groups.size() != theirs.groups.size())
    return differs("the number of options.groups", ours.groups.size(),
                   theirs.groups.size());
  for (std::size_t g = 0; g < ours.groups.size(); ++g)
    if (auto fault = fault_of("options.groups[" + std::to_string(g) + "]",
                              ours.groups[g], theirs.groups[g]);
        fault.code != ec::none)
      return fault;
  if (ours.blocks_per_chunk != theirs.blocks_per_chunk)
    return differs("options.blocks_per_chunk", ours.blocks_per_chunk,
                   theirs.blocks_per_chunk);
  if (ours.tokens_per_hash != theirs.tokens_per_hash)
    return differs("options.tokens_per_hash", ours.tokens_per_hash,
                   theirs.tokens_per_hash);
  if (ours.model_fingerprint != theirs.model_fingerprint)
    return differs("options.model_fingerprint", quoted(ours.model_fingerprint),
                   quoted(theirs.model_fingerprint));
  if (ours.rules != theirs.rules)
    return differs("options.rules", std::string{name_of(ours.rules)},
                   std::string{name_of(theirs.rules)});
  if (ours.delivery != theirs.delivery)
    return differs("options.delivery", std::string{name_of(ours.delivery)},
                   std::string{name_of(theirs.delivery)});
  if (ours.virtual_time != theirs.virtual_time)
    return differs("options.device == host_virtual", int{ours.virtual_time},
                   int{theirs.virtual_time});
  return {};
}

error fault_of(const msg::knock& x) {
  if (x.protocol != msg::protocol_version)
    return {ec::unsupported,
            "it speaks version " + std::to_string(x.protocol)
              + " of the protocol and this process version "
              + std::to_string(msg::protocol_version)
              + ": install the same version of kvtide on both sides"};
  if (!x.door)
    return {ec::unsupported, "it has no door"};
  return {};
}

} // namespace kvtide
