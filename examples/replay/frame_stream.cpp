// SPDX-License-Identifier: Apache-2.0

#include "examples/replay/frame_stream.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace kvtide::replay {

namespace {

constexpr std::size_t header_bytes = 4;

std::string reason() {
  return std::strerror(errno);
}

// @returns false if the deadline passed first
bool wait_for(int fd, short events, frame_stream::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
    auto what = pollfd{fd, events, 0};
    const auto span
      = std::clamp<std::chrono::milliseconds::rep>(left.count(), 0, 60'000);
    const auto ready = poll(&what, 1, static_cast<int>(span));
    if (ready > 0)
      return true;
    if (ready < 0 && errno != EINTR)
      throw stream_error{"poll: " + reason()};
    if (left.count() <= 0)
      return false;
  }
}

sockaddr_un address_of(const std::string& path) {
  auto res = sockaddr_un{};
  res.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(res.sun_path))
    throw stream_error{path + ": a socket's path has 1 to "
                       + std::to_string(sizeof(res.sun_path) - 1)
                       + " characters"};
  std::memcpy(res.sun_path, path.data(), path.size());
  return res;
}

unique_fd make_socket() {
  auto res = unique_fd{socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  if (res.get() < 0)
    throw stream_error{"no socket can be had: " + reason()};
  return res;
}

void stop_blocking(int fd) {
  if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0)
    throw stream_error{"fcntl: " + reason()};
}

} // namespace

unique_fd::~unique_fd() {
  if (fd_ >= 0)
    close(fd_);
}

// -- messages -----------------------------------------------------------------

frame_stream::frame_stream(unique_fd socket) : socket_(std::move(socket)) {
  stop_blocking(fd());
}

void frame_stream::send(const nlohmann::json& message, time_point deadline) {
  out_.assign(header_bytes, 0);
  nlohmann::json::to_cbor(message, out_);
  const auto size = out_.size() - header_bytes;
  if (size > longest_frame)
    throw stream_error{"a message of " + std::to_string(size)
                       + " bytes is too long to be sent"};
  for (auto index = std::size_t{0}; index < header_bytes; ++index)
    out_[index] = static_cast<std::uint8_t>(size >> (8 * index));
  for (auto sent = std::size_t{0}; sent < out_.size();) {
    const auto count = ::send(fd(), out_.data() + sent, out_.size() - sent,
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0)
      sent += static_cast<std::size_t>(count);
    else if (errno != EAGAIN && errno != EINTR)
      throw stream_error{"the other side is gone: " + reason()};
    else if (!wait_for(fd(), POLLOUT, deadline))
      throw stream_error{"the other side does not read"};
  }
}

std::optional<nlohmann::json> frame_stream::receive(time_point deadline) {
  for (;;) {
    if (auto message = take_frame())
      return message;
    std::uint8_t buffer[65'536];
    const auto count = recv(fd(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (count > 0)
      in_.insert(in_.end(), buffer, buffer + count);
    else if (count == 0)
      throw stream_error{in_.empty()
                           ? "the other side is gone"
                           : "the other side is gone in the middle of a "
                             "message"};
    else if (errno != EAGAIN && errno != EINTR)
      throw stream_error{"the other side is gone: " + reason()};
    else if (!wait_for(fd(), POLLIN, deadline))
      return std::nullopt;
  }
}

std::optional<nlohmann::json> frame_stream::take_frame() {
  if (in_.size() < header_bytes)
    return std::nullopt;
  auto size = std::size_t{0};
  for (auto index = std::size_t{0}; index < header_bytes; ++index)
    size |= std::size_t{in_[index]} << (8 * index);
  if (size > longest_frame)
    throw stream_error{"the other side says that its message has "
                       + std::to_string(size) + " bytes, at most "
                       + std::to_string(longest_frame) + " may be"};
  if (in_.size() < header_bytes + size)
    return std::nullopt;
  const auto first = in_.begin() + header_bytes;
  const auto last = first + static_cast<std::ptrdiff_t>(size);
  auto message = nlohmann::json::from_cbor(first, last, true, false);
  if (message.is_discarded())
    throw stream_error{"the other side sent a message that is not CBOR"};
  in_.erase(in_.begin(), last);
  return message;
}

bool frame_stream::is_closed() const noexcept {
  auto what = pollfd{fd(), POLLRDHUP, 0};
  return poll(&what, 1, 0) > 0;
}

// -- sockets ------------------------------------------------------------------

unique_fd listen_at(const std::string& path) {
  const auto address = address_of(path);
  const auto* place = reinterpret_cast<const sockaddr*>(&address);
  auto res = make_socket();
  if (connect_to(path))
    throw stream_error{path + ": another process listens there"};
  // Of a process that ended without a chance to remove it; nothing else goes.
  struct stat what {};
  if (lstat(path.c_str(), &what) == 0) {
    if (!S_ISSOCK(what.st_mode))
      throw stream_error{path
                         + ": is there and is no socket; name another "
                           "path for it, or a folder"};
    unlink(path.c_str());
  }
  if (bind(res.get(), place, sizeof(address)) < 0 || listen(res.get(), 16) < 0)
    throw stream_error{path + ": cannot be listened on: " + reason()};
  return res;
}

std::optional<unique_fd> connect_to(const std::string& path) {
  const auto address = address_of(path);
  const auto* place = reinterpret_cast<const sockaddr*>(&address);
  auto res = make_socket();
  stop_blocking(res.get());
  if (connect(res.get(), place, sizeof(address)) < 0)
    return std::nullopt;
  return res;
}

} // namespace kvtide::replay
