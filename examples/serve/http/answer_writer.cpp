// SPDX-License-Identifier: Apache-2.0

#include "examples/serve/http/answer_writer.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <utility>

namespace serve {

namespace asio = boost::asio;

namespace {

// What the kernel has taken and not sent once: the client's has no room for it.
// What is on its way is not in it, so a long way alone makes nobody slow.
std::size_t kept_by_kernel(asio::ip::tcp::socket& socket) noexcept {
  auto bytes = 0;
  if (ioctl(socket.native_handle(), SIOCOUTQNSD, &bytes) != 0 || bytes < 0)
    return 0;
  return static_cast<std::size_t>(bytes);
}

} // namespace

void answer_writer::start(callback on_written) {
  if (busy_)
    return;
  if (sent_ == sending_.size()) {
    sending_.clear();
    sent_ = 0;
    std::swap(sending_, unsent_);
  }
  if (sending_.empty())
    return;
  busy_ = true;
  // Tried here, so that it is known now what the kernel has.
  auto failure = boost::system::error_code{};
  socket_.non_blocking(true, failure);
  const auto written = socket_.write_some(
    asio::buffer(sending_.data() + sent_, sending_.size() - sent_), failure);
  sent_ += written;
  if (failure == asio::error::would_block)
    socket_.async_wait(asio::ip::tcp::socket::wait_write,
                       std::move(on_written));
  else
    asio::post(socket_.get_executor(),
               [failure, call = std::move(on_written)] { call(failure); });
}

void answer_writer::look() noexcept {
  const auto untaken
    = sending_.size() - sent_ + unsent_.size() + kept_by_kernel(socket_);
  const auto taken = added_ - untaken;
  if (untaken == 0)
    deadline_ = clock::time_point::max();
  else if (taken > taken_ || deadline_ == clock::time_point::max())
    deadline_ = clock::now() + patience_;
  taken_ = taken;
}

} // namespace serve
