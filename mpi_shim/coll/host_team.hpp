// SPDX-License-Identifier: BSD-2-Clause
// The ranks of a communicator that all are on one host and read each other's memory: a collective is
// a few rounds, in which ranks write to their own block what the others then read there.
//
//   state | done | a line for each of 16 rounds: header, up to 56 bytes | of leaders: two more for each |
//   rooms for longer pieces
//
// Rounds are counted alike by all ranks. A header says which round a line is of, which collective,
// and how many bytes it moves in all; `done` says which rounds a rank has left, so that lines and
// rooms are written again when nobody reads them. Nobody writes to another's block. What a block of
// another says is its owner's word: it is copied before it is judged, lengths are always our own.
//
// The big lock is held by every caller, and given up while a rank waits.
#pragma once

#include <mpi.h>

#include <atomic>
#include <cstdint>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/coll/slices.hpp"
#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/op.hpp"
#include "runtime/sync/pause.hpp"
#include "runtime/sync/prefetch.hpp"

struct ibv_mr;

namespace vmpi {

struct alignas(64) HostLine {
  static constexpr std::uint32_t kInline = 56;

  /// Round (32 bits), collective (3), bytes (29, more being as many as fit).
  std::atomic<std::uint64_t> header;
  unsigned char bytes[kInline];
};
static_assert(sizeof(HostLine) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

struct HostBlock {
  static constexpr std::uint32_t kLines = 16;

  /// Twice the number of the team that it serves, from 1 on; one more when that one has left it.
  alignas(64) std::atomic<std::uint32_t> state;
  std::atomic<std::uint32_t> has_failed;  ///< its owner takes no part any more
  alignas(64) std::atomic<std::uint32_t> done;
  HostLine lines[kLines];
  HostLine up[kLines];    ///< what a leader says to other leaders (host_groups.hpp)
  HostLine down[kLines];  ///< and to those that it leads
  // Behind it are the rooms.
};

enum class HostKind : std::uint8_t {
  kBarrier,
  kBcast,
  kReduce,
  kAllreduce,
  kAllgather,
  kAlltoall,
  kOdd,  ///< of a leader: one that is not heard by all has said something else; the bytes are its rank
};

struct HostGroups;

class HostTeam {
 public:
  static constexpr int kMostRanks = 64;
  static constexpr std::uint32_t kRooms = 4;

  struct Shape {
    std::uint32_t rooms;  ///< a power of two, up to kLines
    std::uint32_t room;   ///< bytes of each
    [[nodiscard]] std::size_t bytes() const noexcept {
      return sizeof(HostBlock) + std::size_t{rooms} * room;
    }
  };

  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] const Comm& comm() const noexcept { return *comm_; }
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
  /// Bytes of a room.
  [[nodiscard]] std::uint32_t room() const noexcept { return shape_.room; }
  /// By which a message of so many bytes goes.
  [[nodiscard]] std::uint64_t piece_bytes(std::uint64_t bytes) noexcept {
    if (shape_.rooms == kRooms) return shape_.room;
    // Small against the message, so that it is read while it is written, and against what a round
    // costs not too small.
    while (step_ > kLeastPiece && step_ > bytes / 8) step_ /= 2;
    while (step_ < shape_.room && step_ < bytes / 8) step_ *= 2;
    return step_;
  }

  [[nodiscard]] const HostBlock& block_of(int rank) const noexcept { return *blocks_[rank]; }
  /// Null: every rank hears every other.
  [[nodiscard]] const HostGroups* groups() const noexcept { return groups_; }

  // What a rank says: reserve, fill line() or piece(), publish.

  /// Waits until the line of the next round, and its room, are read by nobody.
  [[nodiscard]] int reserve(bool with_room) noexcept {
    const std::uint32_t behind = (with_room ? shape_.rooms : HostBlock::kLines) - 1;
    if (static_cast<std::int32_t>(next_ - behind - all_done_) <= 0) [[likely]]
      return MPI_SUCCESS;
    return wait_for_readers(next_ - behind);
  }
  [[nodiscard]] bool can_reserve(bool with_room) noexcept;
  [[nodiscard]] unsigned char* line() noexcept {
    return own_->lines[next_ % HostBlock::kLines].bytes;
  }
  [[nodiscard]] unsigned char* piece() noexcept {
    return reinterpret_cast<unsigned char*>(own_) + place_of(next_);
  }
  void publish(HostKind kind, std::uint64_t bytes) noexcept {
    // Publishes the line and its room; pairs with the load in is_there().
    own_->lines[next_ % HostBlock::kLines].header.store(header(next_, kind, bytes),
                                                        std::memory_order_release);
    ++next_;
    verbatim::prefetch_to_write(&own_->lines[next_ % HostBlock::kLines]);
  }
  void prefetch_room(std::uint64_t bytes) noexcept {
    constexpr std::uint64_t kMost = 4096;
    const unsigned char* const at = piece();
    for (std::uint64_t i = 0; i < bytes && i < kMost; i += 64) verbatim::prefetch_to_write(at + i);
  }
  /// This rank has nothing to say in this round.
  void pass() noexcept { ++next_; }

  // What it hears, in the round that it is in.

  /// MPI_ERR_TRUNCATE: the rank says another number of bytes, or that it is in another collective.
  /// Any other error ends all. `may_be_ahead`: it may speak in rounds before it leaves this one.
  [[nodiscard]] int hear(int rank, HostKind kind, std::uint64_t bytes,
                         bool may_be_ahead = false) noexcept {
    if (!is_there(rank, kOwn)) [[unlikely]]
      if (const int error = wait_for_word(rank); error != MPI_SUCCESS) return error;
    // Who speaks in a round has left those before it.
    if (!may_be_ahead) known_[rank] = round_;
    if (header_ == header(round_, kind, bytes)) [[likely]]
      return MPI_SUCCESS;
    return disagree(rank);
  }
  /// The length that a rank says, or this one's own of what it sends, is not what is wanted.
  [[nodiscard]] int disagree(int rank) noexcept {
    comm_->odd_rank = rank;
    return MPI_ERR_TRUNCATE;
  }
  /// Of the one that was heard last: whether it has spoken in this round, of such a collective.
  [[nodiscard]] bool has_spoken_of(HostKind kind) const noexcept {
    return header_ >> 29 == header(round_, kind, 0) >> 29;
  }
  [[nodiscard]] std::uint64_t bytes_heard() const noexcept { return header_ & kMostBytes; }
  [[nodiscard]] const unsigned char* line_of(int rank) const noexcept {
    return blocks_[rank]->lines[round_ % HostBlock::kLines].bytes;
  }
  [[nodiscard]] const unsigned char* piece_of(int rank) const noexcept {
    return reinterpret_cast<const unsigned char*>(blocks_[rank]) + place_of(round_);
  }
  /// What was heard has been read.
  void leave_round() noexcept {
    ++round_;
    // Gives lines and rooms back; pairs with the load in look_at_readers().
    own_->done.store(round_, std::memory_order_release);
    // Who only hears never asks how far the others are; of rounds that half of all numbers lie
    // between nobody can say which is first.
    constexpr std::uint32_t kRoundsBetweenLooks = 1u << 28;
    if (round_ % kRoundsBetweenLooks == 0) [[unlikely]]
      look_at_all();
  }

  // What leaders say beside their own words (host_groups.hpp), in the round that they are in. They have
  // reserved it, and have spoken or passed.

  [[nodiscard]] unsigned char* line_up() noexcept { return line_in(kUp); }
  [[nodiscard]] unsigned char* line_down() noexcept { return line_in(kDown); }
  /// The room of this round, for what is longer than a line.
  [[nodiscard]] unsigned char* piece_up() noexcept {
    return reinterpret_cast<unsigned char*>(own_) + place_of(round_);
  }
  void publish_up(HostKind kind, std::uint64_t bytes) noexcept { publish_in(kUp, kind, bytes); }
  void publish_down(HostKind kind, std::uint64_t bytes) noexcept { publish_in(kDown, kind, bytes); }
  /// As hear(), of a leader.
  [[nodiscard]] int hear_up(int rank, HostKind kind, std::uint64_t bytes) noexcept {
    return hear_leader(kUp, rank, kind, bytes);
  }
  [[nodiscard]] int hear_down(int rank, HostKind kind, std::uint64_t bytes) noexcept {
    return hear_leader(kDown, rank, kind, bytes);
  }
  [[nodiscard]] const unsigned char* line_up_of(int rank) const noexcept {
    return (blocks_[rank]->*kUp)[round_ % HostBlock::kLines].bytes;
  }
  [[nodiscard]] const unsigned char* line_down_of(int rank) const noexcept {
    return (blocks_[rank]->*kDown)[round_ % HostBlock::kLines].bytes;
  }
  /// All have come to this round, and so have left those before it.
  void know_that_all_are_here() noexcept { all_done_ = round_; }

  /// Rounds that this rank has spoken in and not left.
  [[nodiscard]] std::uint32_t ahead() const noexcept { return next_ - round_; }

  /// This rank takes no part any more, and the others hear of it.
  void give_up() noexcept { (void)fail(); }
  /// One of the others has: its rank; -1: none.
  [[nodiscard]] int who_gave_up() const noexcept;
  /// Of the others the one that was waited for last; -1: none yet.
  [[nodiscard]] int who_is_awaited() const noexcept { return awaited_; }

  /// All say that they are here, in one round. MPI_ERR_TRUNCATE at all when they differ.
  [[nodiscard]] int meet(HostKind kind, std::uint64_t bytes) noexcept;

 private:
  friend struct HostTeams;

  static constexpr std::uint64_t kMostBytes = (1u << 29) - 1;
  static constexpr std::uint32_t kLeastPiece = 16u << 10;

  [[nodiscard]] static std::uint64_t header(std::uint32_t round, HostKind kind,
                                            std::uint64_t bytes) noexcept {
    return std::uint64_t{round} << 32 | static_cast<std::uint64_t>(kind) << 29 |
           (bytes < kMostBytes ? bytes : kMostBytes);
  }
  [[nodiscard]] std::size_t place_of(std::uint32_t round) const noexcept {
    // Pieces go through all of their rooms in turn: what others have read long ago is had sooner.
    const std::uint32_t lap = round / shape_.rooms;
    return sizeof(HostBlock) + std::size_t{round % shape_.rooms} * shape_.room +
           std::size_t{lap % (shape_.room / step_)} * step_;
  }
  using Lines = HostLine (HostBlock::*)[HostBlock::kLines];
  static constexpr Lines kOwn = &HostBlock::lines;
  static constexpr Lines kUp = &HostBlock::up;
  static constexpr Lines kDown = &HostBlock::down;

  [[nodiscard]] bool is_there(int rank, Lines lines) noexcept {
    // Pairs with the stores in publish() and publish_in().
    header_ =
        (blocks_[rank]->*lines)[round_ % HostBlock::kLines].header.load(std::memory_order_acquire);
    return header_ >> 32 == round_;
  }
  [[nodiscard]] unsigned char* line_in(Lines lines) noexcept {
    return (own_->*lines)[round_ % HostBlock::kLines].bytes;
  }
  void publish_in(Lines lines, HostKind kind, std::uint64_t bytes) noexcept {
    // Publishes the line and the room; pairs with the load in is_there().
    (own_->*lines)[round_ % HostBlock::kLines].header.store(header(round_, kind, bytes),
                                                            std::memory_order_release);
  }
  [[nodiscard]] int hear_leader(Lines lines, int rank, HostKind kind, std::uint64_t bytes) noexcept;
  [[nodiscard]] bool look_at_readers(std::uint32_t wanted) noexcept;
  [[gnu::cold]] void look_at_all() noexcept;
  [[nodiscard]] bool is_left_by_others() noexcept;
  [[nodiscard]] int wait_for_word(int rank) noexcept;
  [[nodiscard]] int wait_for_readers(std::uint32_t wanted) noexcept;
  template <class Done>
  [[nodiscard]] int wait(Done done) noexcept;
  [[nodiscard]] int fail() noexcept;

  Comm* comm_;
  Group* left_ =
      nullptr;  ///< whose ranks may read the block still, once this one has left the team
  HostBlock* own_;
  int size_;
  int rank_;
  Shape shape_;
  std::uint32_t step_;          ///< from a piece to the next in a room
  std::uint32_t round_ = 1;     ///< that this rank is in
  std::uint32_t next_ = 1;      ///< in which it speaks next
  std::uint32_t all_done_ = 1;  ///< all ranks have left those before it
  std::uint64_t header_ = 0;
  bool has_failed_ = false;
  std::uint32_t waits_ = 0;
  int awaited_ = -1;
  const HostBlock* blocks_[kMostRanks];
  std::uint32_t known_[kMostRanks];  ///< what each has done at least
  std::uint32_t states_[kMostRanks];
  ibv_mr* mr_ = nullptr;
  HostGroups* groups_ = nullptr;
  HostTeam* next_leaving_ = nullptr;
  HostTeam* long_ = nullptr;  ///< with rooms for long messages, once there were some
  bool has_no_long_ = false;
};

/// What a collective that the team does not do returns, at all ranks alike.
inline constexpr int kNotOfHost = -1;

/// `error` is MPI_SUCCESS and null is returned: there is no team, at no rank. It is made with some
/// collective of the communicator, as all ranks count.
[[nodiscard]] HostTeam* find_host_team(Comm& comm, int& error) noexcept;
/// For who knows where the ranks are: it is made now, or never.
[[nodiscard]] HostTeam* make_host_team(Comm& comm, int& error) noexcept;
void have_no_host_team(Comm& comm) noexcept;

/// The team by whose rooms a message of `bytes`, on which all agree, goes piece by piece. Null: by none
/// (`error` is kNotOfHost), or an error. `bytes` are those of a rank.
[[nodiscard]] HostTeam* find_team_for(HostTeam& team, Collective which, std::uint64_t bytes,
                                      int& error) noexcept;

/// A reduction of predefined operation and type, as it goes through lines and rooms.
struct HostReduction {
  HostTeam& team;
  HostKind kind;
  Combine* combine;
  const unsigned char* send;
  unsigned char* receive;  ///< null: another rank is the root
  std::uint64_t bytes;
  std::uint64_t element;
};

// The collectives, with arguments as in collectives.hpp: the error, or kNotOfHost.

[[nodiscard]] int host_barrier(Comm& comm) noexcept;
[[nodiscard]] int host_bcast(Comm& comm, const Typed& data, int root) noexcept;
[[nodiscard]] int host_allgather(Comm& comm, const Typed& in, const Slices& out) noexcept;
/// All slices of each are alike.
[[nodiscard]] int host_alltoall(Comm& comm, const Slices& in, const Slices& out) noexcept;
[[nodiscard]] int host_reduce(Comm& comm, const void* send, void* receive, std::int64_t count,
                              Datatype& type, const Op& op, int root) noexcept;
[[nodiscard]] int host_allreduce(Comm& comm, const void* send, void* receive, std::int64_t count,
                                 Datatype& type, const Op& op) noexcept;

}  // namespace vmpi
