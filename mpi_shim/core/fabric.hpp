// SPDX-License-Identifier: BSD-2-Clause
// The verbs objects that all peers share: one device, one PD, one CQ, one SRQ whose buffers are
// drained and posted again at once, one UD queue pair through which connections are asked for,
// and the buffers that outgoing messages wait in. Opened when there is more than one rank.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/wire.hpp"

namespace vmpi {

/// What a completion is about, in its wr_id.
struct WorkId {
  enum class Kind : std::uint8_t { kReceive, kHello, kHelloSent, kPlain, kBounce, kRead };

  Kind kind;
  std::uint8_t covers;  ///< requests of the send queue that end with it
  std::uint32_t rank;   ///< of the peer
  std::uint32_t id;     ///< a buffer, or a transfer

  [[nodiscard]] std::uint64_t packed() const noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} << 61 | std::uint64_t{covers} << 53 |
           std::uint64_t{rank & 0x1fffffu} << 32 | id;
  }
  [[nodiscard]] static WorkId from(std::uint64_t packed) noexcept {
    return {static_cast<Kind>(packed >> 61), static_cast<std::uint8_t>(packed >> 53),
            static_cast<std::uint32_t>(packed >> 32) & 0x1fffffu,
            static_cast<std::uint32_t>(packed)};
  }
};

/// By which a peer finds us: what the bootstrap publishes, or teams exchange.
struct Address {
  union ibv_gid gid;
  std::uint16_t lid;
  std::uint32_t ud_qpn;
  std::uint64_t host;  ///< alike for processes that see each other's numbers
  std::int32_t process;
  std::uint64_t began;  ///< the kernel's start time of the process, so that a number says who
  std::uint32_t token;  ///< of teams: says in a Hello who it is from
};

class Fabric {
 public:
  static constexpr std::uint32_t kReceiveBuffers = 128;
  static constexpr std::uint32_t kBounceBuffers = 64;
  static constexpr std::uint32_t kHelloBuffers = 64;
  static constexpr std::uint32_t kSendQueue = 64;  ///< of each peer
  static constexpr std::uint32_t kHelloBytes = 40 + 64;
  static constexpr std::uint32_t kWantedInline = 256;

  /// Null, or what could not be had.
  [[nodiscard]] const char* open() noexcept;
  void close() noexcept;
  [[nodiscard]] bool is_open() const noexcept { return context != nullptr; }

  /// An RC queue pair in INIT; null: why, errno says.
  [[nodiscard]] ibv_qp* make_queue_pair() noexcept;
  [[nodiscard]] bool connect(ibv_qp* qp, const Address& peer, std::uint32_t qpn) noexcept;
  [[nodiscard]] ibv_ah* make_handle(const Address& peer) noexcept;
  void say_hello(ibv_ah* to, std::uint32_t qpn, const Hello& hello) noexcept;

  [[nodiscard]] unsigned char* receive_buffer(std::uint32_t index) const noexcept {
    return memory + std::size_t{index} * kBufferBytes;
  }
  [[nodiscard]] unsigned char* bounce_buffer(std::uint32_t index) const noexcept {
    return memory + std::size_t{kReceiveBuffers + index} * kBufferBytes;
  }
  [[nodiscard]] unsigned char* hello_buffer(std::uint32_t index) const noexcept {
    return memory + std::size_t{kReceiveBuffers + kBounceBuffers} * kBufferBytes +
           std::size_t{index} * kHelloBytes;
  }
  /// Back to the queue that they were received in.
  void post_receives(const std::uint32_t* indices, std::uint32_t count) noexcept;
  void post_hello(std::uint32_t index) noexcept;

  ibv_context* context = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;  ///< when waiting sleeps
  ibv_cq* cq = nullptr;
  ibv_srq* srq = nullptr;
  ibv_qp* ud = nullptr;
  ibv_mr* mr = nullptr;
  unsigned char* memory = nullptr;
  LastingArray<std::uint32_t> free_bounces;
  Address address = {};
  std::uint32_t inline_bytes = 0;
  std::uint64_t longest = 0;  ///< bytes of one request
  bool is_failed = false;     ///< the device is gone

 private:
  [[nodiscard]] const char* open_device() noexcept;
  [[nodiscard]] const char* make_queues() noexcept;
  [[nodiscard]] const char* make_buffers() noexcept;
  [[nodiscard]] bool find_room_for_completions() noexcept;
  [[nodiscard]] ibv_ah_attr path_to(const Address& peer) const noexcept;

  ibv_port_attr port_ = {};
  std::uint8_t port_number_ = 1;
  std::uint8_t gid_index_ = 0;
  std::uint8_t reads_ = 1;  ///< RDMA READs under way, of each queue pair
  std::uint32_t key_ = 0;   ///< Q_Key of the job
  std::uint32_t pairs_ = 0;
  std::uint32_t completions_ = 0;
};

extern Fabric fabric;

/// Of the job's name: a number by which strays are told from peers.
[[nodiscard]] std::uint64_t hash_of_job() noexcept;

/// The wish of VERBATIM_WAIT.
enum class Waiting : std::uint8_t { kShare, kSpin, kSleep };
extern Waiting waiting;

}  // namespace vmpi
