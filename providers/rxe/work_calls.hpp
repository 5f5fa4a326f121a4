// SPDX-License-Identifier: BSD-2-Clause
// ibv_wr_*: requests built by calls, in the ring's own slots, which the kernel does not look at
// before ibv_wr_complete moves the index. ibv_wr_start takes the send lock, complete or abort lets
// it go. Source: man ibv_wr_post, ibv_create_qp_ex.
#pragma once

#include <infiniband/verbs.h>

#include "providers/rxe/layout.hpp"
#include "providers/rxe/ring_fast.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::rxe {

struct Context;
struct Qp;

struct WorkBatch {
  Producer ring;
  SendElement* current = nullptr;  ///< what the setters speak of
  int error = 0;                   ///< the first one: none of the batch is posted
  bool lacks_address = false;      ///< a datagram whose ibv_wr_set_ud_addr has not come
};

/// Checks the calls before the queue pair is made: 0, or EOPNOTSUPP and why in the log; or why the
/// device does not say what it has.
[[nodiscard]] int check_work_calls(Context& context, const ibv_qp_init_attr_ex& attr) noexcept;
/// REQUIRES: check_work_calls(context, attr) == 0.
void wire_work_calls(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept;

}  // namespace verbatim::rxe
