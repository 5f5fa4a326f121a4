// SPDX-License-Identifier: BSD-2-Clause
// What an alltoall gives, also in place: then it is put aside, since what comes takes its place.
#pragma once

#include "mpi_shim/coll/algorithms.hpp"

namespace vmpi {

class Given {
 public:
  /// The plan has failed without memory.
  Given(Plan& plan, const Operands& of) noexcept : slices_(*of.in) {
    if (slices_.buffer != MPI_IN_PLACE) return;
    const auto size = static_cast<std::size_t>(plan.size());
    if (!offsets_.resize(size + 1)) {
      plan.fail();
      return;
    }
    for (std::size_t i = 0; i < size; ++i)
      offsets_[i + 1] = offsets_[i] + of.out->bytes(static_cast<int>(i));
    slices_.form = Slices::Form::kPacked;
    slices_.buffer = plan.bytes(offsets_[size]);
    slices_.offsets = offsets_.data();
    for (int i = 0; i < plan.size(); ++i) plan.copy((*of.out)[i], slices_[i]);
  }
  [[nodiscard]] Typed operator[](int rank) const noexcept { return slices_[rank]; }

 private:
  Slices slices_;
  Array<std::int64_t> offsets_;
};

}  // namespace vmpi
