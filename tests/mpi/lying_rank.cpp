// SPDX-License-Identifier: BSD-2-Clause
// Rank 1 sends what no process of this library sends; what becomes of rank 0 is rank 0's to say.
#include <infiniband/verbs.h>
#include <mpi.h>
#include <time.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/core/rings.hpp"
#include "mpi_shim/core/streams.hpp"
#include "mpi_shim/core/transfer.hpp"
#include "mpi_shim/core/wire.hpp"

namespace {

using vmpi::MessageKind;

constexpr int kLong = 100'000;
char bytes[kLong];

#define CHECK(what)                                                                 \
  do {                                                                              \
    if (!(what)) {                                                                  \
      (void)std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what); \
      std::exit(1);                                                                 \
    }                                                                               \
  } while (false)

void say(const void* message, std::uint32_t length) {
  ibv_sge piece = {reinterpret_cast<std::uintptr_t>(message), length, 0};
  ibv_send_wr request{};
  // Its completion is nobody's, and makes room for further ones.
  request.wr_id = vmpi::WorkId{vmpi::WorkId::Kind::kHelloSent, 0, 0, 0}.packed();
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  int error = 0;
  while ((error = ibv_post_send(vmpi::known_peer(0)->qp, &request, &bad)) == ENOMEM)
    (void)vmpi::progress();
  CHECK(error == 0);
}

vmpi::Head head(MessageKind kind, int source, int tag) {
  return {kind, 0, 0, vmpi::find_comm(MPI_COMM_WORLD)->context, source, tag};
}
void say_head(MessageKind kind, int source, int tag) {
  const vmpi::Head said = head(kind, source, tag);
  say(&said, sizeof said);
}
void say_answer(MessageKind kind, std::uint32_t id) {
  const vmpi::AnswerHead said = {kind, 0, 0xffff, id, 0xffffffffu, 0};
  say(&said, sizeof said);
}

void say_three_bytes() { say("\1\0\0", 3); }
void say_no_kind() { say_head(static_cast<MessageKind>(0), 1, 5); }
void say_another_kind() { say_head(static_cast<MessageKind>(200), 1, 5); }
void say_half_an_envelope() { say_head(MessageKind::kRendezvous, 1, 5); }
void say_half_an_invitation() { say_head(MessageKind::kInvite, 1, 5); }
void say_it_is_nobody() { say_head(MessageKind::kEager, 1'000'000, 5); }
void say_it_is_any() { say_head(MessageKind::kEager, MPI_ANY_SOURCE, 5); }
void say_it_is_another() { say_head(MessageKind::kEager, 2, 5); }
void say_any_tag() { say_head(MessageKind::kEager, 1, MPI_ANY_TAG); }
void say_too_much() {
  for (int i = 0; i <= vmpi::kCredits; ++i) say_head(MessageKind::kEager, 1, 6);
}

// By the ring, of whose slots only the writer's pointer is known here.
vmpi::RingWriter& ring() {
  vmpi::Peer& peer = *vmpi::known_peer(0);
  CHECK(peer.out != nullptr);
  return *peer.out;
}
void say_by_ring(const void* message, std::size_t length) {
  unsigned char* const out = ring().reserve(length);
  CHECK(out != nullptr);
  std::memcpy(out, message, length);
  ring().publish(length);
}
void say_three_bytes_by_ring() { say_by_ring("\1\0\0", 3); }
void say_no_kind_by_ring() {
  const vmpi::Head said = head(static_cast<MessageKind>(0), 1, 5);
  say_by_ring(&said, sizeof said);
}
void say_it_is_another_by_ring() {
  const vmpi::Head said = head(MessageKind::kEager, 2, 5);
  say_by_ring(&said, sizeof said);
}
void say_it_lies_beyond_the_ring() {
  using Header = std::atomic<std::uint64_t>;
  unsigned char* const out = ring().reserve(8);
  auto* const header = reinterpret_cast<Header*>(out - sizeof(std::uint64_t));
  // The next number, by what stands there from the lap before, or in the slot before.
  const std::uint64_t number =
      *header != 0 ? (*header >> 32) + vmpi::RingMemory::kSlots
                   : (*reinterpret_cast<Header*>(out - sizeof(std::uint64_t) - 64) >> 32) + 1;
  header->store(number << 32 | 0xffffffffu);
}
template <std::uint32_t kPlace, std::uint32_t kBytes>
void say_a_piece_lies_there() {
  const vmpi::PieceHead said = {MessageKind::kPiece, 0, 0, 1, kPlace, kBytes, 0};
  say_by_ring(&said, sizeof said);
}
void say_too_much_by_ring() {
  const vmpi::Head said = head(MessageKind::kEager, 1, 6);
  for (int i = 0; i <= vmpi::kCredits; ++i) say_by_ring(&said, sizeof said);
}

struct Lie {
  const char* name;
  void (*tell)();
};
constexpr Lie kLies[] = {{"three_bytes", say_three_bytes},
                         {"no_kind", say_no_kind},
                         {"another_kind", say_another_kind},
                         {"half_an_envelope", say_half_an_envelope},
                         {"half_an_invitation", say_half_an_invitation},
                         {"it_is_nobody", say_it_is_nobody},
                         {"it_is_any", say_it_is_any},
                         {"it_is_another", say_it_is_another},
                         {"any_tag", say_any_tag},
                         {"too_much", say_too_much},
                         {"ring_three_bytes", say_three_bytes_by_ring},
                         {"ring_no_kind", say_no_kind_by_ring},
                         {"ring_it_is_another", say_it_is_another_by_ring},
                         {"ring_beyond", say_it_lies_beyond_the_ring},
                         {"ring_piece", say_a_piece_lies_there<0, 1>},
                         {"window_beyond", say_a_piece_lies_there<0xffffff00u, 0x200u>},
                         {"window_behind", say_a_piece_lies_there<vmpi::kWindowBytes, 1>},
                         {"window_across", say_a_piece_lies_there<vmpi::kWindowBytes - 1, 2>},
                         {"ring_too_much", say_too_much_by_ring}};

/// Until both have a ring to the other, and a window if they are to.
void talk(int rank, bool with_windows) {
  if (rank > 1) return;
  const vmpi::Peer& peer = *vmpi::peer_of(static_cast<std::uint32_t>(1 - rank));
  static char theirs[kLong];
  const int length = with_windows ? kLong : 1;
  for (bool has_all = false; !has_all; has_all = bytes[0] != 0 && theirs[0] != 0) {
    bytes[0] = peer.out != nullptr && peer.in != nullptr && peer.in->is_live &&
               (!with_windows || (vmpi::can_stream(peer) && vmpi::can_be_streamed_to(peer)));
    CHECK(MPI_Sendrecv(bytes, length, MPI_BYTE, 1 - rank, 2, theirs, length, MPI_BYTE, 1 - rank, 2,
                       MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  }
}

/// Rank 1 ends in the middle of a long message from it, or to it that has filled its ring.
void end_in_a_stream(int rank, bool is_to_it) {
  static char much[vmpi::kWindowBytes / 2];
  vmpi::Peer& peer = *vmpi::known_peer(static_cast<std::uint32_t>(1 - rank));
  if (rank == 1 && is_to_it) {
    vmpi::InviteHead invite = {};
    invite.head = head(MessageKind::kInvite, 0, 5);
    invite.capacity = sizeof much;
    invite.heard = peer.heard;
    say_by_ring(&invite, sizeof invite);
  }
  if (rank == 1) {
    if (!is_to_it) {
      while (peer.invitations.empty()) (void)vmpi::progress();
      const vmpi::WrittenHead begun = {head(MessageKind::kStream, 1, 5), peer.invitations[0].id, 0,
                                       kLong};
      say_by_ring(&begun, sizeof begun);
      const vmpi::PieceHead piece = {MessageKind::kPiece, 0, 0, begun.id, 0, 4096, 0};
      say_by_ring(&piece, sizeof piece);
    }
    constexpr timespec kWhile = {0, 200'000'000};
    (void)nanosleep(&kWhile, nullptr);
    std::abort();
  }
  if (is_to_it) {
    while (peer.invitations.empty()) (void)vmpi::progress();
    CHECK(MPI_Send(much, sizeof much, MPI_BYTE, 1, 5, MPI_COMM_WORLD) == MPI_ERR_PROC_ABORTED);
  } else {
    CHECK(MPI_Recv(bytes, kLong, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE) ==
          MPI_ERR_PROC_ABORTED);
  }
  CHECK(vmpi::transfers.live() == 0 && peer.first_stream == nullptr);
}

/// What is no message ends the receives that a message of rank 1 might end.
void receive_of_a_liar(int rank, void (*tell)(), bool is_probed) {
  if (rank == 1) {
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    tell();
  } else if (rank == 0) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    if (!is_probed) MPI_Irecv(bytes, 1, MPI_BYTE, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &request);
    MPI_Send(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    CHECK((is_probed ? MPI_Probe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &status)
                     : MPI_Wait(&request, &status)) == MPI_ERR_PROC_ABORTED);
  }
}

/// Answers to what nobody asked change nothing.
void answers(int rank) {
  if (rank == 1) {
    MPI_Recv(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    vmpi::Peer& peer = *vmpi::known_peer(0);
    while (peer.invitations.empty()) (void)vmpi::progress();
    const std::uint32_t id = peer.invitations[0].id;
    say_answer(MessageKind::kRevoked, id);
    for (MessageKind kind : {MessageKind::kPull, MessageKind::kData, MessageKind::kMatched,
                             MessageKind::kTaken, MessageKind::kRevoked, MessageKind::kCredit})
      for (std::uint32_t each : {0u, 1u, id + 1, id ^ 0x00100000u, 0xffffffffu})
        say_answer(kind, each);
    std::memset(bytes, 'x', sizeof bytes);
    CHECK(MPI_Send(bytes, kLong, MPI_BYTE, 0, 5, MPI_COMM_WORLD) == MPI_SUCCESS);
  } else if (rank == 0) {
    MPI_Request request;
    MPI_Status status;
    MPI_Send(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Irecv(bytes, kLong, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS);
    int is_cancelled = 1;
    int count = 0;
    MPI_Test_cancelled(&status, &is_cancelled);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(is_cancelled == 0 && count == kLong && bytes[0] == 'x' && bytes[kLong - 1] == 'x');
  }
}

/// Rank 1 lies to rank 0 alone, which has done with it. Rank 2, to which it has been true, hears of
/// that: a collective in which it waits for both is over, messages between rank 1 and it are not.
void lie_to_one(int rank) {
  if (rank == 1) {
    say_three_bytes();
    CHECK(MPI_Recv(nullptr, 0, MPI_BYTE, 2, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    return;
  }
  if (rank == 0) CHECK(MPI_Probe(1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_PROC_ABORTED);
  CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_ERR_PROC_ABORTED);
  // Rank 0 does not end before rank 2 has heard.
  if (rank == 0)
    CHECK(MPI_Recv(nullptr, 0, MPI_BYTE, 2, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
  for (int to = 0; to < 2 && rank == 2; ++to)
    CHECK(MPI_Send(nullptr, 0, MPI_BYTE, to, 7, MPI_COMM_WORLD) == MPI_SUCCESS);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = -1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(argc >= 2);
  const bool with_windows = std::strncmp(argv[1], "window_", 7) == 0;
  if (with_windows || std::strncmp(argv[1], "ring_", 5) == 0) talk(rank, with_windows);
  if (std::strcmp(argv[1], "window_ends_from") == 0) end_in_a_stream(rank, false);
  if (std::strcmp(argv[1], "window_ends_to") == 0) end_in_a_stream(rank, true);
  if (std::strcmp(argv[1], "answers") == 0) answers(rank);
  if (std::strcmp(argv[1], "to_one") == 0) lie_to_one(rank);
  for (const Lie& lie : kLies)
    if (std::strcmp(argv[1], lie.name) == 0) receive_of_a_liar(rank, lie.tell, argc > 2);
  MPI_Finalize();
  return 0;
}
