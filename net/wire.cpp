// SPDX-License-Identifier: Apache-2.0

#include "net/wire.hpp"

#include "net/tls_errors.hpp"

#include <caf/policy/tcp.hpp>

#include <utility>

namespace kvtide::net {

wire::wire(caf::openssl::session_ptr session) : session_(std::move(session)) {
  // nop
}

wire::rw_state wire::read_some(std::size_t& count, native_socket fd, void* buf,
                               std::size_t size) {
  if (session_ == nullptr)
    return caf::policy::tcp::read_some(count, fd, buf, size);
  forget_tls_errors();
  return judge(session_->read_some(count, fd, buf, size));
}

wire::rw_state wire::write_some(std::size_t& count, native_socket fd,
                                const void* buf, std::size_t size) {
  auto out = rw_state::failure;
  if (session_ == nullptr) {
    out = caf::policy::tcp::write_some(count, fd, buf, size);
  } else {
    forget_tls_errors();
    out = judge(session_->write_some(count, fd, buf, size));
  }
  written_ = out == rw_state::success ? count : 0;
  return out;
}

bool wire::must_read_more(native_socket fd, std::size_t threshold) {
  return session_ != nullptr && session_->must_read_more(fd, threshold);
}

wire::rw_state wire::judge(rw_state state) {
  if (state == rw_state::failure && why_.empty())
    why_ = tls_errors();
  return state;
}

} // namespace kvtide::net
