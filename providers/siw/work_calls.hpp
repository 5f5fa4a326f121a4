// SPDX-License-Identifier: BSD-2-Clause
// ibv_wr_*: requests built by calls, in the queue's own elements, which the kernel does not look at
// before ibv_wr_complete writes their flags. ibv_wr_start takes the send lock, complete or abort
// lets it go. Source: man ibv_wr_post, ibv_create_qp_ex.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "providers/siw/layout.hpp"
#include "runtime/verbs/handles.hpp"

namespace verbatim::siw {

struct Qp;

struct WorkBatch {
  siw_sqe* current = nullptr;  ///< what the setters speak of
  std::uint32_t count = 0;     ///< elements begun, `current` the last of them
  int error = 0;               ///< the first one: none of the batch is posted
  bool flushes = false;        ///< the queue pair has failed: the batch is completed, not posted
  siw_sqe spare{};             ///< what is written when there is no element
};

/// Checks the calls before the queue pair is made: 0, or EOPNOTSUPP and why in the log.
[[nodiscard]] int check_work_calls(const ibv_qp_init_attr_ex& attr) noexcept;
/// REQUIRES: check_work_calls(attr) == 0.
void wire_work_calls(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept;

}  // namespace verbatim::siw
