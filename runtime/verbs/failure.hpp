// SPDX-License-Identifier: BSD-2-Clause
// The facts of a failed request, as a provider knows them: numbers only, gathered at the moment of
// failure off the data path, made into words when somebody asks (explain.hpp). Plain data of fixed
// size, so that a queue pair can hold it; nothing in it is a pointer, since what it speaks of may
// be gone when it is read.
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

#include "runtime/memory/address_space.hpp"

namespace verbatim {

/// What was wrong.
enum class Cause : std::uint8_t {
  kStatusOnly,       ///< no more is known than what the status says
  kLocalKey,         ///< `key`: of an SGE of the request
  kRemoteKey,        ///< `key`: the peer's memory that the request named
  kReceiveKey,       ///< `key`: of an SGE of the receive that a message was to go to
  kAccessFlags,      ///< the responder's qp_access_flags lack `key.need`, are `key.held`
  kMisaligned,       ///< `key.asked_at` is no multiple of 8
  kMessageTooLong,   ///< `length` for a receive of `room` bytes
  kRequestTooLong,   ///< `length` where at most `room` can be sent
  kRequestTooShort,  ///< `length` where an atomic needs `room`
  kNoRoom,           ///< this process has no memory left for what the request needs
  kNoReceive,        ///< the peer had none posted for `waited_ns`
  kPeerUnknown,      ///< nobody has its number
  kPeerNotReady,     ///< its queue pair is in `peer_state`, before RTR
  kPeerFailed,       ///< it is in the error state
  kPeerDestroyed,    ///< its process has no such queue pair (any more)
  kPeerElsewhere,    ///< it is connected to `peer_dest`
  kPeerPsn,          ///< it expects `peer_psn`, we send from `own_psn`
  kPeerOtherType,    ///< it is of another type
  kPeerUsed,         ///< it still has what an earlier connection of ours sent
  kPeerDead,         ///< its process has ended
  kPeerLacks,        ///< it lives, and has no memory left for what was asked of it
  kPeerSilent,       ///< it lives, and did not do its part
  kQueueUnknown,     ///< XRC: nobody has a shared receive queue with this number
  kQueueGone,        ///< its process has no such queue (any more)
  kQueueElsewhere,   ///< it is of another XRC domain than the connection
  kQueueDead,        ///< its process has ended
  kQueueLacks,       ///< its process lives, and has no memory left for another sender
  kQueueSilent,      ///< its process lives, and did not do its part
  kReceiveGone,      ///< the peer found the memory of a receive gone, of an earlier message
  kWindow,           ///< a memory window could not be opened or closed: `window`, `key`
  kWindowInUse,      ///< nor in time, since the peer was in the middle of a copy
  kForeignAddress,   ///< the address handle is of another protection domain
  kPeerBrokeRules,   ///< what the peer showed cannot be
  // Causes on devices that show nothing of the peer (unseen_error_text.cpp).
  kMemoryUnseen,   ///< `key`: what the request named of the peer's memory
  kReceiveUnseen,  ///< the peer refused a message of `length` bytes; `key.key`: to be invalidated
  kMessageUnseen,  ///< a message was not for a receive of `room` bytes
  kNoAnswer,       ///< nobody answered `tries` and one more, each of `timer_ns`
  kNotReady,       ///< the peer said so, `tries` and one more times
  kRequestUnseen,  ///< a request of the peer's was refused
  kFirstUnseen,    ///< what came first had no completion that was seen
  kOrdered,        ///< the program moved the queue pair to the error state
  kDeviceGone      ///< the device was removed while it was in use
};

/// Where the other half is, as far as a device's own side knows it.
struct RemotePlace {
  enum class Kind : std::uint8_t { kUnknown, kGid, kSocket };
  Kind kind = Kind::kUnknown;
  std::uint16_t port = 0;  ///< of a socket, in the host's byte order
  ibv_gid gid{};           ///< or the socket's address, as IPv6
};

/// What is wrong with a key.
enum class KeyFault : std::uint8_t {
  kNone,      ///< nothing now: it was changed between the failure and the look
  kUnknown,   ///< no region has it
  kDomain,    ///< its region is of another protection domain
  kWindow,    ///< it is a window of another queue pair or domain
  kRight,     ///< `need` is not in `held`
  kBounds,    ///< the range is not inside
  kNoMemory,  ///< registered, but no memory is there
  kNotEnded,  ///< a message was to invalidate it, which ends only windows of its receiver's
  kHidden     ///< the peer does not show which of a receive's keys it is
};

/// Why a memory window could not be bound or invalidated (IBTA 10.6.7).
enum class WindowFault : std::uint8_t {
  kUnseen,       ///< nothing that is seen from here
  kNotBound,     ///< none that is bound on this queue pair has the key
  kNoLonger,     ///< a message was to invalidate it, and it is bound no longer
  kStillBound,   ///< of type 2 it is to be invalidated before it is bound again
  kForeignKey,   ///< the key that it is to have is another window's
  kRights,       ///< `key.need` was asked too, which no window gives
  kBasedAtZero,  ///< ZERO_BASED was asked, which one of type 1 cannot be
  kBasedRegion,  ///< the region is ZERO_BASED itself
  kUnbindable,   ///< the region lacks MW_BIND
  kUnwritable,   ///< the region lacks LOCAL_WRITE for a window that is to be written through
  kNoRegion,     ///< no region has the lkey
  kDomain,       ///< window, region and queue pair are not of one protection domain
  kBounds        ///< the range is not inside of the region
};

struct KeyFacts {
  KeyFault fault = KeyFault::kNone;
  std::int16_t sge = -1;  ///< its place in the list
  std::uint32_t key = 0;
  std::uint32_t need = 0;  ///< IBV_ACCESS_*; 0: reading at home needs none
  std::uint32_t held = 0;
  std::uint64_t asked_at = 0;  ///< first address
  std::uint64_t asked_bytes = 0;
  std::uint64_t first = 0;  ///< of the region
  std::uint64_t bytes = 0;
  MissingByte missing{};  ///< of kNoMemory, where that is known
};

/// A program, as far as it is known.
struct ProgramName {
  std::int32_t pid = 0;  ///< 0: not known
  char name[16] = {};    ///< printable, not always ended by a zero
};

struct Failure {
  Cause cause = Cause::kStatusOnly;
  /// It is the failure of a receive, or of a request of the peer's; else of a request of our own.
  bool receives = false;
  bool has_request = false;  ///< `wr_id` and `opcode` mean something
  WindowFault window = WindowFault::kUnseen;
  ibv_wc_status status = IBV_WC_SUCCESS;
  std::int32_t opcode = -1;  ///< ibv_wr_opcode of the request; -1: a receive, or not known
  std::uint64_t wr_id = 0;
  std::uint32_t remote_qpn = 0;
  ProgramName remote;
  /// XRC: the shared receive queue that the request goes to, or that the receive is of; 0: none.
  std::uint32_t srqn = 0;
  ProgramName queue;           ///< which process has that
  std::uint32_t over_qpn = 0;  ///< XRC, of a receive: the queue pair that the message came over
  KeyFacts key;
  std::uint64_t length = 0;
  std::uint64_t room = 0;
  std::uint64_t waited_ns = 0;
  std::uint64_t timer_ns = 0;  ///< of one try: min_rnr_timer's, or timeout's; 0: none
  std::uint32_t timer_code = 0;
  std::uint32_t tries = 0;  ///< rnr_retry or retry_cnt
  RemotePlace place;
  std::int32_t own_state = -1;   ///< ibv_qp_state; -1: nothing to tell
  std::int64_t vendor_err = -1;  ///< of the completion; -1: nothing to tell
  std::uint32_t peer_state = 0;
  std::uint32_t peer_dest = 0;
  std::uint32_t peer_psn = 0;
  std::uint32_t own_psn = 0;
};

/// What a program asks about.
struct FailedCompletion {
  std::uint64_t wr_id;
  ibv_wc_status status;
};

}  // namespace verbatim
