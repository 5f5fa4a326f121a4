// SPDX-License-Identifier: BSD-2-Clause
//
// XRC (IBTA annex A14): a connection that ends in one process, and reaches the shared receive
// queues of all processes that have its domain open. Each request carries the number of a queue.
//
//   initiator (XRC_SEND)              target (XRC_RECV)          XRC queues of the target's domain
//   process A: xrc_send     ------->  process B: xrc_target      processes B, C ...: xrc_queue
//        |                             says whether and with            ^
//        |                             what rights it is used           |
//        +------ a reliable endpoint for each queue (endpoint.hpp) -----+
//
// The bytes go straight to the process that owns the queue; of the target both ends read only what
// its record says, so its process may sleep, or the handle on it be another process's.
//
// Here: the domains. One of a file is known by device and inode, and exists while any process of
// the fabric has it open, which a held name in the fabric folder says; one without is its
// process's own. Any thread. Source: man ibv_open_xrcd.
#pragma once

#include "providers/shm/fabric/held_name.hpp"
#include "providers/shm/wire/layout.hpp"
#include "runtime/base/unique_fd.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

struct Xrcd : verbatim::Xrcd {
  XrcDomainId id{};
  UniqueFd file;  ///< so that no other file gets its inode number
  HeldName held;  ///< in the fabric folder, while the domain is open; empty: of no file

  static Xrcd& from(ibv_xrcd* xrcd) noexcept { return *reinterpret_cast<Xrcd*>(xrcd); }
};

/// Both belong to the same domain.
bool shares_domain(const QpRecord& a, const QpRecord& b) noexcept;
void show_domain(QpRecord& record, const XrcDomainId& id) noexcept;

// The plug's slots.
int open_xrcd(verbatim::Context& context, const ibv_xrcd_init_attr& attr,
              verbatim::Xrcd** out) noexcept;
int close_xrcd(verbatim::Xrcd& xrcd) noexcept;

}  // namespace verbatim::shm
