// SPDX-License-Identifier: BSD-2-Clause
// Memory regions, memory windows, device memory: arguments, rights and who depends on whom. The
// keys are the provider's. Any thread.
#pragma once

#include <verbatim/query.h>

#include <cstddef>
#include <cstdint>

#include "runtime/base/result.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

Result<Mr*> reg_mr(Pd& pd, void* addr, std::size_t length, std::uint64_t iova,
                   unsigned access) noexcept;
Result<Mr*> reg_dmabuf_mr(Pd& pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                          int fd, unsigned access) noexcept;
Result<Mr*> reg_dm_mr(Pd& pd, Dm& dm, std::uint64_t offset, std::size_t length,
                      unsigned access) noexcept;
Result<Mr*> alloc_null_mr(Pd& pd) noexcept;
/// An address or a dma-buf, as comp_mask says; hints for the bus (dmah) need a provider that has
/// them.
Result<Mr*> reg_mr_ex(Pd& pd, const ibv_mr_init_attr& attr) noexcept;
/// On failure the region is as before. `pd` may be null when `flags` does not change it.
Status rereg_mr(Mr& mr, int flags, Pd* pd, void* addr, std::size_t length,
                unsigned access) noexcept;
Status dereg_mr(Mr& mr) noexcept;
Status advise_mr(Pd& pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* sges,
                 std::uint32_t count) noexcept;
/// Fills what `out` can say; asks the provider for peers when there is room for any, and the kernel
/// for the place of its pages when that is wanted.
Status query_mr(Mr& mr, vbt_mr_attr& out, bool wants_placement) noexcept;

/// The memory; `out` is its handle.
Result<void*> alloc_buf(Pd& pd, std::size_t size, ibv_buf*& out) noexcept;
void free_buf(ibv_buf& buf) noexcept;
/// No provider's buffers are DMA buffers: ENODATA, as for any that is none.
Status export_buf(ibv_buf& buf) noexcept;
/// Queues in memory of the program's choice are what no provider has: EOPNOTSUPP.
Error refuse_user_buf(Pd& pd) noexcept;
Result<Mr*> reg_buf_mr(Pd& pd, ibv_buf& buf, void* addr, std::size_t length,
                       unsigned access) noexcept;
Result<ibv_dmah*> alloc_dmah(Context& context, const ibv_dmah_init_attr& attr) noexcept;
Status dealloc_dmah(ibv_dmah& dmah) noexcept;

Result<Mw*> alloc_mw(Pd& pd, ibv_mw_type type) noexcept;
Status bind_mw(Qp& qp, Mw& mw, ibv_mw_bind& bind) noexcept;
Status dealloc_mw(Mw& mw) noexcept;

Result<Dm*> alloc_dm(Context& context, const ibv_alloc_dm_attr& attr) noexcept;
Status free_dm(Dm& dm) noexcept;
/// A new dma-buf descriptor.
Result<int> export_dm(Dm& dm) noexcept;

}  // namespace verbatim
