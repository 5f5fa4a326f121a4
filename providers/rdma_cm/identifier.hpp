// SPDX-License-Identifier: BSD-2-Clause
// One end of a connection, or who listens for them, in the kernel's connection manager. Each call
// is a command; what it leads to comes as an event on the channel. One thread at a time.
//
//   active:   create, resolve_addr, kAddrResolved, resolve_route, kRouteResolved, [make the queue
//             pair], connect, kEstablished
//   passive:  create, bind, listen, kConnectRequest, adopt, [make the queue pair], accept,
//             kEstablished
//   both:     disconnect or kDisconnected, destroy
//
// Over iWARP the kernel moves the queue pair that connect and accept name; over InfiniBand and RoCE
// whoever calls does, with what init_qp_attr tells.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <span>

#include "providers/rdma_cm/event_channel.hpp"

namespace verbatim::rdma_cm {

/// Where an identifier is bound. Sizes are those of what the addresses hold, 0 for none.
struct Address {
  std::uint64_t node_guid = 0;  ///< in network byte order; 0: no device yet
  std::uint8_t port = 0;
  int device_index = -1;  ///< the kernel's own, as ibv_get_device_index; -1: it does not say
  std::uint16_t source_size = 0;
  std::uint16_t destination_size = 0;
  sockaddr_storage source{};
  sockaddr_storage destination{};
};

/// What one side says of itself to the other.
struct Parameters {
  std::uint32_t qp_num = 0;
  std::span<const unsigned char> private_data;  ///< at most kMostPrivateData
  bool srq = false;
  std::uint8_t responder_resources = 1;  ///< READs of the other side at once
  std::uint8_t initiator_depth = 1;      ///< our own
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry_count = 7;
};
/// The kernel's field for their number has a byte.
inline constexpr std::size_t kMostPrivateData = UINT8_MAX;

class Identifier {
 public:
  Identifier() noexcept = default;
  Identifier(const Identifier&) = delete;
  Identifier& operator=(const Identifier&) = delete;
  ~Identifier();

  /// Each returns 0 or errno; without one of the first two, EINVAL.
  [[nodiscard]] int create(EventChannel& channel, rdma_ucm_port_space space) noexcept;
  /// Becomes the connection that was asked for. REQUIRES: an event of `channel`, used once.
  [[nodiscard]] int adopt(EventChannel& channel, const Event& request) noexcept;

  [[nodiscard]] int bind(const sockaddr* address) noexcept;
  /// `source` may be null.
  [[nodiscard]] int resolve_addr(const sockaddr* source, const sockaddr* destination,
                                 std::uint32_t timeout_ms) noexcept;
  [[nodiscard]] int resolve_route(std::uint32_t timeout_ms) noexcept;
  [[nodiscard]] int query_addr(Address& address) noexcept;
  [[nodiscard]] int listen(std::uint32_t backlog) noexcept;
  [[nodiscard]] int connect(const Parameters& parameters) noexcept;
  [[nodiscard]] int accept(const Parameters& parameters) noexcept;
  [[nodiscard]] int reject(std::span<const unsigned char> private_data) noexcept;
  [[nodiscard]] int disconnect() noexcept;
  /// What a queue pair needs to be moved to `state` (ibv_qp_state): values and their mask.
  [[nodiscard]] int init_qp_attr(std::uint32_t state, ib_uverbs_qp_attr& attr) noexcept;
  /// No event names it any more when this returns. `delivered`: how many have.
  [[nodiscard]] int destroy(std::uint32_t* delivered = nullptr) noexcept;

  [[nodiscard]] bool alive() const noexcept { return channel_ != nullptr; }
  /// The kernel's number.
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }

 private:
  EventChannel* channel_ = nullptr;
  std::uint64_t number_ = 0;  ///< in the channel's table: what events say
  std::uint32_t id_ = 0;
};

}  // namespace verbatim::rdma_cm
