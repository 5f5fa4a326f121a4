// SPDX-License-Identifier: BSD-2-Clause
//
// Protection domains, memory regions and address handles as verbs. Nothing is pinned: a
// registration publishes a record that says what its keys mean.
#pragma once

#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

int alloc_pd(verbatim::Context& context, verbatim::Pd** out) noexcept;
int dealloc_pd(verbatim::Pd& pd) noexcept;
int reg_mr(verbatim::Pd& pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access,
           verbatim::Mr** out) noexcept;
int dereg_mr(verbatim::Mr& mr) noexcept;
int create_ah(verbatim::Pd& pd, const ibv_ah_attr& attr, verbatim::Ah** out) noexcept;
int destroy_ah(verbatim::Ah& ah) noexcept;

}  // namespace verbatim::shm
