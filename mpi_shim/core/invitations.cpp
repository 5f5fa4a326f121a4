// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/invitations.hpp"

#include "mpi_shim/core/matching.hpp"
#include "mpi_shim/core/output.hpp"
#include "mpi_shim/core/streams.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {

std::uint64_t invited = 0;

namespace {

/// Of one peer, and at one peer: who gets more forgets the oldest, which costs speed alone.
constexpr std::size_t kMostHeld = 64;

Transfer* invitation_of(const Request& receive) noexcept {
  auto* const transfer = static_cast<Transfer*>(receive.protocol);
  return transfer != nullptr && transfer->step == Transfer::Step::kInvited ? transfer : nullptr;
}

void end_invitation(Transfer& transfer) noexcept {
  transfer.request->protocol = nullptr;
  --invited;
  release_transfer(transfer);
}

}  // namespace

void consider_inviting(Request& receive) noexcept {
  const auto capacity = static_cast<std::uint64_t>(receive.count * receive.type->size);
  if (capacity <= kEagerBytes || !receive.type->is_contiguous) return;
  const Envelope envelope = envelope_of(receive);
  if (envelope.is_wild() || !matching.is_certain(receive)) return;
  const std::uint32_t rank = receive.comm->peers().world_rank(receive.peer);
  Peer* const peer = known_peer(rank);
  if (peer == nullptr || !peer->is_ready || peer->is_dead || peer->room() < 2) return;
  Transfer* const transfer = transfers.make();
  if (transfer == nullptr) return;
  transfer->step = Transfer::Step::kInvited;
  transfer->rank = rank;
  transfer->request = &receive;
  InviteHead invite = {};
  invite.head.kind = MessageKind::kInvite;
  invite.head.context = envelope.context;
  invite.head.tag = envelope.tag;
  invite.id = transfer->handle;
  invite.capacity = capacity;
  invite.heard = peer->heard;
  unsigned char* const data = first_byte(*receive.type, receive.buffer);
  invite.head.is_mapped = mr_of_mapped(data, capacity) != nullptr ? 1 : 0;
  if (invite.head.is_mapped == 0) consider_window(*peer);
  if (invite.head.is_mapped != 0 || !can_be_streamed_to(*peer) ||
      !needs_no_key(receive, capacity)) {
    if (!expose(*transfer, capacity, Exposure::kWritten)) {
      release_transfer(*transfer);
      return;
    }
    invite.rkey = transfer->mr->rkey;
    invite.address = reinterpret_cast<std::uintptr_t>(transfer->local);
  }
  if (!send_invitation(*peer, invite)) {
    release_transfer(*transfer);
    return;
  }
  receive.protocol = transfer;
  ++invited;
}

void withdraw_invitation(Request& receive) noexcept {
  if (Transfer* const transfer = invitation_of(receive); transfer != nullptr)
    end_invitation(*transfer);
}

void take_invitation(Peer& peer, const InviteHead& invite) noexcept {
  if (invite.heard != peer.sent) return;
  if (peer.invitations.size() == kMostHeld) drop_invitation(peer, peer.invitations[0].id);
  // Without memory there is none.
  (void)peer.invitations.push_back({invite.head.context, invite.head.tag,
                                    invite.head.is_mapped != 0, invite.id, invite.rkey,
                                    invite.capacity, invite.address});
}

bool use_invitation(Peer& peer, std::uint32_t context, std::int32_t tag, Invitation& out) noexcept {
  for (std::size_t i = 0; i < peer.invitations.size(); ++i) {
    if (peer.invitations[i].context != context || peer.invitations[i].tag != tag) continue;
    out = peer.invitations[i];
    drop_invitation(peer, out.id);
    return true;
  }
  return false;
}

void drop_invitation(Peer& peer, std::uint32_t id) noexcept {
  for (std::size_t i = 0; i < peer.invitations.size(); ++i) {
    if (peer.invitations[i].id != id) continue;
    for (; i + 1 < peer.invitations.size(); ++i) peer.invitations[i] = peer.invitations[i + 1];
    peer.invitations.pop_back();
    return;
  }
}

void take_written(Peer& peer, const WrittenHead& written) noexcept {
  Transfer* const transfer = find_transfer(written.id, peer.rank, Transfer::Step::kInvited);
  if (transfer == nullptr) return;
  Request& receive = *transfer->request;
  const auto capacity = static_cast<std::uint64_t>(receive.count * receive.type->size);
  end_invitation(*transfer);
  matching.withdraw(receive);
  receive.source = receive.peer;
  receive.received_tag = receive.tag;
  receive.bytes = written.length < capacity ? written.length : capacity;
  complete(receive, MPI_SUCCESS);
}

void take_stream(Peer& peer, const WrittenHead& begun) noexcept {
  Transfer* const transfer = find_transfer(begun.id, peer.rank, Transfer::Step::kInvited);
  if (transfer == nullptr) return;
  Request& receive = *transfer->request;
  const auto capacity = static_cast<std::uint64_t>(receive.count * receive.type->size);
  --invited;
  matching.withdraw(receive);
  receive.source = receive.peer;
  receive.received_tag = receive.tag;
  receive.bytes = begun.length < capacity ? begun.length : capacity;
  transfer->step = Transfer::Step::kStreamed;
  transfer->bytes = receive.bytes;
  transfer->rkey = 0;
  if (transfer->has_ended) end_stream(peer, begun.id);
}

bool revoke(Request& receive) noexcept {
  Transfer* const transfer = invitation_of(receive);
  if (transfer == nullptr) return false;
  if (transfer->is_revoked) return true;
  Peer* const peer = known_peer(transfer->rank);
  transfer->is_revoked = true;
  if (peer != nullptr) answer(*peer, MessageKind::kRevoke, transfer->handle);
  return true;
}

void take_revoked(Peer& peer, std::uint32_t id) noexcept {
  Transfer* const transfer = find_transfer(id, peer.rank, Transfer::Step::kInvited);
  if (transfer == nullptr || !transfer->is_revoked) return;
  Request& receive = *transfer->request;
  end_invitation(*transfer);
  matching.withdraw(receive);
  receive.is_cancelled = true;
  complete(receive, receive.error);
}

}  // namespace vmpi
