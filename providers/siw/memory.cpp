// SPDX-License-Identifier: BSD-2-Clause
#include "providers/siw/memory.hpp"

#include <cerrno>

#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::siw {

/// A steering tag is an index of the driver's and a byte of ours. A counter makes it another one
/// for a region that gets the index of one that is gone, so that its old key opens nothing.
int reg_mr(Pd& pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access,
           verbatim::Mr** out) noexcept {
  if (iova != reinterpret_cast<std::uintptr_t>(addr)) {
    log_refusal("siw: the driver knows memory by its own address only (iova)");
    return EOPNOTSUPP;
  }
  auto& context = context_of(pd.plain.context);
  Mr* const mr = make_nothrow<Mr>();
  if (mr == nullptr) return ENOMEM;
  siw_ureq_reg_mr request{};
  request.stag_key =
      static_cast<__u8>(context.regions_made.fetch_add(1, std::memory_order_relaxed));
  siw_uresp_reg_mr reply{};
  const kernel::DriverData driver{&request, sizeof request, &reply, sizeof reply};
  int error = uverbs::make_region(context, pd, addr, length, iova, access, *mr, driver);
  if (error != 0) {
    destroy_nothrow(mr);
    return error;
  }
  // Said twice, and the byte is ours.
  if (reply.stag != mr->plain.lkey || (reply.stag & 0xff) != request.stag_key) {
    mr->plain.context = context.handle();
    static_cast<void>(uverbs::dereg_mr(*mr));
    return EPROTO;
  }
  *out = mr;
  return 0;
}

}  // namespace verbatim::siw
