// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/input.hpp"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "mpi_shim/core/context_ids.hpp"
#include "mpi_shim/core/invitations.hpp"
#include "mpi_shim/core/output.hpp"
#include "mpi_shim/core/rings.hpp"
#include "mpi_shim/core/sharing.hpp"
#include "mpi_shim/core/streams.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {

std::uint16_t own_credits = kCredits;
std::uint64_t own_waiting = 0;

namespace {

std::uint64_t capacity_of(const Request& receive) noexcept {
  return static_cast<std::uint64_t>(receive.count) * static_cast<std::uint64_t>(receive.type->size);
}

/// False: the sender is not who it says, and the receive has ended.
bool match(Request& receive, const Envelope& message, std::uint32_t sender) noexcept {
  withdraw_invitation(receive);
  if (!is_true(*receive.comm, message, sender)) {
    receive.source = receive.peer;
    complete(receive, MPI_ERR_PROC_ABORTED);
    return false;
  }
  receive.source = message.source;
  receive.received_tag = message.tag;
  return true;
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
    transfer->began_at = now_ns();
  }
  receive.bytes = bytes;
  if (message.is_mapped == 0) consider_window(peer);
  if (transfer != nullptr && bytes != 0 && message.is_mapped == 0 && can_be_streamed_to(peer)) {
    receive.error = message.length > bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    receive.protocol = transfer;
    ask_for_stream(peer, *transfer);
    return;
  }
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

/// Of what nobody will ask for its sender hears that it was taken.
void turn_away(Peer& peer, MessageKind kind, std::uint32_t sender_id) noexcept {
  switch (kind) {
    case MessageKind::kEager:
      give_credit_back(peer);
      break;
    case MessageKind::kEagerSync:
      give_credit_back(peer);
      answer(peer, MessageKind::kMatched, sender_id);
      break;
    case MessageKind::kEnvelope:
      // What it sends then is for a transfer that there is not.
      answer(peer, MessageKind::kPull, sender_id);
      break;
    default:
      answer(peer, MessageKind::kTaken, sender_id);
      break;
  }
}

template <class Predicate>
void turn_away_all(Predicate is_meant) noexcept {
  for (std::uint32_t found; (found = matching.find_message_if(is_meant)) != Matching::kNone;) {
    const Unexpected message = matching.take_message(found);
    const auto kind = static_cast<MessageKind>(message.kind);
    release_payload(message);
    Peer* const peer = known_peer(message.world_rank);
    if (peer == nullptr) continue;  // this process itself
    if (kind == MessageKind::kEager || kind == MessageKind::kEagerSync) --peer->held;
    if (!peer->is_dead) turn_away(*peer, kind, message.sender_id);
  }
}

/// A payload that nobody has asked for is copied, so that its buffer can be received in again.
/// False: no memory.
[[nodiscard]] bool keep_eager(Unexpected& kept, const unsigned char* payload,
                              std::size_t bytes) noexcept {
  kept.length = bytes;
  if (bytes == 0) return true;
  void* const copy = std::malloc(bytes);
  if (copy == nullptr) return false;
  std::memcpy(copy, payload, bytes);
  kept.place = reinterpret_cast<std::uintptr_t>(copy);
  return true;
}

/// What depends on the sender ends: a message that nobody keeps would be waited for for ever.
void lose_message_of(Peer& peer) noexcept { fail_peer(peer, "there is no memory for its message"); }

/// False: the peer had no credit for it.
bool take_eager(Peer& peer, const Head& head, std::uint32_t sender_id, const unsigned char* payload,
                std::size_t bytes) noexcept {
  const Envelope envelope = {head.context, head.source, head.tag};
  Request* const receive = matching.take_receive(envelope);
  if (receive == nullptr) {
    if (peer.held == kCredits) return false;
    if (is_context_wanted != nullptr && !is_context_wanted(head.context)) {
      turn_away(peer, head.kind, sender_id);
      return true;
    }
    ++peer.held;
    Unexpected kept{};
    kept.envelope = envelope;
    kept.sender_id = sender_id;
    kept.world_rank = peer.rank & 0xffffffu;
    kept.kind = static_cast<unsigned>(head.kind) & 0x3fu;
    if (!keep_eager(kept, payload, bytes) || !matching.keep(kept)) {
      release_payload(kept);
      lose_message_of(peer);
    }
    return true;
  }
  if (!match(*receive, envelope, peer.rank)) return true;
  deliver(*receive, payload, bytes);
  give_credit_back(peer);
  if (head.kind == MessageKind::kEagerSync) answer(peer, MessageKind::kMatched, sender_id);
  return true;
}

void take_envelope(Peer& peer, const EnvelopeHead& envelope) noexcept {
  Unexpected message{};
  message.envelope = {envelope.head.context, envelope.head.source, envelope.head.tag};
  message.sender_id = envelope.sender_id;
  message.rkey = envelope.rkey;
  message.world_rank = peer.rank & 0xffffffu;
  message.kind = static_cast<unsigned>(envelope.head.kind) & 0x3fu;
  message.is_mapped = envelope.head.is_mapped != 0 ? 1 : 0;
  message.length = envelope.length;
  message.place = envelope.address;
  Request* const receive = matching.take_receive(message.envelope);
  if (receive != nullptr)
    consume(*receive, message);
  else if (is_context_wanted != nullptr && !is_context_wanted(envelope.head.context))
    turn_away(peer, envelope.head.kind, envelope.sender_id);
  else if (!matching.keep(message))
    lose_message_of(peer);
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
  Transfer* transfer = find_transfer(head.id, peer.rank, step);
  if (transfer == nullptr && head.kind == MessageKind::kTaken) {
    // It was read while its pieces waited for room.
    transfer = find_transfer(head.id, peer.rank, Transfer::Step::kStreaming);
    if (transfer == nullptr || !transfer->is_taken_told) return;
    leave_stream(peer, *transfer);
  }
  if (transfer == nullptr) return;
  Request& request = *transfer->request;
  if (head.kind == MessageKind::kTaken && transfer->began_at != 0 && transfer->mr != nullptr &&
      !transfer->is_mr_kept && !transfer->is_taken_told)
    pace.written(static_cast<std::uint64_t>(request.count * request.type->size),
                 now_ns() - transfer->began_at);
  release_transfer(*transfer);
  if (head.kind == MessageKind::kData)
    deliver(request, payload, bytes);
  else
    complete(request, MPI_SUCCESS);
}

template <class Header>
[[nodiscard]] bool read_header(Header& out, const unsigned char* message,
                               std::size_t bytes) noexcept {
  if (bytes < sizeof out) return false;
  std::memcpy(&out, message, sizeof out);
  return true;
}

[[nodiscard]] bool is_sound(const Head& head) noexcept {
  return head.source >= 0 && head.source < world.size && head.tag >= 0;
}

/// False: it is no message of this library.
[[nodiscard]] bool try_take(Peer& peer, const unsigned char* message, std::size_t bytes) noexcept {
  Head head;
  if (!read_header(head, message, bytes)) return false;
  // What lies in a ring may change under our eyes, so no part of it is read a second time.
  const auto answered = std::bit_cast<AnswerHead>(head);
  add_credits(peer, head.credits);
  if (head.kind <= MessageKind::kRendezvous || head.kind == MessageKind::kWritten ||
      head.kind == MessageKind::kStream)
    ++peer.heard;
  switch (head.kind) {
    case MessageKind::kEager:
      return is_sound(head) &&
             take_eager(peer, head, 0, message + sizeof head, bytes - sizeof head);
    case MessageKind::kEagerSync: {
      SyncHead sync;
      return is_sound(head) && read_header(sync, message, bytes) &&
             take_eager(peer, head, sync.sender_id, message + sizeof sync, bytes - sizeof sync);
    }
    case MessageKind::kEnvelope:
    case MessageKind::kRendezvous: {
      EnvelopeHead envelope;
      if (!is_sound(head) || !read_header(envelope, message, bytes)) return false;
      envelope.head = head;
      take_envelope(peer, envelope);
      return true;
    }
    case MessageKind::kPull:
    case MessageKind::kData:
    case MessageKind::kMatched:
    case MessageKind::kTaken:
      take_answer(peer, answered, message + sizeof answered, bytes - sizeof answered);
      return true;
    case MessageKind::kInvite: {
      InviteHead invite;
      if (!read_header(invite, message, bytes)) return false;
      take_invitation(peer, invite);
      return true;
    }
    case MessageKind::kWritten: {
      WrittenHead written;
      if (!read_header(written, message, bytes)) return false;
      take_written(peer, written);
      return true;
    }
    case MessageKind::kRevoke:
      drop_invitation(peer, answered.id);
      answer(peer, MessageKind::kRevoked, answered.id);
      return true;
    case MessageKind::kRevoked:
      take_revoked(peer, answered.id);
      return true;
    case MessageKind::kCredit:
      return true;
    case MessageKind::kRing: {
      RingHead offer;
      if (!read_header(offer, message, bytes)) return false;
      take_ring(peer, offer);
      return true;
    }
    case MessageKind::kByRing:
      read_from_ring(peer);
      return true;
    case MessageKind::kClear:
      begin_stream(peer, answered.id, answered.answer_id);
      return true;
    case MessageKind::kStream: {
      WrittenHead begun;
      if (!read_header(begun, message, bytes)) return false;
      take_stream(peer, begun);
      return true;
    }
    case MessageKind::kPiece: {
      PieceHead piece;
      if (!read_header(piece, message, bytes)) return false;
      return take_piece(peer, piece);
    }
    case MessageKind::kWindow: {
      RingHead offer;
      if (!read_header(offer, message, bytes)) return false;
      take_window(peer, offer);
      return true;
    }
    case MessageKind::kByWindow:
      if (peer.in_window != nullptr) peer.in_window->is_live = true;
      return true;
    case MessageKind::kStreamed:
      end_stream(peer, answered.id);
      return true;
    case MessageKind::kLeft:
      peer.has_left = true;
      suspect(peer, "it has called MPI_Finalize");
      return true;
    case MessageKind::kLost:
      hear_of_loss(peer, answered.id, answered.answer_id);
      return true;
    case MessageKind::kGaveUp:
      if (peer_gave_up != nullptr) peer_gave_up(peer, answered.id);
      return true;
  }
  return false;
}

}  // namespace

bool is_true(const Comm& comm, const Envelope& message, std::uint32_t sender) noexcept {
  const Group& senders = comm.peers();
  if (message.source < senders.size() && senders.world_rank(message.source) == sender) return true;
  if (Peer* const liar = known_peer(sender); liar != nullptr)
    fail_peer(*liar, "it sent a message in another rank's name");
  return false;
}

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
  if (!transfer.is_mr_kept) pace.written(transfer.bytes, now_ns() - transfer.began_at);
  release_transfer(transfer);
  answer(peer, MessageKind::kTaken, sender_id);
  complete(receive, receive.error);
}

void consume(Request& receive, const Unexpected& message) noexcept {
  const auto kind = static_cast<MessageKind>(message.kind);
  const bool is_here = kind == MessageKind::kEager || kind == MessageKind::kEagerSync;
  if (!match(receive, message.envelope, message.world_rank)) {
    release_payload(message);
    return;
  }
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
  auto* const payload = reinterpret_cast<unsigned char*>(message.place);
  if (message.world_rank == static_cast<std::uint32_t>(world.rank)) {
    ++own_credits;
    deliver(receive, payload, message.length);
    std::free(payload);
    return;
  }
  Peer& peer = *known_peer(message.world_rank);
  if (is_here) {
    --peer.held;
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

void turn_away(const Comm& comm, Plane plane) noexcept {
  const Envelope all = {context_of(comm, plane), MPI_ANY_SOURCE, MPI_ANY_TAG};
  turn_away_all([&all](const Unexpected& message) noexcept { return all.takes(message.envelope); });
}

void turn_away_hopeless() noexcept {
  turn_away_all([](const Unexpected& message) noexcept {
    const Envelope& envelope = message.envelope;
    if (envelope.context % 2 == 0 || message.is_own != 0) return false;
    // Also of a part of the communicator that is not made here yet, and will not be.
    const std::uint32_t context = envelope.context & ~std::uint32_t{3};
    const Comm* const whole = comm_of_context(context);
    // Who has freed its communicator after the death of a rank begins no collective on it.
    if (whole == nullptr) return dead_ranks != 0 && is_context_over(context);
    return ((envelope.tag & kApart) == 0 || whole->remote != nullptr) && dead_member(*whole) >= 0;
  });
}

void take_message(Peer& peer, const unsigned char* message, std::size_t bytes) noexcept {
  talked_to = &peer;
  if (peer.is_dead || try_take(peer, message, bytes)) return;
  // What it meant is not known, so what waits for it would wait for ever.
  fail_peer(peer, "it sent what is no message of this library");
}

}  // namespace vmpi
