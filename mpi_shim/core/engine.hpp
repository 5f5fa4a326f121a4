// SPDX-License-Identifier: BSD-2-Clause
// Point to point: what the API's functions and the collectives call. The big lock is held by every
// caller. How messages travel is said at the head of engine.cpp.
//
// Errors are those of MPI (MPI_SUCCESS, MPI_ERR_NO_MEM, MPI_ERR_TRUNCATE, MPI_ERR_PROC_ABORTED ...);
// arguments were checked by the caller.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/datatype.hpp"

namespace vmpi {

/// Which of a communicator's contexts.
enum class Plane : std::uint8_t { kProgram, kCollective };
/// In the tag of a message of kCollective that not all ranks of an intracommunicator have a part in, or
/// that the first ranks of the groups of an intercommunicator exchange for them.
inline constexpr int kApart = 0x40000000;

enum class SendMode : std::uint8_t { kStandard, kSynchronous, kReady, kBuffered };

/// What a program waits for. Requests of the engine's own callers live on their stacks and have no
/// handle; those of the program are in the table of requests.
struct Request {
  enum class Kind : std::uint8_t { kNone, kSend, kReceive, kGeneralized, kSchedule, kDone };

  std::uint32_t handle = 0;
  Kind kind = Kind::kNone;
  bool is_persistent = false;
  bool is_active = false;   ///< begun and not waited for yet
  bool is_complete = true;  ///< written by progress
  bool is_cancelled = false;
  bool is_waited_for = false;  ///< by who has begun it: this process polls until it is complete
  bool is_shared = false;      ///< of all sends that had gone before there was one (sent_request)
  bool is_freed = false;       ///< MPI_Request_free came first: it goes when it completes
  int error = MPI_SUCCESS;

  // What was asked.
  SendMode mode = SendMode::kStandard;
  Plane plane = Plane::kProgram;
  int peer = MPI_PROC_NULL;  ///< rank in the communicator, MPI_ANY_SOURCE
  int tag = 0;
  void* buffer = nullptr;
  std::int64_t count = 0;
  Datatype* type = nullptr;  ///< holds a reference while active or persistent
  Comm* comm = nullptr;      ///< likewise

  // What came of it (a receive).
  int source = MPI_PROC_NULL;
  int received_tag = MPI_ANY_TAG;
  std::uint64_t bytes = 0;

  // The engine's.
  Request* next = nullptr;
  Request* previous = nullptr;
  std::uint64_t sequence = 0;
  void* protocol = nullptr;  ///< what the message's protocol keeps until completion
};

/// A message that was found by a matched probe and left its queue (MPI_Message).
struct Message;

struct Probed {
  int source;
  int tag;
  std::uint64_t bytes;
};

/// Sets `request` up from its "what was asked" fields and begins. MPI_PROC_NULL completes at once.
[[nodiscard]] int begin_send(Request& request) noexcept;
void begin_receive(Request& request) noexcept;
/// Of a matched message.
void begin_matched_receive(Request& request, Message& message) noexcept;

/// Set while collectives are under way that progress has to move on (coll/schedule.hpp).
extern bool (*advance_schedules)() noexcept;

/// Set by who must do something while calls wait: called when nothing has moved, now and then. The
/// big lock is held, and may be given up in it.
extern void (*wait_in_vain)() noexcept;

/// MPI_Finalize's part of teams (coll/host_team.hpp); set while there are any.
extern void (*drop_host_teams)() noexcept;

/// Moves everything on that can be moved; never sleeps. True: something moved.
bool progress() noexcept;
/// Progresses until `done(context)`, giving the processor away by the policy of VERBATIM_WAIT, and
/// the big lock now and then.
void wait_until(bool (*done)(void*), void* context) noexcept;
/// Progresses until `done(context)` by what others store in memory, of which nothing tells: it never
/// sleeps for events, whatever the policy is.
void wait_for_memory(bool (*done)(void*), void* context) noexcept;
/// Until the request is complete; returns its error.
int wait_for(Request& request) noexcept;
/// Sends and receives at once. If the send fails the receive is given up.
void exchange(Request& outgoing, Request& incoming) noexcept;

/// A receive that nothing has matched yet, a send that the peer has not heard of. True: it will
/// complete as cancelled.
bool cancel(Request& request) noexcept;

/// Whether such a message waits; with `take` it leaves the queue and becomes `*message`.
[[nodiscard]] bool probe(Comm& comm, Plane plane, int source, int tag, Probed& out, bool take,
                         Message** message) noexcept;

/// Blocking forms for collectives, on the stack. An error of the peer's death is the answer.
[[nodiscard]] int send_to(Comm& comm, Plane plane, int dest, int tag, const void* buffer,
                          std::int64_t count, Datatype& type) noexcept;
[[nodiscard]] int receive_from(Comm& comm, Plane plane, int source, int tag, void* buffer,
                               std::int64_t count, Datatype& type) noexcept;
[[nodiscard]] int exchange(Comm& comm, Plane plane, int dest, int send_tag, const void* send_buffer,
                           std::int64_t send_count, Datatype& send_type, int source,
                           int receive_tag, void* receive_buffer, std::int64_t receive_count,
                           Datatype& receive_type) noexcept;

/// MPI_Init's and MPI_Finalize's parts. `start_engine` opens the device, publishes our address by
/// the bootstrap and reads none: connections are made on demand; null, or why it cannot be.
/// `stop_engine` ends when all that this process has sent was taken, and all ranks have come to it.
[[nodiscard]] const char* start_engine() noexcept;
void stop_engine() noexcept;

/// The part of it that opens the device. Null, or why it cannot be.
[[nodiscard]] const char* open_device() noexcept;
/// How calls wait, by the processes that share this host's processors now.
void choose_waiting() noexcept;

/// Until the others of a communicator have what was sent to them, or are dead; or until then (ns).
void drain_to(const Comm& comm, std::int64_t until) noexcept;

/// Memory that peers map: MPI_Alloc_mem, MPI_Free_mem. Null: no memory.
[[nodiscard]] void* alloc_mapped(std::uint64_t bytes) noexcept;
[[nodiscard]] bool free_mapped(void* memory) noexcept;

}  // namespace vmpi
