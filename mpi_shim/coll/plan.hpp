// SPDX-License-Identifier: BSD-2-Clause
// What one rank does in a collective, as a list of steps: a message that begins, a copy or a
// combination that is done at once, or a fence, behind which nothing begins before all messages are
// complete. Messages between two ranks match in the order of their steps. Which steps there are is
// known at the start: data decide nothing.
//
// A plan knows ranks, memory and types, but no communicator and no engine: the engine runs it
// (run.hpp, schedule.hpp), and a simulation runs those of all ranks in one process
// (perf/sim). A small one takes no memory of the heap.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mpi_shim/coll/slices.hpp"
#include "mpi_shim/core/array.hpp"
#include "mpi_shim/core/nodes.hpp"
#include "mpi_shim/core/op.hpp"

namespace vmpi {

struct Step {
  enum class Kind : std::uint8_t { kSend, kReceive, kCopy, kCombine, kFence };
  Kind kind;
  std::uint8_t route;  ///< number of the one that it goes by, from 0
  int peer;
  Typed from;  ///< of what is sent, copied and combined
  Typed to;    ///< of what is received and copied; where a combination goes, by its buffer

  [[nodiscard]] bool has_from() const noexcept {
    return kind == Kind::kSend || kind == Kind::kCopy || kind == Kind::kCombine;
  }
  [[nodiscard]] bool has_to() const noexcept {
    return kind == Kind::kReceive || kind == Kind::kCopy;
  }
};

struct Costs;

class Plan {
 public:
  Plan(int rank, int size) noexcept : rank_(rank), size_(size) {}
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  /// Of its ranks; null: there is nothing to compose.
  [[nodiscard]] const Nodes* nodes() const noexcept { return nodes_; }

  // To build it. Without memory nothing more is added, and is_good() says so.

  [[nodiscard]] bool is_good() const noexcept { return is_good_; }
  void fail() noexcept { is_good_ = false; }
  /// They outlive the building of it.
  void lie_on(const Nodes* nodes) noexcept { nodes_ = nodes; }
  /// What algorithms are chosen by: what messages cost, and whether all go from node to node.
  void go_by(const Costs& costs, bool is_apart) noexcept {
    costs_ = &costs;
    is_apart_ = is_apart;
  }
  /// Null: nobody has said.
  [[nodiscard]] const Costs* costs() const noexcept { return costs_; }
  [[nodiscard]] bool is_apart() const noexcept { return is_apart_; }
  /// Steps from here on go by the next route: among other ranks, or by another tag.
  void take_route(int rank, int size) noexcept {
    rank_ = rank;
    size_ = size;
    nodes_ = nullptr;
    ++route_;
  }
  void send(int dest, const Typed& from) noexcept {
    has_messages_ = true;
    if (Step* const step = add(Step::Kind::kSend, dest)) set(step->from, from);
  }
  void receive(int source, const Typed& to) noexcept {
    has_messages_ = true;
    if (Step* const step = add(Step::Kind::kReceive, source)) set(step->to, to);
  }
  /// Of messages that have no bytes there is none: both ends know.
  void send_some(int dest, const Typed& from) noexcept {
    if (from.bytes() != 0) send(dest, from);
  }
  void receive_some(int source, const Typed& to) noexcept {
    if (to.bytes() != 0) receive(source, to);
  }
  void fence() noexcept {
    if (!has_messages_) return;
    has_messages_ = false;
    (void)add(Step::Kind::kFence, 0);
  }
  void copy(const Typed& from, const Typed& to) noexcept {
    Step* const step = add(Step::Kind::kCopy, 0);
    if (step == nullptr) return;
    set(step->from, from);
    set(step->to, to);
  }
  /// inout = in op inout. A plan has one operation.
  void combine(const Op& op, const Typed& in, void* inout) noexcept {
    op_ = &op;
    Step* const step = add(Step::Kind::kCombine, 0);
    if (step == nullptr) return;
    set(step->from, in);
    step->to.buffer = inout;
  }
  /// Room that lasts as long as the plan; null: no memory.
  [[nodiscard]] void* elements(const Datatype& type, std::int64_t count) noexcept;
  [[nodiscard]] unsigned char* bytes(std::int64_t count) noexcept;

  // To run it.

  [[nodiscard]] const Step* begin() const noexcept { return steps_; }
  [[nodiscard]] const Step* end() const noexcept { return steps_ + count_; }
  [[nodiscard]] std::size_t size_in_steps() const noexcept { return count_; }
  [[nodiscard]] const Op* op() const noexcept { return op_; }
  /// Messages that are under way together, at the most.
  [[nodiscard]] std::size_t most_messages() const noexcept;
  /// Bytes of memory beside the program's.
  [[nodiscard]] std::int64_t temporary_bytes() const noexcept { return temporary_; }

 private:
  friend class Among;

  static constexpr std::size_t kStepsHere = 12;
  static constexpr std::int64_t kBytesHere = 256;

  /// Null: no memory. What a kind of step does not use is not written.
  [[nodiscard]] Step* add(Step::Kind kind, int peer) noexcept {
    if ((count_ == capacity_ && !grow()) || !is_good_) return nullptr;
    Step* const step = steps_ + count_++;
    step->kind = kind;
    step->route = route_;
    step->peer = among_ == nullptr ? peer : peer == place_ ? stand_in_ : among_[peer];
    return step;
  }
  /// Word by word: a step is read at once, and a processor waits for a store that a wider load meets.
  static void set(Typed& place, const Typed& data) noexcept {
    place.buffer = data.buffer;
    place.count = data.count;
    place.type = data.type;
  }
  [[nodiscard]] bool grow() noexcept;

  int rank_;
  int size_;
  const int* among_ = nullptr;  ///< those that its steps name by their places; null: all
  int place_ = -1;              ///< of the one that another stands in for
  int stand_in_ = -1;
  const Nodes* nodes_ = nullptr;
  const Costs* costs_ = nullptr;
  bool is_apart_ = false;
  std::uint8_t route_ = 0;
  bool is_good_ = true;
  bool has_messages_ = false;  ///< since the last fence
  const Op* op_ = nullptr;
  std::size_t count_ = 0;
  std::size_t capacity_ = kStepsHere;
  std::int64_t taken_here_ = 0;
  std::int64_t temporary_ = 0;
  Array<void*> memory_;
  Step* steps_ = reinterpret_cast<Step*>(steps_here_);
  alignas(Step) unsigned char steps_here_[kStepsHere * sizeof(Step)];
  alignas(std::max_align_t) unsigned char bytes_here_[kBytesHere];
};

/// While it lives, the ranks of a plan are some of them, known by their places in an array, which outlives
/// it. REQUIRES: the plan's own rank is one of them, at `place`.
class Among {
 public:
  Among(Plan& plan, const int* ranks, int place, int size) noexcept
      : plan_(plan), rank_(plan.rank_), size_(plan.size_), nodes_(plan.nodes_) {
    plan.among_ = ranks;
    plan.rank_ = place;
    plan.size_ = size;
    plan.nodes_ = nullptr;
  }
  ~Among() {
    plan_.among_ = nullptr;
    plan_.place_ = -1;
    plan_.rank_ = rank_;
    plan_.size_ = size_;
    plan_.nodes_ = nodes_;
  }
  Among(const Among&) = delete;
  Among& operator=(const Among&) = delete;

  /// Instead of the one at `place`.
  void put(int place, int rank) noexcept {
    plan_.place_ = place;
    plan_.stand_in_ = rank;
  }

 private:
  Plan& plan_;
  int rank_;
  int size_;
  const Nodes* nodes_;
};

/// A rank that was counted on past the last one or back past the first, once: a division takes as long
/// as the rest of a small plan.
[[nodiscard]] inline int around(int rank, int size) noexcept {
  return rank < 0 ? rank + size : rank >= size ? rank - size : rank;
}

/// Elements from `begin` up to `end` of those that are at `at`.
[[nodiscard]] inline Typed part_of(const void* at, const Datatype& type, std::int64_t begin,
                                   std::int64_t end) noexcept {
  // By numbers: the buffer may be MPI_BOTTOM, of which no pointer is reckoned.
  return {reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(at) +
                                  static_cast<std::uintptr_t>(begin * type.extent)),
          end - begin, const_cast<Datatype*>(&type)};
}

/// One buffer as a run of bytes: where it is, or in a copy. REQUIRES: `take` before its bytes are
/// sent, `give` after those that came are complete.
class AsBytes {
 public:
  AsBytes(Plan& plan, const Typed& whole) noexcept;
  void take(Plan& plan) const noexcept;
  void give(Plan& plan) const noexcept;
  [[nodiscard]] Typed part(std::int64_t begin, std::int64_t end) const noexcept {
    return {at_ + begin, end - begin, &byte_type()};
  }

 private:
  Typed whole_;
  unsigned char* at_;
  bool is_copy_;
};

}  // namespace vmpi
