// SPDX-License-Identifier: BSD-2-Clause
// Short collectives by groups (host_groups.hpp). Each takes one round, as that of ungrouped ranks does,
// so that ranks which differ in what they call are in one round again when all have said so. A rank that
// leads hears what others of its level say in any case, and tells of one that said something else (kOdd).
//
// Nobody waits for ever for one that is elsewhere: it has spoken in its own line, or left the round.
#include "mpi_shim/coll/host_copy.hpp"
#include "mpi_shim/coll/host_groups.hpp"

namespace vmpi {
namespace {

/// What a level's leader has heard lies in a room where it is longer than a line.
constexpr std::uint64_t kLeastRoom = 8u << 10;
static_assert(HostTeam::kMostRanks * HostLine::kInline <= kLeastRoom);

/// One rank's part. A root leads its group and its node.
class Grouped {
 public:
  /// `said` goes into headers, `part` bytes of each rank with them.
  Grouped(HostTeam& team, HostKind kind, std::uint64_t said, std::uint64_t part, int root) noexcept
      : team_(team),
        by_(*team.groups()),
        kind_(kind),
        said_(said),
        part_(part),
        root_(root),
        group_(by_.groups.node_of(team.rank())),
        node_(by_.nodes.node_of(team.rank())) {}

  [[nodiscard]] bool leads_group() const noexcept {
    return leader_of_group(group_) == team_.rank();
  }
  [[nodiscard]] bool leads_node() const noexcept { return leader_of_node(node_) == team_.rank(); }
  /// Of each rank that was heard of.
  [[nodiscard]] const unsigned char* heard_of(int rank) const noexcept { return heard_[rank]; }
  [[nodiscard]] bool are_all_alike() const noexcept { return odd_ < 0; }
  [[nodiscard]] int error() noexcept { return odd_ < 0 ? MPI_SUCCESS : team_.disagree(odd_); }

  /// Says its word, and what it has heard to those above. False: ended, by `error`.
  [[nodiscard]] bool go_up(const unsigned char* own, int& error) noexcept {
    const bool has_room =
        leads_group() && part_ * by_.nodes.ranks_of(node_).size() > HostLine::kInline;
    error = team_.reserve(has_room);
    if (error != MPI_SUCCESS) return false;
    heard_[team_.rank()] = team_.line();
    copy_bytes(team_.line(), own, part_);
    team_.publish(kind_, said_);
    if (!leads_group()) return true;
    for (const int rank : by_.groups.ranks_of(group_)) {
      if (rank == team_.rank()) continue;
      if (!take(team_.hear(rank, kind_, said_), error)) return false;
      heard_[rank] = team_.line_of(rank);
    }
    if (!leads_node()) {
      say_up(by_.groups.ranks_of(group_));
      return true;
    }
    for (int group = 0; group < by_.groups.count(); ++group)
      if (group != group_ && is_here(group) &&
          !hear_up(leader_of_group(group), by_.groups.ranks_of(group), error))
        return false;
    if (by_.nodes.count() > 1) say_up(by_.nodes.ranks_of(node_));
    return true;
  }
  /// REQUIRES: leads_node().
  [[nodiscard]] bool go_across(int& error) noexcept {
    for (int node = 0; node < by_.nodes.count(); ++node)
      if (node != node_ && !hear_up(leader_of_node(node), by_.nodes.ranks_of(node), error))
        return false;
    return true;
  }
  /// Tells what has come of it, or hears it and tells it.
  [[nodiscard]] bool go_down(unsigned char* result, int& error) noexcept {
    if (!leads_node()) {
      const int from = leads_group() ? leader_of_node(node_) : leader_of_group(group_);
      if (!take(team_.hear_down(from, kind_, said_), error)) return false;
      if (are_all_alike()) copy_bytes(result, team_.line_down_of(from), part_);
    }
    if (is_followed()) say_down(result, said_, part_);
    if (are_all_alike()) team_.know_that_all_are_here();
    return true;
  }

  /// A root's word, which may be shorter than `said`: of whom a rank hears it, and tells it.
  [[nodiscard]] bool pass_down(unsigned char* data, std::uint64_t& bytes, int& error) noexcept {
    const bool tells = is_followed();
    // Lines down are told apart by rounds as all lines are.
    error = tells ? team_.reserve(false) : MPI_SUCCESS;
    if (error != MPI_SUCCESS) return false;
    team_.pass();
    const bool is_of_root = leads_node() || by_.groups.node_of(root_) == group_ ||
                            (leads_group() && is_here(root_group()));
    const int from = is_of_root      ? root_
                     : leads_group() ? leader_of_node(node_)
                                     : leader_of_group(group_);
    error = is_of_root ? team_.hear(from, kind_, said_) : team_.hear_down(from, kind_, said_);
    bytes = team_.bytes_heard();
    if (error == MPI_ERR_TRUNCATE && team_.has_spoken_of(kind_) && bytes <= said_)
      error = MPI_SUCCESS;
    if (!take(error, error)) return false;
    if (!are_all_alike()) bytes = 0;
    copy_bytes(data, is_of_root ? team_.line_of(from) : team_.line_down_of(from), bytes);
    if (tells) say_down(data, bytes, bytes);
    return true;
  }

 private:
  [[nodiscard]] int root_group() const noexcept { return by_.groups.node_of(root_); }
  [[nodiscard]] int leader_of_group(int group) const noexcept {
    return group == root_group() ? root_ : by_.groups.leaders()[group];
  }
  [[nodiscard]] int leader_of_node(int node) const noexcept {
    return node == by_.nodes.node_of(root_) ? root_ : by_.nodes.leaders()[node];
  }
  /// Whether the group is of this rank's node.
  [[nodiscard]] bool is_here(int group) const noexcept {
    return by_.nodes.node_of(by_.groups.leaders()[group]) == node_;
  }
  /// Whether others hear what this rank tells down.
  [[nodiscard]] bool is_followed() const noexcept {
    const std::size_t ranks_of_group = by_.groups.ranks_of(group_).size();
    if (leads_node()) return by_.nodes.ranks_of(node_).size() > 1;
    return leads_group() && ranks_of_group > 1;
  }

  /// A rank that said something else ends nothing yet: others wait for what this one says next.
  [[nodiscard]] bool take(int heard, int& error) noexcept {
    if (heard == MPI_ERR_TRUNCATE && odd_ < 0) odd_ = team_.comm().odd_rank;
    error = heard == MPI_ERR_TRUNCATE ? MPI_SUCCESS : heard;
    return error == MPI_SUCCESS;
  }

  template <class Ranks>
  void say_up(const Ranks& ranks) noexcept {
    if (!are_all_alike()) {
      team_.publish_up(HostKind::kOdd, static_cast<std::uint64_t>(odd_));
      return;
    }
    unsigned char* to =
        ranks.size() * part_ <= HostLine::kInline ? team_.line_up() : team_.piece_up();
    for (const int rank : ranks) {
      copy_bytes(to, heard_[rank], part_);
      to += part_;
    }
    team_.publish_up(kind_, said_);
  }
  template <class Ranks>
  [[nodiscard]] bool hear_up(int leader, const Ranks& ranks, int& error) noexcept {
    if (!take(team_.hear_up(leader, kind_, said_), error)) return false;
    const unsigned char* from = ranks.size() * part_ <= HostLine::kInline ? team_.line_up_of(leader)
                                                                          : team_.piece_of(leader);
    for (const int rank : ranks) {
      heard_[rank] = from;
      from += part_;
    }
    return true;
  }
  void say_down(const unsigned char* what, std::uint64_t said, std::uint64_t bytes) noexcept {
    if (!are_all_alike()) {
      team_.publish_down(HostKind::kOdd, static_cast<std::uint64_t>(odd_));
      return;
    }
    copy_bytes(team_.line_down(), what, bytes);
    team_.publish_down(kind_, said);
  }

  HostTeam& team_;
  const HostGroups& by_;
  HostKind kind_;
  std::uint64_t said_;
  std::uint64_t part_;
  int root_;
  int group_;
  int node_;
  int odd_ = -1;  ///< a rank that said something else
  const unsigned char* heard_[HostTeam::kMostRanks];
};

}  // namespace

int meet_by_groups(HostTeam& team, HostKind kind, std::uint64_t bytes) noexcept {
  Grouped call(team, kind, bytes, 0, 0);
  unsigned char nothing[HostLine::kInline] = {};
  int error = MPI_SUCCESS;
  if (!call.go_up(nothing, error) || (call.leads_node() && !call.go_across(error)) ||
      !call.go_down(nothing, error))
    return error;
  team.leave_round();
  return call.error();
}

int hear_root_by_groups(HostTeam& team, const Typed& data, std::uint64_t bytes, int root) noexcept {
  Grouped call(team, HostKind::kBcast, bytes, 0, root);
  unsigned char heard[HostLine::kInline];
  std::uint64_t said = 0;
  int error = MPI_SUCCESS;
  if (!call.pass_down(heard, said, error)) return error;
  team.leave_round();
  if (call.are_all_alike()) copy_in(data, 0, heard, said);
  return call.error();
}

int reduce_by_groups(const HostReduction& what, int root) noexcept {
  HostTeam& team = what.team;
  const bool is_for_all = what.kind == HostKind::kAllreduce;
  Grouped call(team, what.kind, what.bytes, what.bytes, root);
  int error = MPI_SUCCESS;
  if (!call.go_up(what.send, error)) return error;
  const bool computes = is_for_all ? call.leads_node() : team.rank() == root;
  alignas(64) unsigned char reduced[HostLine::kInline];
  if (computes) {
    if (!call.go_across(error)) return error;
    alignas(64) unsigned char next[HostLine::kInline];
    const auto count = static_cast<std::int64_t>(what.bytes / what.element);
    for (int i = 0; i < team.size() && call.are_all_alike(); ++i) {
      copy_bytes(i == 0 ? reduced : next, call.heard_of(i), what.bytes);
      if (i != 0) what.combine(next, reduced, count);
    }
  }
  if (is_for_all && !call.go_down(reduced, error)) return error;
  if ((is_for_all || computes) && call.are_all_alike())
    copy_bytes(what.receive, reduced, what.bytes);
  team.leave_round();
  return call.error();
}

}  // namespace vmpi
