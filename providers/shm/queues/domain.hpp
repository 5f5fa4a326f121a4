// SPDX-License-Identifier: BSD-2-Clause
//
// Thread domains: a program's word that all objects made with one are used by one thread at a time.
// Parent domains join one to a protection domain. Source: man ibv_alloc_td,
// ibv_alloc_parent_domain.
//
// What the word buys: the locks of such a queue pair, and of a completion queue that only queue
// pairs of the same domain use, belong to the domain from the start (BiasedLock::declare). Its
// thread says with a plain store that it is inside; no atomic read-modify-write is left on its data
// path. The service thread comes as a guest, rarely, and pays the fences of both.
#pragma once

#include "providers/shm/queues/cq.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::shm {

struct Qp;

// The plug's slot: it says first whom a program's allocators are asked for.
int alloc_parent_domain(verbatim::Context& context, const ibv_parent_domain_init_attr& attr,
                        verbatim::Pd** out) noexcept;

/// Of objects that nobody has seen yet: they belong to the domain of `pd`, if it has one.
void join_domain(Cq& cq, ibv_pd* pd) noexcept;
void join_domain(Qp& qp, ibv_pd* pd) noexcept;

}  // namespace verbatim::shm
