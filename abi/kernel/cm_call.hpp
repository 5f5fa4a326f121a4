// SPDX-License-Identifier: BSD-2-Clause
// The commands of the kernel's connection manager, /dev/infiniband/rdma_cm: a header and a
// structure in one write(2); replies and events are written to memory that the structure names. One
// thread; lives on the stack. Layout and names: <rdma/rdma_user_cm.h>, ABI version 4.
#pragma once

// First: the kernel's header leaves libc's in6_addr alone then. Two definitions of it in one
// program break the one-definition rule.
#include <netinet/in.h>
//
#include <rdma/rdma_user_cm.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace verbatim::kernel {

template <class Body>
struct CmCall {
  rdma_ucm_cmd_hdr header;
  Body body;
};

/// The bytes of a command. Its body names the reply itself, where it has one.
template <class Body>
[[nodiscard]] CmCall<Body> make_cm_call(std::uint32_t number, const Body& body,
                                        std::size_t reply_size = 0) noexcept {
  static_assert(std::is_trivially_copyable_v<Body> && alignof(Body) <= sizeof(rdma_ucm_cmd_hdr));
  static_assert(offsetof(CmCall<Body>, body) == sizeof(rdma_ucm_cmd_hdr));
  static_assert(sizeof(Body) <= UINT16_MAX);
  return {{number, static_cast<__u16>(sizeof body), static_cast<__u16>(reply_size)}, body};
}

[[nodiscard]] inline std::uint64_t cm_address_of(void* memory) noexcept {
  return reinterpret_cast<std::uintptr_t>(memory);
}

/// What an event is about. The kernel's header for programs has no names for the numbers.
enum class CmEvent : std::uint32_t {
  kAddrResolved,
  kAddrError,
  kRouteResolved,
  kRouteError,
  kConnectRequest,
  kConnectResponse,
  kConnectError,
  kUnreachable,
  kRejected,
  kEstablished,
  kDisconnected,
  kDeviceRemoval,
  kMulticastJoin,
  kMulticastError,
  kAddrChange,
  kTimewaitExit,
};
[[nodiscard]] constexpr bool is_known_cm_event(std::uint32_t number) noexcept {
  return number <= static_cast<std::uint32_t>(CmEvent::kTimewaitExit);
}

static_assert(sizeof(rdma_ucm_cmd_hdr) == 8 && sizeof(rdma_ucm_create_id) == 24);
static_assert(sizeof(rdma_ucm_conn_param) == 272 && sizeof(rdma_ucm_connect) == 288);
static_assert(sizeof(rdma_ucm_accept) == 296 && sizeof(rdma_ucm_event_resp) == 336);
static_assert(offsetof(rdma_ucm_event_resp, param) == 20);
static_assert(sizeof(rdma_ucm_resolve_addr) == 272 && sizeof(rdma_ucm_query_addr_resp) == 280);

}  // namespace verbatim::kernel
