// SPDX-License-Identifier: BSD-2-Clause
// Access flags and ranges are checked here for every way to register, so that a provider sees sound
// ones only. A region of this process's memory holds its blocks in the ledger, since vbt_free must
// refuse what is registered. Access rules: IBTA 10.6.3.1, man ibv_reg_mr.
#include "runtime/verbs/memory_regions.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "runtime/base/make_nothrow.hpp"
#include "runtime/base/memcheck.hpp"
#include "runtime/memory/ledger.hpp"
#include "runtime/verbs/context_objects.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/placement.hpp"
#include "runtime/verbs/provider.hpp"

namespace verbatim {
namespace {

constexpr unsigned kKnownAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_ON_DEMAND |
    IBV_ACCESS_HUGETLB | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;

Status check_access(const char* verb, unsigned access) noexcept {
  // Bits of the optional range are hints by definition: unknown ones are for providers to ignore.
  constexpr auto kOptional = static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE);
  if ((access & ~(kKnownAccess | kOptional)) != 0) {
    return refuse(EINVAL, verb, "unknown access flags");
  }
  constexpr unsigned kRemoteWriters = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
  if ((access & kRemoteWriters) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0) {
    return refuse(EINVAL, verb, "REMOTE_WRITE and REMOTE_ATOMIC need LOCAL_WRITE");
  }
  return {};
}

Status check_range(const char* verb, const void* addr, std::size_t length,
                   unsigned access) noexcept {
  // "All of my address space", on demand.
  if (addr == nullptr && length == SIZE_MAX && (access & IBV_ACCESS_ON_DEMAND) != 0) return {};
  if (length == 0) return refuse(EINVAL, verb, "a region of 0 bytes");
  if (reinterpret_cast<std::uintptr_t>(addr) > UINTPTR_MAX - (length - 1)) {
    return refuse(EINVAL, verb, "the range runs past the end of the address space");
  }
  return {};
}

/// Tells memcheck of the region once, since nobody hears when the device stores what; but not of a
/// whole address space.
void tell_memcheck(void* addr, std::size_t length, unsigned access) noexcept {
  if ((access & IBV_ACCESS_LOCAL_WRITE) != 0 && length != SIZE_MAX) {
    expect_written_by_others(addr, length);
  }
}

/// The fields that are the runtime's, once the provider has made the region.
Mr* complete(Mr* mr, Pd& pd, void* addr, std::size_t length, std::uint64_t iova,
             unsigned access) noexcept {
  mr->plain.context = pd.plain.context;
  mr->plain.pd = &pd.plain;
  mr->plain.addr = addr;
  mr->plain.length = length;
  mr->iova = iova;
  mr->access = access;
  pin(&pd);
  own(*mr);
  return mr;
}

/// Completes a region of addresses of this process, which vbt_free keeps while the region lives.
Mr* complete_memory(Mr* mr, Pd& pd, void* addr, std::size_t length, std::uint64_t iova,
                    unsigned access) noexcept {
  mr->held = ledger_hold(addr, length);
  tell_memcheck(addr, length, access);
  return complete(mr, pd, addr, length, iova, access);
}

}  // namespace

Result<Mr*> reg_mr(Pd& pd, void* addr, std::size_t length, std::uint64_t iova,
                   unsigned access) noexcept {
  constexpr const char* kVerb = "ibv_reg_mr";
  if (const Status status = check_access(kVerb, access); !status.ok()) return status.error();
  if (const Status status = check_range(kVerb, addr, length, access); !status.ok()) {
    return status.error();
  }
  // Offsets from the start of the region take the place of addresses.
  if ((access & IBV_ACCESS_ZERO_BASED) != 0) iova = 0;
  if (iova > UINT64_MAX - (length - 1)) {
    return refuse(EINVAL, kVerb, "iova and length run past 2^64");
  }
  Mr* mr = nullptr;
  if (const int error = table_of(pd).reg_mr(pd, addr, length, iova, access, &mr)) {
    return Error{error, "reg_mr"};
  }
  return complete_memory(mr, pd, addr, length, iova, access);
}

Result<Mr*> reg_dmabuf_mr(Pd& pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                          int fd, unsigned access) noexcept {
  constexpr const char* kVerb = "ibv_reg_dmabuf_mr";
  if (const Status status = check_access(kVerb, access); !status.ok()) return status.error();
  if (length == 0) return refuse(EINVAL, kVerb, "a region of 0 bytes");
  if (fd < 0) return refuse(EBADF, kVerb, "not a dma-buf descriptor");
  Mr* mr = nullptr;
  if (const int error = table_of(pd).reg_dmabuf_mr(pd, offset, length, iova, fd, access, &mr)) {
    return Error{error, "reg_dmabuf_mr"};
  }
  return complete(mr, pd, reinterpret_cast<void*>(offset), length, iova, access);
}

Result<Mr*> reg_dm_mr(Pd& pd, Dm& dm, std::uint64_t offset, std::size_t length,
                      unsigned access) noexcept {
  constexpr const char* kVerb = "ibv_reg_dm_mr";
  if (const Status status = check_access(kVerb, access); !status.ok()) return status.error();
  if (dm.plain.context != pd.plain.context) {
    return refuse(EINVAL, kVerb, "the device memory belongs to another context");
  }
  Mr* mr = nullptr;
  if (const int error = table_of(pd).reg_dm_mr(pd, dm.plain, offset, length, access, &mr)) {
    return Error{error, "reg_dm_mr"};
  }
  mr->device_memory = &dm.plain;
  pin(&dm);
  return complete(mr, pd, nullptr, length, 0, access);
}

Result<Mr*> alloc_null_mr(Pd& pd) noexcept {
  Mr* mr = nullptr;
  if (const int error = table_of(pd).alloc_null_mr(pd, &mr)) return Error{error, "alloc_null_mr"};
  return complete(mr, pd, nullptr, SIZE_MAX, 0, 0);
}

namespace {

/// Memory of ibv_alloc_buf (man ibv_alloc_buf).
Result<Mr*> reg_buf_mr_ex(Pd& pd, const ibv_mr_init_attr& attr) noexcept {
  constexpr const char* kVerb = "ibv_reg_mr_ex";
  if (attr.buf == nullptr || (attr.comp_mask & IBV_REG_MR_MASK_ADDR) == 0) {
    return refuse(EINVAL, kVerb, "IBV_REG_MR_MASK_BUF needs buf, and addr within it");
  }
  if ((attr.comp_mask & (IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET)) != 0) {
    return refuse(EINVAL, kVerb, "buf says where the memory lies, fd and fd_offset cannot");
  }
  if ((attr.comp_mask & (IBV_REG_MR_MASK_IOVA | IBV_REG_MR_MASK_DMAH)) != 0) {
    return refuse(EOPNOTSUPP, kVerb, "no iova and no dmah for the memory of buf");
  }
  return reg_buf_mr(pd, *attr.buf, attr.addr, attr.length, static_cast<unsigned>(attr.access));
}

}  // namespace

Result<Mr*> reg_mr_ex(Pd& pd, const ibv_mr_init_attr& attr) noexcept {
  constexpr const char* kVerb = "ibv_reg_mr_ex";
  constexpr std::uint64_t kKnown = IBV_REG_MR_MASK_IOVA | IBV_REG_MR_MASK_ADDR |
                                   IBV_REG_MR_MASK_FD | IBV_REG_MR_MASK_FD_OFFSET |
                                   IBV_REG_MR_MASK_DMAH | IBV_REG_MR_MASK_BUF;
  const auto given = [&](std::uint64_t bit) { return (attr.comp_mask & bit) != 0; };
  if ((attr.comp_mask & ~kKnown) != 0) return refuse(EINVAL, kVerb, "unknown bits in comp_mask");
  if (given(IBV_REG_MR_MASK_BUF)) return reg_buf_mr_ex(pd, attr);
  if (given(IBV_REG_MR_MASK_FD) == given(IBV_REG_MR_MASK_ADDR) ||
      given(IBV_REG_MR_MASK_FD) != given(IBV_REG_MR_MASK_FD_OFFSET)) {
    return refuse(EINVAL, kVerb, "needs either addr, or fd with fd_offset");
  }
  const auto access = static_cast<unsigned>(attr.access);
  if (given(IBV_REG_MR_MASK_DMAH)) {
    if (const Status status = check_access(kVerb, access); !status.ok()) return status.error();
    Mr* mr = nullptr;
    if (const int error = table_of(pd).reg_mr_ex(pd, attr, &mr)) return Error{error, "reg_mr_ex"};
    if (!given(IBV_REG_MR_MASK_ADDR)) {
      return complete(mr, pd, attr.addr, attr.length, attr.iova, access);
    }
    return complete_memory(mr, pd, attr.addr, attr.length, attr.iova, access);
  }
  if (given(IBV_REG_MR_MASK_FD)) {
    const std::uint64_t iova = given(IBV_REG_MR_MASK_IOVA) ? attr.iova : attr.fd_offset;
    return reg_dmabuf_mr(pd, attr.fd_offset, attr.length, iova, attr.fd, access);
  }
  const std::uint64_t iova =
      given(IBV_REG_MR_MASK_IOVA) ? attr.iova : reinterpret_cast<std::uintptr_t>(attr.addr);
  return reg_mr(pd, attr.addr, attr.length, iova, access);
}

Status rereg_mr(Mr& mr, int flags, Pd* pd, void* addr, std::size_t length,
                unsigned access) noexcept {
  constexpr const char* kVerb = "ibv_rereg_mr";
  if (flags == 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0) {
    return refuse(EINVAL, kVerb, "flags must name what changes, and nothing unknown");
  }
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  const bool changes_pd = (flags & IBV_REREG_MR_CHANGE_PD) != 0;
  const bool changes_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  if (changes_access) {
    if (const Status status = check_access(kVerb, access); !status.ok()) return status;
  }
  if (moves) {
    const unsigned rights = changes_access ? access : mr.access;
    if (const Status status = check_range(kVerb, addr, length, rights); !status.ok()) return status;
  }
  if (changes_pd && (pd == nullptr || pd->plain.context != mr.plain.context)) {
    return refuse(EINVAL, kVerb, "the new protection domain is missing or of another context");
  }
  if (const std::uint32_t uses = still_used(mr)) {
    return refuse_busy(kVerb, uses, "memory windows");
  }
  if (const int error =
          table_of(mr).rereg_mr(mr, flags, changes_pd ? pd : nullptr, addr, length, access)) {
    return Error{error, "rereg_mr"};
  }
  if (changes_pd) {
    pin(pd);
    unpin(&Pd::from(mr.plain.pd));
    mr.plain.pd = &pd->plain;
  }
  if (moves) {
    ledger_drop(mr.plain.addr, mr.plain.length, mr.held);
    mr.held = ledger_hold(addr, length);
    mr.plain.addr = addr;
    mr.plain.length = length;
    const unsigned rights = changes_access ? access : mr.access;
    mr.iova = (rights & IBV_ACCESS_ZERO_BASED) != 0 ? 0 : reinterpret_cast<std::uintptr_t>(addr);
  }
  if (changes_access) mr.access = access;
  tell_memcheck(mr.plain.addr, mr.plain.length, mr.access);
  return {};
}

Status dereg_mr(Mr& mr) noexcept {
  if (was_left(mr)) return {};
  if (const std::uint32_t uses = still_used(mr)) {
    return refuse_busy("ibv_dereg_mr", uses, "memory windows");
  }
  Pd& pd = Pd::from(mr.plain.pd);
  Dm* const dm = mr.device_memory == nullptr ? nullptr : &Dm::from(mr.device_memory);
  const void* const address = mr.plain.addr;
  const std::uint64_t length = mr.plain.length;
  const std::uint64_t held = mr.held;
  const bool is_shared = has_other_handles(mr);
  disown(mr);
  if (const int error = table_of(mr).dereg_mr(mr)) {
    own_again(mr);
    return Error{error, "dereg_mr"};
  }
  if (is_shared) leave_to_other_handles(mr.plain.context, mr.owned);
  ledger_drop(address, length, held);
  unpin(&pd, dm);
  return {};
}

Status advise_mr(Pd& pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* sges,
                 std::uint32_t count) noexcept {
  return Status::from_errno(table_of(pd).advise_mr(pd, advice, flags, sges, count), "advise_mr");
}

Status query_mr(Mr& mr, vbt_mr_attr& out, bool wants_placement) noexcept {
  out.address = mr.plain.addr;
  out.length = mr.plain.length;
  out.iova = mr.iova;
  out.pd = mr.plain.pd;
  out.access = mr.access;
  out.lkey = mr.plain.lkey;
  out.rkey = mr.plain.rkey;
  out.window_count = still_used(mr);
  if (wants_placement) report_placement(mr, out);
  out.peer_count = 0;
  if (out.peer_room == 0) return {};
  return Status::from_errno(
      table_of(mr).query_mr_peers(mr, out.peers, out.peer_room, out.peer_count), "query_mr_peers");
}

namespace {

/// Allocates a buffer for providers that like no memory better than other.
int alloc_ordinary_buf(std::size_t size, ibv_buf** out) noexcept {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  if (size > SIZE_MAX - page) return ENOMEM;
  void* const memory = std::aligned_alloc(page, (size + page - 1) / page * page);
  ibv_buf* const buf = memory == nullptr ? nullptr : make_nothrow<ibv_buf>();
  if (buf == nullptr) {
    std::free(memory);
    return ENOMEM;
  }
  *buf = {nullptr, memory, size, true};
  *out = buf;
  return 0;
}

}  // namespace

Result<void*> alloc_buf(Pd& pd, std::size_t size, ibv_buf*& out) noexcept {
  if (size == 0) return refuse(EINVAL, "ibv_alloc_buf", "0 bytes");
  ibv_buf* buf = nullptr;
  int error = table_of(pd).alloc_buf(pd, size, &buf);
  if (error == EOPNOTSUPP) error = alloc_ordinary_buf(size, &buf);
  if (error != 0) return Error{error, "alloc_buf"};
  buf->pd = &pd.plain;
  pin(&pd);
  out = buf;
  return buf->memory;
}

void free_buf(ibv_buf& buf) noexcept {
  Pd& pd = Pd::from(buf.pd);
  if (buf.is_runtimes) {
    std::free(buf.memory);
    destroy_nothrow(&buf);
  } else {
    table_of(pd).free_buf(buf);
  }
  unpin(&pd);
}

Status export_buf(ibv_buf&) noexcept {
  return refuse(ENODATA, "ibv_export_buf_dmabuf_fd", "no DMA buffer is behind this memory");
}

Error refuse_user_buf(Pd& pd) noexcept {
  static constinit std::atomic<bool> said{false};
  report_unsupported(table_of(pd).name, "alloc_user_buf", said);
  return Error{EOPNOTSUPP, "alloc_user_buf"};
}

Result<Mr*> reg_buf_mr(Pd& pd, ibv_buf& buf, void* addr, std::size_t length,
                       unsigned access) noexcept {
  constexpr const char* kVerb = "ibv_reg_buf_mr";
  if (const Status status = check_access(kVerb, access); !status.ok()) return status.error();
  const auto first = reinterpret_cast<std::uintptr_t>(buf.memory);
  const auto asked = reinterpret_cast<std::uintptr_t>(addr);
  if (buf.pd != &pd.plain) return refuse(EINVAL, kVerb, "the buffer is of another domain");
  if (length == 0 || asked < first || asked - first > buf.size ||
      length > buf.size - (asked - first)) {
    return refuse(EINVAL, kVerb, "the range is not within the buffer");
  }
  Mr* mr = nullptr;
  const int error =
      buf.is_runtimes ? EOPNOTSUPP : table_of(pd).reg_buf_mr(pd, buf, addr, length, access, &mr);
  if (error == EOPNOTSUPP) return reg_mr(pd, addr, length, asked, access);
  if (error != 0) return Error{error, "reg_buf_mr"};
  return complete_memory(mr, pd, addr, length, asked, access);
}

Result<ibv_dmah*> alloc_dmah(Context& context, const ibv_dmah_init_attr& attr) noexcept {
  ibv_dmah* dmah = nullptr;
  if (const int error = table_of(context).alloc_dmah(context, attr, &dmah)) {
    return Error{error, "alloc_dmah"};
  }
  dmah->context = context.handle();
  pin(&context);
  return dmah;
}

Status dealloc_dmah(ibv_dmah& dmah) noexcept {
  Context& context = Context::from(dmah.context);
  if (const int error = table_of(context).dealloc_dmah(dmah)) return Error{error, "dealloc_dmah"};
  unpin(&context);
  return {};
}

Result<Mw*> alloc_mw(Pd& pd, ibv_mw_type type) noexcept {
  if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2) {
    return refuse(EINVAL, "ibv_alloc_mw", "unknown window type");
  }
  Mw* mw = nullptr;
  if (const int error = table_of(pd).alloc_mw(pd, type, &mw)) return Error{error, "alloc_mw"};
  mw->plain.context = pd.plain.context;
  mw->plain.pd = &pd.plain;
  mw->plain.type = type;
  pin(&pd);
  own(*mw);
  return mw;
}

Status bind_mw(Qp& qp, Mw& mw, ibv_mw_bind& bind) noexcept {
  return Status::from_errno(table_of(mw).bind_mw(qp, mw, bind), "bind_mw");
}

Status dealloc_mw(Mw& mw) noexcept {
  if (was_left(mw)) return {};
  Pd& pd = Pd::from(mw.plain.pd);
  disown(mw);
  if (const int error = table_of(mw).dealloc_mw(mw)) {
    own_again(mw);
    return Error{error, "dealloc_mw"};
  }
  unpin(&pd);
  return {};
}

Result<Dm*> alloc_dm(Context& context, const ibv_alloc_dm_attr& attr) noexcept {
  if (attr.comp_mask != 0) return refuse(EINVAL, "ibv_alloc_dm", "unknown bits in comp_mask");
  Dm* dm = nullptr;
  if (const int error = table_of(context).alloc_dm(context, attr, &dm)) {
    return Error{error, "alloc_dm"};
  }
  pin(&context);
  dm->plain.context = context.handle();
  own(*dm);
  return dm;
}

Status free_dm(Dm& dm) noexcept {
  if (was_left(dm)) return {};
  if (const std::uint32_t uses = still_used(dm)) {
    return refuse_busy("ibv_free_dm", uses, "memory regions");
  }
  Context& context = context_of(dm);
  const bool is_shared = has_other_handles(dm);
  disown(dm);
  if (const int error = table_of(context).free_dm(dm)) {
    own_again(dm);
    return Error{error, "free_dm"};
  }
  if (is_shared) leave_to_other_handles(dm.plain.context, dm.owned);
  unpin(&context);
  return {};
}

Result<int> export_dm(Dm& dm) noexcept {
  int fd = -1;
  if (const int error = table_of(dm).dm_export_dmabuf_fd(dm, &fd)) {
    return Error{error, "dm_export_dmabuf_fd"};
  }
  return fd;
}

}  // namespace verbatim
