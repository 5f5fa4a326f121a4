// SPDX-License-Identifier: BSD-2-Clause
#include "providers/uverbs/memory.hpp"

#include <cstring>

#include "abi/kernel/placement.hpp"
#include "providers/uverbs/forget.hpp"
#include "providers/uverbs/pinned_memory.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/verbs/placement.hpp"

namespace verbatim::uverbs {
namespace {

/// Kernels that do not say that they know optional access refuse what they do not know.
unsigned access_for(const Context& context, unsigned access) noexcept {
  constexpr auto kOptional = static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE);
  const bool knows = (context.core_support & IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS) != 0;
  return knows ? access : access & ~kOptional;
}

/// Access that the kernel calls a wrong argument where a device does not have it, and where it does
/// not know of it itself.
bool lacks(Context& context, unsigned access) noexcept {
  constexpr unsigned kAsked =
      IBV_ACCESS_ON_DEMAND | IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT;
  if ((access & kAsked) == 0) return false;
  ibv_device_attr_ex attr{};
  if (query_device(context, attr) != 0) return true;
  const auto has = [&](std::uint64_t flag) { return (attr.device_cap_flags_ex & flag) != 0; };
  unsigned there = 0;
  if ((attr.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0) there |= IBV_ACCESS_ON_DEMAND;
  if (has(kernel::kDeviceFlushGlobal)) there |= IBV_ACCESS_FLUSH_GLOBAL;
  if (has(kernel::kDeviceFlushPersistent)) there |= IBV_ACCESS_FLUSH_PERSISTENT;
  return (access & kAsked & ~there) != 0;
}

/// Keeps the pages from forked children before the kernel is asked to pin them: 0 or errno, said
/// why.
int keep_from_children(const void* addr, std::size_t length, unsigned access,
                       ForkGuard::Range& out) noexcept {
  // What pages on demand follows the process's own pages.
  if ((access & IBV_ACCESS_ON_DEMAND) != 0) return 0;
  const int error = fork_safety::hold(addr, length, out);
  if (error != 0) {
    log_error(
        "%zu bytes cannot be kept from forked children: %s; register memory that is mapped, or "
        "fork before the first registration only and do not ask for fork safety",
        length, std::strerror(error));
  }
  return error;
}

}  // namespace

HeldShared HeldShared::take(const void* addr, std::uint64_t length) noexcept {
  ArenaView view;
  if (length == 0 || !arena_hold(addr, length, view)) return {};
  return {addr, length};
}

void HeldShared::drop() noexcept {
  if (length != 0) arena_drop(at, length);
  *this = {};
}

int make_region(Context& context, const Pd& pd, void* addr, std::size_t length, std::uint64_t iova,
                unsigned access, Mr& mr, const kernel::DriverData& driver) noexcept {
  ib_uverbs_reg_mr request{};
  request.start = reinterpret_cast<std::uintptr_t>(addr);
  request.length = length;
  request.hca_va = iova;
  request.pd_handle = pd.plain.handle;
  request.access_flags = access_for(context, access);
  ib_uverbs_reg_mr_resp reply{};
  ForkGuard::Range forks;
  if (const int error = keep_from_children(addr, length, access, forks)) return error;
  HeldShared shared = HeldShared::take(addr, length);
  const Pinning pinning(addr, length, access);
  const int error =
      context.command_channel.command(IB_USER_VERBS_CMD_REG_MR, request, reply, driver);
  if (error != 0) {
    fork_safety::release(forks);
    shared.drop();
    pinning.explain(error, context.heeds_ipc_lock);
  }
  if (error == EINVAL && lacks(context, access)) return EOPNOTSUPP;
  if (error != 0) return error;
  if (const int wrong = context.objects.claim(reply.mr_handle)) {
    fork_safety::release(forks);
    shared.drop();
    return wrong;
  }
  mr.forks = forks;
  mr.shared = shared;
  mr.plain.handle = reply.mr_handle;
  mr.plain.lkey = reply.lkey;
  mr.plain.rkey = reply.rkey;
  mr.pinned = pinning.bytes();
  context.regions.add(mr.entry, {reply.lkey, pd.plain.handle, access, iova, length});
  // The pages have come with the registration; a post is too fast to look at them.
  if (mr.pinned != 0) warn_of_remote_buffer("registered", addr, length);
  return 0;
}

int alloc_pd(verbatim::Context& plain, Pd** out) noexcept {
  auto& context = static_cast<Context&>(plain);
  Pd* const pd = make_nothrow<Pd>();
  if (pd == nullptr) return ENOMEM;
  ib_uverbs_alloc_pd request{};
  ib_uverbs_alloc_pd_resp reply{};
  int error = context.command_channel.command(IB_USER_VERBS_CMD_ALLOC_PD, request, reply);
  if (error == 0) error = context.objects.claim(reply.pd_handle);
  if (error != 0) {
    destroy_nothrow(pd);
    return error;
  }
  pd->plain.handle = reply.pd_handle;
  *out = pd;
  return 0;
}

int dealloc_pd(Pd& pd) noexcept {
  const int error = forget_plain<ib_uverbs_dealloc_pd>(
      context_of(pd), pd.plain.handle, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY,
      UVERBS_ATTR_DESTROY_PD_HANDLE, IB_USER_VERBS_CMD_DEALLOC_PD);
  if (error == 0) destroy_nothrow(&pd);
  return error;
}

int reg_mr(Pd& pd, void* addr, std::size_t length, std::uint64_t iova, unsigned access,
           verbatim::Mr** out) noexcept {
  Mr* const mr = make_nothrow<Mr>();
  if (mr == nullptr) return ENOMEM;
  const int error = make_region(context_of(pd), pd, addr, length, iova, access, *mr, {});
  if (error != 0) {
    destroy_nothrow(mr);
    return error;
  }
  *out = mr;
  return 0;
}

namespace {

/// Destroys it in the kernel.
int forget_region(Context& context, std::uint32_t handle) noexcept {
  return forget_plain<ib_uverbs_dereg_mr>(context, handle, UVERBS_OBJECT_MR,
                                          UVERBS_METHOD_MR_DESTROY, UVERBS_ATTR_DESTROY_MR_HANDLE,
                                          IB_USER_VERBS_CMD_DEREG_MR);
}

/// Pages that were pinned for reading stay so, and a driver refuses (EACCES) to let their region be
/// written. Another one of the same memory takes its place, with keys of its own (man
/// ibv_rereg_mr). On failure all of it stays.
int replace_region(Context& context, Mr& mr, std::uint32_t pd_handle, unsigned access) noexcept {
  Pd pd;
  pd.plain.handle = pd_handle;
  Mr other;
  if (const int error = make_region(context, pd, mr.plain.addr, mr.plain.length,
                                    mr.entry.facts.first, access, other, {}))
    return error;
  const RegionFacts now = other.entry.facts;
  const RegionFacts before = mr.entry.facts;
  context.regions.remove(other.entry);
  context.regions.remove(mr.entry);
  if (const int error = forget_region(context, mr.plain.handle)) {
    context.regions.add(mr.entry, before);
    static_cast<void>(forget_region(context, other.plain.handle));
    fork_safety::release(other.forks);
    other.shared.drop();
    return error;
  }
  context.regions.add(mr.entry, now);
  fork_safety::release(mr.forks);
  mr.shared.drop();
  mr.forks = other.forks;
  mr.shared = other.shared;
  mr.pinned = other.pinned;
  mr.plain.handle = other.plain.handle;
  mr.plain.lkey = other.plain.lkey;
  mr.plain.rkey = other.plain.rkey;
  return 0;
}

}  // namespace

int rereg_mr(verbatim::Mr& plain, int flags, Pd* pd, void* addr, std::size_t length,
             unsigned access) noexcept {
  auto& mr = static_cast<Mr&>(plain);
  Context& context = context_of(mr);
  ib_uverbs_rereg_mr request{};
  request.mr_handle = mr.plain.handle;
  request.flags = static_cast<std::uint32_t>(flags);
  const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
  if (moves) {
    request.start = reinterpret_cast<std::uintptr_t>(addr);
    request.length = length;
    request.hca_va = request.start;
  }
  if (pd != nullptr) request.pd_handle = pd->plain.handle;
  const bool changes_access = (flags & IBV_REREG_MR_CHANGE_ACCESS) != 0;
  if (changes_access) {
    request.access_flags = access_for(context, access);
  }
  ib_uverbs_rereg_mr_resp reply{};
  ForkGuard::Range forks;
  if (const int error =
          keep_from_children(addr, moves ? length : 0, changes_access ? access : mr.access, forks))
    return error;
  HeldShared shared = HeldShared::take(addr, moves ? length : 0);
  const Pinning pinning(addr, moves ? length : 0, changes_access ? access : mr.access);
  const int error = context.command_channel.command(IB_USER_VERBS_CMD_REREG_MR, request, reply);
  if (error != 0) {
    fork_safety::release(forks);
    shared.drop();
    const RegionFacts& facts = mr.entry.facts;
    const bool gains_writing =
        changes_access && (access & ~facts.access & IBV_ACCESS_LOCAL_WRITE) != 0;
    if (error == EACCES && gains_writing && !moves)
      return replace_region(context, mr, pd != nullptr ? pd->plain.handle : facts.pd, access);
    pinning.explain(error, context.heeds_ipc_lock);
  }
  // Drivers that cannot do it have no function for it, which the kernel calls ENOSYS or EOPNOTSUPP.
  if (error != 0) return error == ENOSYS ? EOPNOTSUPP : error;
  mr.plain.lkey = reply.lkey;
  mr.plain.rkey = reply.rkey;
  RegionFacts facts = mr.entry.facts;
  facts.lkey = reply.lkey;
  if (pd != nullptr) facts.pd = pd->plain.handle;
  if (changes_access) facts.access = access;
  if (moves) {
    fork_safety::release(mr.forks);
    mr.forks = forks;
    mr.shared.drop();
    mr.shared = shared;
    mr.pinned = pinning.bytes();
    facts.first = request.start;
    facts.bytes = length;
  }
  context.regions.remove(mr.entry);
  context.regions.add(mr.entry, facts);
  if (moves && mr.pinned != 0) warn_of_remote_buffer("registered", addr, length);
  return 0;
}

int dereg_mr(verbatim::Mr& plain) noexcept {
  auto& mr = static_cast<Mr&>(plain);
  // Its key is the kernel's to give away as soon as it is gone.
  RegionTable& regions = context_of(mr).regions;
  const bool was_known = regions.remove(mr.entry);
  const int error = forget_region(context_of(mr), mr.plain.handle);
  if (error == 0) {
    fork_safety::release(mr.forks);
    mr.shared.drop();
    destroy_nothrow(&mr);
  } else if (was_known) {
    regions.add(mr.entry, mr.entry.facts);
  }
  return error;
}

int alloc_mw(Pd& pd, ibv_mw_type type, Mw** out) noexcept {
  Context& context = context_of(pd);
  Mw* const mw = make_nothrow<Mw>();
  if (mw == nullptr) return ENOMEM;
  ib_uverbs_alloc_mw request{};
  request.pd_handle = pd.plain.handle;
  request.mw_type = static_cast<std::uint8_t>(type);
  ib_uverbs_alloc_mw_resp reply{};
  int error = context.command_channel.command(IB_USER_VERBS_CMD_ALLOC_MW, request, reply);
  if (error == 0) error = context.objects.claim(reply.mw_handle);
  if (error != 0) {
    destroy_nothrow(mw);
    return error;
  }
  mw->plain.handle = reply.mw_handle;
  mw->plain.rkey = reply.rkey;
  *out = mw;
  return 0;
}

int dealloc_mw(Mw& mw) noexcept {
  const int error = forget_plain<ib_uverbs_dealloc_mw>(
      context_of(mw), mw.plain.handle, UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY,
      UVERBS_ATTR_DESTROY_MW_HANDLE, IB_USER_VERBS_CMD_DEALLOC_MW);
  if (error == 0) destroy_nothrow(&mw);
  return error;
}

}  // namespace verbatim::uverbs
