// SPDX-License-Identifier: BSD-2-Clause
// A collective as a list of steps, which the engine's progress goes through: what nonblocking
// collectives are, and those whose speed nobody counts on. A step is a message that begins, a copy or
// a combination that is done at once, or a fence, behind which nothing begins before all messages
// are complete. Which steps there are is known at the start: only data decide nothing.
//
// It holds what it names (types, the operation, communicators) until it ends. The big lock is held by
// every caller; while a program's operation is called it is given up, and no other thread advances
// any schedule meanwhile.
#pragma once

#include <mpi.h>

#include <cstdint>

#include "mpi_shim/coll/slices.hpp"
#include "mpi_shim/coll/temporary.hpp"
#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/op.hpp"

namespace vmpi {

class Schedule {
 public:
  /// Messages go over `comm`, with a tag that its collectives have, or one of the program's.
  Schedule(Comm& comm, Plane plane, int tag) noexcept;
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // To build it. Without memory nothing more is added, and is_good() says so.

  [[nodiscard]] Comm& comm() const noexcept { return *comm_; }
  [[nodiscard]] bool is_good() const noexcept { return is_good_; }
  void fail() noexcept { is_good_ = false; }
  /// Steps from here on go over the local communicator of an intercommunicator, by a new tag of it,
  /// and over the schedule's own again.
  void use_local() noexcept;
  void use_own() noexcept;
  void use_tag(int tag) noexcept { tag_ = tag; }
  void send(int dest, const Typed& from) noexcept;
  void receive(int source, const Typed& to) noexcept;
  void fence() noexcept;
  void copy(const Typed& from, const Typed& to) noexcept;
  /// inout = in op inout.
  void combine(const Op& op, const Typed& in, void* inout) noexcept;
  /// Room that lasts until the end; null: no memory.
  [[nodiscard]] void* elements(const Datatype& type, std::int64_t count) noexcept;
  [[nodiscard]] unsigned char* bytes(std::int64_t count) noexcept;

  /// Called with what the schedule ended with, before the request completes, or when it is abandoned;
  /// returns the error.
  using AtEnd = int(void* context, int error) noexcept;
  void at_end(AtEnd* function, void* context) noexcept {
    at_end_ = function;
    context_ = context;
  }
  /// The request tells of the last receive: source, tag and bytes.
  void tell_of_receive() noexcept { tells_of_receive_ = true; }

 private:
  friend int start(Schedule* schedule, Request& request) noexcept;
  friend void abandon(Schedule* schedule) noexcept;
  friend void drop_schedules() noexcept;
  friend bool advance_all() noexcept;

  enum class Kind : std::uint8_t { kSend, kReceive, kCopy, kCombine, kFence };
  struct Step {
    Kind kind;
    Plane plane;
    int peer;
    int tag;
    Comm* comm;
    Typed from;
    Typed to;
  };

  void add(const Step& step) noexcept;
  [[nodiscard]] void* keep(void* memory) noexcept;
  [[nodiscard]] bool prepare() noexcept;
  void begin(const Step& step) noexcept;
  void do_steps() noexcept;
  void look_for_error() noexcept;
  [[nodiscard]] bool are_messages_complete() noexcept;
  /// True: something moved. The schedule has ended when `is_over_`.
  bool advance() noexcept;
  void end() noexcept;

  Comm* comm_;
  Comm* used_;
  Plane plane_;
  int own_tag_;
  int tag_;
  bool is_good_ = true;
  bool is_ended_ = false;  ///< by an error: what is under way is given up
  bool is_over_ = false;
  bool tells_of_receive_ = false;
  Array<Step> steps_;
  std::size_t next_step_ = 0;
  Request* requests_ = nullptr;
  std::size_t begun_ = 0;
  std::size_t complete_ = 0;
  std::uint32_t looks_in_vain_ = 0;
  Array<void*> memory_;
  Op* op_ = nullptr;
  Outcome outcome_;
  AtEnd* at_end_ = nullptr;
  void* context_ = nullptr;
  Request* request_ = nullptr;
  Schedule* next_ = nullptr;
};

/// Of one collective. Null: no memory.
[[nodiscard]] Schedule* make_schedule(Comm& comm) noexcept;
/// Of messages of the program. Null: no memory.
[[nodiscard]] Schedule* make_program_schedule(Comm& comm) noexcept;
void destroy(Schedule* schedule) noexcept;
/// One that was not started, for want of memory.
void abandon(Schedule* schedule) noexcept;

/// Begins a schedule, whose end is that of `request` (its communicator is the caller's). The schedule
/// is destroyed at its end, or here when there is no memory for it (MPI_ERR_NO_MEM).
[[nodiscard]] int start(Schedule* schedule, Request& request) noexcept;

}  // namespace vmpi
