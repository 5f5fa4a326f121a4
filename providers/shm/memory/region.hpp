// SPDX-License-Identifier: BSD-2-Clause
//
// Memory regions as verbs. Nothing is pinned: a
// registration publishes a record that says what its keys mean.
#pragma once

#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

struct Mr;

/// Publishes `mr` for what mr.shown says of its range, rights and holder, and gives it its keys.
/// On failure nothing is left of it but the object.
int publish_mr(Mr& mr) noexcept;
/// Is it on demand, of memory that can go while it is registered?
bool may_lack_pages(const Mr& mr) noexcept;
/// A region that starts at address 0 for those who name it and stays as it is.
int reg_fixed_mr(verbatim::Pd& pd, void* memory, std::size_t length, unsigned access,
                 verbatim::Mr** out) noexcept;
/// Rights that this provider can honour: 0, or EOPNOTSUPP with the reason in the log.
int check_rights(unsigned access) noexcept;

int reg_mr(verbatim::Pd& pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access,
           verbatim::Mr** out) noexcept;
/// The keys stay. EBUSY: a peer was stopped in the middle of a copy; the region is as before.
int rereg_mr(verbatim::Mr& mr, int flags, verbatim::Pd* pd, void* addr, std::size_t length,
             unsigned access) noexcept;
int dereg_mr(verbatim::Mr& mr) noexcept;
int reg_dm_mr(verbatim::Pd& pd, ibv_dm& dm, std::uint64_t offset, std::size_t length,
              unsigned access, verbatim::Mr** out) noexcept;
int alloc_null_mr(verbatim::Pd& pd, verbatim::Mr** out) noexcept;
int reg_dmabuf_mr(verbatim::Pd& pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                  int fd, unsigned access, verbatim::Mr** out) noexcept;
int advise_mr(verbatim::Pd& pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* sges,
              std::uint32_t count) noexcept;

}  // namespace verbatim::shm
