// SPDX-License-Identifier: BSD-2-Clause
// Memory regions and what they are made of: addresses, dma-bufs, library buffers. Any thread.
#include "abi/entry/border.hpp"
#include "runtime/verbs/memory_regions.hpp"

namespace verbatim {
namespace {

std::uint64_t address_of(const void* addr) noexcept {
  return reinterpret_cast<std::uintptr_t>(addr);
}

ibv_mr* alloc_null_mr_slot(ibv_pd* pd) { return as_pointer(alloc_null_mr(Pd::from(pd))); }

int advise_mr_slot(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* sges,
                   std::uint32_t count) {
  return as_errno(advise_mr(Pd::from(pd), advice, flags, sges, count));
}

}  // namespace

void fill_memory_slots(verbs_context& slots) noexcept {
  slots.alloc_null_mr = alloc_null_mr_slot;
  slots.advise_mr = advise_mr_slot;
  slots.reg_mr_ex = ibv_reg_mr_ex;
  slots.alloc_dmah = ibv_alloc_dmah;
  slots.dealloc_dmah = ibv_dealloc_dmah;
  slots.alloc_buf = ibv_alloc_buf;
  slots.free_buf = ibv_free_buf;
}

}  // namespace verbatim

using namespace verbatim;

VBT_ENTRY ibv_mr* ibv_reg_mr(ibv_pd* pd, void* addr, std::size_t length, int access) {
  return as_pointer(
      reg_mr(Pd::from(pd), addr, length, address_of(addr), static_cast<unsigned>(access)));
}

VBT_ENTRY ibv_mr* ibv_reg_mr_iova(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                                  int access) {
  return as_pointer(reg_mr(Pd::from(pd), addr, length, iova, static_cast<unsigned>(access)));
}

VBT_ENTRY ibv_mr* ibv_reg_mr_iova2(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova,
                                   unsigned access) {
  return as_pointer(reg_mr(Pd::from(pd), addr, length, iova, access));
}

VBT_ENTRY ibv_mr* ibv_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t length,
                                    std::uint64_t iova, int fd, int access) {
  return as_pointer(
      reg_dmabuf_mr(Pd::from(pd), offset, length, iova, fd, static_cast<unsigned>(access)));
}

VBT_ENTRY ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, ibv_mr_init_attr* attr) {
  return as_pointer(reg_mr_ex(Pd::from(pd), *attr));
}

// The result is an enum of its own (IBV_REREG_MR_ERR_*). A failed change leaves the region valid,
// in every provider, and that is what IBV_REREG_MR_ERR_INPUT says.
VBT_ENTRY int ibv_rereg_mr(ibv_mr* mr, int flags, ibv_pd* pd, void* addr, std::size_t length,
                           int access) {
  const Status status = rereg_mr(Mr::from(mr), flags, pd == nullptr ? nullptr : &Pd::from(pd), addr,
                                 length, static_cast<unsigned>(access));
  if (status.ok()) return 0;
  errno = status.error().code;
  return IBV_REREG_MR_ERR_INPUT;
}

VBT_ENTRY int ibv_dereg_mr(ibv_mr* mr) { return as_errno(dereg_mr(Mr::from(mr))); }

VBT_ENTRY ibv_dmah* ibv_alloc_dmah(ibv_context* context, ibv_dmah_init_attr* attr) {
  return as_pointer(alloc_dmah(Context::from(context), *attr));
}

VBT_ENTRY int ibv_dealloc_dmah(ibv_dmah* dmah) { return as_errno(dealloc_dmah(*dmah)); }

VBT_ENTRY void* ibv_alloc_buf(ibv_pd* pd, std::size_t size, ibv_buf** buf) {
  return as_pointer(alloc_buf(Pd::from(pd), size, *buf));
}

VBT_ENTRY void ibv_free_buf(ibv_buf* buf) { free_buf(*buf); }

VBT_ENTRY int ibv_export_buf_dmabuf_fd(ibv_buf* buf) { return as_minus_one(export_buf(*buf)); }

VBT_ENTRY ibv_buf* ibv_alloc_user_buf(ibv_pd* pd, void*, std::size_t, int) {
  return as_pointer(Result<ibv_buf*>(refuse_user_buf(Pd::from(pd))));
}

// There is none that it could be given.
VBT_ENTRY void ibv_free_user_buf(ibv_buf*) {}

VBT_ENTRY ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, ibv_buf* buf, void* addr, std::size_t length,
                                 int access) {
  return as_pointer(reg_buf_mr(Pd::from(pd), *buf, addr, length, static_cast<unsigned>(access)));
}
