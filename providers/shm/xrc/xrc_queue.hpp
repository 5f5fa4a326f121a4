// SPDX-License-Identifier: BSD-2-Clause
//
// XRC shared receive queues: how one is present on the host, so that initiators find it by its
// number, and who may send to it. The number is one of the queue pairs', so it leads to the process
// that owns it; behind it stands a record of its own, to which endpoints lead.
//
// Whoever asks to connect says for which initiator; that one's record names its target, whose
// record must name it back, accept, and be of this queue's domain. So an initiator comes in by a
// target of the domain only, whatever it says itself (IBTA A14.4: XRC domain checks). The target's
// record is looked at again for each request that our service thread performs; the rights in the
// endpoint's own record are none that anybody judges by.
#pragma once

#include "providers/shm/fabric/peer.hpp"
#include "providers/shm/queues/shared_receive.hpp"
#include "providers/shm/queues/xrc_role.hpp"
#include "providers/shm/xrc/xrc_domain.hpp"

namespace verbatim::shm {

/// Makes `srq` reachable. 0, ENOMEM or EIO.
int present_queue(Srq& srq, ibv_context* context, Cq& cq, const XrcDomainId& domain) noexcept;
/// Ends its endpoints. EBUSY: a peer was stopped in the middle of a copy over one of them.
int withdraw_queue(Srq& srq) noexcept;

// The plug's slot.
int get_srq_num(verbatim::Srq& srq, std::uint32_t& number) noexcept;

}  // namespace verbatim::shm
