// SPDX-License-Identifier: BSD-2-Clause
// Failures noted, told, and said in the log. What was wrong is found in failure_judge.cpp.
#include "providers/uverbs/failures.hpp"

#include <atomic>
#include <cerrno>

#include "providers/uverbs/failure_judge.hpp"
#include "providers/uverbs/queue_pairs.hpp"
#include "providers/uverbs/removal.hpp"
#include "runtime/base/log.hpp"
#include "runtime/verbs/explain.hpp"

namespace verbatim::uverbs {
namespace {

/// One process says no more than so many: ten thousand connections to a host that is gone are one
/// story.
constexpr std::uint32_t kMostLines = 1000;
constinit std::atomic<std::uint32_t> lines_said{0};
/// So many failures tell the other end's place where asking for it costs more the more connections
/// there are.
constexpr std::uint32_t kMostPlaces = 16;

const FailureEyes& eyes_of(Qp& qp) noexcept { return *context_of(qp).eyes; }

void see_ends(Qp& qp, Failure& out) noexcept { eyes_of(qp).see_ends(qp, out); }

/// REQUIRES: no lock.
void see_place(Context& context, std::uint32_t qpn, Failure& out) noexcept {
  const FailureEyes& eyes = *context.eyes;
  if (out.place.kind == RemotePlace::Kind::kUnknown && eyes.see_place != nullptr)
    eyes.see_place(context, qpn, out.place);
}

/// What a line is made of once no lock is held any more: the queue pair may be gone by then.
struct Untold {
  bool is_there = false;
  OwnEnd own;
  Failure failure;
};

bool knows(FailureRecord& record, bool receives) noexcept {
  const LockGuard guard(record.lock);
  return receives ? record.has_receive : record.has_send;
}

/// Remembers the first of its direction; the queue pair's first one is to be said.
void remember(Qp& qp, const Failure& failure, Untold& untold) noexcept {
  FailureRecord& record = qp.failures;
  bool says = false;
  {
    const LockGuard guard(record.lock);
    bool& has = failure.receives ? record.has_receive : record.has_send;
    if (has) return;
    has = true;
    (failure.receives ? record.receive : record.send) = failure;
    if (!record.has_send || !record.has_receive) record.receive_was_first = failure.receives;
    says = !record.said && qp.logs_failures.load(std::memory_order_relaxed);
    record.said = record.said || says;
  }
  if (says && log_enabled(LogLevel::kError)) untold = {true, own_end(qp), failure};
}

/// REQUIRES: no lock.
void say(Context& context, Untold& untold) noexcept {
  if (!untold.is_there) return;
  const std::uint32_t before = lines_said.fetch_add(1, std::memory_order_relaxed);
  if (before < kMostPlaces) see_place(context, untold.own.qpn, untold.failure);
  if (before < kMostLines) {
    char line[900];
    static_cast<void>(describe_failure(untold.own, untold.failure, nullptr, line, sizeof line));
    log_error("%s", line);
  }
  if (before + 1 == kMostLines)
    log_error("no more of %u failures are said here: ask vbt_explain", kMostLines);
}

/// Whether a completion can be the cause: those behind the first failure are flushed, and a flushed
/// one came after something else.
bool is_a_cause(ibv_wc_status status) noexcept {
  return status != IBV_WC_SUCCESS && status != IBV_WC_WR_FLUSH_ERR;
}

/// A number that names this queue pair now may have named another one when it was completed.
bool is_own(Qp& qp, const ibv_cq& cq, std::uint64_t position) noexcept {
  FailureRecord& record = qp.failures;
  const LockGuard guard(record.lock);
  return position >= (&cq == qp.plain.send_cq ? record.first_send : record.first_receive);
}

void note_failure(Qp& qp, const ibv_cq& cq, const ibv_wc& wc, Untold& untold) noexcept {
  if (knows(qp.failures, false) && knows(qp.failures, true)) return;
  SeenRequest seen;
  eyes_of(qp).find_request(qp, cq, wc, seen);
  const bool receives = seen.side == SeenRequest::Side::kReceive;
  if (knows(qp.failures, receives)) return;
  Failure failure;
  failure.receives = receives;
  failure.has_request = true;
  failure.status = wc.status;
  failure.wr_id = wc.wr_id;
  failure.vendor_err = wc.vendor_err;
  see_ends(qp, failure);
  judge_request(qp, seen, failure);
  remember(qp, failure, untold);
}

/// The failure that a completion is about, or the first one. ENODATA: none.
int find_failure(FailureRecord& record, const FailedCompletion* completion, Failure& out) noexcept {
  const LockGuard guard(record.lock);
  const auto fits = [&](bool has, const Failure& failure, bool exactly) {
    return has && completion != nullptr && failure.status == completion->status &&
           (!exactly || (failure.has_request && failure.wr_id == completion->wr_id));
  };
  for (const bool exactly : {true, false}) {
    if (fits(record.has_send, record.send, exactly)) {
      out = record.send;
      return 0;
    }
    if (fits(record.has_receive, record.receive, exactly)) {
      out = record.receive;
      return 0;
    }
  }
  if (!record.has_send && !record.has_receive) {
    if (!record.ordered) return ENODATA;
    out.cause = Cause::kOrdered;
    out.status = IBV_WC_WR_FLUSH_ERR;
    return 0;
  }
  const bool receive = record.has_receive && (record.receive_was_first || !record.has_send);
  out = receive ? record.receive : record.send;
  return 0;
}

void find_nothing(Qp&, const ibv_cq&, const ibv_wc&, SeenRequest&) noexcept {}

}  // namespace

constinit const FailureEyes plain_eyes{find_nothing, ask_for_ends, nullptr};

void note_failures(const ibv_cq& cq, const ibv_wc* wc, int count, std::uint64_t first) noexcept {
  Context& context = context_of(cq.context);
  for (int i = 0; i < count; ++i) {
    if (!is_a_cause(wc[i].status)) continue;
    Untold untold;
    context.objects.find_named(Kind::kQp, wc[i].qp_num, [&](void* object) {
      Qp& qp = *static_cast<Qp*>(object);
      if (is_own(qp, cq, first + static_cast<std::uint32_t>(i)))
        note_failure(qp, cq, wc[i], untold);
    });
    say(context, untold);
  }
}

void note_event(Qp& qp, ibv_event_type type) noexcept {
  if (type != IBV_EVENT_QP_REQ_ERR && type != IBV_EVENT_QP_ACCESS_ERR) return;
  Failure failure;
  failure.cause = Cause::kRequestUnseen;
  failure.receives = true;
  failure.status = type == IBV_EVENT_QP_REQ_ERR ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR;
  see_ends(qp, failure);
  Untold untold;
  remember(qp, failure, untold);
  say(context_of(qp), untold);
}

void note_ordered(Qp& qp) noexcept {
  // A program that only ends what has gone is no cause.
  if (has_gone(context_of(qp))) return;
  const LockGuard guard(qp.failures.lock);
  qp.failures.ordered = true;
}

void forget_failures(Qp& qp) noexcept {
  FailureRecord& record = qp.failures;
  const LockGuard guard(record.lock);
  record.has_send = record.has_receive = record.receive_was_first = false;
  record.ordered = record.said = false;
}

void ask_for_ends(Qp& qp, Failure& out) noexcept {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  // Without the state in the mask, since that is written where others read it. What cannot be asked
  // is a device that is gone.
  if (query_qp(qp, attr, IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT, init))
    return;
  out.own_state = attr.qp_state;
  if (qp.plain.qp_type == IBV_QPT_UD) return;
  out.remote_qpn = attr.dest_qp_num;
  if (attr.ah_attr.is_global != 0) {
    out.place.kind = RemotePlace::Kind::kGid;
    out.place.gid = attr.ah_attr.grh.dgid;
  }
  out.timer_code = attr.timeout & 31u;
  out.timer_ns = out.timer_code == 0 ? 0 : std::uint64_t{4096} << out.timer_code;
  out.tries = out.status == IBV_WC_RNR_RETRY_EXC_ERR ? attr.rnr_retry : attr.retry_cnt;
}

int explain_qp(verbatim::Qp& handle, const FailedCompletion* completion, Failure& out) noexcept {
  Qp& qp = static_cast<Qp&>(handle);
  if (find_failure(qp.failures, completion, out) == 0) {
    // The ends as they are now, where they are known: the state goes on after a failure.
    Failure now;
    now.status = out.status;
    see_ends(qp, now);
    if (now.own_state >= 0) out.own_state = now.own_state;
    if (out.cause == Cause::kOrdered) {
      out.remote_qpn = now.remote_qpn;
      out.place = now.place;
    }
    see_place(context_of(qp), qp.plain.qp_num, out);
    return 0;
  }
  if (completion != nullptr) {
    out.status = completion->status;
    out.wr_id = completion->wr_id;
    out.has_request = true;
  }
  see_ends(qp, out);
  const bool is_flushed = completion == nullptr || out.status == IBV_WC_WR_FLUSH_ERR;
  if (is_flushed && has_gone(context_of(qp))) {
    out.status = IBV_WC_WR_FLUSH_ERR;
    out.own_state = IBV_QPS_ERR;
    out.cause = Cause::kDeviceGone;
    return 0;
  }
  if (completion == nullptr && out.own_state != IBV_QPS_ERR) return ENODATA;
  see_place(context_of(qp), qp.plain.qp_num, out);
  if (completion == nullptr) out.status = IBV_WC_WR_FLUSH_ERR;
  if (out.status == IBV_WC_WR_FLUSH_ERR) out.cause = Cause::kFirstUnseen;
  return 0;
}

}  // namespace verbatim::uverbs
