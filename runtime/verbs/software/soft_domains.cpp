// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/software/soft_domains.hpp"

#include <cerrno>

#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/software/key_holder.hpp"

namespace verbatim {
namespace {

/// One row of numbers for all providers and contexts of the process: a key that strays to
/// another context finds no domain of its own number there.
constinit DomainNumbers numbers(holder::kMaxPd);

}  // namespace

std::uint32_t DomainNumbers::take() noexcept {
  std::uint32_t last = last_.load(std::memory_order_relaxed);
  do {
    if (last + 1 >= end_) return 0;
  } while (!last_.compare_exchange_weak(last, last + 1, std::memory_order_relaxed));
  return last + 1;
}

int SoftDomainVerbs::alloc_pd(Context&, Pd** out) noexcept {
  Pd* const pd = make_nothrow<Pd>();
  if (pd == nullptr) return ENOMEM;
  pd->plain.handle = numbers.take();
  if (pd->plain.handle == 0) {
    destroy_nothrow(pd);
    return ENOMEM;
  }
  *out = pd;
  return 0;
}

int SoftDomainVerbs::dealloc_pd(Pd& pd) noexcept {
  destroy_nothrow(&pd);
  return 0;
}

int SoftDomainVerbs::alloc_td(Context&, const ibv_td_init_attr&, Td** out) noexcept {
  *out = make_nothrow<Td>();
  return *out == nullptr ? ENOMEM : 0;
}

int SoftDomainVerbs::dealloc_td(Td& td) noexcept {
  destroy_nothrow(&td);
  return 0;
}

int SoftDomainVerbs::alloc_parent_domain(Context&, const ibv_parent_domain_init_attr& attr,
                                         Pd** out) noexcept {
  Pd* const pd = make_nothrow<Pd>();
  if (pd == nullptr) return ENOMEM;
  // It stands for the other: keys of one are good with queue pairs of both.
  pd->plain.handle = attr.pd->handle;
  *out = pd;
  return 0;
}

}  // namespace verbatim
