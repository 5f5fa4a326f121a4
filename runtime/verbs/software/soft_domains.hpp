// SPDX-License-Identifier: BSD-2-Clause
// Protection, thread and parent domains of a provider in software, and address handles. A
// protection domain is a number that no other of the process ever had: keys, queue pairs and
// address handles are held together by it (key_holder.hpp). A parent domain has the number of the
// domain that it stands for. What the word of a thread domain buys is the queues' to decide, who
// find it in Pd::thread_domain. Control code, any thread. Spec: IBTA 10.2.3; man ibv_alloc_pd,
// ibv_alloc_td, ibv_alloc_parent_domain.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// Numbers from 1 on, up to one below `end`; none is given twice. Any thread.
class DomainNumbers {
 public:
  explicit constexpr DomainNumbers(std::uint32_t end) noexcept : end_(end) {}
  /// 0: all have been given.
  [[nodiscard]] std::uint32_t take() noexcept;

 private:
  const std::uint32_t end_;
  std::atomic<std::uint32_t> last_{0};
};

/// The thread domain of queues that are made in `pd`; nullptr: they are in none.
[[nodiscard]] inline const Td* thread_domain_of(ibv_pd* pd) noexcept {
  return pd == nullptr ? nullptr : Pd::from(pd).thread_domain;
}

/// The slots, for a provider to inherit. REQUIRES of the runtime: it fills Pd::original and
/// Pd::thread_domain.
struct SoftDomainVerbs {
  static int alloc_pd(Context& context, Pd** out) noexcept;
  static int dealloc_pd(Pd& pd) noexcept;
  static int alloc_td(Context& context, const ibv_td_init_attr& attr, Td** out) noexcept;
  static int dealloc_td(Td& td) noexcept;
  static int alloc_parent_domain(Context& context, const ibv_parent_domain_init_attr& attr,
                                 Pd** out) noexcept;
};

/// The slots of address handles, for a provider to inherit or to begin with. An address handle is
/// nothing but its attributes, so that no other part has to be told of it. Made: the provider's Ah.
/// REQUIRES of the runtime: it fills Ah::attr.
template <class Made>
struct SoftAddressVerbs {
  static int create_ah(Pd&, const ibv_ah_attr&, Ah** out) noexcept {
    Made* const ah = make_nothrow<Made>();
    if (ah == nullptr) return ENOMEM;
    *out = ah;
    return 0;
  }
  static int destroy_ah(Ah& ah) noexcept {
    destroy_nothrow(static_cast<Made*>(&ah));
    return 0;
  }
};

}  // namespace verbatim
