// SPDX-License-Identifier: BSD-2-Clause
// Protection domains, memory regions and windows that live in the kernel: slots as they are. Any
// thread. Regions pin their pages; what that costs, and why it was refused, is in the log.
#pragma once

#include "providers/uverbs/context.hpp"
#include "runtime/memory/fork_guard.hpp"

namespace verbatim::uverbs {

/// Registered memory that vbt_alloc_shared gave: it is not given back meanwhile.
struct HeldShared {
  const void* at = nullptr;
  std::uint64_t length = 0;  ///< 0: none

  static HeldShared take(const void* addr, std::uint64_t length) noexcept;
  void drop() noexcept;
};

struct Mr : verbatim::Mr {
  RegionEntry entry;       ///< in Context::regions
  ForkGuard::Range forks;  ///< what is kept from forked children for it
  HeldShared shared;
};

int alloc_pd(verbatim::Context& context, Pd** out) noexcept;
int dealloc_pd(Pd& pd) noexcept;

/// Fills handle and keys: for a driver that has something to say and to hear beside. 0 or errno
/// (that of pinning explained), and then there is nothing to undo.
[[nodiscard]] int make_region(Context& context, const Pd& pd, void* addr, std::size_t length,
                              std::uint64_t iova, unsigned access, Mr& mr,
                              const kernel::DriverData& driver) noexcept;
int reg_mr(Pd& pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access,
           verbatim::Mr** out) noexcept;
int rereg_mr(verbatim::Mr& mr, int flags, Pd* pd, void* addr, std::size_t length,
             unsigned access) noexcept;
int dereg_mr(verbatim::Mr& mr) noexcept;

int alloc_mw(Pd& pd, ibv_mw_type type, Mw** out) noexcept;
int dealloc_mw(Mw& mw) noexcept;

}  // namespace verbatim::uverbs
