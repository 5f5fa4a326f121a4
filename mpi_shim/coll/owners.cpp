// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/coll/owners.hpp"

#include <algorithm>

namespace vmpi {
namespace {

[[nodiscard]] Range cut(const Range& whole, std::int64_t part, std::int64_t parts) noexcept {
  const std::int64_t count = whole.end - whole.begin;
  return {whole.begin + count * part / parts, whole.begin + count * (part + 1) / parts};
}

}  // namespace

OwnedReduction::OwnedReduction(Plan& plan, const Reduced& what, int root) noexcept
    : plan_(plan),
      what_(what),
      nodes_(*plan.nodes()),
      root_(root),
      me_(plan.rank()),
      node_(nodes_.node_of(me_)),
      place_(nodes_.place_of(me_)),
      ranks_(nodes_.ranks_of(node_)),
      owners_(nodes_.fewest()),
      halves_((nodes_.count() & (nodes_.count() - 1)) == 0),
      rounds_between_(halves_ ? log_of(nodes_.count()) : nodes_.count() - 1),
      rounds_(root == kForAll ? 2 * rounds_between_ + 2 : rounds_between_ + 2) {
  const std::int64_t slice = (what.count + owners_ - 1) / owners_;
  segments_ = static_cast<int>(
      std::clamp<std::int64_t>(slice * what.type->size / kLeastSegment, 1, kMostSegments));
  longest_ = slice / segments_ + 1;
  most_taken_ = halves_ ? longest_ / 2 + 1 : longest_ / nodes_.count() + 1;
  if (!owns()) return;
  if (root == kForAll || root == me_) {
    sum_ = what.receive;
  } else {
    const Range own_slice = cut({0, what.count}, place_, owners_);
    sum_ = plan.elements(*what.type, own_slice.end - own_slice.begin);
    if (sum_ != nullptr) sum_ = part_of(sum_, *what.type, -own_slice.begin, 0).buffer;
  }
  from_ranks_ = plan.elements(*what.type, (ranks_here() - 1) * longest_);
  from_nodes_ = plan.elements(*what.type, segments_ * most_taken_);
}

Range OwnedReduction::segment_of(int owner, int segment) const noexcept {
  return cut(cut({0, what_.count}, owner, owners_), segment, segments_);
}

Range OwnedReduction::block_of(const Range& whole, int node) const noexcept {
  const int count = nodes_.count();
  return cut(whole, (node % count + count) % count, count);
}

Range OwnedReduction::halved(const Range& whole, int node, int bit) const noexcept {
  const Range within = range_after(node, bit, whole.end - whole.begin);
  return {whole.begin + within.begin, whole.begin + within.end};
}

OwnedReduction::Exchange OwnedReduction::reducing(const Range& whole, int round) const noexcept {
  if (halves_) {
    const int mask = 1 << round;
    const int peer = node_ ^ mask;
    return {peer, peer, halved(whole, peer, 2 * mask), halved(whole, node_, 2 * mask)};
  }
  return {around(node_ + 1, nodes_.count()), around(node_ - 1, nodes_.count()),
          block_of(whole, node_ - round - 1), block_of(whole, node_ - round - 2)};
}

OwnedReduction::Exchange OwnedReduction::gathering(const Range& whole, int round) const noexcept {
  if (halves_) {
    const int mask = nodes_.count() >> 1 >> round;
    const int peer = node_ ^ mask;
    return {peer, peer, halved(whole, node_, 2 * mask), halved(whole, peer, 2 * mask)};
  }
  return {around(node_ + 1, nodes_.count()), around(node_ - 1, nodes_.count()),
          block_of(whole, node_ - round), block_of(whole, node_ - round - 1)};
}

/// What an owner there has of the result before they gather.
Range OwnedReduction::reduced_on(const Range& whole, int node) const noexcept {
  return halves_ ? halved(whole, node, nodes_.count()) : block_of(whole, node);
}

Typed OwnedReduction::incoming(int segment, std::int64_t count) const noexcept {
  return what_.part(from_nodes_, segment * most_taken_, segment * most_taken_ + count);
}

/// Where what a rank of this node gives comes to: the first to the sum's place, unless this rank's own
/// part is there.
Typed OwnedReduction::from_rank(int place, const Range& range) const noexcept {
  const int number = place < place_ ? place : place - 1;
  if (number == 0 && what_.own() != sum_) return sum(range);
  return what_.part(from_ranks_, number * longest_, number * longest_ + (range.end - range.begin));
}

void OwnedReduction::give_to_owners(int segment) noexcept {
  for (int i = 0; i < ranks_here() && owns(); ++i)
    if (i != place_)
      plan_.receive_some(ranks_[static_cast<std::size_t>(i)],
                         from_rank(i, segment_of(place_, segment)));
  for (int owner = 0; owner < owners_; ++owner)
    if (owner != place_)
      plan_.send_some(ranks_[static_cast<std::size_t>(owner)], own(segment_of(owner, segment)));
}

void OwnedReduction::combine_within(int segment) noexcept {
  const Range range = segment_of(place_, segment);
  if (range.begin == range.end) return;
  const bool is_apart = what_.own() != sum_;
  if (is_apart && ranks_here() == 1) plan_.copy(own(range), sum(range));
  if (is_apart && ranks_here() > 1) combine(own(range), sum(range));
  for (int i = 0, number = 0; i < ranks_here(); ++i) {
    if (i == place_) continue;
    if (number++ != 0 || !is_apart) combine(from_rank(i, range), sum(range));
  }
}

void OwnedReduction::exchange(const Exchange& with, const Typed& to) noexcept {
  plan_.receive_some(owner_on(with.from), to);
  plan_.send_some(owner_on(with.to), sum(with.given));
}

void OwnedReduction::give_to_node(int segment) noexcept {
  for (int owner = 0; owner < owners_; ++owner) {
    const Range range = segment_of(owner, segment);
    if (owner != place_)
      plan_.receive_some(ranks_[static_cast<std::size_t>(owner)],
                         what_.part(what_.receive, range.begin, range.end));
  }
  for (int i = 0; i < ranks_here() && owns(); ++i)
    if (i != place_)
      plan_.send_some(ranks_[static_cast<std::size_t>(i)], sum(segment_of(place_, segment)));
}

void OwnedReduction::give_to_root(int segment) noexcept {
  if (me_ != root_) {
    if (owns()) plan_.send_some(root_, sum(reduced_on(segment_of(place_, segment), node_)));
    return;
  }
  for (int node = 0; node < nodes_.count(); ++node) {
    for (int owner = 0; owner < owners_; ++owner) {
      const int rank = nodes_.ranks_of(node)[static_cast<std::size_t>(owner)];
      const Range range = reduced_on(segment_of(owner, segment), node);
      if (rank != root_)
        plan_.receive_some(rank, what_.part(what_.receive, range.begin, range.end));
    }
  }
}

/// A round begins with what the messages of the one before have brought.
void OwnedReduction::add_round(int segment, int round) noexcept {
  const Range range = segment_of(std::min(place_, owners_ - 1), segment);
  const int between = round - 1;
  if (round == 0) return give_to_owners(segment);
  if (round == 1 && owns()) combine_within(segment);
  if (between > 0 && between <= rounds_between_ && owns()) {
    const Range taken = reducing(range, between - 1).taken;
    combine(incoming(segment, taken.end - taken.begin), sum(taken));
  }
  if (round == rounds_ - 1) return root_ == kForAll ? give_to_node(segment) : give_to_root(segment);
  if (!owns()) return;
  if (between < rounds_between_) {
    const Exchange with = reducing(range, between);
    return exchange(with, incoming(segment, with.taken.end - with.taken.begin));
  }
  const Exchange with = gathering(range, between - rounds_between_);
  exchange(with, sum(with.taken));
}

void OwnedReduction::add() noexcept {
  if (!plan_.is_good()) return;
  for (int tick = 0; tick < segments_ + rounds_ - 1; ++tick) {
    // Older segments first: what they have had of other ranks is combined before more comes there.
    for (int segment = 0; segment < segments_; ++segment)
      if (tick >= segment && tick - segment < rounds_) add_round(segment, tick - segment);
    plan_.fence();
  }
}

}  // namespace vmpi
