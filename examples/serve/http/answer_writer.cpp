// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/answer_writer.hpp"

#include <boost/asio/buffer.hpp>
#include <utility>

namespace serve {

bool answer_writer::start(std::chrono::milliseconds timeout,
                          callback on_written) {
  if (busy_)
    return false;
  if (sent_ == sending_.size()) {
    sending_.clear();
    sent_ = 0;
    std::swap(sending_, unsent_);
  }
  if (sending_.empty())
    return false;
  busy_ = true;
  deadline_ = clock::now() + timeout;
  socket_.async_write_some(
    boost::asio::buffer(sending_.data() + sent_, sending_.size() - sent_),
    std::move(on_written));
  return true;
}

void answer_writer::ended(std::size_t bytes) noexcept {
  busy_ = false;
  deadline_ = clock::time_point::max();
  sent_ += bytes;
}

} // namespace serve
