// SPDX-License-Identifier: BSD-2-Clause
// Teams of one host: how one is made, how its ranks wait, how it ends.
//
// Making one is a collective over messages: each rank tells each other where its block lies, all map
// all blocks, and all hear whether all have. Blocks of teams that have ended are used for the next
// ones when all ranks have left the old one, which is said in the blocks themselves: they are never
// given back before MPI_Finalize.
#include "mpi_shim/coll/host_team.hpp"

#include <infiniband/verbs.h>
#include <verbatim/map.h>
#include <verbatim/memory.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string_view>

#include "mpi_shim/coll/host_groups.hpp"
#include "mpi_shim/coll/select.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/comm_nodes.hpp"
#include "mpi_shim/core/costs.hpp"
#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/core/fabric.hpp"
#include "mpi_shim/core/host_place.hpp"
#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/core/rings.hpp"
#include "mpi_shim/core/world.hpp"
#include "runtime/base/environment.hpp"

namespace vmpi {
namespace {

/// Collectives of a communicator before it gets a team: many communicators see few.
constexpr std::uint32_t kBefore = 8;
/// Blocks that a process makes at most.
constexpr std::uint32_t kMostBlocks = 256;
/// Looks before all else is looked at: some times what a cache line takes from core to core.
constexpr std::uint32_t kLooks = 64;
constexpr std::uint32_t kLooksBetween = 16;
constexpr std::uint32_t kWaitsBetweenLooksAtAll = 64;
/// Until a peer's service thread, which may have no processor, has sent the block's memory.
constexpr std::int64_t kNsBetweenAsks = 20'000;
constexpr std::int64_t kMostNsToMap = 5'000'000'000;

/// So that 16 ranks have 64 KiB each, and two that have more to themselves lose little by the rounds.
[[nodiscard]] constexpr HostTeam::Shape shape_for(int ranks) noexcept {
  return {HostTeam::kRooms, ranks <= 2   ? 64u << 10
                            : ranks <= 4 ? 32u << 10
                            : ranks <= 8 ? 16u << 10
                                         : 8u << 10};
}
static_assert(sizeof(HostBlock) + HostTeam::kRooms * (8u << 10) <= 64u << 10);
/// By which memory is measured out: what a node's ranks have is that of their whole communicator.
[[nodiscard]] int ranks_served(const Comm& comm) noexcept {
  return comm.whole != nullptr ? comm.whole->size() : comm.size();
}
/// Larger than a core's nearer caches: a line that another core has read just now takes the writer
/// some times as long as one of long ago.
constexpr HostTeam::Shape kLongShape = {HostBlock::kLines, 64u << 10};
/// Few ranks have such ones, for long messages; how many of them a process makes.
static_assert(HostTeam::kMostRanks == kMostRanksOfHost && HostLine::kInline == kBytesOfLine);
constexpr std::uint32_t kMostLongBlocks = 4;

[[nodiscard]] bool are_wanted() noexcept {
  static constexpr std::string_view kWords[] = {"on", "off"};
  enum : std::uint8_t { kUnknown, kOn, kOff };
  static std::uint8_t known = kUnknown;
  if (known == kUnknown)
    known =
        is_mapping_wanted() && verbatim::environment_choice("VERBATIM_COLL_HOST", kWords, 0) == 0
            ? kOn
            : kOff;
  return known == kOn;
}

/// What each tells each other before there is a team.
struct Offer {
  std::uint64_t host;
  std::uint64_t address;
  std::uint32_t rkey;
  std::uint32_t state;
  std::uint32_t is_good;
  std::uint32_t reserved;
  HostPlace place;
  std::uint32_t reserved_too;
};
static_assert(sizeof(Offer) == 48);

/// Of blocks that nobody uses.
struct SpareBlock {
  HostBlock* block;
  ibv_mr* mr;
  std::size_t bytes;
};
LastingArray<SpareBlock> spare_blocks;
HostTeam* first_leaving = nullptr;
LastingArray<HostTeam*> teams;
std::uint32_t made_blocks = 0;
std::uint32_t made_long_blocks = 0;

}  // namespace

/// What makes and ends teams; the only one beside them who knows what they consist of.
struct HostTeams {
  static HostTeam* make(Comm& comm, const HostTeam::Shape& shape, int& error) noexcept;
  static HostTeam* find_for(HostTeam& team, Collective which, const Shape& call,
                            std::uint64_t bytes, int& error) noexcept;
  static void end(HostTeam* team) noexcept;
  static void drop_all() noexcept;

  [[nodiscard]] static bool take_block(HostTeam& team) noexcept;
  static void give_back(HostTeam& team) noexcept;
  static void look_at_leaving() noexcept;
  [[nodiscard]] static bool map(HostTeam& team, int rank, const Offer& offer) noexcept;
  [[nodiscard]] static bool map_all(HostTeam& team, const Offer* offers) noexcept;
  [[nodiscard]] static int exchange_offers(Comm& comm, Offer* offers) noexcept;
  [[nodiscard]] static bool find_groups(HostTeam& team, const Offer* offers,
                                        std::uint32_t& digest) noexcept;
  [[nodiscard]] static int agree(Comm& comm, std::uint32_t what, bool& are_all) noexcept;
};

bool HostTeams::take_block(HostTeam& team) noexcept {
  look_at_leaving();
  for (std::size_t i = 0; i < spare_blocks.size(); ++i) {
    if (spare_blocks[i].bytes != team.shape_.bytes()) continue;
    team.own_ = spare_blocks[i].block;
    team.mr_ = spare_blocks[i].mr;
    spare_blocks[i] = spare_blocks[spare_blocks.size() - 1];
    spare_blocks.pop_back();
    break;
  }
  if (team.own_ == nullptr) {
    if (made_blocks == kMostBlocks || !spare_blocks.reserve(made_blocks + 1)) return false;
    const bool is_long = team.shape_.rooms != HostTeam::kRooms;
    if (is_long && made_long_blocks == kMostLongBlocks) return false;
    const std::size_t bytes = team.shape_.bytes();
    void* const memory = vbt_alloc_shared(bytes);
    if (memory == nullptr) return false;
    team.mr_ =
        ibv_reg_mr(fabric.pd, memory, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    if (team.mr_ == nullptr) {
      (void)vbt_free_shared(memory);
      return false;
    }
    // Its pages are had now, not one by one in the rounds.
    std::memset(memory, 0, bytes);
    team.own_ = ::new (memory) HostBlock();
    ++made_blocks;
    if (is_long) ++made_long_blocks;
  }
  // Headers of rounds of the team before would be taken for this one's.
  HostBlock& block = *team.own_;
  for (auto* lines : {&block.lines, &block.up, &block.down})
    for (HostLine& line : *lines) line.header.store(0, std::memory_order_relaxed);
  block.done.store(team.round_, std::memory_order_relaxed);
  block.has_failed.store(0, std::memory_order_relaxed);
  block.state.store((block.state.load(std::memory_order_relaxed) | 1) + 1,
                    std::memory_order_release);
  return true;
}

void HostTeams::give_back(HostTeam& team) noexcept {
  // There is room for all blocks that were made.
  if (team.own_ != nullptr)
    (void)spare_blocks.push_back({team.own_, team.mr_, team.shape_.bytes()});
  for (std::size_t i = 0; i < teams.size(); ++i) {
    if (teams[i] != &team) continue;
    teams[i] = teams[teams.size() - 1];
    teams.pop_back();
    break;
  }
  if (team.left_ != nullptr) release(*team.left_);
  HostGroups::drop(team.groups_);
  team.~HostTeam();
  std::free(static_cast<void*>(&team));
}

void HostTeams::look_at_leaving() noexcept {
  for (HostTeam** at = &first_leaving; *at != nullptr;) {
    HostTeam& team = **at;
    if (!team.is_left_by_others()) {
      at = &team.next_leaving_;
      continue;
    }
    *at = team.next_leaving_;
    give_back(team);
  }
}

int HostTeams::exchange_offers(Comm& comm, Offer* offers) noexcept {
  const int size = comm.size();
  const int me = comm.rank();
  const int tag = next_tag(comm);
  // All at once: of ranks that share processors each round in turn would wait for all of them.
  Request requests[2 * HostTeam::kMostRanks];
  int begun = 0;
  int result = MPI_SUCCESS;
  for (const bool is_send : {false, true}) {
    for (int distance = 1; distance < size; ++distance) {
      Request& request = requests[begun];
      request.plane = Plane::kCollective;
      request.comm = &comm;
      request.peer = (is_send ? me + distance : me - distance + size) % size;
      request.tag = tag;
      request.buffer = offers + (is_send ? me : request.peer);
      request.count = sizeof(Offer);
      request.type = &byte_type();
      // Also after an error: those that live wait for what each rank says.
      const int error = is_send ? begin_send(request) : MPI_SUCCESS;
      if (!is_send) begin_receive(request);
      if (error == MPI_SUCCESS)
        ++begun;
      else if (result == MPI_SUCCESS)
        result = error;
    }
  }
  for (int i = 0; i < begun; ++i) {
    const int error = wait_for(requests[i]);
    if (result == MPI_SUCCESS) result = error;
  }
  return result;
}

/// Whether all say yes, and the same of `what`, by dissemination: in round k each tells the one 2^k above
/// it, also after an error, since that one waits for a word.
int HostTeams::agree(Comm& comm, std::uint32_t what, bool& are_all) noexcept {
  const int size = comm.size();
  const int tag = next_tag(comm);
  std::uint32_t own = are_all ? what | 1 : 0;
  int result = MPI_SUCCESS;
  for (int distance = 1; distance < size; distance *= 2) {
    const int to = (comm.rank() + distance) % size;
    const int from = (comm.rank() - distance + size) % size;
    std::uint32_t theirs = 0;
    if (const int error = exchange(comm, Plane::kCollective, to, tag, &own, sizeof own, byte_type(),
                                   from, tag, &theirs, sizeof theirs, byte_type());
        error != MPI_SUCCESS && result == MPI_SUCCESS)
      result = error;
    if (theirs != own || result != MPI_SUCCESS) own = 0;
  }
  are_all = own != 0;
  return result;
}

bool HostTeams::map(HostTeam& team, int rank, const Offer& offer) noexcept {
  Peer* const peer = known_peer(team.comm_->group->world_rank(rank));
  const std::size_t bytes = team.shape_.bytes();
  const std::int64_t until = now_ns() + kMostNsToMap;
  while (peer != nullptr && peer->qp != nullptr && !peer->is_dead) {
    void* mapped = nullptr;
    const int error =
        vbt_map_remote(peer->qp, offer.rkey, offer.address, bytes, IBV_ACCESS_REMOTE_READ, &mapped);
    if (error == 0) {
      if (reinterpret_cast<std::uintptr_t>(mapped) % alignof(HostBlock) != 0) return false;
      team.blocks_[rank] = static_cast<const HostBlock*>(mapped);
      // Its pages are had now, not one by one in the rounds.
      constexpr std::size_t kPageBytes = 4096;
      for (std::size_t at = 0; at < bytes; at += kPageBytes)
        (void)*(static_cast<const volatile unsigned char*>(mapped) + at);
      return true;
    }
    if (error != EAGAIN || now_ns() > until) return false;
    std::int64_t until_next = now_ns() + kNsBetweenAsks;
    wait_for_memory([](void* context) { return now_ns() >= *static_cast<std::int64_t*>(context); },
                    &until_next);
  }
  return false;
}

bool HostTeams::map_all(HostTeam& team, const Offer* offers) noexcept {
  for (int i = 0; i < team.size_; ++i)
    if (offers[i].is_good == 0 || offers[i].host == 0 || offers[i].host != fabric.address.host)
      return false;
  for (int i = 0; i < team.size_; ++i) {
    team.states_[i] = offers[i].state;
    team.known_[i] = team.round_;
    if (i == team.rank_)
      team.blocks_[i] = team.own_;
    else if (!map(team, i, offers[i]))
      return false;
  }
  return true;
}

/// False: no memory.
bool HostTeams::find_groups(HostTeam& team, const Offer* offers, std::uint32_t& digest) noexcept {
  HostPlace places[HostTeam::kMostRanks];
  for (int i = 0; i < team.size_; ++i) places[i] = offers[i].place;
  digest = HostGroups::digest_of(places, team.size_);
  return HostGroups::find(places, team.size_, costs_of(*team.comm_), team.groups_);
}

HostTeam* HostTeams::make(Comm& comm, const HostTeam::Shape& shape, int& error) noexcept {
  Offer offers[HostTeam::kMostRanks] = {};
  Offer& own = offers[comm.rank()];
  void* const place = are_wanted() && fabric.is_open() ? std::malloc(sizeof(HostTeam)) : nullptr;
  HostTeam* const team = place != nullptr ? ::new (place) HostTeam() : nullptr;
  if (team != nullptr) {
    team->comm_ = &comm;
    team->own_ = nullptr;
    team->size_ = comm.size();
    team->rank_ = comm.rank();
    team->shape_ = shape;
    team->step_ = shape.room;
    if (teams.push_back(team) && take_block(*team)) {
      own = {fabric.address.host,
             reinterpret_cast<std::uintptr_t>(team->own_),
             team->mr_->rkey,
             team->own_->state.load(std::memory_order_relaxed),
             1,
             0,
             HostGroups::can_be(comm.size()) ? find_host_place() : HostPlace{},
             0};
    }
  }
  error = exchange_offers(comm, offers);
  // Whoever has heard of all is connected to all.
  // Of groups that each saw otherwise, ranks would wait for words that nobody says.
  std::uint32_t digest = 0;
  bool is_good = error == MPI_SUCCESS && team != nullptr && own.is_good != 0 &&
                 map_all(*team, offers) && find_groups(*team, offers, digest);
  const int disagreed = agree(comm, digest, is_good);
  if (error == MPI_SUCCESS) error = disagreed;
  is_good = is_good && error == MPI_SUCCESS;
  if (is_good) return team;
  if (team == nullptr) return nullptr;
  if (team->own_ != nullptr)
    team->own_->state.store(team->own_->state.load(std::memory_order_relaxed) | 1,
                            std::memory_order_release);
  if (error != MPI_SUCCESS && team->own_ != nullptr) {
    // Another rank may have heard yes of all, and reads the block: it is told, and the block is used
    // no more.
    team->own_->has_failed.store(1, std::memory_order_relaxed);
    team->comm_ = nullptr;
    return nullptr;
  }
  // Nobody has used the block, and nobody will.
  give_back(*team);
  return nullptr;
}

HostTeam* HostTeams::find_for(HostTeam& team, Collective which, const Shape& call,
                              std::uint64_t bytes, int& error) noexcept {
  error = MPI_SUCCESS;
  const bool is_long = bytes >= static_cast<std::uint64_t>(kLeastLong);
  if (is_long && !are_rooms_faster(which, call)) {
    error = kNotOfHost;
    return nullptr;
  }
  if (is_long && ranks_served(*team.comm_) <= kMostRanksOfLongRooms && !team.has_no_long_) {
    if (team.long_ == nullptr) team.long_ = make(*team.comm_, kLongShape, error);
    team.has_no_long_ = team.long_ == nullptr;
    if (error != MPI_SUCCESS) return nullptr;
    if (team.long_ != nullptr) return team.long_;
  }
  if (bytes <= static_cast<std::uint64_t>(kBytesThroughRooms)) return &team;
  error = kNotOfHost;
  return nullptr;
}

HostTeam* find_team_for(HostTeam& team, Collective which, std::uint64_t bytes,
                        int& error) noexcept {
  const auto ranks = static_cast<std::uint64_t>(team.size());
  const std::uint64_t all = which == Collective::kAllgather  ? bytes * ranks
                            : which == Collective::kAlltoall ? bytes / ranks
                                                             : bytes;
  const Shape call = {.ranks = team.size(),
                      .bytes = static_cast<std::int64_t>(all),
                      .costs = &costs_of(const_cast<Comm&>(team.comm()))};
  return HostTeams::find_for(team, which, call, bytes, error);
}

void HostTeams::end(HostTeam* team) noexcept {
  if (team->long_ != nullptr) end(team->long_);
  // What it has said is still read, perhaps. Pairs with the load in is_left_by_others().
  team->own_->state.store(team->own_->state.load(std::memory_order_relaxed) | 1,
                          std::memory_order_release);
  team->left_ = team->comm_->group;
  retain(*team->left_);
  team->comm_ = nullptr;
  team->next_leaving_ = first_leaving;
  first_leaving = team;
}

void HostTeams::drop_all() noexcept {
  first_leaving = nullptr;
  while (!teams.empty()) {
    HostTeam& team = *teams[teams.size() - 1];
    if (team.comm_ != nullptr) team.comm_->team = nullptr;
    give_back(team);
  }
  // After a failure nobody waits for the others: they may be in a collective that this rank has
  // done its part of, whose words lie in its blocks until the process ends.
  for (SpareBlock& spare : spare_blocks) {
    if (gone_ranks != 0) break;
    (void)ibv_dereg_mr(spare.mr);
    (void)vbt_free_shared(spare.block);
  }
  teams = {};
  spare_blocks = {};
  made_blocks = made_long_blocks = 0;
}

HostTeam* find_host_team(Comm& comm, int& error) noexcept {
  error = MPI_SUCCESS;
  if (comm.team != nullptr) [[likely]] {
    // Waits that stay short move nothing else, and a program may make nothing but such.
    constexpr std::uint32_t kCallsBetweenMoves = 32;
    static std::uint32_t calls = 0;  // under the big lock
    if (++calls % kCallsBetweenMoves == 0) (void)progress();
    if (comm.team->has_failed()) error = MPI_ERR_PROC_ABORTED;
    return comm.team;
  }
  if (comm.collectives_waited > kBefore || comm.size() < 2 || comm.size() > HostTeam::kMostRanks ||
      ++comm.collectives_waited <= kBefore || has_several_nodes(comm))
    return nullptr;
  end_host_team = HostTeams::end;
  drop_host_teams = HostTeams::drop_all;
  comm.team = HostTeams::make(comm, shape_for(ranks_served(comm)), error);
  return comm.team;
}

HostTeam* make_host_team(Comm& comm, int& error) noexcept {
  comm.collectives_waited = kBefore;
  return find_host_team(comm, error);
}

void have_no_host_team(Comm& comm) noexcept { comm.collectives_waited = kBefore + 1; }

// How a rank waits.

bool HostTeam::is_left_by_others() noexcept {
  for (int i = 0; i < size_; ++i) {
    // Pairs with the store in HostTeams::end(). A block that serves another team by now says more.
    if (i == rank_ || static_cast<std::int32_t>(blocks_[i]->state.load(std::memory_order_acquire) -
                                                states_[i]) > 0)
      continue;
    // The dead never say so. One that is only lost to this process may live, and read the block.
    const std::uint32_t rank = left_->world_rank(i);
    if (!is_dead(rank) || !is_process_gone(*known_peer(rank))) return false;
  }
  return true;
}

int HostTeam::fail() noexcept {
  has_failed_ = true;
  own_->has_failed.store(1, std::memory_order_relaxed);
  return MPI_ERR_PROC_ABORTED;
}

int HostTeam::who_gave_up() const noexcept {
  for (int i = 0; i < size_; ++i)
    if (i != rank_ && blocks_[i]->has_failed.load(std::memory_order_relaxed) != 0) return i;
  return -1;
}

/// Until `done()`, or a rank of the team is dead or has given up.
template <class Done>
int HostTeam::wait(Done done) noexcept {
  // Of ranks that share processors the one that is waited for may have none.
  const bool is_alone = waiting == Waiting::kSpin && !big_lock.is_needed();
  const std::uint32_t looks = is_alone ? kLooks : 1;
  for (std::uint32_t look = 0; look < looks; ++look) {
    if (done()) return MPI_SUCCESS;
    verbatim::cpu_pause();
  }
  struct Waited {
    HostTeam& team;
    Done& done;
    std::uint32_t looks;
    bool is_lost;
    std::int64_t since = 0;

    bool is_long_without_one() noexcept {
      if (gone_member(*team.comm_) < 0) return false;
      if (since == 0) since = now_ns();
      return now_ns() - since > kPatienceForLeft;
    }
  } waited = {*this, done, is_alone ? kLooksBetween : 1, false};
  wait_for_memory(
      [](void* context) {
        Waited& at = *static_cast<Waited*>(context);
        for (std::uint32_t look = 0; look < at.looks; ++look)
          if (at.done()) return true;
        if (++at.team.waits_ % kWaitsBetweenLooksAtAll != 0) return false;
        at.is_lost = at.team.comm_->has_failed || dead_member(*at.team.comm_) >= 0 ||
                     at.team.who_gave_up() >= 0 || at.is_long_without_one();
        return at.is_lost;
      },
      &waited);
  return !waited.is_lost || done() ? MPI_SUCCESS : fail();
}

int HostTeam::wait_for_word(int rank) noexcept {
  const HostBlock& block = *blocks_[rank];
  awaited_ = rank;
  return wait([&, this]() noexcept {
    if (is_there(rank, kOwn)) return true;
    // It has left the round without a word: what it says then is not of this round.
    const std::uint32_t done = block.done.load(std::memory_order_acquire);
    return static_cast<std::int32_t>(done - round_) > 0 && !is_there(rank, kOwn);
  });
}

/// What it says as one of all tells before that it is in another collective, in which it leads nobody.
int HostTeam::hear_leader(Lines lines, int rank, HostKind kind, std::uint64_t bytes) noexcept {
  const HostBlock& block = *blocks_[rank];
  const std::uint64_t wanted = header(round_, kind, bytes);
  if (!is_there(rank, lines)) {
    awaited_ = rank;
    const int error = wait([&, this]() noexcept {
      if (is_there(rank, lines)) return true;
      const std::uint32_t done = block.done.load(std::memory_order_acquire);
      const bool is_elsewhere = static_cast<std::int32_t>(done - round_) > 0 ||
                                (is_there(rank, kOwn) && header_ != wanted);
      return is_elsewhere && !is_there(rank, lines);
    });
    if (error != MPI_SUCCESS) return error;
  }
  known_[rank] = round_;
  if (header_ == wanted) return MPI_SUCCESS;
  if (!has_spoken_of(HostKind::kOdd)) return disagree(rank);
  const std::uint64_t odd = bytes_heard();
  return disagree(odd < static_cast<std::uint64_t>(size_) ? static_cast<int>(odd) : rank);
}

bool HostTeam::look_at_readers(std::uint32_t wanted) noexcept {
  // This rank reads its own, too.
  known_[rank_] = round_;
  for (int i = 0; i < size_; ++i) {
    if (static_cast<std::int32_t>(wanted - known_[i]) <= 0) continue;
    // Pairs with the store in leave_round().
    known_[i] = blocks_[i]->done.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(wanted - known_[i]) > 0) {
      awaited_ = i;
      return false;
    }
  }
  all_done_ = known_[0];
  for (int i = 1; i < size_; ++i)
    if (static_cast<std::int32_t>(known_[i] - all_done_) < 0) all_done_ = known_[i];
  return true;
}

void HostTeam::look_at_all() noexcept {
  all_done_ = round_;
  for (int i = 0; i < size_; ++i) {
    known_[i] = i == rank_ ? round_ : blocks_[i]->done.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(known_[i] - all_done_) < 0) all_done_ = known_[i];
  }
}

bool HostTeam::can_reserve(bool with_room) noexcept {
  const std::uint32_t wanted = next_ - ((with_room ? shape_.rooms : HostBlock::kLines) - 1);
  return static_cast<std::int32_t>(wanted - all_done_) <= 0 || look_at_readers(wanted);
}

int HostTeam::wait_for_readers(std::uint32_t wanted) noexcept {
  if (look_at_readers(wanted)) return MPI_SUCCESS;
  return wait([wanted, this]() noexcept { return look_at_readers(wanted); });
}

int HostTeam::meet(HostKind kind, std::uint64_t bytes) noexcept {
  if (groups_ != nullptr) [[unlikely]]
    return meet_by_groups(*this, kind, bytes);
  if (const int error = reserve(false); error != MPI_SUCCESS) return error;
  publish(kind, bytes);
  int result = MPI_SUCCESS;
  for (int i = 0; i < size_; ++i) {
    if (i == rank_) continue;
    const int error = hear(i, kind, bytes);
    if (error != MPI_SUCCESS) result = error;
    if (error == MPI_ERR_PROC_ABORTED) return error;
  }
  leave_round();
  return result;
}

}  // namespace vmpi
