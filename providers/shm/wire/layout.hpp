// SPDX-License-Identifier: BSD-2-Clause
//
// What processes of one host see of each other: the bytes of the control segment and of the
// doorbell file.
//
// A control segment is one memfd per process. Its owner is the only writer; peers map it read-only,
// so no peer can hurt the owner through it, and everything a peer reads here is still a stranger's
// word: copy to locals first, validate the copy, use only the copy.
//
//   offset 0            SegmentHeader      who this is and where the tables are
//   header.cq_table     CqRecord[]         which CQs want to be woken
//   header.mr_table     RegionRecord[]     what lkeys and rkeys mean, indexed by key >> 8
//   header.qp_table     QpRecord[]         both halves of every queue pair, indexed by its local
//                                          number
//   header.heap         bytes              rings, credits, receive descriptors, bounce chunks
//
// The doorbell file is a second memfd that every peer may write. It holds hints only (doorbells.hpp).
//
// All members have fixed widths, positions are offsets from the segment's start, atomics are lock
// free; this is an ABI between processes, guarded by kLayoutVersion.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "providers/shm/wire/doorbells.hpp"
#include "runtime/base/cache_line.hpp"

namespace verbatim::shm {

inline constexpr std::uint64_t kSegmentMagic = 0x314d48532d544256;  // "VBT-SHM1"
inline constexpr std::uint32_t kLayoutVersion = 14;
/// No segment is larger: a stranger's word does not eat the address space of who maps it.
inline constexpr std::uint64_t kMostSegmentBytes = std::uint64_t{2} << 30;

/// Queue pair numbers are unique on the host: a process claims blocks of 4096 of the 24-bit space.
inline constexpr std::uint32_t kQpnBlockBits = 12;
inline constexpr std::uint32_t kQpnsPerBlock = 1u << kQpnBlockBits;
inline constexpr std::uint32_t kQpnBlocks = 1u << (24 - kQpnBlockBits);
inline constexpr std::uint32_t kMaxBlocksPerProcess = 16;

/// A key is index << 8 | generation.
inline constexpr std::uint32_t kRegionIndexBits = 20;
inline constexpr std::uint32_t kMaxRegions = 1u << kRegionIndexBits;
inline constexpr std::uint32_t kMaxQps = kMaxBlocksPerProcess * kQpnsPerBlock;
inline constexpr std::uint32_t kMaxCqs = 4096;

/// Completion channels whose sleepers peers wake themselves; those beyond are woken by their own
/// service thread.
inline constexpr std::uint32_t kMaxCompChannels = 256;

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// A completion channel, for senders that found a CQ of it armed. Peers write nothing here: whom
/// they wake by futex(2) sleeps, or is on the way to it and looks at Doorbells::cq_wake first; else
/// nobody was woken, and the service thread is.
struct CompChannelRecord {
  std::atomic<std::uint32_t> bed;  ///< never changes: threads in ibv_get_cq_event sleep on it
  std::atomic<std::uint32_t> on_the_way;  ///< those, and who will look once more before they sleep
};

struct SegmentHeader {
  std::uint64_t magic;
  std::uint32_t layout_version;
  std::uint32_t header_bytes;
  std::uint64_t segment_bytes;
  std::uint64_t identity;  ///< random; tells a process from its successor with the same pid
  std::int32_t pid;        ///< in the owner's own pid namespace: a word for logs, never for access
  std::uint32_t
      sender_fence;  ///< membarrier is refused to the owner: whoever sends to it pays a fence
  std::uint64_t mr_table;
  std::uint32_t mr_capacity;
  std::uint32_t qp_capacity;
  std::uint64_t qp_table;
  std::uint64_t cq_table;
  std::uint64_t heap;
  /// Table index + 1 of the first endpoint that leaves this process.
  std::atomic<std::uint32_t> endpoint_link;
  /// Places of GroupRecord[kMaxGroups] that were ever used.
  std::atomic<std::uint32_t> group_end;
  std::atomic<std::uint64_t> groups;  ///< offset of that table, 0 until a group is joined
  // What tools show of the process (verbatim top): counted where objects come and go.
  std::atomic<std::uint32_t> key_count;  ///< regions and windows
  std::atomic<std::uint32_t> cq_count;
  std::atomic<std::uint32_t> srq_count;
  std::uint32_t cq_capacity;  ///< that there are doorbells for
  std::uint64_t fabric;       ///< the inode of its fabric folder: numbers mean something within one
  char program[16];           ///< what it calls itself, cut; not always ended by a zero
  std::atomic<std::uint32_t> block_count;
  /// qpn >> 12 of each block; QP `n` of block `blocks[k]` has the table index k * 4096 + (qpn &
  /// 4095).
  std::atomic<std::uint32_t> blocks[kMaxBlocksPerProcess];
  alignas(kCacheLine) CompChannelRecord comp_channels[kMaxCompChannels];
};
static_assert(sizeof(SegmentHeader) <= 4096);

/// One memory region. `serial` is stored last (release) at registration and cleared first at
/// deregistration. Keys come back after 256 registrations, serials never: one load of it tells that
/// what was once looked up here still holds.
struct alignas(kCacheLine) RegionRecord {
  std::atomic<std::uint64_t> serial;  ///< 0 while the record means nothing
  std::uint64_t iova;                 ///< first address peers name
  std::uint64_t length;
  std::uint64_t address;  ///< where iova lies in the owner's address space (tier C and D)
  std::uint64_t arena_offset;
  std::uint32_t key;
  std::uint32_t access;  ///< IBV_ACCESS_*
  std::uint32_t pd;      ///< runtime/verbs/software/key_holder.hpp
  /// Arena number + 1, or 0: not in memory that peers can map; or kOwnerOnly.
  std::uint32_t arena;
  std::uint64_t reserved;

  static constexpr std::uint32_t kOwnerOnly = ~0u;  ///< the kernel copies nothing there either
};
static_assert(sizeof(RegionRecord) == kCacheLine);

/// One posted receive as the sender sees it. The ring's lap stands in the same word as the verdict,
/// so one load tells whether a receive is posted and how long a message it takes.
struct Credit {
  static constexpr std::uint32_t kLengthMask = 0x7fffffffu;
  /// An SGE failed its lkey check when posted: only messages that fit in what lies before are taken.
  static constexpr std::uint32_t kBadKey = 0x80000000u;
  /// lap << 32 | bad key << 31 | length, of a bad one that of its sound part. A longer receive says
  /// 2^31-1, no message is longer.
  static constexpr std::uint64_t make(std::uint32_t lap, std::uint32_t length, bool bad) {
    return std::uint64_t{lap} << 32 | (bad ? kBadKey : 0u) | length;
  }
};

struct ReceiveSge {
  std::uint64_t address;
  std::uint32_t length;
  std::uint32_t lkey;
};
static_assert(sizeof(ReceiveSge) == 16);

/// One UD queue pair's membership in a multicast group.
struct GroupRecord {
  std::atomic<std::uint32_t> qpn;  ///< 0: nobody's; written last
  std::uint32_t reserved;
  std::uint64_t prefix;  ///< the group's GID, as it lies in memory
  std::uint64_t suffix;
};
inline constexpr std::uint32_t kMaxGroups = 4096;

/// A shared receive queue as senders see it. Its receives are used up in the order of posting.
struct SrqRecord {
  /// Where Credit[entries] lies and how many, see namespace extent; 0 until a receive is posted.
  alignas(kCacheLine) std::atomic<std::uint64_t> store;
  alignas(kCacheLine) std::atomic<std::uint64_t> taken;  ///< receives that messages have used up
};
static_assert(sizeof(SrqRecord) == 2 * kCacheLine);

/// The message ring: lines of one cache line each, numbered without end from the first that the
/// connection had; number n stands at n modulo their count. A message begins with a slot, and takes
/// the lines behind it that it needs, side by side.
///
/// One cache line carries a small message whole.
struct alignas(kCacheLine) Slot {
  static constexpr std::size_t kInlineBytes = 56;
  /// From here on lie the bytes of a message that takes several lines (kLines).
  static constexpr std::size_t kLongAt = 8;
  /// The last data bytes are the GID of the group that a datagram was sent to (header::kToGroup):
  /// it has so many less for itself.
  static constexpr std::size_t kGroupAt = 40;
  /// Before it, what a datagram says of its path (header::kPath), a word of namespace path: it has
  /// the data in front of that for itself.
  static constexpr std::size_t kPathAt = 32;
  /// What stands in the data of a message that does not fit.
  struct Large {
    /// Of the whole message; kMoved: the number of the line that comes next.
    std::uint64_t length;
    /// Stream position of its first byte (kWhole, kStream); kMoved: where that line's ring lies and
    /// how many lines it has, see namespace extent.
    std::uint64_t offset;
    std::uint64_t
        placed_from;  ///< kStream: byte from which on the rest was placed directly, ~0 while
                      ///< all of it flows; the one word written after the header (release)
  };
  std::atomic<std::uint64_t> header;  ///< written last
  union {
    unsigned char data[kInlineBytes];
    Large large;
  };
};
static_assert(sizeof(Slot) == kCacheLine && sizeof(Slot::Large) <= Slot::kPathAt);

/// How long a message of several lines may be; and how many lines it takes.
inline constexpr std::uint32_t kMostInLines = 1024;
constexpr std::uint32_t lines_of(std::uint32_t bytes) {
  constexpr std::size_t kAt = 16;  // of a line
  return static_cast<std::uint32_t>((bytes + kAt + kCacheLine - 1) / kCacheLine);
}
/// How many lines a ring has: at first, and at most.
inline constexpr std::uint32_t kFirstRingLog = 5;
inline constexpr std::uint32_t kMostRingLog = 20;

/// How a message's bytes reach the receiver.
enum class SlotKind : std::uint8_t {
  kInline = 0,  ///< in the slot
  kWhole = 1,   ///< whole in the sender's stream ring, from byte `large.offset` on
  kStream = 2,  ///< flowing through the stream ring, from byte `large.offset` on
  kPlaced = 3,  ///< already in the receive buffer, `large.length` bytes (also WRITE_WITH_IMM)
  /// Nothing: this receive ends in the ibv_wc_status in `large.length`; large.offset says how long
  /// the message was to be.
  kFault = 4,
  /// Several messages of one length, without flags, one behind the other in the slot; the immediate
  /// says how many.
  kPack = 5,
  kLines = 6,  ///< in the slot and the lines behind it, `large.length` bytes from Slot::kLongAt on
  /// No message: the next line is number `large.length`, of this ring, in which no more stand side
  /// by side before its end, or of another that has more or fewer.
  kMoved = 7,
};
inline constexpr std::uint32_t kMostInPack = 7;

/// What a datagram's receiver is shown of the path that its address handle names: flow label 20 |
/// traffic class 8 | service level 4 | hop limit 8 | GID index 2, from the low bits. 0 is the usual
/// path, of which a slot says nothing: its hop limit is 64. Of a peer's word every value is one;
/// higher bits mean nothing.
namespace path {
inline constexpr std::uint8_t kUsualHopLimit = 64;
constexpr std::uint64_t make(std::uint8_t service_level, std::uint32_t flow_label,
                             std::uint8_t traffic_class, std::uint8_t hop_limit,
                             std::uint8_t gid_index) {
  return (flow_label & 0xfffff) | std::uint64_t{traffic_class} << 20 |
         std::uint64_t{service_level & 0xfu} << 28 |
         std::uint64_t{static_cast<std::uint8_t>(hop_limit ^ kUsualHopLimit)} << 32 |
         std::uint64_t{gid_index & 3u} << 40;
}
/// As in a routing header, below the version.
constexpr std::uint32_t class_and_label(std::uint64_t p) {
  return static_cast<std::uint32_t>(p & 0xfffffff);
}
constexpr std::uint8_t service_level(std::uint64_t p) {
  return static_cast<std::uint8_t>(p >> 28 & 0xf);
}
constexpr std::uint8_t hop_limit(std::uint64_t p) {
  return static_cast<std::uint8_t>((p >> 32) ^ kUsualHopLimit);
}
/// Of the sender's port, by which its datagram left.
constexpr std::uint8_t gid_index(std::uint64_t p) { return static_cast<std::uint8_t>(p >> 40 & 3); }
}  // namespace path

/// Slot header, from the low bits: lap 16 | kind 3 | invalidates 1 | flags 4 | inline length 6 |
/// path 1 | group 1 | immediate 32.
namespace header {
inline constexpr std::uint32_t kImmediate = 1, kSolicited = 2, kWriteImmediate = 4, kGlobal = 8;
/// The immediate is a key of the receiver's that ends with the message. Beside the kind, so that
/// one comparison tells the simplest messages from all others.
inline constexpr std::uint32_t kInvalidates = 16;
/// The slot names the group, or says the path. The length of what lies in a slot needs no more than
/// six bits.
inline constexpr std::uint32_t kToGroup = 32, kPath = 64;
constexpr std::uint64_t make(std::uint32_t lap, SlotKind kind, std::uint32_t flags,
                             std::uint32_t inline_length, std::uint32_t immediate) {
  return std::uint64_t{immediate} << 32 | std::uint64_t{flags & kToGroup} << 26 |
         std::uint64_t{flags & kPath} << 24 | std::uint64_t{inline_length & 0x3f} << 24 |
         std::uint64_t{flags & 0xf} << 20 | std::uint64_t{flags & kInvalidates} << 15 |
         std::uint64_t{static_cast<std::uint8_t>(kind)} << 16 | (lap & 0xffff);
}
/// What is added to a header made without them: where the message goes, and its length in the slot.
constexpr std::uint64_t place(std::uint32_t lap, std::uint32_t inline_length) {
  return std::uint64_t{inline_length} << 24 | (lap & 0xffff);
}
constexpr std::uint32_t lap(std::uint64_t h) { return static_cast<std::uint32_t>(h & 0xffff); }
/// Of what stands in `line` of a ring of 1 << log lines.
constexpr std::uint32_t lap_of(std::uint64_t line, std::uint32_t log) {
  return (static_cast<std::uint32_t>(line >> log) + 1) & 0xffff;
}
constexpr SlotKind kind(std::uint64_t h) { return static_cast<SlotKind>((h >> 16) & 7); }
constexpr bool invalidates(std::uint64_t h) { return ((h >> 19) & 1) != 0; }
/// kInline, and ends no key.
constexpr bool is_simple(std::uint64_t h) { return ((h >> 16) & 0xf) == 0; }
/// The same of a SEND, without a routing header, on the usual path.
constexpr bool is_plain(std::uint64_t h) {
  return (h >> 16 & (0xf | (kWriteImmediate | kGlobal) << 4 | kPath << 8)) == 0;
}
/// The same of kLines.
constexpr bool is_plain_long(std::uint64_t h) {
  return (h >> 16 & (0xf | (kWriteImmediate | kGlobal) << 4 | kPath << 8)) ==
         static_cast<std::uint8_t>(SlotKind::kLines);
}
/// kInline, ends no key, and of that lap: they stand side by side.
constexpr bool is_simple_of(std::uint64_t h, std::uint32_t lap) {
  return (h & 0xfffff) == (lap & 0xffff);
}
/// kLines, ends no key, and of that lap.
constexpr bool is_long_of(std::uint64_t h, std::uint32_t lap) {
  return (h & 0xfffff) ==
         (std::uint64_t{static_cast<std::uint8_t>(SlotKind::kLines)} << 16 | (lap & 0xffff));
}
/// kPlaced, of a SEND that ends no key, and of that lap.
constexpr bool is_placed_of(std::uint64_t h, std::uint32_t lap) {
  return (h & (0xfffff | std::uint64_t{kWriteImmediate} << 20)) ==
         (std::uint64_t{static_cast<std::uint8_t>(SlotKind::kPlaced)} << 16 | (lap & 0xffff));
}
/// kPack, and of that lap.
constexpr bool is_pack_of(std::uint64_t h, std::uint32_t lap) {
  return (h & 0xfffff) ==
         (std::uint64_t{static_cast<std::uint8_t>(SlotKind::kPack)} << 16 | (lap & 0xffff));
}
constexpr std::uint32_t flags(std::uint64_t h) { return static_cast<std::uint32_t>(h >> 20) & 0xf; }
constexpr std::uint32_t inline_length(std::uint64_t h) {
  return static_cast<std::uint32_t>(h >> 24) & 0x3f;
}
constexpr bool is_to_group(std::uint64_t h) { return ((h >> 31) & 1) != 0; }
constexpr bool has_path(std::uint64_t h) { return ((h >> 30) & 1) != 0; }
constexpr std::uint32_t immediate(std::uint64_t h) { return static_cast<std::uint32_t>(h >> 32); }
}  // namespace header

/// The stream ring: a byte ring in the sender's segment, positions are free running. It starts
/// small and is exchanged for the large size, while empty, at the first message that is worth it.
inline constexpr std::uint32_t kSmallStreamLog = 14;
inline constexpr std::uint32_t kLargeStreamLog = 18;

/// Offset and size of a piece of the segment in one word: the offset is a multiple of 64.
namespace extent {
constexpr std::uint64_t make(std::uint64_t offset, std::uint32_t log) { return offset | log; }
constexpr std::uint64_t offset(std::uint64_t w) { return w & ~std::uint64_t{63}; }
constexpr std::uint32_t log(std::uint64_t w) { return static_cast<std::uint32_t>(w & 63); }
}  // namespace extent

/// What a queue pair's attention word asks of those who send to it.
enum Attention : std::uint32_t {
  kPolled = 0,   ///< its ring is polled directly: the message alone is enough
  kDoorbell = 1  ///< ring its doorbell, and wake who waits if the CQ is armed
};

/// Work for the process that owns the target memory (tier D). kPlace and kFault stand in the queue
/// pair's record, one at a time, for its service thread; the others in a ring of requests.
enum class ServiceOp : std::uint32_t {
  kNone = 0,
  kWrite = 1,  ///< copy `length` bytes from the requester's stream ring to (rkey, address)
  kRead = 2,   ///< copy (rkey, address) to the responder's stream ring
  kCompareSwap = 3,
  kFetchAdd = 4,
  kPlace = 5,  ///< copy `bounce` into posted receive number `address`, from its byte `swap` on
  /// The requester met a remote error: fail, raise the event in `length`. For the explanation, what
  /// it had asked for: rkey, address, `swap` bytes, `compare_add` = status << 32 | opcode.
  kFault = 6,
  kStore = 7  ///< write `operand` as one word
};

/// One request in the ring.
struct alignas(kCacheLine) ServiceRequest {
  std::uint32_t op;  ///< ServiceOp
  std::uint32_t rkey;
  std::uint64_t address;
  std::uint64_t length;
  /// Position of its first byte in the stream ring, of the one side or the other.
  std::uint64_t at;
  std::uint64_t operand;  ///< what is compared, added or stored
  std::uint64_t swap;
};

/// The stream rings of requests are byte rings; positions in them only grow.
inline constexpr std::uint32_t kRequestStreamBytes = 128u << 10;

/// What a requester asks for, in order; in its own segment, from its first request on until it
/// detaches. The words of the first line are its own progress.
struct RequestRing {
  static constexpr std::uint32_t kRequests = 64;
  alignas(kCacheLine) std::atomic<std::uint64_t> asked;  ///< number of the last request
  std::atomic<std::uint64_t> produced;     ///< position up to which bytes of WRITEs are there
  std::atomic<std::uint64_t> consumed;     ///< up to which those of READs were taken
  std::atomic<std::uint64_t> stream_ring;  ///< its offset; 0: none yet
  /// Where its thread ran when it published last: whoever serves there keeps it from going on.
  std::atomic<std::int32_t> processor;
  /// Requests in a row that came right behind the answer to the one before, or beside others.
  std::atomic<std::uint32_t> in_a_row;
  ServiceRequest requests[kRequests];  ///< number n stands at n % kRequests
};

/// What has become of them; in the responder's segment.
struct RequestAnswers {
  alignas(kCacheLine)
      std::atomic<std::uint64_t> life;     ///< the tx_session that the rest is about; written last
  std::atomic<std::uint64_t> answered;     ///< number of the last request that is done
  std::atomic<std::uint64_t> refused;      ///< number << 8 | ibv_wc_status of the one that failed
  std::atomic<std::uint64_t> produced;     ///< position up to which bytes of READs are there
  std::atomic<std::uint64_t> consumed;     ///< up to which those of WRITEs were taken
  std::atomic<std::uint64_t> stream_ring;  ///< its offset; 0: none yet
  /// A thread is at it, and will look once more before it leaves.
  std::atomic<std::uint32_t> attended;
  std::atomic<std::uint32_t> by_poll;  ///< the last answer is from a thread of the program
  alignas(kCacheLine) std::uint64_t values[RequestRing::kRequests];  ///< what atomics found
};

/// Who is meant by an XRC domain: a file's device and inode, or a process and a number of its own.
struct XrcDomainId {
  std::uint64_t high;
  std::uint64_t low;
};

/// Both halves of a queue pair. Each line has one writer and one kind of reader.
struct QpRecord {
  // --- line 0: what a sender must know; changes rarely
  alignas(kCacheLine) std::atomic<std::uint64_t> accepts;  ///< session while RTR or RTS, else 0
  std::atomic<std::uint32_t> attention;
  std::uint32_t qpn;
  std::uint32_t dest_qpn;
  std::uint32_t rq_psn;
  std::uint32_t access;  ///< qp_access_flags
  std::uint32_t pd;
  std::uint32_t cq;          ///< number of the receive CQ, and of its doorbells
  std::uint32_t cq_bit;      ///< this QP's bell in it
  std::uint32_t rq_entries;  ///< power of two; for tools
  std::uint16_t rq_max_sge;
  std::uint8_t min_rnr_timer;
  std::uint8_t max_dest_rd_atomic;
  std::atomic<std::uint64_t>
      rq_credits;         ///< where Credit[places] lies and how many, see namespace extent; 0 until
                          ///< a receive is posted (then, after it, ReceiveSge[places][rq_max_sge])
  std::uint32_t send_cq;  ///< that of the send CQ: who polls there serves requests too

  // --- line 1: the send lock, which is also the word that deregistration watches
  /// Odd while the owner may be touching peers' memory; changes at least once per copied chunk.
  /// With kUnfenced (a thread domain's) it becomes odd by a plain store: whoever looks must make
  /// all threads pass a fence first.
  static constexpr std::uint64_t kUnfenced = std::uint64_t{1} << 63;
  alignas(kCacheLine) std::atomic<std::uint64_t> active;
  // Its owner's counts, which tools see too; on the line that the lock writes.
  std::uint64_t posted;       ///< work requests ever posted to the send queue
  std::uint64_t sent_bytes;   ///< of those done, in either direction
  std::uint64_t undone;       ///< of those posted: they wait, or were no success
  std::uint32_t polled_seen;  ///< `polled`, when its owner looked last

  // --- line 2: where the peer finds what we send; changes rarely
  /// The receiver's session << 32 | our own generation; 0: nothing to read here (any more).
  alignas(kCacheLine) std::atomic<std::uint64_t> tx_session;
  /// The ring in which the line stands that it takes next, or an older one: offset and log of
  /// lines, see namespace extent.
  std::atomic<std::uint64_t> ring;
  std::atomic<std::uint64_t> stream_ring;  ///< the stream ring, see namespace extent
  /// Of what it sends us: offset of its requests' RequestAnswers; 0 until it first asked.
  std::atomic<std::uint64_t> answers;
  std::uint32_t sq_psn;
  // For tools:
  std::atomic<std::uint32_t> errors;  ///< completions that were no success
  std::uint32_t sq_entries;

  // --- line 3: how far we have consumed what the peer sends, and our answers to its service
  // requests
  alignas(kCacheLine) std::atomic<std::uint64_t> lines_taken;  ///< number of the line that is next
  std::atomic<std::uint64_t> consumed;                         ///< receives completed, for tools
  std::atomic<std::uint64_t> stream_consumed;                  ///< stream bytes copied out
  std::atomic<std::uint64_t> answered;  ///< sequence of the last served request
  std::uint32_t answer_status;          ///< ibv_wc_status
  std::uint32_t refused;  ///< it ended because the memory of a receive is not what it was
  /// Of what the peer sends, the messages that have their receive of the shared queue.
  std::atomic<std::uint64_t> served;
  std::uint64_t received_bytes;  ///< for tools

  // --- line 4: our stream's progress, and our request to the peer's service thread
  alignas(kCacheLine) std::atomic<std::uint64_t> stream_produced;
  std::atomic<std::uint64_t> asked;  ///< sequence of the request below
  std::uint32_t op;                  ///< ServiceOp
  std::uint32_t rkey;
  std::uint64_t address;
  std::uint64_t length;
  std::uint64_t compare_add;
  std::uint64_t swap;
  std::atomic<std::uint64_t> requests;  ///< offset of our RequestRing; 0: we have asked nothing
  // --- line 5
  alignas(kCacheLine) std::uint64_t bounce;  ///< offset of our bytes, for kPlace
  std::uint64_t srq;                         ///< offset of its SrqRecord; 0: receives of its own
  std::uint32_t type;                        ///< ibv_qp_type, or one of those below
  std::uint32_t qkey;                        ///< of UD
  /// Of an endpoint (endpoint.hpp): the number of the UD queue pair whose half it is; else 0.
  std::uint32_t speaks_for;
  /// Of a UD queue pair: the table index + 1 of the first endpoint that leads to it; of an
  /// endpoint: the next of those that lead to the same queue pair, or that leave the same process.
  std::uint32_t endpoint_link;
  std::uint32_t device;  ///< number of its device
  /// For whoever asks why it does not answer: memory, or numbers, for what was asked are lacking.
  std::uint32_t lacks;
  /// Of an XRC target, of its handles, and of an XRC shared receive queue.
  XrcDomainId domain;
  // For tools, and for whoever asks why it does not answer; of an XRC target also for those who
  // have it open:
  std::uint32_t state;  ///< ibv_qp_state
  std::uint32_t told;   ///< of an XRC target: number of asynchronous events << 8 | the last's type

  /// A shared receive queue of XRC, which peers find by its number like a queue pair.
  static constexpr std::uint32_t kXrcQueue = 0x100;
  /// Says that this process has the XRC target `dest_qpn` open.
  static constexpr std::uint32_t kXrcOpened = 0x101;

  // --- line 6: written by whoever polls the send CQ, read by who posts
  /// Requests of the send queue whose completions, or later ones, were polled; as posted, cut.
  alignas(kCacheLine) std::atomic<std::uint32_t> polled;
};
static_assert(sizeof(QpRecord) == 7 * kCacheLine);

/// The doorbell file, as it is without limits.
struct Doorbells {
  DoorbellBlock service;   ///< QP table index: this QP has a request for the service thread
  DoorbellBlock cq_wake;   ///< CQ number: raise its event if it is still armed
  DoorbellBlock requests;  ///< QP table index: requests wait in its peer's ring
  /// Per CQ: QPs of it that have messages. A page each, for the first SegmentHeader::cq_capacity.
  alignas(sizeof(CqDoorbells)) CqDoorbells cqs[kMaxCqs];

  static constexpr std::uint64_t bytes_for(std::uint32_t cqs) noexcept {
    return sizeof(Doorbells) - std::uint64_t{kMaxCqs - cqs} * sizeof(CqDoorbells);
  }
};

/// A CQ's armed word, read by senders after they rang its doorbell.
struct CqRecord {
  static constexpr std::uint32_t kIdle = 0, kArmed = 1, kArmedSolicited = 2;
  /// Its event is under way, and comes at its time: to a sender as idle.
  static constexpr std::uint32_t kHeld = 3;
  /// One of these, and while it is not idle where its channel's record stands.
  std::atomic<std::uint32_t> armed;
  /// It has been armed since it was made: until then whoever sends to it looks no further, and has
  /// no fence between the doorbell and that look (receiving.md).
  std::atomic<std::uint32_t> has_events;

  static constexpr std::uint32_t kKindBits = 8;
  static constexpr std::uint32_t kind(std::uint32_t word) { return word & 0xff; }
  /// Number + 1; 0: nobody sleeps there.
  static constexpr std::uint32_t channel(std::uint32_t word) { return word >> kKindBits; }
};

}  // namespace verbatim::shm
