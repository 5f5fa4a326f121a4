// SPDX-License-Identifier: BSD-2-Clause
//
// What processes say to each other over the sockets in the fabric folder (AF_UNIX, SOCK_SEQPACKET):
// a handful of fixed-size messages with descriptors (SCM_RIGHTS). The connecting side speaks first.
//
//   HELLO       + segment, doorbells, place of its wake socket    once from either side
//   WANT_ARENA                                         "let me map your arena n"
//   ARENA       + the arena's file                     the answer
//   REFUSED                                            or this one
//
// Everything received is a stranger's word. parse_message is pure: bytes and a count in, a checked
// copy out. Byte order and widths are the host's: both ends run on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/base/unique_fd.hpp"

namespace verbatim::shm {

inline constexpr std::uint32_t kMessageMagic = 0x52544256;  // "VBTR"
inline constexpr std::uint16_t kMessageVersion = 1;
inline constexpr std::uint32_t kMaxMessageFds = 3;

enum class MessageType : std::uint16_t {
  kHello = 1,
  kWantArena = 2,
  kArena = 3,
  kRefused = 4,
  kMet = 5,  ///< from who connected, when he has met the other: ArenaMessage of arena 0
};

struct MessageHead {
  std::uint32_t magic = kMessageMagic;
  std::uint16_t version = kMessageVersion;
  MessageType type;
};

struct HelloMessage {
  MessageHead head{.type = MessageType::kHello};
  std::uint64_t identity = 0;  ///< of the segment sent along
  std::uint64_t header_address =
      0;  ///< where the sender has its segment mapped: what a CMA probe reads
  std::uint32_t layout_version = 0;
  std::uint32_t reserved[9] = {};
};
static_assert(sizeof(HelloMessage) == 64);

struct ArenaMessage {
  MessageHead head{.type = MessageType::kWantArena};
  std::uint32_t arena = 0;
  std::uint32_t reserved = 0;
  std::uint64_t size = 0;  ///< ARENA only
};
static_assert(sizeof(ArenaMessage) == 24);

inline constexpr std::size_t kMaxMessageBytes = sizeof(HelloMessage);

/// A checked copy: `type` tells which member means something.
struct Message {
  MessageType type = MessageType::kHello;
  HelloMessage hello;
  ArenaMessage arena;
};

/// True for a message that is well formed: known magic, version and type, exact size, exactly the
/// descriptors that its type carries, arena numbers in range.
[[nodiscard]] bool parse_message(std::span<const unsigned char> bytes, std::uint32_t fd_count,
                                 Message& out) noexcept;

/// What came off a socket. Descriptors close themselves unless taken.
struct Received {
  std::size_t bytes = 0;
  std::uint32_t fd_count = 0;
  bool too_much = false;    ///< longer, or more descriptors, than any message
  bool lacks_room = false;  ///< descriptors were lost: our table of them is full
  unsigned char data[kMaxMessageBytes] = {};
  UniqueFd fds[kMaxMessageFds];
};

/// 0; EAGAIN when there is nothing; EPIPE at the end; ECONNRESET once when the other side left
/// without reading all (messages it had sent may still follow); another errno when the connection
/// is over.
[[nodiscard]] int receive_message(int socket, Received& out) noexcept;

/// 0; EAGAIN when it does not fit now (also for descriptors in flight); another errno when the
/// connection is over.
[[nodiscard]] int send_message(int socket, const void* message, std::size_t bytes,
                               std::span<const int> fds) noexcept;

}  // namespace verbatim::shm
