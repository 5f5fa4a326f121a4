// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/memory/pool_rest.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/topo/host.hpp"

static_assert(verbatim::kNoNode == verbatim::topo::kNone);

namespace verbatim {
namespace {

std::uint32_t node_of_this_thread() noexcept {
  const topo::Machine& machine = topo::host_machine();
  const std::uint32_t index = machine.node_of_this_thread();
  return index == topo::kNone ? topo::kNone : machine.nodes()[index].number;
}

std::uint32_t distance_between(std::uint32_t from, std::uint32_t to) noexcept {
  const topo::Machine& machine = topo::host_machine();
  return machine.distance(machine.node_by_number(from), machine.node_by_number(to));
}

}  // namespace

constinit const PoolMap host_pool_map{node_of_this_thread, distance_between};

PoolRest::~PoolRest() {
  std::free(static_cast<void*>(shelves_));
  std::free(indices_);
}

bool PoolRest::create(std::uint32_t count, std::uint64_t stride, const SpreadParts& parts,
                      const PoolMap& map) noexcept {
  const std::uint32_t most = std::max(parts.count, 1u);
  map_ = &map;
  shelves_ = static_cast<Shelf*>(std::malloc(most * sizeof(Shelf)));
  indices_ = static_cast<std::uint32_t*>(std::malloc(count * sizeof *indices_));
  if (shelves_ == nullptr || indices_ == nullptr) return false;
  std::uint32_t first = 0;
  for (std::uint32_t i = 0; i < most && first < count; ++i) {
    // A buffer is where its beginning is.
    const bool is_last = i + 1 == most;
    const std::uint64_t end = is_last ? count : (parts.begin(i + 1) + stride - 1) / stride;
    const auto here = static_cast<std::uint32_t>(std::min<std::uint64_t>(end, count)) - first;
    if (here == 0) continue;  // parts smaller than a buffer
    Shelf& shelf = *new (&shelves_[shelf_count_++]) Shelf;
    shelf.range = {first, here};
    if (parts.count != 0) shelf.node = parts.nodes[i];
    // The lowest addresses go out first.
    for (std::uint32_t n = 0; n < here; ++n) indices_[first + n] = first + here - 1 - n;
    shelf.left.set_locked(here);
    first += here;
  }
  return true;
}

PoolRange PoolRest::near_this_thread() const noexcept {
  constexpr PoolRange kAll{0, ~std::uint32_t{0}};
  if (shelf_count_ == 1) return kAll;
  const std::uint32_t node = map_->node_of_thread();
  for (std::uint32_t i = 0; i < shelf_count_; ++i)
    if (shelves_[i].node == node) return shelves_[i].range;
  return kAll;
}

bool PoolRest::looks_empty() const noexcept {
  for (std::uint32_t i = 0; i < shelf_count_; ++i)
    if (PoolCount::of(shelves_[i].left.look()) != 0) return false;
  return true;
}

PoolRest::Shelf& PoolRest::shelf_of(std::uint32_t index) noexcept {
  std::uint32_t i = 0;
  while (!shelves_[i].range.has(index)) ++i;
  return shelves_[i];
}

PoolRest::Shelf* PoolRest::nearest_with_some(std::uint32_t node) noexcept {
  Shelf* nearest = nullptr;
  std::uint32_t least = 0;
  for (std::uint32_t i = 0; i < shelf_count_; ++i) {
    Shelf& shelf = shelves_[i];
    if (shelf.left.locked() == 0) continue;
    const std::uint32_t distance = node == shelf.node ? 0 : map_->distance(node, shelf.node);
    if (nearest != nullptr && distance >= least) continue;
    nearest = &shelf;
    least = distance;
  }
  return nearest;
}

std::uint32_t PoolRest::take_locked(const PoolRange& near, std::uint32_t most,
                                    std::uint32_t* out) noexcept {
  Shelf* from = &shelf_of(near.first);
  if (from->left.locked() == 0) {
    from = nearest_with_some(from->node);
    if (from == nullptr) return 0;
    // What is far goes out, and is not kept: the next one may be near again.
    if (!near.has(from->range.first)) most = 1;
  }
  const std::uint32_t there = from->left.locked();
  const std::uint32_t many = std::min(there, most);
  std::copy_n(indices_ + from->range.first + there - many, many, out);
  from->left.set_locked(there - many);
  return many;
}

void PoolRest::give_locked(const std::uint32_t* indices, std::uint32_t many) noexcept {
  while (many != 0) {
    Shelf& shelf = shelf_of(*indices);
    // A batch is of one shelf, mostly.
    std::uint32_t run = shelf_count_ == 1 ? many : 1;
    while (run < many && shelf.range.has(indices[run])) ++run;
    const std::uint32_t there = shelf.left.locked();
    std::memcpy(indices_ + shelf.range.first + there, indices, run * sizeof *indices);
    shelf.left.set_locked(there + run);
    indices += run;
    many -= run;
  }
}

}  // namespace verbatim
