// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "mpi_shim/core/invitations.hpp"
#include "mpi_shim/core/matching.hpp"
#include "mpi_shim/core/requests.hpp"
#include "mpi_shim/core/rings.hpp"
#include "mpi_shim/core/streams.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {

std::uint64_t open_sends = 0;

namespace {

constexpr std::uint32_t kSignalEvery = 32;
constexpr std::uint64_t kLongestPiece = std::uint64_t{1} << 30;
Peer* first_busy = nullptr;

std::uint16_t take_owed(Peer& peer) noexcept {
  const std::uint16_t owed = peer.owed;
  peer.owed = 0;
  return owed;
}

bool post(Peer& peer, ibv_send_wr& request, WorkId::Kind kind, std::uint32_t id,
          bool is_signaled) noexcept {
  // Requests without a completion have one when they fail.
  request.wr_id =
      WorkId{kind, static_cast<std::uint8_t>(peer.unsignaled + 1), peer.rank, id}.packed();
  if (is_signaled) request.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  const int error = ibv_post_send(peer.qp, &request, &bad);
  if (error != 0) {
    if (error != ENOMEM) fail_peer(peer, std::strerror(error));
    return false;
  }
  ++peer.in_queue;
  peer.unsignaled = is_signaled ? 0 : peer.unsignaled + 1;
  return true;
}

bool post_inline(Peer& peer, const void* bytes, std::size_t length, bool is_signaled) noexcept {
  ibv_sge piece = {reinterpret_cast<std::uintptr_t>(bytes), static_cast<std::uint32_t>(length), 0};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_INLINE;
  return post(peer, request, WorkId::Kind::kPlain, 0,
              is_signaled || peer.unsignaled + 1 >= kSignalEvery);
}

bool post_bounce(Peer& peer, std::uint32_t index, std::size_t length) noexcept {
  ibv_sge piece = {reinterpret_cast<std::uintptr_t>(fabric.bounce_buffer(index)),
                   static_cast<std::uint32_t>(length), fabric.mr->lkey};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  return post(peer, request, WorkId::Kind::kBounce, index, true);
}

[[nodiscard]] bool has_place_for(std::size_t length) noexcept {
  return length <= fabric.inline_bytes || !fabric.free_bounces.empty();
}

[[nodiscard]] bool may_tell(const Peer& peer) noexcept {
  return peer.out != nullptr || peer.room() != 0;
}

/// A header and the packed form of what the request sends, in a row.
void write_message(unsigned char* out, const void* head, std::size_t head_bytes,
                   const Request* from, std::size_t payload) noexcept {
  std::memcpy(out, head, head_bytes);
  if (payload == 0) return;
  if (from->type->is_contiguous)
    std::memcpy(out + head_bytes, first_byte(*from->type, from->buffer), payload);
  else
    (void)pack(*from->type, from->count, from->buffer, 0, out + head_bytes, payload);
}

/// By the queue pair. False: no room.
bool post_by_queue(Peer& peer, const void* head, std::size_t head_bytes, const Request* from,
                   std::size_t payload, bool is_signaled) noexcept {
  unsigned char small[Fabric::kWantedInline];
  const std::size_t length = head_bytes + payload;
  if (peer.room() == 0 || !has_place_for(length)) return false;
  const bool is_inline = length <= fabric.inline_bytes;
  const std::uint32_t bounce = is_inline ? 0 : fabric.free_bounces[fabric.free_bounces.size() - 1];
  unsigned char* const out = is_inline ? small : fabric.bounce_buffer(bounce);
  write_message(out, head, head_bytes, from, payload);
  if (is_inline) return post_inline(peer, out, length, is_signaled);
  if (!post_bounce(peer, bounce, length)) return false;
  fabric.free_bounces.pop_back();
  return true;
}

/// A header and the packed form of what the request sends (`payload` bytes of it). False: no room.
bool post_message(Peer& peer, const void* head, std::size_t head_bytes, const Request* from,
                  std::size_t payload) noexcept {
  if (peer.out == nullptr) return post_by_queue(peer, head, head_bytes, from, payload, false);
  unsigned char* const out = peer.out->reserve(head_bytes + payload);
  if (out == nullptr) return false;
  write_message(out, head, head_bytes, from, payload);
  peer.out->publish(head_bytes + payload);
  return true;
}

Transfer* begin_transfer(Peer& peer, Request& send, Transfer::Step step) noexcept {
  Transfer* const made = transfers.make();
  if (made == nullptr) return nullptr;
  made->step = step;
  made->rank = peer.rank;
  made->request = &send;
  return made;
}

/// Peers of this host can map it.
bool is_in_mapped(const Request& send, std::uint64_t length) noexcept {
  return send.type->is_contiguous &&
         mr_of_mapped(first_byte(*send.type, send.buffer), length) != nullptr;
}

/// What has no receiver's answer to wait for is complete as soon as it is copied.
bool try_eager(Peer& peer, Request& send, const Head& head, std::size_t length) noexcept {
  if (!post_message(peer, &head, sizeof head, &send, length)) return false;
  --peer.credits;
  complete(send, MPI_SUCCESS);
  return true;
}

bool try_with_transfer(Peer& peer, Request& send, Head head, std::uint64_t length,
                       bool is_awaited) noexcept {
  const bool is_eager = head.kind == MessageKind::kEagerSync;
  const bool is_read = head.kind == MessageKind::kRendezvous;
  Transfer* const transfer = begin_transfer(peer, send,
                                            is_eager  ? Transfer::Step::kToBeMatched
                                            : is_read ? Transfer::Step::kToBeTaken
                                                      : Transfer::Step::kToBePulled);
  if (transfer == nullptr) {
    complete(send, MPI_ERR_NO_MEM);
    return true;
  }
  bool has_gone = false;
  if (is_eager) {
    const SyncHead sync = {head, transfer->handle, 0};
    has_gone = post_message(peer, &sync, sizeof sync, &send, length);
    if (has_gone) --peer.credits;
  } else {
    const bool is_mapped =
        is_read && (is_in_mapped(send, length) || (can_stream(peer) && pace.prefers_rdma(length)));
    if (is_awaited) transfer->began_at = now_ns();
    head.is_mapped = is_mapped ? 1 : 0;
    const bool needs_key =
        is_read && (is_mapped || !can_stream(peer) || !needs_no_key(send, length));
    EnvelopeHead envelope = {head, transfer->handle, 0, length, 0};
    if (needs_key && !expose(*transfer, length, Exposure::kRead)) {
      release_transfer(*transfer);
      // What others hold may be given back; if nobody holds any it never will.
      if (transfers.live() != 0) return false;
      complete(send, MPI_ERR_NO_MEM);
      return true;
    }
    if (needs_key) {
      envelope.address = reinterpret_cast<std::uintptr_t>(transfer->local);
      envelope.rkey = transfer->mr->rkey;
    }
    has_gone = post_message(peer, &envelope, sizeof envelope, nullptr, 0);
  }
  if (has_gone)
    send.protocol = transfer;
  else if (!peer.is_dead)
    release_transfer(*transfer);
  return has_gone;
}

[[nodiscard]] std::uint64_t pieces_of(std::uint64_t bytes) noexcept {
  const std::uint64_t longest = std::min(fabric.longest, kLongestPiece);
  return (bytes + longest - 1) / longest;
}

/// The next piece of what is to be read or written. False: it does not go now.
bool post_piece(Peer& peer, Transfer& transfer, ibv_wr_opcode opcode) noexcept {
  const std::uint64_t bytes =
      std::min({transfer.bytes - transfer.posted, fabric.longest, kLongestPiece});
  ibv_sge piece = {reinterpret_cast<std::uintptr_t>(transfer.local + transfer.posted),
                   static_cast<std::uint32_t>(bytes), transfer.mr->lkey};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = opcode;
  request.wr.rdma.remote_addr = transfer.address + transfer.posted;
  request.wr.rdma.rkey = transfer.rkey;
  if (!post(peer, request, WorkId::Kind::kRead, transfer.handle, true)) return false;
  transfer.posted += bytes;
  ++transfer.reads;
  return true;
}

/// From `posted` on. False: the peer is failed. REQUIRES: there is room for pieces_of() them.
bool post_writes(Peer& peer, Transfer& transfer) noexcept {
  while (transfer.posted < transfer.bytes) {
    if (post_piece(peer, transfer, IBV_WR_RDMA_WRITE)) continue;
    // There was room: the queue pair is not what it should be.
    fail_peer(peer, "a request was refused");
    return false;
  }
  return true;
}

/// Straight to where its receive wants it. The queue pair's next SEND tells the receiver; where
/// messages go by a ring it hears there, in their order, which of its receives that is.
bool try_write(Peer& peer, Request& send, const Head& head, std::uint64_t length,
               const Invitation& invitation) noexcept {
  if (pieces_of(length) + 1 > peer.room() || !has_place_for(sizeof(WrittenHead))) return false;
  const std::int64_t began_at = now_ns();
  Transfer* const transfer = begin_transfer(peer, send, Transfer::Step::kWriting);
  if (transfer == nullptr) return false;
  if (!expose(*transfer, length, Exposure::kRead)) {
    release_transfer(*transfer);
    return false;
  }
  WrittenHead written = {head, invitation.id, 0, length};
  written.head.kind = MessageKind::kStream;
  if (peer.out != nullptr && !tell_stream(peer, written)) {
    release_transfer(*transfer);
    return false;
  }
  send.protocol = transfer;
  transfer->bytes = length;
  transfer->rkey = invitation.rkey;
  transfer->address = invitation.address;
  transfer->began_at = began_at;
  if (!post_writes(peer, *transfer)) return true;
  const AnswerHead streamed = {MessageKind::kStreamed, 0, 0, invitation.id, 0, 0};
  written.head.kind = MessageKind::kWritten;
  const bool has_told = peer.out != nullptr
                            ? post_by_queue(peer, &streamed, sizeof streamed, nullptr, 0, false)
                            : post_by_queue(peer, &written, sizeof written, nullptr, 0, false);
  if (!has_told) fail_peer(peer, "a request was refused");
  return true;
}

/// False: the invitation is of no use now.
bool try_invited(Peer& peer, Request& send, Head head, std::uint64_t length,
                 const Invitation& invitation) noexcept {
  const bool is_mapped = invitation.is_mapped || is_in_mapped(send, length);
  // Who begins it and computes would keep a receiver waiting that has no key of ours.
  if (!is_mapped && send.is_waited_for && can_stream(peer) && !pace.prefers_rdma(length)) {
    head.kind = MessageKind::kStream;
    return try_stream(peer, send, head, length, invitation);
  }
  if (invitation.rkey == 0) return false;
  return try_write(peer, send, head, length, invitation);
}

/// False: it has to wait, or the peer is dead.
bool try_send(Peer& peer, Request& send) noexcept {
  const auto length = static_cast<std::uint64_t>(send.count * send.type->size);
  const bool is_short = length <= kEagerBytes;
  const bool is_sync = send.mode == SendMode::kSynchronous;
  Head head{};
  head.kind = !is_short           ? MessageKind::kRendezvous
              : peer.credits == 0 ? MessageKind::kEnvelope
              : is_sync           ? MessageKind::kEagerSync
                                  : MessageKind::kEager;
  if (peer.offered_ring != 0) [[unlikely]]
    try_ring(peer);
  if (peer.offered_window != 0) [[unlikely]]
    try_window(peer);
  if (!may_tell(peer)) return false;
  head.context = context_of(*send.comm, send.plane);
  head.source = send.comm->rank();
  head.tag = send.tag;
  head.credits = take_owed(peer);
  Invitation invitation;
  bool has_gone = false;
  bool is_awaited = false;
  if (!peer.invitations.empty() && use_invitation(peer, head.context, head.tag, invitation) &&
      !is_short && length <= invitation.capacity) {
    is_awaited = true;
    has_gone = try_invited(peer, send, head, length, invitation);
  }
  if (!has_gone)
    has_gone = head.kind == MessageKind::kEager
                   ? try_eager(peer, send, head, length)
                   : try_with_transfer(peer, send, head, length, is_awaited);
  if (!has_gone) {
    peer.owed = static_cast<std::uint16_t>(peer.owed + head.credits);
    return false;
  }
  ++peer.sent;
  if (!is_short && can_stream(peer)) pace.count(length);
  return true;
}

void append_send(Peer& peer, Request& send) noexcept {
  send.sequence = 1;  // it waits: take_back
  send.next = nullptr;
  send.previous = peer.last_send;
  (peer.last_send != nullptr ? peer.last_send->next : peer.first_send) = &send;
  peer.last_send = &send;
}

void unlink_send(Peer& peer, Request& send) noexcept {
  (send.previous != nullptr ? send.previous->next : peer.first_send) = send.next;
  (send.next != nullptr ? send.next->previous : peer.last_send) = send.previous;
  send.next = send.previous = nullptr;
  send.sequence = 0;
}

bool try_answer(Peer& peer, AnswerHead head, std::uint32_t data_of) noexcept {
  if (!may_tell(peer)) return false;
  head.credits = take_owed(peer);
  Transfer* data = nullptr;
  std::size_t payload = 0;
  if (head.kind == MessageKind::kData) {
    data = find_transfer(data_of, peer.rank, Transfer::Step::kToBePulled);
    if (data == nullptr) return true;
    payload = static_cast<std::size_t>(data->request->count * data->request->type->size);
  }
  if (!post_message(peer, &head, sizeof head, data != nullptr ? data->request : nullptr, payload)) {
    peer.owed = static_cast<std::uint16_t>(peer.owed + head.credits);
    return false;
  }
  if (data != nullptr) {
    Request& send = *data->request;
    release_transfer(*data);
    complete(send, MPI_SUCCESS);
  }
  return true;
}

void send_answer(Peer& peer, const AnswerHead& head, std::uint32_t data_of) noexcept {
  if (peer.is_dead) return;
  if (peer.is_ready && peer.first_answer == nullptr && try_answer(peer, head, data_of)) return;
  if (peer.is_dead) return;
  auto* const waits = static_cast<Answer*>(std::malloc(sizeof(Answer)));
  if (waits == nullptr) {
    fail_peer(peer, "there is no memory for an answer to it");
    return;
  }
  *waits = {nullptr, head, data_of};
  (peer.last_answer != nullptr ? peer.last_answer->next : peer.first_answer) = waits;
  peer.last_answer = waits;
  mark_busy(peer);
}

bool drain(Peer& peer) noexcept {
  bool has_moved = false;
  while (peer.first_answer != nullptr &&
         try_answer(peer, peer.first_answer->head, peer.first_answer->data_of)) {
    Answer* const gone = peer.first_answer;
    peer.first_answer = gone->next;
    if (peer.first_answer == nullptr) peer.last_answer = nullptr;
    std::free(gone);
    has_moved = true;
  }
  if (peer.first_stream != nullptr) has_moved = stream_on(peer) || has_moved;
  while (!peer.is_dead && peer.first_read != nullptr && peer.room() != 0) {
    Transfer& transfer = *peer.first_read;
    peer.first_read = transfer.next;
    if (peer.first_read == nullptr) peer.last_read = nullptr;
    read_on(peer, transfer);
    has_moved = true;
  }
  while (!peer.is_dead && peer.first_send != nullptr) {
    Request& send = *peer.first_send;
    unlink_send(peer, send);
    if (!try_send(peer, send)) {
      if (peer.is_dead) {
        // Who failed the peer did not see this one, unless its transfer had been made.
        if (!send.is_complete) complete(send, MPI_ERR_PROC_ABORTED);
        break;
      }
      send.sequence = 1;
      send.next = peer.first_send;
      (peer.first_send != nullptr ? peer.first_send->previous : peer.last_send) = &send;
      peer.first_send = &send;
      break;
    }
    has_moved = true;
  }
  return has_moved;
}

}  // namespace

void complete(Request& request, int error) noexcept {
  request.error = error;
  request.protocol = nullptr;
  request.is_complete = true;
  if (request.kind == Request::Kind::kSend) --open_sends;
  if (request.is_freed) release_freed(request);
}

void send_message(Peer& peer, Request& send) noexcept {
  if (peer.is_ready && peer.first_send == nullptr && try_send(peer, send)) return;
  if (peer.is_dead) {
    if (!send.is_complete) complete(send, MPI_ERR_PROC_ABORTED);
    return;
  }
  append_send(peer, send);
  if (peer.is_ready)
    mark_busy(peer);
  else
    begin_connecting(peer);
}

bool take_back(Request& send) noexcept {
  if (send.sequence == 0) return false;
  Peer* const peer = known_peer(send.comm->peers().world_rank(send.peer));
  if (peer == nullptr) return false;
  unlink_send(*peer, send);
  return true;
}

void answer(Peer& peer, MessageKind kind, std::uint32_t id, std::uint32_t answer_id) noexcept {
  send_answer(peer, {kind, 0, 0, id, answer_id, 0}, 0);
}

void send_data_of(Peer& peer, Transfer& transfer, std::uint32_t id) noexcept {
  send_answer(peer, {MessageKind::kData, 0, 0, id, 0, 0}, transfer.handle);
}

bool send_invitation(Peer& peer, const InviteHead& invite) noexcept {
  InviteHead told = invite;
  if (peer.first_answer != nullptr || !may_tell(peer)) return false;
  told.head.credits = take_owed(peer);
  if (post_message(peer, &told, sizeof told, nullptr, 0)) return true;
  peer.owed = static_cast<std::uint16_t>(peer.owed + told.head.credits);
  return false;
}

bool send_offer(Peer& peer, const RingHead& offer) noexcept {
  return !peer.is_dead && may_tell(peer) && post_message(peer, &offer, sizeof offer, nullptr, 0);
}

bool announce_ring(Peer& peer) noexcept {
  const AnswerHead head = {MessageKind::kByRing, 0, 0, 0, 0, 0};
  return post_by_queue(peer, &head, sizeof head, nullptr, 0, false);
}

bool announce_window(Peer& peer) noexcept {
  const AnswerHead head = {MessageKind::kByWindow, 0, 0, 0, 0, 0};
  return post_message(peer, &head, sizeof head, nullptr, 0);
}

bool tell_stream(Peer& peer, WrittenHead begun) noexcept {
  return post_message(peer, &begun, sizeof begun, nullptr, 0);
}

bool tell_streamed(Peer& peer, std::uint32_t id) noexcept {
  const AnswerHead head = {MessageKind::kStreamed, 0, 0, id, 0, 0};
  return post_message(peer, &head, sizeof head, nullptr, 0);
}

bool write_rest(Peer& peer, Transfer& transfer) noexcept {
  if (pieces_of(transfer.bytes - transfer.posted) > peer.room()) return false;
  if (!expose(transfer, transfer.bytes, Exposure::kRead)) return false;
  transfer.step = Transfer::Step::kWriting;
  transfer.is_rest = true;
  (void)post_writes(peer, transfer);
  return true;
}

void give_credits_back(Peer& peer) noexcept {
  if (peer.first_answer == nullptr) answer(peer, MessageKind::kCredit, 0);
}

void read_on(Peer& peer, Transfer& transfer) noexcept {
  while (transfer.posted < transfer.bytes && peer.room() != 0 &&
         post_piece(peer, transfer, IBV_WR_RDMA_READ)) {
  }
  if (peer.is_dead || transfer.posted == transfer.bytes) return;
  transfer.next = nullptr;
  (peer.last_read != nullptr ? peer.last_read->next : peer.first_read) = &transfer;
  peer.last_read = &transfer;
  mark_busy(peer);
}

void flush_queue(Peer& peer) noexcept {
  if (peer.unsignaled == 0) return;
  const AnswerHead head = {MessageKind::kCredit, 0, 0, 0, 0, 0};
  (void)post_by_queue(peer, &head, sizeof head, nullptr, 0, true);
}

void mark_busy(Peer& peer) noexcept {
  if (!peer.is_ready) {
    begin_connecting(peer);
    return;
  }
  if (peer.is_busy || peer.is_dead) return;
  peer.is_busy = true;
  peer.next_busy = first_busy;
  first_busy = &peer;
}

bool is_anybody_busy() noexcept { return first_busy != nullptr; }

bool drain_busy() noexcept {
  bool has_moved = false;
  Peer* next = first_busy;
  first_busy = nullptr;
  while (next != nullptr) {
    Peer& peer = *next;
    next = peer.next_busy;
    peer.is_busy = false;
    if (peer.is_dead) continue;
    has_moved = drain(peer) || has_moved;
    if (peer.has_work()) mark_busy(peer);
  }
  return has_moved;
}

void forget_busy() noexcept { first_busy = nullptr; }

}  // namespace vmpi
