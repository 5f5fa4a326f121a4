// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/streams.hpp"

#include <verbatim/map.h>
#include <verbatim/memory.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "mpi_shim/core/output.hpp"
#include "mpi_shim/core/rings.hpp"

namespace vmpi {

Pace pace;

namespace {

/// Large against what telling of it costs, small against the window.
constexpr std::uint64_t kPieceBytes = 16u << 10;
/// Who takes nothing for so long computes, or has no processor.
constexpr std::int64_t kPatienceNs = 100'000;
/// Slots that pieces leave for what ends them.
constexpr std::uint32_t kSlotsLeft = 8;

/// Each is 4 MiB of the receiver's; who gets none is read from, or written to, by RDMA.
constexpr std::uint32_t kMostWindows = 8;

constexpr std::uint32_t kPageBytes = 4096;

std::uint32_t streams_to_look_at = 0;
std::uint32_t made_windows = 0;

void append_stream(Peer& peer, Transfer& transfer) noexcept {
  transfer.step = Transfer::Step::kStreaming;
  transfer.moved_at = 0;
  transfer.next = nullptr;
  (peer.last_stream != nullptr ? peer.last_stream->next : peer.first_stream) = &transfer;
  peer.last_stream = &transfer;
}

void unlink_stream(Peer& peer, Transfer& transfer) noexcept {
  Transfer* before = nullptr;
  for (Transfer* at = peer.first_stream; at != nullptr && at != &transfer; at = at->next)
    before = at;
  (before != nullptr ? before->next : peer.first_stream) = transfer.next;
  if (peer.last_stream == &transfer) peer.last_stream = before;
  transfer.next = nullptr;
}

bool send_piece(Peer& peer, Transfer& transfer) noexcept {
  const auto bytes =
      static_cast<std::uint32_t>(std::min(kPieceBytes, transfer.bytes - transfer.posted));
  RingPlaces& places = peer.out_window->places;
  if (peer.out->room() <= kSlotsLeft || !peer.out->find(places, bytes)) return false;
  unsigned char* const slot = peer.out->reserve(sizeof(PieceHead));
  if (slot == nullptr) return false;
  unsigned char* const out = peer.out_window->memory + places.place();
  const Request& send = *transfer.request;
  if (send.type->is_contiguous)
    std::memcpy(out, first_byte(*send.type, send.buffer) + transfer.posted, bytes);
  else
    (void)pack(*send.type, send.count, send.buffer, transfer.posted, out, bytes);
  const PieceHead head = {MessageKind::kPiece, 0, 0, transfer.peer_id, places.place(), bytes,
                          transfer.posted};
  std::memcpy(slot, &head, sizeof head);
  peer.out->use(places);
  peer.out->publish(sizeof head);
  transfer.posted += bytes;
  transfer.moved_at = 0;
  return true;
}

/// The window is full. If its reader is not there the rest goes where the receive wants it.
void consider_writing(Peer& peer, Transfer& transfer) noexcept {
  if (transfer.rkey == 0 || transfer.is_taken_told) return;
  const std::int64_t now = now_ns();
  if (transfer.moved_at == 0) transfer.moved_at = now;
  if (now - transfer.moved_at < kPatienceNs) return;
  transfer.moved_at = now;
  unlink_stream(peer, transfer);
  if (!write_rest(peer, transfer)) append_stream(peer, transfer);
}

/// All of it is in the window, or where it belongs. False: there is no room to say so.
bool finish_stream(Peer& peer, Transfer& transfer) noexcept {
  if (!tell_streamed(peer, transfer.peer_id)) return false;
  unlink_stream(peer, transfer);
  if (transfer.began_at != 0 && !transfer.is_rest) {
    // But for the end of the message, and the piece that is being copied.
    const std::uint64_t left = peer.out->left();
    pace.streamed(transfer.bytes, left < 2 ? 0 : (left - 2) * kPieceBytes,
                  now_ns() - transfer.began_at);
  }
  if (transfer.is_taken_told) {
    // The receiver may be reading it already.
    transfer.step = Transfer::Step::kToBeTaken;
    return true;
  }
  Request& send = *transfer.request;
  release_transfer(transfer);
  complete(send, MPI_SUCCESS);
  return true;
}

}  // namespace

void consider_window(Peer& peer) noexcept {
  if (peer.in_window != nullptr || peer.in == nullptr || !peer.in->is_live || peer.out == nullptr ||
      made_windows == kMostWindows || peer.out->room() == 0)
    return;
  void* const memory = vbt_alloc_shared(kWindowBytes);
  ibv_mr* const mr =
      memory == nullptr
          ? nullptr
          : ibv_reg_mr(fabric.pd, memory, kWindowBytes,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
  auto* const made =
      mr == nullptr ? nullptr : static_cast<InWindow*>(std::malloc(sizeof(InWindow)));
  if (made != nullptr) {
    *made = {static_cast<unsigned char*>(memory), mr, false};
    RingHead offer{};
    offer.head.kind = MessageKind::kWindow;
    offer.rkey = mr->rkey;
    offer.address = reinterpret_cast<std::uintptr_t>(memory);
    if (send_offer(peer, offer)) {
      peer.in_window = made;
      ++made_windows;
      return;
    }
  } else {
    // Without memory there is no use in asking again.
    made_windows = kMostWindows;
  }
  std::free(made);
  if (mr != nullptr) (void)ibv_dereg_mr(mr);
  (void)vbt_free_shared(memory);
}

void take_window(Peer& peer, const RingHead& offer) noexcept {
  if (peer.out_window != nullptr || peer.out == nullptr) return;
  peer.offered_window = offer.address;
  peer.window_key = offer.rkey;
  try_window(peer);
}

void try_window(Peer& peer) noexcept {
  void* mapped = nullptr;
  const int error = vbt_map_remote(peer.qp, peer.window_key, peer.offered_window, kWindowBytes,
                                   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE, &mapped);
  if (error == EAGAIN) return;
  if (error != 0) {
    peer.offered_window = 0;
    return;
  }
  void* const place = std::malloc(sizeof(OutWindow));
  if (place == nullptr) return;
  if (!announce_window(peer)) {
    std::free(place);
    return;
  }
  peer.offered_window = 0;
  // Its pages are had now, not one by one while messages wait.
  for (std::uint32_t at = 0; at < kWindowBytes; at += kPageBytes)
    (void)*(static_cast<volatile unsigned char*>(mapped) + at);
  peer.out_window =
      ::new (place) OutWindow{static_cast<unsigned char*>(mapped), RingPlaces(kWindowBytes, false)};
}

void drop_windows(Peer& peer) noexcept {
  std::free(peer.out_window);
  peer.out_window = nullptr;
  peer.offered_window = 0;
  if (peer.in_window == nullptr) return;
  (void)ibv_dereg_mr(peer.in_window->mr);
  (void)vbt_free_shared(peer.in_window->memory);
  std::free(peer.in_window);
  peer.in_window = nullptr;
  --made_windows;
}

bool try_stream(Peer& peer, Request& send, const Head& head, std::uint64_t length,
                const Invitation& invitation) noexcept {
  Transfer* const transfer = transfers.make();
  if (transfer == nullptr) return false;
  if (!tell_stream(peer, {head, invitation.id, 0, length})) {
    release_transfer(*transfer);
    return false;
  }
  transfer->rank = peer.rank;
  transfer->request = &send;
  transfer->began_at = now_ns();
  transfer->bytes = length;
  transfer->peer_id = invitation.id;
  transfer->rkey = invitation.rkey;
  transfer->address = invitation.address;
  send.protocol = transfer;
  append_stream(peer, *transfer);
  (void)stream_on(peer);
  if (peer.has_work()) mark_busy(peer);
  return true;
}

void begin_stream(Peer& peer, std::uint32_t id, std::uint32_t receiver_id) noexcept {
  Transfer* const transfer = find_transfer(id, peer.rank, Transfer::Step::kToBeTaken);
  if (transfer == nullptr || !can_stream(peer) || transfer->posted != 0) return;
  const Request& send = *transfer->request;
  transfer->bytes = static_cast<std::uint64_t>(send.count * send.type->size);
  transfer->peer_id = receiver_id;
  transfer->rkey = 0;
  transfer->is_taken_told = transfer->mr != nullptr;
  transfer->began_at = send.is_waited_for ? now_ns() : 0;
  append_stream(peer, *transfer);
  mark_busy(peer);
}

bool stream_on(Peer& peer) noexcept {
  bool has_moved = false;
  while (peer.first_stream != nullptr && !peer.is_dead) {
    Transfer& transfer = *peer.first_stream;
    while (transfer.posted < transfer.bytes && send_piece(peer, transfer)) has_moved = true;
    if (transfer.posted < transfer.bytes) {
      consider_writing(peer, transfer);
      break;
    }
    if (!finish_stream(peer, transfer)) break;
    has_moved = true;
  }
  return has_moved;
}

void rest_is_written(Peer& peer, Transfer& transfer) noexcept {
  append_stream(peer, transfer);
  mark_busy(peer);
}

void leave_stream(Peer& peer, Transfer& transfer) noexcept { unlink_stream(peer, transfer); }

void ask_for_stream(Peer& peer, Transfer& transfer) noexcept {
  transfer.step = Transfer::Step::kStreamed;
  transfer.moved_at = now_ns();
  if (transfer.rkey != 0) ++streams_to_look_at;
  answer(peer, MessageKind::kClear, transfer.peer_id, transfer.handle);
}

bool take_piece(Peer& peer, const PieceHead& piece) noexcept {
  if (peer.in_window == nullptr || piece.place > kWindowBytes ||
      piece.bytes > kWindowBytes - piece.place)
    return false;
  Transfer* const transfer = find_transfer(piece.id, peer.rank, Transfer::Step::kStreamed);
  if (transfer == nullptr || piece.offset >= transfer->bytes) return true;
  const std::size_t taken = std::min<std::uint64_t>(piece.bytes, transfer->bytes - piece.offset);
  const unsigned char* const data = peer.in_window->memory + piece.place;
  const Request& receive = *transfer->request;
  if (receive.type->is_contiguous)
    std::memcpy(first_byte(*receive.type, receive.buffer) + piece.offset, data, taken);
  else
    unpack(*receive.type, receive.count, receive.buffer, piece.offset, data, taken);
  transfer->moved_at = 0;
  return true;
}

void end_stream(Peer& peer, std::uint32_t id) noexcept {
  Transfer* const transfer = find_transfer(id, peer.rank, Transfer::Step::kStreamed);
  if (transfer == nullptr) {
    // It was written by RDMA, whose end the queue pair tells: the ring has not been looked at since.
    Transfer* const early = find_transfer(id, peer.rank, Transfer::Step::kInvited);
    if (early != nullptr && peer.in != nullptr && peer.in->is_live) early->has_ended = true;
    return;
  }
  Request& receive = *transfer->request;
  if (transfer->rkey != 0) {
    --streams_to_look_at;
    answer(peer, MessageKind::kTaken, transfer->peer_id);
  }
  release_transfer(*transfer);
  complete(receive, receive.error);
}

void look_at_streams() noexcept {
  if (streams_to_look_at == 0) return;
  const std::int64_t now = now_ns();
  // Those of peers that are lost have ended without a word.
  streams_to_look_at = 0;
  transfers.each([now](Transfer& transfer) noexcept {
    if (transfer.step != Transfer::Step::kStreamed || transfer.rkey == 0) return;
    ++streams_to_look_at;
    if (transfer.moved_at == 0) transfer.moved_at = now;
    Peer* const peer = known_peer(transfer.rank);
    if (now - transfer.moved_at < kPatienceNs || peer == nullptr || peer->is_dead) return;
    transfer.moved_at = now;
    if (!expose(transfer, transfer.bytes, Exposure::kReadInto)) return;
    --streams_to_look_at;
    // The wait for pieces that did not come says nothing of how fast it is read.
    transfer.began_at = now;
    transfer.step = Transfer::Step::kReading;
    read_on(*peer, transfer);
  });
}

}  // namespace vmpi
