// SPDX-License-Identifier: Apache-2.0

#include "core/store_intent.hpp"

#include <algorithm>

namespace kvtide::core {

namespace {

// The last sampled token's slot was never written (R1, FIN-03); a prompt is
// written whole once prefill is over.
token_count committed(const store_wish& wish) noexcept {
  return std::max(wish.prompt, wish.known - 1);
}

token_count natural_end(const store_wish& wish, const rules& rule) noexcept {
  switch (rule.natural_finish) {
    case finish_frontier::known:
      return wish.known;
    case finish_frontier::committed:
      return committed(wish);
    case finish_frontier::computed_or_committed:
      break;
  }
  return wish.computed < wish.prompt ? wish.computed : committed(wish); // R1
}

token_count frontier(const store_wish& wish, const rules& rule) noexcept {
  if (!wish.ending)
    return wish.computed + wish.scheduled;
  switch (*wish.ending) {
    case finish_reason::abort:
      return wish.computed; // FIN-02
    case finish_reason::stop:
    case finish_reason::length:
    case finish_reason::repetition:
    case finish_reason::ignored:
      return natural_end(wish, rule);
    case finish_reason::error:
      break;
  }
  // An error, or a reason that this build does not know.
  return rule.error_stores_computed_only ? wish.computed // R2
                                         : natural_end(wish, rule);
}

} // namespace

token_count wanted_tokens(const store_wish& wish, const rules& rule) noexcept {
  if (wish.no_store)
    return 0;
  auto wanted = std::min({frontier(wish, rule), wish.known, wish.cap});
  if (wish.prompt_only)
    wanted = std::min(wanted, wish.prompt);
  return std::max<token_count>(wanted, 0);
}

} // namespace kvtide::core
