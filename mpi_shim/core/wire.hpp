// SPDX-License-Identifier: BSD-2-Clause
// What the processes of a job write to each other. Both ends are this library in this version, so
// the bytes are the structs; what is read from them is judged all the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vmpi {

enum class MessageKind : std::uint8_t {
  kEager = 1,   ///< Head, payload
  kEagerSync,   ///< SyncHead, payload; kMatched is wanted
  kEnvelope,    ///< EnvelopeHead: a short message whose sender has no credit; kPull asks for it
  kRendezvous,  ///< EnvelopeHead: the payload is to be read by RDMA; kTaken ends it
  kPull,        ///< AnswerHead
  kData,        ///< AnswerHead, payload
  kMatched,     ///< AnswerHead
  kTaken,       ///< AnswerHead
  kInvite,      ///< InviteHead: such a message may be written by RDMA; kWritten tells that it was
  kWritten,     ///< WrittenHead
  kRevoke,      ///< AnswerHead: an invitation is not to be used any more
  kRevoked,     ///< AnswerHead
  kCredit,      ///< Head
  kRing,        ///< RingHead: messages may be told by this ring (rings.hpp)
  kByRing,      ///< AnswerHead: those that follow are
  kWindow,      ///< RingHead: memory for pieces (streams.hpp)
  kByWindow,    ///< AnswerHead: it is used from now on
  kClear,       ///< AnswerHead: a kRendezvous is to be streamed (streams.hpp)
  kStream,      ///< WrittenHead: a message goes to a receive that has invited it
  kPiece,       ///< PieceHead, payload
  kStreamed,    ///< AnswerHead: that was all of it
  kLeft,        ///< AnswerHead: after a failure, the sender has called MPI_Finalize
  kLost,        ///< AnswerHead: the sender ends all collectives with this rank of the world;
                ///< `answer_id` is who has lost it
  kGaveUp,      ///< AnswerHead: of teams, whose context it names: the sender takes no part any more
};

/// `credits`: payloads of the peer that were matched since the last message told of them.
struct Head {
  MessageKind kind;
  /// Of kInvite: peers of this host map the memory. Of kRendezvous: or it is to be read all the same.
  std::uint8_t is_mapped;
  std::uint16_t credits;
  std::uint32_t context;
  std::int32_t source;  ///< rank in the communicator
  std::int32_t tag;
};
static_assert(sizeof(Head) == 16, "with 8 bytes of payload it is one short SEND");

/// `sender_id`, `id`: of a transfer (transfer.hpp), at the process that will be asked by it.
struct SyncHead {
  Head head;
  std::uint32_t sender_id;
  std::uint32_t reserved;
};

struct EnvelopeHead {
  Head head;
  std::uint32_t sender_id;
  std::uint32_t rkey;
  std::uint64_t length;
  std::uint64_t address;
};
static_assert(sizeof(EnvelopeHead) <= 64);

struct AnswerHead {
  MessageKind kind;
  std::uint8_t reserved;
  std::uint16_t credits;
  std::uint32_t id;
  std::uint32_t answer_id;  ///< of kPull: the receiver's, to be told in kData
  std::uint32_t zero;
};
static_assert(sizeof(AnswerHead) == 16);

/// `rkey` 0: it is to be streamed, not written by RDMA: the receiver polls until it is there.
/// `heard`: messages of the peer that had been taken when the receive was posted.
struct InviteHead {
  Head head;
  std::uint32_t id;
  std::uint32_t rkey;
  std::uint64_t capacity;
  std::uint64_t address;
  std::uint64_t heard;
};
static_assert(sizeof(InviteHead) <= 64);

struct WrittenHead {
  Head head;
  std::uint32_t id;
  std::uint32_t reserved;
  std::uint64_t length;
};

/// Key and address of the ring, or window; `head.id` is nothing.
struct RingHead {
  AnswerHead head;
  std::uint32_t rkey;
  std::uint32_t reserved;
  std::uint64_t address;
};
static_assert(sizeof(RingHead) <= 64);

/// A part of the packed data, from byte `offset` on. It lies in the window.
struct PieceHead {
  MessageKind kind;
  std::uint8_t reserved;
  std::uint16_t credits;
  std::uint32_t id;
  std::uint32_t place;
  std::uint32_t bytes;
  std::uint64_t offset;
};
static_assert(sizeof(PieceHead) <= 56, "it goes into a slot of a ring");

/// A datagram by which two processes connect (peers.cpp).
struct Hello {
  std::uint64_t magic;
  std::uint64_t job;
  std::uint32_t rank;  ///< of teams: the sender's token
  std::uint32_t qpn;
  std::uint8_t has_yours;  ///< my queue pair is connected to yours
  std::uint8_t please_answer;
  std::uint8_t reserved[6];
};
static_assert(sizeof(Hello) == 32);
inline constexpr std::uint64_t kHelloMagic = 0x31006970'6d746276u;  // "vbtmpi", version 1

/// A receive buffer, and so the longest message that is not fetched.
inline constexpr std::size_t kBufferBytes = 8192;
inline constexpr std::size_t kEagerBytes = kBufferBytes - sizeof(SyncHead);
/// Payloads of one sender that may lie unmatched at a receiver.
inline constexpr std::uint16_t kCredits = 64;

}  // namespace vmpi
