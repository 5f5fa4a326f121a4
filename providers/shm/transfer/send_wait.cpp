// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/transfer/send_wait.hpp"

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/transfer/service_requests.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// A wire's timeout says nothing of how long a living process may wait for a core: its service
/// thread gets at least so long, also to be met.
constexpr std::uint64_t kServicePatienceNs = 4'000'000'000;

/// How long a request waits before that becomes an error.
std::uint64_t patience(const Qp& qp, Wait wait) noexcept {
  if (wait == Wait::kStream) return kForEver;
  if (wait == Wait::kQuiet) return kQuietBoundNs;
  if (wait == Wait::kReceive)
    return rnr_span_ns(qp.out.rnr_retry, rnr_timer_ns(load_relaxed(qp.link.remote->min_rnr_timer)));
  const bool of_service = wait == Wait::kArena || wait == Wait::kService;
  return of_service && qp.out.retry_ns < kServicePatienceNs ? kServicePatienceNs : qp.out.retry_ns;
}

ibv_wc_status status_of_timeout(Wait wait) noexcept {
  if (wait == Wait::kQuiet) return IBV_WC_MW_BIND_ERR;
  return wait == Wait::kReceive ? IBV_WC_RNR_RETRY_EXC_ERR : IBV_WC_RETRY_EXC_ERR;
}

}  // namespace

bool waited_too_long(std::uint64_t& until, std::uint64_t patience) noexcept {
  WaitClock& clock = Process::get().wait_clock();
  if (until == 0) until = clock.begin() + patience;
  return is_over(until, clock.heard(clock.now()));
}

Step judge_wait(Qp& qp, Wait wait) noexcept {
  Progress& progress = qp.sq.progress;
  if (wait == Wait::kNothing) return Step::waits(wait);   // SQD: until the state changes
  if (qp.datagrams != nullptr) return Step::waits(wait);  // it has judged that itself
  if (wait == Wait::kMemory) return Step::fails(IBV_WC_LOC_QP_OP_ERR);
  // A dead process answers nobody: no timeout to sit out, also when timeout 0 says for ever. What
  // it had done before it died, it has done.
  if (is_dead(qp)) return Step::fails(IBV_WC_RETRY_EXC_ERR);
  WaitClock& clock = Process::get().wait_clock();
  const std::uint64_t now = clock.begin();
  if (progress.wait != wait) {
    progress.wait = wait;
    progress.waiting_since = now_ns();
    const std::uint64_t granted = patience(qp, wait);
    if (granted == 0) return Step::fails(status_of_timeout(wait));  // no retry
    progress.deadline = granted == kForEver ? kForEver : now + granted;
  }
  if (progress.deadline == kForEver) return Step::waits(wait);
  // The clock of the wire starts when the processes have met, or when nobody is there to be met.
  const std::uint64_t heard = clock.heard(clock.now());
  if (wait != Wait::kPeer) {
    progress.connecting_until = 0;
  } else if (qp.link.peer == nullptr && Process::get().is_connecting(qp.own->dest_qpn)) {
    if (progress.connecting_until == 0) progress.connecting_until = now + kServicePatienceNs;
    if (heard < progress.connecting_until) progress.deadline = now + qp.out.retry_ns;
  } else if (progress.connecting_until != 0 &&
             (qp.link.peer != nullptr || Process::get().find_peer(qp.own->dest_qpn) != nullptr)) {
    // Met, maybe since the step looked: the next one attaches, and has the wire's time for it.
    progress.connecting_until = 0;
    progress.deadline = now + qp.out.retry_ns;
  }
  return is_over(progress.deadline, heard) ? Step::fails(status_of_timeout(wait))
                                           : Step::waits(wait);
}

Step lose(Qp& qp, const Step& result) noexcept {
  switch (result.kind) {
    case Step::Kind::kFail:
      if (is_local_error(result.status)) return result;
      if (result.tell == kToldInReceive) tell_fault(qp, result.tell, result.status);
      return Step::done();
    case Step::Kind::kWait: {
      if (qp.datagrams != nullptr) return result;
      if (result.wait == Wait::kReceive) return Step::done();
      if (result.wait != Wait::kPeer) return result;
      const std::uint32_t dest_qpn = qp.own->dest_qpn;
      if (qp.link.peer != nullptr) return Step::done();
      // Met just now counts as connecting: the next step attaches.
      if (!Process::get().is_connecting(dest_qpn) && Process::get().find_peer(dest_qpn) == nullptr)
        return Step::done();
      return waited_too_long(qp.sq.progress.connecting_until, kServicePatienceNs) ? Step::done()
                                                                                  : result;
    }
    default:
      return result;
  }
}

}  // namespace verbatim::shm
