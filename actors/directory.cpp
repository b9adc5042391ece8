// SPDX-License-Identifier: Apache-2.0

/// @file
/// Spawns the actors behind `directory`, `publisher` and `router`, and hands
/// calls over.

#include "actors/directory_desk.hpp"
#include "actors/directory_node.hpp"
#include "actors/event_queue.hpp"
#include "actors/network.hpp"
#include "actors/publisher.hpp"
#include "actors/publisher_desk.hpp"
#include "actors/router_desk.hpp"
#include "actors/thread_room.hpp"
#include "core/key_hash.hpp"
#include "core/layout.hpp"
#include "messages/all.hpp"
#include "messages/digest_bytes.hpp"

#include <caf/actor_cast.hpp>
#include <caf/exit_reason.hpp>
#include <caf/logger.hpp>
#include <caf/send.hpp>

#include <atomic>
#include <chrono>
#include <utility>

namespace kvtide {

namespace {

/// Of the actors, CAF's clock and its printer, and the network's two.
constexpr std::uint32_t threads_of_node = 5;

error invalid(const char* text) {
  return {ec::invalid_options, text};
}

/// Whoever spawns is left holding the system's logger, for which the system's
/// destructor waits: on another thread it would do so for ever.
void let_go_of_logger() {
  caf::logger::set_current_actor_system(nullptr);
}

} // namespace

// -- node ---------------------------------------------------------------------

directory_node::directory_node(std::shared_ptr<kvtide::network> network)
  : network_(std::move(network)) {
  register_messages(config_);
  config_.set("scheduler.policy", caf::atom("sharing"));
  config_.set("scheduler.max-threads", std::size_t{1});
  config_.set("logger.verbosity", caf::atom("quiet"));
  if (network_)
    network_->prepare(config_);
  system_.emplace(config_);
}

directory_node::~directory_node() {
  close_network();
}

error directory_node::serve(const directory_actor& desk) {
  return network_ ? network_->open_directory(*system_, desk) : error{};
}

error directory_node::dial(const directory_seeker& user,
                           const std::string& address) {
  return network_->open_seeker(*system_, user, address);
}

void directory_node::close_network() {
  if (network_)
    network_->close();
}

std::string directory_node::address() const {
  return network_ ? network_->address() : std::string{};
}

result<std::shared_ptr<directory_node>> node_for(const directory_place& place) {
  if ((place.here != nullptr) != place.address.empty())
    return invalid("place: a directory is either in this process or at an "
                   "address; set one of `here` and `address`");
  if (place.here != nullptr)
    return directory_access::impl_of(*place.here).node;
  if (!place.network)
    return invalid("place.network: an address needs a network");
  if (auto refused = check_thread_room(threads_of_node);
      refused.code != ec::none)
    return refused;
  return std::make_shared<directory_node>(place.network);
}

error introduce(directory_node& node, const directory_seeker& user,
                const directory_place& place) {
  if (place.here == nullptr)
    return node.dial(user, place.address);
  const auto& desk = directory_access::impl_of(*place.here).desk;
  caf::anon_send(user,
                 msg::knock{msg::protocol_version,
                            caf::actor_cast<caf::strong_actor_ptr>(desk)});
  return {};
}

// -- directory ----------------------------------------------------------------

directory::impl::~impl() {
  node->close_network();
  caf::anon_send_exit(desk, caf::exit_reason::user_shutdown);
}

directory::directory(std::shared_ptr<impl> ptr) noexcept
  : impl_(std::move(ptr)) {
  // nop
}

directory::directory(directory&&) noexcept = default;

directory& directory::operator=(directory&&) noexcept = default;

directory::~directory() = default;

result<directory> directory::start(const directory_options& opts) {
  if (opts.max_keys == 0)
    return invalid("max_keys: must be at least 1");
  if (auto refused = check_thread_room(threads_of_node);
      refused.code != ec::none)
    return refused;
  auto out = std::make_shared<impl>();
  out->node = std::make_shared<directory_node>(opts.network);
  out->desk = out->node->system().spawn(
    directory_desk, core::replica_directory::config{opts.max_keys});
  let_go_of_logger();
  if (auto refused = out->node->serve(out->desk); refused.code != ec::none)
    return refused;
  return directory{std::move(out)};
}

std::string directory::address() const {
  return impl_->node->address();
}

// -- publisher ----------------------------------------------------------------

namespace {

class publisher_of_directory : public publisher {
public:
  publisher_of_directory(std::shared_ptr<directory_node> node,
                         publisher_actor desk)
    : node_(std::move(node)), desk_(std::move(desk)) {
    // nop
  }

  ~publisher_of_directory() override {
    caf::anon_send_exit(desk_, caf::exit_reason::user_shutdown);
  }

  [[nodiscard]] caf::actor_addr address() const override {
    return desk_.address();
  }

private:
  /// Goes last.
  std::shared_ptr<directory_node> node_;
  publisher_actor desk_;
};

} // namespace

result<std::shared_ptr<publisher>>
make_publisher(const publisher_options& opts) {
  if (opts.replica.empty() || opts.replica.size() > 255)
    return invalid("replica: a name has 1 to 255 bytes");
  auto node = node_for(opts.place);
  if (!node)
    return node.failure();
  auto config = publisher_desk_config{};
  config.replica = opts.replica;
  // The wall clock tells later lives from earlier ones, also after a restart.
  config.incarnation = static_cast<std::uint64_t>(
    std::chrono::system_clock::now().time_since_epoch().count());
  auto& there = *node.value();
  auto desk = there.system().spawn(publisher_desk, std::move(config));
  let_go_of_logger();
  auto out = std::make_shared<publisher_of_directory>(node.value(), desk);
  if (auto refused = introduce(there, desk, opts.place);
      refused.code != ec::none)
    return refused;
  return std::shared_ptr<publisher>{std::move(out)};
}

// -- router -------------------------------------------------------------------

struct router::impl {
  ~impl() {
    caf::anon_send_exit(desk, caf::exit_reason::user_shutdown);
  }

  ticket_id send(const std::vector<prefix_hash>& hashes,
                 std::function<void(replica_choice)> answer) {
    const auto ticket = ++last_ticket;
    caf::anon_send(desk, msg::route{ticket,
                                    static_cast<token_count>(hashes.size())
                                      * shape.hash_tokens,
                                    runs_of(hashes), std::move(answer)});
    return ticket;
  }

  [[nodiscard]] std::vector<msg::key_run>
  runs_of(const std::vector<prefix_hash>& hashes) const {
    auto out = std::vector<msg::key_run>{};
    auto digests = std::vector<std::uint64_t>{};
    for (group_id id = 0; id < shape.groups.size(); ++id) {
      const auto& group = shape.groups[id];
      if (group.sliding() || group.draft)
        continue;
      digests.clear();
      for (auto end = group.hashes_per_chunk; end <= hashes.size();
           end += group.hashes_per_chunk)
        digests.push_back(core::digest_of(hashes[end - 1], id, shape.model));
      out.push_back({group.chunk_tokens, bytes_of(digests)});
    }
    return out;
  }

  core::layout shape;
  std::chrono::milliseconds timeout{0};
  std::shared_ptr<directory_node> node;
  std::shared_ptr<event_queue<replica_choice>> queue;
  router_actor desk;
  std::atomic<ticket_id> last_ticket{0};
};

router::router(std::unique_ptr<impl> ptr) noexcept : impl_(std::move(ptr)) {
  // nop
}

router::router(router&&) noexcept = default;

router& router::operator=(router&&) noexcept = default;

router::~router() = default;

result<router> router::start(const router_options& opts) {
  using namespace std::chrono_literals;
  if (opts.timeout < 1ms || opts.timeout > 1min)
    return invalid("timeout: must be 1 ms to 1 min");
  if (!(opts.least_share >= 0 && opts.least_share <= 1))
    return invalid("least_share: must be 0 to 1");
  auto shape = core::make_layout(opts.shared);
  if (!shape)
    return shape.failure();
  auto useful = false;
  for (const auto& group : shape.value().groups)
    useful = useful || (!group.sliding() && !group.draft);
  if (!useful)
    return error{ec::unsupported,
                 "shared.groups: a directory knows prefixes of full attention "
                 "groups, and there is none"};
  auto ready = ready_fd::create();
  if (!ready)
    return ready.failure();
  auto node = node_for(opts.place);
  if (!node)
    return node.failure();
  auto out = std::make_unique<impl>();
  out->shape = std::move(shape).value();
  out->timeout = opts.timeout;
  out->node = node.value();
  out->queue
    = std::make_shared<event_queue<replica_choice>>(std::move(ready).value());
  out->desk = out->node->system().spawn(
    router_desk, router_desk_config{opts.timeout, opts.least_share});
  let_go_of_logger();
  if (auto refused = introduce(*out->node, out->desk, opts.place);
      refused.code != ec::none)
    return refused;
  return router{std::move(out)};
}

ticket_id router::best_replica(const std::vector<prefix_hash>& hashes) {
  return impl_->send(hashes, [queue = impl_->queue](replica_choice answer) {
    queue->push(std::move(answer));
  });
}

std::vector<replica_choice> router::poll() {
  return impl_->queue->poll();
}

int router::event_fd() const noexcept {
  return impl_->queue->ready().get();
}

bool router::wait(std::chrono::milliseconds timeout) const {
  return impl_->queue->wait(timeout);
}

replica_choice router::ask(const std::vector<prefix_hash>& hashes) {
  auto out = replica_choice{};
  auto ready = ready_fd::create();
  if (!ready) {
    out.reason = ready.failure();
    return out;
  }
  const auto queue
    = std::make_shared<event_queue<replica_choice>>(std::move(ready).value());
  out.ticket = impl_->send(
    hashes, [queue](replica_choice answer) { queue->push(std::move(answer)); });
  // The actor answers in time; a machine that gives it none must not hang this
  // thread as well.
  if (!queue->wait(impl_->timeout + std::chrono::milliseconds{100})) {
    out.reason = {ec::timeout, "the router's actor did not answer in time"};
    return out;
  }
  return std::move(queue->poll().front());
}

} // namespace kvtide
