// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_advise_mr (its man page): pages that a peer or the application will want soon. Nothing is
// pinned here, so it is the same for every region, registered on demand or not.
#include <cerrno>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "runtime/base/log.hpp"
#include "runtime/memory/address_space.hpp"

namespace verbatim::shm {
namespace {

int refuse(int error, std::uint32_t i, const char* why) noexcept {
  log_refusal_of(why, "advise_mr: element %u %s", i, why);
  return error;
}

}  // namespace

int advise_mr(verbatim::Pd& pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* sges,
              std::uint32_t count) noexcept {
  const bool writes = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE;
  const bool reads = advice == IBV_ADVISE_MR_ADVICE_PREFETCH;
  if (!writes && !reads && advice != IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT) {
    log_refusal("advise_mr: advice %d is none that shm knows", static_cast<int>(advice));
    return EOPNOTSUPP;
  }
  constexpr std::uint32_t kFlush = IBV_ADVISE_MR_FLAG_FLUSH;
  if ((flags & ~kFlush) != 0 || count == 0 || sges == nullptr) {
    log_refusal("advise_mr: unknown flags 0x%x, or no elements", flags & ~kFlush);
    return EINVAL;
  }
  OwnSegment& segment = Process::get().segment();
  const RegionView table{segment.regions(), segment.head().mr_capacity};
  // All are judged before any is acted on.
  for (int acting = 0; acting < 2; ++acting) {
    for (std::uint32_t i = 0; i < count; ++i) {
      Region region;
      std::uint64_t offset;
      const auto is_ours = [&pd](const Region& of) noexcept {
        return is_of_domain(of, pd.plain.handle);
      };
      const std::uint32_t need = writes ? unsigned{IBV_ACCESS_LOCAL_WRITE} : 0u;
      switch (authorize(table, {sges[i].lkey, need, sges[i].addr, sges[i].length}, is_ours, region,
                        offset)) {
        case KeyFault::kNone:
          break;
        case KeyFault::kUnknown:
          return refuse(EFAULT, i, "names no region");
        case KeyFault::kRight:
          return refuse(EFAULT, i, "is to be prefetched for writing, without the right to write");
        case KeyFault::kBounds:
          return refuse(EFAULT, i, "is not within its region");
        default:
          return refuse(EFAULT, i, "names a region of another protection domain");
      }
      if (acting == 0) continue;
      const std::uint64_t at = region.address + offset;
      const int error = (flags & kFlush) != 0 && (reads || writes)
                            ? fault_in(at, sges[i].length, writes)
                            : will_need(at, sges[i].length);
      if (error != 0) return refuse(error, i, "is not all memory");
    }
  }
  return 0;
}

}  // namespace verbatim::shm
