// SPDX-License-Identifier: BSD-2-Clause
// What the supervisor asks two measuring processes, the near and the far end, to do, and what they
// answer. One request is one block: a few milliseconds of one operation at one size. Both ends get
// the same request; the near one holds the clock. Between blocks both sleep in a read, so that
// whatever else is measured in turn (another pair, another library) has the cores to itself.
#pragma once

#include <cstdint>
#include <limits>

#include "perf/support/pace.hpp"

namespace verbatim::perf {

enum class Kind : std::uint32_t {
  kHandover,       // floor: one cache line there and back
  kCopyPingPong,   // floor: `size` bytes and a flag there and back, by `mover`
  kEventPingPong,  // floor: both ends asleep, woken by an eventfd, there and back
  kEmptyCalls,     // floor: calls of a verb that does nothing, through a pointer in its object
  kLocalCopy,      // floor: memcpy on one core, source and destination its own
  kSingleCopy,     // floor: one copy to or from the peer's memory, by `mover`, the peer idle
  kTrain,          // freshly written buffers moved in a row, by `mover`: bandwidth
  kConnect,        // set-up: endpoint over RC, not timed
  kPingPong,       // send/recv, or write with the far side polling memory, there and back
  kCompletion,     // post one, poll its completion: write, read, atomics
  kStream,         // many in flight, perftest's way: message rate and bandwidth
  kSleeping,     // as kCompletion (and kSend to posted receives), the far process asleep in pause()
  kConnectMany,  // `iterations` QPs created and connected; timed
  kUseMany,      // each of them carries `batch` messages both ways
  kInTurn,       // `iterations` SENDs, one to each of them in turn, many under way
  kEmptyPoll,    // polls of an empty CQ that all those QPs share
  kAllocate,  // a block of `size` bytes got, each page written, given back: by vbt_alloc, or (mover
              // kMapped) mmap
  kBuffers,   // `batch` buffers got and given back: of a pool, or (mover kMapped) malloc's
  kPages,  // both ends' areas of `memory` get new pages, of `size` bytes each; extra[0]: the share
           // of the near end's that are huge
  kRegisterMany,  // `iterations` small regions registered and kept
  kWriteMany,     // a WRITE at a time between regions of those, one after the other
  kPrepareCrowd,  // set-up of a hub and its peers: what each has by itself, not timed
  kJoinCrowd,     // the hub connects with `batch` peers; timed
  kTalk,          // the hub and the peer `batch`: SENDs of 8 bytes there and back
  kThreads,   // `batch` threads of the near end WRITE through queues of their own; processor time
  kFloor,     // one of the other floors: see Floor
  kRegister,  // ibv_reg_mr and ibv_dereg_mr of `size` bytes; `batch` != 0: while the far end writes
              // to another region
};

/// Floors that no test is made of, by their numbers in the list of floors.
enum class Floor : std::uint32_t {
  kMemcpy,         // F2: one core, its own memory of any size; `batch` 1: past the caches
  kPipeline,       // F5: into a ring of shared chunks of `size` by one core, out of it by the other
  kDatagramSpin,   // F6: UDP over loopback there and back, both polling
  kDatagramBlock,  // F7: both asleep
  kDatagramPlain,  // F8: sent and received one at a time, by one core
  kDatagramTrains,  // F9: fifteen at once (UDP_SEGMENT, UDP_GRO)
  kFutex,           // F10: two processes wake each other by futexes, there and back
  kYield,           // F10: sched_yield
  kChecksum,        // F11: CRC-32 of `size` bytes; `batch` 1: by carry-less multiplication
  kSum              // F13: floats of two sources added into a third place
};

enum class Operation : std::uint32_t { kSend, kWrite, kRead, kFetchAdd, kCompareSwap };
enum class Memory : std::uint32_t { kShared, kPrivate };  // vbt_alloc_shared, malloc
enum class Mover : std::uint32_t { kMapped, kCma, kVerbs };

/// By which calls a program posts its sends, and polls.
enum class Calls : std::uint32_t {
  kClassic,  // ibv_post_send, ibv_poll_cq; a request is prepared once and posted again and again
  kFilled,   // the same, but each request is filled in when it is posted
  kBuilt,    // ibv_wr_*, ibv_poll_cq
  kCursor    // ibv_post_send, ibv_start_poll
};

/// What a program does that finds nothing (kPingPong of SENDs).
enum class Waiting : std::uint32_t {
  kSpin,     // looks again, as its Pace says
  kYield,    // gives the processor away first
  kEvent,    // sleeps in ibv_get_cq_event: kEvents
  kAdaptive  // looks again for some time, then sleeps: kEvents
};

/// Through which queues small messages go (kPingPong, kStream).
enum class Service : std::uint32_t {
  kReliable,  // RC
  kEvents,    // RC, who waits may sleep in ibv_get_cq_event
  kDomain,    // RC, queue pair and completion queues of a thread domain
  kShared,    // RC into a shared receive queue
  kDatagram   // UD
};

const char* name_of(Operation operation);
const char* name_of(Service service);
const char* name_of(Calls calls);
const char* name_of(Waiting waiting);
const char* name_of(Memory memory);

struct Request {
  Kind kind{};
  Operation operation = Operation::kSend;
  Memory memory = Memory::kShared;
  Mover mover = Mover::kVerbs;
  Pace pace = Pace::kTight;
  Calls calls = Calls::kClassic;
  Service service = Service::kReliable;
  Waiting waiting = Waiting::kSpin;
  Floor floor{};
  std::uint32_t batch = 1;         // work requests per posted list
  std::uint32_t stamped = 0;       // time every operation into the shared histogram
  std::uint32_t read_only = 0;     // kHandover: who polls the line may not write it
  std::uint32_t from_one = 0;      // kInTurn: datagrams, all from the first queue pair
  std::uint32_t asleep = 0;        // kSleeping: the far process is in pause(), not polling
  std::uint32_t counts_calls = 0;  // count system calls, which takes time
  std::uint64_t size = 8;
  std::uint64_t iterations = 1;
};

struct Reply {
  std::int32_t error = 0;        // errno of what failed; `message` says what
  std::int32_t unavailable = 0;  // the machine does not offer it; `message` may say why
  double elapsed_ns = 0;         // of the whole block
  double operations = 0;         // one-way messages in it
  double bytes = 0;              // payload of them
  double ns_per_stamp = 0;       // one histogram unit; 0: not stamped
  double waited_ns = 0;  // how long either end was runnable but not running: others wanted its core
  double cpu_ns = 0;     // processor time of both ends, with all their threads
  double switches = 0;   // their context switches
  double system_calls = std::numeric_limits<double>::quiet_NaN();  // of the threads that measure
  double extra[4] = {};
  char message[200] = {};

  double ns_per_operation() const { return elapsed_ns / operations; }
  double gigabytes_per_second() const { return bytes / elapsed_ns; }
  double million_per_second() const { return 1e3 * operations / elapsed_ns; }
  /// More than a hundredth of the block went to somebody else.
  bool disturbed() const { return waited_ns > elapsed_ns / 100; }
};

inline constexpr std::uint64_t kMaxSize = std::uint64_t{4} << 20;
/// One end's outgoing, or incoming, buffers: a train of the largest size.
inline constexpr std::uint64_t kAreaBytes = 2 * kMaxSize;

/// Messages of one train: at least 2, at most 64, together about 2 MiB, so that what the other core
/// has just written is still in its caches, as it is when a program hands over a result.
constexpr std::uint64_t train_length(std::uint64_t size) {
  const std::uint64_t length = (std::uint64_t{2} << 20) / (size == 0 ? 1 : size);
  return length < 2 ? 2 : length > 64 ? 64 : length;
}

}  // namespace verbatim::perf
