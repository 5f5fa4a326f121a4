// SPDX-License-Identifier: BSD-2-Clause
//
// Stops the compiler when a public layout is not what compiled programs rely on. Included by one C
// and one C++ unit and by nothing else; makes no code.
#ifndef ABI_LAYOUT_PINS_LAYOUT_PINS_H
#define ABI_LAYOUT_PINS_LAYOUT_PINS_H

#include <infiniband/verbs.h>
#include <stddef.h>

#ifdef __cplusplus
#define PIN_THAT(condition, text) static_assert(condition, text)
#else
#define PIN_THAT(condition, text) _Static_assert(condition, text)
#endif

// All of this is LP64; a 32-bit machine has other offsets, which nobody has pinned.
#if UINTPTR_MAX == UINT64_MAX

// Objects carry a mutex of the C library: 40 bytes on x86-64, 48 on aarch64 with glibc. What lies
// behind it moves along; the condition variable has 48 bytes everywhere.
enum { kMutexGrowth = sizeof(pthread_mutex_t) - 40 };
PIN_THAT(sizeof(pthread_cond_t) == 48, "pthread_cond_t");

#define PIN_SIZE(type, bytes) PIN_THAT(sizeof(type) == (bytes), "size of " #type);
#define PIN(type, member, at) \
  PIN_THAT(offsetof(type, member) == (at), "offset of " #member " in " #type);
#include "layout_pins.inc"

// Programs find a slot of verbs_context by its distance from the ibv_context at the end.
PIN_THAT(sizeof(struct verbs_context) ==
             offsetof(struct verbs_context, context) + sizeof(struct ibv_context),
         "nothing lies behind `context`");
PIN_THAT(offsetof(struct verbs_context, context) - offsetof(struct verbs_context, sz) == 8,
         "`sz` lies right before `context`");
PIN_THAT(offsetof(struct verbs_context, context) - offsetof(struct verbs_context, query_port) ==
             320,
         "the table of rdma-core 44 keeps its distance");

// Structures that stand for each other: the second begins with all of the first.
#define PIN_PREFIX(type, longer, last)                                               \
  PIN_THAT(offsetof(struct type, last) == offsetof(struct longer, last) &&           \
               sizeof(((struct type*)0)->last) == sizeof(((struct longer*)0)->last), \
           #longer " begins with " #type);
PIN_PREFIX(ibv_cq, ibv_cq_ex, async_events_completed)
PIN_PREFIX(ibv_qp_init_attr, ibv_qp_init_attr_ex, sq_sig_all)
PIN_PREFIX(ibv_srq_init_attr, ibv_srq_init_attr_ex, attr)

#endif

#endif  // ABI_LAYOUT_PINS_LAYOUT_PINS_H
