// SPDX-License-Identifier: BSD-2-Clause
//
// The verbs API, source and binary compatible with libibverbs of rdma-core 44; what later releases
// appended up to 65 is here too, and ibv_alloc_user_buf. Programs include this file; each part may
// be included alone.
//
// Threads: every verb may be called from any thread, on the same object too, unless the object was
// made single-threaded (a thread domain, IBV_CREATE_CQ_ATTR_SINGLE_THREADED) or lies between
// ibv_wr_start and ibv_wr_complete, ibv_start_poll and ibv_end_poll.
// Errors: who makes an object answers NULL and sets errno; most other verbs answer 0 or a positive
// errno. The exceptions say so. What a device cannot do answers EOPNOTSUPP.
// Ownership: who makes an object destroys it, children first; EBUSY otherwise.
//
// Static linking: a program links libverbatim.a and has every provider that was built into it. With
// -DRDMA_STATIC_PROVIDERS=<names, "all" or "none"> it chooses: see infiniband/static_providers.h.
#ifndef INFINIBAND_VERBS_H
#define INFINIBAND_VERBS_H

// IWYU pragma: begin_exports
#include <infiniband/verbs/ah.h>
#include <infiniband/verbs/base.h>
#include <infiniband/verbs/comp_cntr.h>
#include <infiniband/verbs/context.h>
#include <infiniband/verbs/counters.h>
#include <infiniband/verbs/cq.h>
#include <infiniband/verbs/cq_ex.h>
#include <infiniband/verbs/device.h>
#include <infiniband/verbs/device_attr.h>
#include <infiniband/verbs/dm.h>
#include <infiniband/verbs/event.h>
#include <infiniband/verbs/flow.h>
#include <infiniband/verbs/flow_spec.h>
#include <infiniband/verbs/mr.h>
#include <infiniband/verbs/mw.h>
#include <infiniband/verbs/pd.h>
#include <infiniband/verbs/port.h>
#include <infiniband/verbs/qp.h>
#include <infiniband/verbs/qp_attr.h>
#include <infiniband/verbs/qp_ex.h>
#include <infiniband/verbs/srq.h>
#include <infiniband/verbs/wc.h>
#include <infiniband/verbs/wq.h>
#include <infiniband/verbs/wr.h>
#include <infiniband/verbs_api.h>
// IWYU pragma: end_exports

#ifdef RDMA_STATIC_PROVIDERS
#include <infiniband/static_providers.h>  // IWYU pragma: export
#endif

#endif  // INFINIBAND_VERBS_H
