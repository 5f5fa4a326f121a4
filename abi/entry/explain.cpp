// SPDX-License-Identifier: BSD-2-Clause
// The extension of verbatim/explain.h. Any thread.
#include <verbatim/explain.h>

#include "abi/entry/border.hpp"
#include "runtime/verbs/explain.hpp"

using namespace verbatim;

VBT_ENTRY int vbt_explain(ibv_qp* qp, const ibv_wc* wc, char* text, std::size_t size) {
  if (qp == nullptr || (text == nullptr && size != 0)) return -EINVAL;
  if (wc == nullptr) return explain(Qp::from(qp), nullptr, text, size);
  if (wc->qp_num != qp->qp_num) return -EINVAL;
  const FailedCompletion completion{wc->wr_id, wc->status};
  return explain(Qp::from(qp), &completion, text, size);
}

VBT_ENTRY int vbt_explain_completion(ibv_qp* qp, std::uint64_t wr_id, ibv_wc_status status,
                                     char* text, std::size_t size) {
  if (qp == nullptr || (text == nullptr && size != 0)) return -EINVAL;
  const FailedCompletion completion{wr_id, status};
  return explain(Qp::from(qp), &completion, text, size);
}

VBT_ENTRY int vbt_log_failures(ibv_qp* qp, int whether) {
  if (qp == nullptr) return EINVAL;
  Qp::from(qp).logs_failures.store(whether != 0, std::memory_order_relaxed);
  return 0;
}
