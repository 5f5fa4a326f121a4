// SPDX-License-Identifier: BSD-2-Clause
// The slot reg_mr of siw. Any thread.
#pragma once

#include "providers/siw/objects.hpp"

namespace verbatim::siw {

int reg_mr(Pd& pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access,
           verbatim::Mr** out) noexcept;

}  // namespace verbatim::siw
