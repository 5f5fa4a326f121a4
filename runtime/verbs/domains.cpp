// SPDX-License-Identifier: BSD-2-Clause
// A parent domain is a Pd that pins the protection domain and the thread domain that it was made
// from; every domain pins its context.
#include "runtime/verbs/domains.hpp"

#include <cerrno>

#include "runtime/verbs/context_objects.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/provider.hpp"

namespace verbatim {

Result<Pd*> alloc_pd(Context& context) noexcept {
  Pd* pd = nullptr;
  if (const int error = table_of(context).alloc_pd(context, &pd)) return Error{error, "alloc_pd"};
  pin(&context);
  pd->plain.context = context.handle();
  own(*pd);
  return pd;
}

Status dealloc_pd(Pd& pd) noexcept {
  if (was_left(pd)) return {};
  if (const std::uint32_t uses = still_used(pd)) {
    return refuse_busy("ibv_dealloc_pd", uses, "objects of the domain (MR, QP, AH, ...)");
  }
  Context& context = context_of(pd);
  Pd* const original = pd.original;
  Td* const thread_domain = pd.thread_domain;
  const bool is_shared = has_other_handles(pd);
  disown(pd);
  if (const int error = table_of(context).dealloc_pd(pd)) {
    own_again(pd);
    return Error{error, "dealloc_pd"};
  }
  if (is_shared) leave_to_other_handles(pd.plain.context, pd.owned);
  unpin(&context, original, thread_domain);
  return {};
}

Result<Td*> alloc_td(Context& context, const ibv_td_init_attr& attr) noexcept {
  if (attr.comp_mask != 0) return refuse(EINVAL, "ibv_alloc_td", "unknown bits in comp_mask");
  Td* td = nullptr;
  if (const int error = table_of(context).alloc_td(context, attr, &td)) {
    return Error{error, "alloc_td"};
  }
  pin(&context);
  td->plain.context = context.handle();
  own(*td);
  return td;
}

Status dealloc_td(Td& td) noexcept {
  if (was_left(td)) return {};
  if (const std::uint32_t uses = still_used(td)) {
    return refuse_busy("ibv_dealloc_td", uses, "parent domains");
  }
  Context& context = context_of(td);
  disown(td);
  if (const int error = table_of(context).dealloc_td(td)) {
    own_again(td);
    return Error{error, "dealloc_td"};
  }
  unpin(&context);
  return {};
}

Result<Pd*> alloc_parent_domain(Context& context,
                                const ibv_parent_domain_init_attr& attr) noexcept {
  constexpr const char* kVerb = "ibv_alloc_parent_domain";
  constexpr std::uint32_t kKnown = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                   IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
                                   IBV_PARENT_DOMAIN_INIT_ATTR_ALLOW_CC_UNPROTECTED_ALLOC;
  if (attr.pd == nullptr) return refuse(EINVAL, kVerb, "needs a protection domain");
  if ((attr.comp_mask & ~kKnown) != 0) return refuse(EINVAL, kVerb, "unknown bits in comp_mask");
  if (attr.pd->context != context.handle() ||
      (attr.td != nullptr && attr.td->context != context.handle())) {
    return refuse(EINVAL, kVerb, "the domains belong to another context");
  }
  const bool allocates = (attr.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0;
  if (allocates && (attr.alloc == nullptr || attr.free == nullptr))
    return refuse(EINVAL, kVerb, "allocators need both alloc and free");
  Pd* pd = nullptr;
  if (const int error = table_of(context).alloc_parent_domain(context, attr, &pd)) {
    return Error{error, "alloc_parent_domain"};
  }
  pd->plain.context = context.handle();
  pd->original = &Pd::from(attr.pd);
  pd->thread_domain = attr.td == nullptr ? nullptr : &Td::from(attr.td);
  if (allocates) {
    const bool has_context = (attr.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT) != 0;
    pd->allocators = {attr.alloc, attr.free, has_context ? attr.pd_context : nullptr};
  }
  pin(&context, pd->original, pd->thread_domain);
  own(*pd);
  return pd;
}

Result<Xrcd*> open_xrcd(Context& context, const ibv_xrcd_init_attr& attr) noexcept {
  constexpr const char* kVerb = "ibv_open_xrcd";
  constexpr std::uint32_t kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if ((attr.comp_mask & ~kNeeded) != 0) return refuse(EINVAL, kVerb, "unknown bits in comp_mask");
  if ((attr.comp_mask & kNeeded) != kNeeded) {
    return refuse(EINVAL, kVerb, "comp_mask must name fd and oflags");
  }
  Xrcd* xrcd = nullptr;
  if (const int error = table_of(context).open_xrcd(context, attr, &xrcd)) {
    return Error{error, "open_xrcd"};
  }
  pin(&context);
  xrcd->plain.context = context.handle();
  own(*xrcd);
  return xrcd;
}

Status close_xrcd(Xrcd& xrcd) noexcept {
  if (was_left(xrcd)) return {};
  if (const std::uint32_t uses = still_used(xrcd)) {
    return refuse_busy("ibv_close_xrcd", uses, "XRC queue pairs and shared receive queues");
  }
  Context& context = context_of(xrcd);
  disown(xrcd);
  if (const int error = table_of(context).close_xrcd(xrcd)) {
    own_again(xrcd);
    return Error{error, "close_xrcd"};
  }
  unpin(&context);
  return {};
}

}  // namespace verbatim
