// SPDX-License-Identifier: BSD-2-Clause
// Long messages between processes of one host that cannot map each other's memory: in pieces
// through a window of the receiver's, which the sender copies in while the receiver copies out;
// the ring tells of each. That is two to three times as fast as one copy by the kernel, as long as
// both are there:
//
//   a receive was posted first     it has invited the message: kStream, kPiece ..., kStreamed
//   the message came first         kRendezvous; who matches it asks for it: kClear, kPiece ...
//   it is written by RDMA          kStream, and kStreamed by the queue pair, behind the data
//
// Who is not there is not waited for: a receiver that does not take what lies in its window has the
// rest written by RDMA, if it has given a key; a sender that does not answer is read from, if it
// has, and then waits to hear that it was (kTaken). A key costs as much as copying 32 KiB, so a
// request that is waited for and fits into the window gives none.
//
// Windows are offered to those whose first long message has come (kWindow), and used when the
// sender has mapped them (kByWindow). A window is larger than a core's nearer caches: a line that
// the receiver has read just now takes the sender four times as long as one of long ago (measured).
#pragma once

#include "mpi_shim/core/pace.hpp"
#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/core/rings.hpp"

namespace vmpi {

inline constexpr std::uint32_t kWindowBytes = 4u << 20;

struct OutWindow {
  unsigned char* memory;
  RingPlaces places;
};
struct InWindow {
  unsigned char* memory;
  ibv_mr* mr;
  bool is_live;  ///< the peer has said that it writes there
};

/// We have a window at the peer, and a ring each way.
[[nodiscard]] inline bool can_stream(const Peer& peer) noexcept {
  return peer.out_window != nullptr && peer.in != nullptr && peer.in->is_live;
}
/// And the peer has one here.
[[nodiscard]] inline bool can_be_streamed_to(const Peer& peer) noexcept {
  return peer.in_window != nullptr && peer.in_window->is_live && peer.out != nullptr;
}
/// A request of so many bytes that is waited for has no need to be reached by RDMA.
[[nodiscard]] inline bool needs_no_key(const Request& request, std::uint64_t bytes) noexcept {
  return request.is_waited_for && bytes <= kWindowBytes / 2;
}

/// A long message of the peer's has come, or is expected.
void consider_window(Peer& peer) noexcept;
void take_window(Peer& peer, const RingHead& offer) noexcept;
/// Goes on with what was offered, if it is mapped by now.
void try_window(Peer& peer) noexcept;
/// REQUIRES: nobody writes any more.
void drop_windows(Peer& peer) noexcept;

// The sender's.
/// To a receive that has invited it. False: there is no room to begin.
[[nodiscard]] bool try_stream(Peer& peer, Request& send, const Head& head, std::uint64_t length,
                              const Invitation& invitation) noexcept;
/// The receiver is ready for the message of a transfer.
void begin_stream(Peer& peer, std::uint32_t id, std::uint32_t receiver_id) noexcept;
/// True: something went.
bool stream_on(Peer& peer) noexcept;
/// What a receiver did not take has been written.
void rest_is_written(Peer& peer, Transfer& transfer) noexcept;
/// The receiver has read it meanwhile.
void leave_stream(Peer& peer, Transfer& transfer) noexcept;

// The receiver's.
/// Of a transfer for a kRendezvous that was matched.
void ask_for_stream(Peer& peer, Transfer& transfer) noexcept;
/// False: it lies nowhere.
[[nodiscard]] bool take_piece(Peer& peer, const PieceHead& piece) noexcept;
void end_stream(Peer& peer, std::uint32_t id) noexcept;
/// After polls in vain: reads what does not come.
void look_at_streams() noexcept;

}  // namespace vmpi
