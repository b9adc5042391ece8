// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/model/straight_answer.hpp"

#include "examples/serve/model/straight_kv.hpp"

namespace serve {

std::string straight_answer(const transformer& model, std::string_view prompt,
                            std::int32_t tokens) {
  auto res = std::string{};
  auto room = workspace{};
  auto position = std::int32_t{0};
  auto kv = straight_kv{static_cast<std::int32_t>(prompt.size()) + tokens};
  for (const auto byte : prompt)
    model.compute(static_cast<unsigned char>(byte), position++, kv, room);
  while (tokens-- > 0) {
    const auto token = model.next_token(room);
    res.push_back(static_cast<char>(token));
    if (tokens > 0)
      model.compute(token, position++, kv, room);
  }
  return res;
}

} // namespace serve
