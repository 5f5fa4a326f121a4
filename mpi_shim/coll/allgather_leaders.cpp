// SPDX-License-Identifier: BSD-2-Clause
// The leader of a node gathers its slices in a row of packed ones, the leaders exchange their parts of
// it, and each tells its ranks the whole row by a binomial tree.
//
// Wins: short slices, several ranks on each of several nodes.
// Cost: r' + N G + log N r + log S (r' + n G'), n of all slices, S ranks on each of N nodes, r' and G' within one.
#include "mpi_shim/coll/leaders.hpp"

namespace vmpi {
namespace {

/// By the numbers of nodes, whose parts of the row are slices.
void exchange_parts(Plan& plan, const Led& led, const PackedRow& row) noexcept {
  const int count = led.nodes.count();
  Array<std::int64_t> offsets;
  if (!offsets.resize(static_cast<std::size_t>(count) + 1)) return plan.fail();
  for (int i = 0; i <= count; ++i)
    offsets[static_cast<std::size_t>(i)] = row.offsets[led.nodes.begin_of(i)];
  Slices parts;
  parts.form = Slices::Form::kPacked;
  parts.buffer = row.row;
  parts.offsets = offsets.data();
  const Typed in_place = {MPI_IN_PLACE, 0, &byte_type()};
  Operands of;
  of.own = &in_place;
  of.out = &parts;
  const AmongLeaders among(plan, led);
  const bool is_power_of_two = (count & (count - 1)) == 0;
  (is_power_of_two ? allgather_recursive_doubling : allgather_bruck)(plan, of);
}

}  // namespace

bool gather_row(Plan& plan, const Led& led, const Operands& of, PackedRow& row) noexcept {
  const Slices& out = *of.out;
  const int size = plan.size();
  auto* const offsets = static_cast<std::int64_t*>(
      static_cast<void*>(plan.bytes((size + 1) * std::int64_t{sizeof(std::int64_t)})));
  if (offsets == nullptr) return false;
  offsets[0] = 0;
  for (int i = 0; i < size; ++i) offsets[i + 1] = offsets[i] + out.bytes(led.nodes.sorted()[i]);
  row.offsets = offsets;
  row.row = plan.bytes(offsets[size]);
  if (row.row == nullptr) return false;
  const Typed own = of.own->is_in_place() ? out[plan.rank()] : *of.own;
  const int begin = led.nodes.begin_of(led.node);
  {
    const WithinNode within(plan, led);
    if (!led.leads) {
      plan.send_some(led.leader, own);
    } else {
      for (int i = 0; i < led.ranks_here(); ++i) {
        const Typed part = row.part(begin + i, begin + i + 1);
        if (i != led.place)
          plan.receive_some(i, part);
        else
          plan.copy(own, part);
      }
    }
    plan.fence();
  }
  if (led.leads) exchange_parts(plan, led, row);
  return true;
}

void spread_row(Plan& plan, const Led& led, const Operands& of, const PackedRow& row) noexcept {
  for (int i = 0; i < led.nodes.ranks(); ++i) {
    const int rank = led.nodes.sorted()[i];
    const bool is_there = rank == plan.rank() && of.own->is_in_place();
    if (!is_there && row.offsets[i] != row.offsets[i + 1])
      plan.copy(row.part(i, i + 1), (*of.out)[rank]);
  }
}

void allgather_leaders(Plan& plan, const Operands& of) noexcept {
  const Led led(plan, 0);
  PackedRow row;
  if (!gather_row(plan, led, of, row)) return;
  if (row.offsets[led.nodes.ranks()] != 0) {
    const WithinNode within(plan, led);
    const Typed whole = row.whole(led.nodes);
    Operands parts;
    parts.root = led.leader;
    parts.own = &whole;
    bcast_binomial(plan, parts);
  }
  spread_row(plan, led, of, row);
}

}  // namespace vmpi
