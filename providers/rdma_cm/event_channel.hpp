// SPDX-License-Identifier: BSD-2-Clause
// An open /dev/infiniband/rdma_cm: commands go in, events come out, about all identifiers that were
// made on it. Any thread; no lock is held around a call.
//
// Invariant: what the kernel writes is data from outside. An event names an identifier by a number
// of ours, and is about it only while it lives; what an event carries is checked before it is given
// on.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "abi/kernel/cm_call.hpp"
#include "providers/rdma_cm/system.hpp"
#include "providers/uverbs/object_table.hpp"
#include "runtime/base/unique_fd.hpp"

namespace verbatim::rdma_cm {

using EventType = kernel::CmEvent;
class Identifier;

struct Event {
  EventType type = EventType::kAddrResolved;
  /// 0, a negative errno, or why the other side rejected.
  std::int32_t status = 0;
  Identifier* about = nullptr;
  /// kConnectRequest: by what the kernel knows the new connection; `about` is who listens. Whoever
  /// gets it adopts or refuses it (identifier.hpp).
  std::uint32_t request = 0;
  /// Connection events: the other side's word.
  rdma_ucm_conn_param parameters{};
};

/// Where the kernel tells of the node, and where the node is. Tests have trees of their own.
struct NodePlaces {
  const char* sysfs = "/sys";
  const char* node = "/dev/infiniband/rdma_cm";
};

class EventChannel {
 public:
  explicit EventChannel(const System& system = linux_system) noexcept : system_(system) {}
  EventChannel(const EventChannel&) = delete;
  EventChannel& operator=(const EventChannel&) = delete;

  /// 0 or errno, and then the log tells why and what to do.
  [[nodiscard]] int open(const NodePlaces& places = {}) noexcept;
  void adopt(UniqueFd fd) noexcept { fd_ = static_cast<UniqueFd&&>(fd); }
  /// Readable, for poll(2), when there is an event.
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }

  /// The next event: 0, ETIMEDOUT, or errno. Events about what is gone are left out.
  [[nodiscard]] int get_event(Event& event, int timeout_ms) noexcept;

 private:
  friend class Identifier;

  /// 0, the kernel's errno, or EPROTO: there is no reply.
  template <class Body>
  [[nodiscard]] int command(std::uint32_t number, const Body& body) noexcept {
    const auto call = kernel::make_cm_call(number, body);
    return system_.write(system_, fd_.get(), &call, sizeof call);
  }
  template <class Body, class Reply>
  [[nodiscard]] int command(std::uint32_t number, Body body, Reply& reply) noexcept {
    fill_unwritten(&reply, sizeof reply);
    body.response = kernel::cm_address_of(&reply);
    const auto call = kernel::make_cm_call(number, body, sizeof reply);
    if (const int error = system_.write(system_, fd_.get(), &call, sizeof call)) return error;
    return is_unwritten(&reply, sizeof reply) ? EPROTO : 0;
  }
  static void fill_unwritten(void* reply, std::size_t size) noexcept;
  [[nodiscard]] static bool is_unwritten(const void* reply, std::size_t size) noexcept;

  /// Tells the kernel that nobody wants a connection that was asked for.
  void drop_request(std::uint32_t id) noexcept;
  [[nodiscard]] bool read_event(const rdma_ucm_event_resp& from, Event& to) noexcept;

  const System& system_;
  UniqueFd fd_;
  uverbs::ObjectTable identifiers_;
};

}  // namespace verbatim::rdma_cm
