// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/input.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "mpi_shim/core/errors.hpp"
#include "mpi_shim/core/invitations.hpp"
#include "mpi_shim/core/output.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {

std::uint16_t own_credits = kCredits;
std::uint64_t own_waiting = 0;

namespace {

std::uint64_t capacity_of(const Request& receive) noexcept {
  return static_cast<std::uint64_t>(receive.count) * static_cast<std::uint64_t>(receive.type->size);
}

void match(Request& receive, const Envelope& message) noexcept {
  withdraw_invitation(receive);
  receive.source = message.source;
  receive.received_tag = message.tag;
}

void pull(Request& receive, Peer& peer, std::uint32_t sender_id) noexcept {
  Transfer* const transfer = peer.is_dead ? nullptr : transfers.make();
  if (transfer == nullptr) {
    complete(receive, peer.is_dead ? MPI_ERR_PROC_ABORTED : MPI_ERR_NO_MEM);
    return;
  }
  transfer->step = Transfer::Step::kPulling;
  transfer->rank = peer.rank;
  transfer->request = &receive;
  receive.protocol = transfer;
  answer(peer, MessageKind::kPull, sender_id, transfer->handle);
}

void read(Request& receive, Peer& peer, const Unexpected& message) noexcept {
  const std::uint64_t bytes = std::min(capacity_of(receive), message.length);
  if (peer.is_dead) {
    complete(receive, MPI_ERR_PROC_ABORTED);
    return;
  }
  Transfer* const transfer = transfers.make();
  if (transfer != nullptr) {
    transfer->step = Transfer::Step::kReading;
    transfer->rank = peer.rank;
    transfer->request = &receive;
    transfer->address = message.place;
    transfer->rkey = message.rkey;
    transfer->peer_id = message.sender_id;
    transfer->bytes = bytes;
  }
  receive.bytes = bytes;
  if (transfer == nullptr || bytes == 0 || !expose(*transfer, bytes, Exposure::kReadInto)) {
    if (transfer != nullptr) release_transfer(*transfer);
    answer(peer, MessageKind::kTaken, message.sender_id);
    complete(receive, bytes == 0 ? MPI_ERR_TRUNCATE : MPI_ERR_NO_MEM);
    return;
  }
  receive.error = message.length > bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
  receive.protocol = transfer;
  read_on(peer, *transfer);
}

/// A payload that nobody has asked for is copied, so that its buffer can be received in again.
void keep_eager(Unexpected& kept, const unsigned char* payload, std::size_t bytes) noexcept {
  kept.length = bytes;
  if (bytes != 0) {
    void* const copy = std::malloc(bytes);
    if (copy == nullptr) abort_all(MPI_ERR_NO_MEM, "no memory for %zu bytes of a message", bytes);
    std::memcpy(copy, payload, bytes);
    kept.place = reinterpret_cast<std::uintptr_t>(copy);
  }
}

void keep(const Unexpected& message) noexcept {
  if (!matching.keep(message))
    abort_all(MPI_ERR_NO_MEM, "no memory for the envelope of a message without a receive");
}

void take_eager(Peer& peer, const Head& head, std::uint32_t sender_id, const unsigned char* payload,
                std::size_t bytes) noexcept {
  const Envelope envelope = {head.context, head.source, head.tag};
  Request* const receive = matching.take_receive(envelope);
  if (receive == nullptr) {
    Unexpected kept{};
    kept.envelope = envelope;
    kept.sender_id = sender_id;
    kept.world_rank = peer.rank & 0xffffffu;
    kept.kind = static_cast<unsigned>(head.kind) & 0x7fu;
    keep_eager(kept, payload, bytes);
    keep(kept);
    return;
  }
  match(*receive, envelope);
  deliver(*receive, payload, bytes);
  give_credit_back(peer);
  if (head.kind == MessageKind::kEagerSync) answer(peer, MessageKind::kMatched, sender_id);
}

void take_envelope(Peer& peer, const EnvelopeHead& envelope) noexcept {
  Unexpected message{};
  message.envelope = {envelope.head.context, envelope.head.source, envelope.head.tag};
  message.sender_id = envelope.sender_id;
  message.rkey = envelope.rkey;
  message.world_rank = peer.rank & 0xffffffu;
  message.kind = static_cast<unsigned>(envelope.head.kind) & 0x7fu;
  message.length = envelope.length;
  message.place = envelope.address;
  Request* const receive = matching.take_receive(message.envelope);
  if (receive != nullptr)
    consume(*receive, message);
  else
    keep(message);
}

void take_answer(Peer& peer, const AnswerHead& head, const unsigned char* payload,
                 std::size_t bytes) noexcept {
  if (head.kind == MessageKind::kPull) {
    Transfer* const sent = find_transfer(head.id, peer.rank, Transfer::Step::kToBePulled);
    if (sent != nullptr) send_data_of(peer, *sent, head.answer_id);
    return;
  }
  const Transfer::Step step = head.kind == MessageKind::kData      ? Transfer::Step::kPulling
                              : head.kind == MessageKind::kMatched ? Transfer::Step::kToBeMatched
                                                                   : Transfer::Step::kToBeTaken;
  Transfer* const transfer = find_transfer(head.id, peer.rank, step);
  if (transfer == nullptr) return;
  Request& request = *transfer->request;
  release_transfer(*transfer);
  if (head.kind == MessageKind::kData)
    deliver(request, payload, bytes);
  else
    complete(request, MPI_SUCCESS);
}

}  // namespace

void deliver(Request& receive, const unsigned char* payload, std::size_t bytes) noexcept {
  const std::uint64_t capacity = capacity_of(receive);
  const std::size_t taken = std::min<std::uint64_t>(bytes, capacity);
  if (taken != 0) {
    if (receive.type->is_contiguous)
      std::memcpy(first_byte(*receive.type, receive.buffer), payload, taken);
    else
      unpack(*receive.type, receive.count, receive.buffer, 0, payload, taken);
  }
  receive.bytes = taken;
  complete(receive, bytes > capacity ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
}

void finish_read(Peer& peer, Transfer& transfer) noexcept {
  Request& receive = *transfer.request;
  if (transfer.temporary != nullptr)
    unpack(*receive.type, receive.count, receive.buffer, 0, transfer.temporary, transfer.bytes);
  const std::uint32_t sender_id = transfer.peer_id;
  release_transfer(transfer);
  answer(peer, MessageKind::kTaken, sender_id);
  complete(receive, receive.error);
}

void consume(Request& receive, const Unexpected& message) noexcept {
  match(receive, message.envelope);
  if (message.is_own != 0) {
    Request& send = *reinterpret_cast<Request*>(message.place);
    const std::uint64_t bytes = copy_typed(*send.type, send.count, send.buffer, *receive.type,
                                           receive.count, receive.buffer);
    receive.bytes = bytes;
    --own_waiting;
    complete(send, MPI_SUCCESS);
    complete(receive, message.length > bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
    return;
  }
  const auto kind = static_cast<MessageKind>(message.kind);
  const bool is_here = kind == MessageKind::kEager || kind == MessageKind::kEagerSync;
  auto* const payload = reinterpret_cast<unsigned char*>(message.place);
  if (message.world_rank == static_cast<std::uint32_t>(world.rank)) {
    ++own_credits;
    deliver(receive, payload, message.length);
    std::free(payload);
    return;
  }
  Peer& peer = *known_peer(message.world_rank);
  if (is_here) {
    deliver(receive, payload, message.length);
    std::free(payload);
    give_credit_back(peer);
    if (kind == MessageKind::kEagerSync) answer(peer, MessageKind::kMatched, message.sender_id);
  } else if (kind == MessageKind::kEnvelope) {
    pull(receive, peer, message.sender_id);
  } else {
    read(receive, peer, message);
  }
}

void take_message(Peer& peer, const unsigned char* message, std::size_t bytes) noexcept {
  Head head;
  if (bytes < sizeof head || peer.is_dead) return;
  std::memcpy(&head, message, sizeof head);
  peer.credits = std::min<std::uint16_t>(
      kCredits, static_cast<std::uint16_t>(peer.credits + std::min(head.credits, kCredits)));
  if (head.kind <= MessageKind::kRendezvous || head.kind == MessageKind::kWritten) ++peer.heard;
  switch (head.kind) {
    case MessageKind::kEager:
      take_eager(peer, head, 0, message + sizeof head, bytes - sizeof head);
      break;
    case MessageKind::kEagerSync: {
      SyncHead sync;
      if (bytes < sizeof sync) return;
      std::memcpy(&sync, message, sizeof sync);
      take_eager(peer, head, sync.sender_id, message + sizeof sync, bytes - sizeof sync);
      break;
    }
    case MessageKind::kEnvelope:
    case MessageKind::kRendezvous: {
      EnvelopeHead envelope;
      if (bytes < sizeof envelope) return;
      std::memcpy(&envelope, message, sizeof envelope);
      take_envelope(peer, envelope);
      break;
    }
    case MessageKind::kPull:
    case MessageKind::kData:
    case MessageKind::kMatched:
    case MessageKind::kTaken: {
      AnswerHead answered;
      std::memcpy(&answered, message, sizeof answered);
      take_answer(peer, answered, message + sizeof answered, bytes - sizeof answered);
      break;
    }
    case MessageKind::kInvite: {
      InviteHead invite;
      if (bytes < sizeof invite) return;
      std::memcpy(&invite, message, sizeof invite);
      take_invitation(peer, invite);
      break;
    }
    case MessageKind::kWritten: {
      WrittenHead written;
      if (bytes < sizeof written) return;
      std::memcpy(&written, message, sizeof written);
      take_written(peer, written);
      break;
    }
    case MessageKind::kRevoke:
    case MessageKind::kRevoked: {
      AnswerHead answered;
      std::memcpy(&answered, message, sizeof answered);
      if (head.kind == MessageKind::kRevoked) {
        take_revoked(peer, answered.id);
      } else {
        drop_invitation(peer, answered.id);
        answer(peer, MessageKind::kRevoked, answered.id);
      }
      break;
    }
    case MessageKind::kCredit:
      break;
  }
}

}  // namespace vmpi
