// SPDX-License-Identifier: BSD-2-Clause
//
// A line can wait for its reader (a full pipe), so it is written by whoever polls the completion in
// error, fetches the event or destroys the queue pair, else by the service thread at its next sweep;
// never under a lock that the data path takes.
#include "providers/shm/queues/failure_log.hpp"

#include <cerrno>
#include <new>

#include "providers/shm/fabric/offenders.hpp"
#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp.hpp"
#include "providers/shm/queues/xrc_role.hpp"
#include "runtime/base/log.hpp"
#include "runtime/sync/mutex.hpp"
#include "runtime/time/clock.hpp"
#include "runtime/verbs/explain.hpp"

namespace verbatim::shm {
namespace {

/// One process says no more than so many.
constexpr std::uint32_t kMostLines = 1000;

/// Failures of one cause that come within this time are one line, but for the first, which is said
/// at once.
constexpr std::uint64_t kTogetherNs = 1'000'000'000;

/// A line that is to be said, and others that it speaks for.
struct Line {
  char text[900];
  pid_t ended_pid;  ///< of the process with whose end it came, or 0
  pid_t peer_pid;   ///< whom it has to do with, or 0: it speaks for itself alone
  std::uint32_t more;
};

struct Unsaid {
  Mutex mutex;
  std::atomic<Qp*> first{nullptr};  ///< written under the mutex
  std::uint32_t lines = 0;
  // The cause of which was spoken last, and what is held back since.
  std::atomic<bool> holds{false};  ///< `held` is to be said; written under the mutex
  bool is_new = false;             ///< and of its cause nothing was said yet
  Cause cause = Cause::kStatusOnly;
  ibv_wc_status status = IBV_WC_SUCCESS;
  pid_t peer_pid = 0;
  std::uint64_t until = 0;  ///< now_ns() from which it is said
  Line held{};
};
constinit Unsaid unsaid;

Qp& known(Qp& qp) noexcept { return qp.ep.parent != nullptr ? *qp.ep.parent : qp; }

void enqueue(Qp& qp) noexcept {
  if (!qp.logs_failures.load(std::memory_order_relaxed)) return;
  LockGuard<Mutex> guard(unsaid.mutex);
  FailureRecord& record = qp.failures;
  if (record.is_unsaid || record.was_said) return;
  record.is_unsaid = true;
  record.next_unsaid = unsaid.first.load(std::memory_order_relaxed);
  unsaid.first.store(&qp, std::memory_order_release);
}

/// Processes of whose end there is a line: of one cause the log speaks once.
constinit Offenders ended;

/// The first failure, if there is to be a line about it.
bool find_first(Qp& qp, Failure& failure, pid_t& ended_pid) noexcept {
  ended_pid = 0;
  if (explain_qp(qp, nullptr, failure) != 0 || failure.cause == Cause::kOrdered) return false;
  if (failure.cause == Cause::kPeerDead && failure.remote.pid != 0) {
    if (!ended.first_word_of(failure.remote.pid)) return false;
    ended_pid = failure.remote.pid;
  }
  return true;
}

/// The process that is the cause, as it can be of many failures at once, or 0: a request of its own.
pid_t offender_of(const Failure& failure) noexcept {
  const Cause cause = failure.cause;
  if (cause < Cause::kNoRoom || cause > Cause::kQueueSilent || cause == Cause::kPeerDead) return 0;
  return cause < Cause::kQueueUnknown ? failure.remote.pid : failure.queue.pid;
}

/// Queue pairs that were connected to that process.
std::uint32_t count_connected(pid_t pid) noexcept {
  std::uint32_t count = 0;
  LockGuard<Mutex> guard(live.mutex);
  for (Qp* qp = live.first_qp; qp != nullptr; qp = qp->next_live) {
    const Peer* const peer = qp->met.load(std::memory_order_acquire);
    if (qp->ep.parent == nullptr && peer != nullptr && peer->pid == pid) ++count;
  }
  return count;
}

/// Takes one from the list; nullptr: it is empty. The mutex is held.
Qp* take_unsaid() noexcept {
  Qp* const qp = unsaid.first.load(std::memory_order_relaxed);
  if (qp == nullptr) return nullptr;
  unsaid.first.store(qp->failures.next_unsaid, std::memory_order_relaxed);
  qp->failures.next_unsaid = nullptr;
  qp->failures.is_unsaid = false;
  qp->failures.was_said = true;
  return qp;
}

/// Ends what is held back. The mutex is held.
void let_go(Line& out) noexcept {
  out = unsaid.held;
  unsaid.holds.store(false, std::memory_order_relaxed);
  unsaid.is_new = false;
  unsaid.until = now_ns() + kTogetherNs;
}

/// Holds back a failure, or counts it with those that are. False: `out` is to be said before it.
bool hold(const Qp& qp, const Failure& failure, pid_t ended_pid, Line& out) noexcept {
  const pid_t peer = offender_of(failure);
  const bool holds = unsaid.holds.load(std::memory_order_relaxed);
  const bool is_same = peer != 0 && peer == unsaid.peer_pid && failure.cause == unsaid.cause &&
                       failure.status == unsaid.status && (holds || now_ns() < unsaid.until);
  if (is_same && holds) {
    ++unsaid.held.more;
    return true;
  }
  if (holds) let_go(out);
  unsaid.is_new = !is_same;
  unsaid.cause = failure.cause;
  unsaid.status = failure.status;
  unsaid.peer_pid = peer;
  unsaid.held.ended_pid = ended_pid;
  unsaid.held.peer_pid = peer;
  unsaid.held.more = 0;
  (void)describe_failure(qp, failure, nullptr, unsaid.held.text, sizeof unsaid.held.text);
  unsaid.holds.store(true, std::memory_order_relaxed);
  return !holds;
}

/// The next line that is due, or with `all` that is held. False: there is none.
bool take_line(Line& out, bool all, bool& is_last) noexcept {
  LockGuard<Mutex> guard(unsaid.mutex);
  bool found = false;
  while (Qp* const qp = found ? nullptr : take_unsaid()) {
    Failure failure;
    pid_t ended_pid;
    found = unsaid.lines < kMostLines && log_enabled(LogLevel::kError) &&
            find_first(*qp, failure, ended_pid) && !hold(*qp, failure, ended_pid, out);
  }
  if (!found && unsaid.holds.load(std::memory_order_relaxed) &&
      (all || unsaid.is_new || now_ns() >= unsaid.until)) {
    let_go(out);
    found = true;
  }
  if (found) is_last = ++unsaid.lines == kMostLines;
  return found;
}

}  // namespace

ProgramName name_of(const Peer& peer) noexcept {
  char name[16] = {};
  if (peer.segment.mapped()) {
    const SegmentHeader& head = peer.segment.live_head();
    for (std::size_t i = 0; i < sizeof name; ++i) name[i] = load_relaxed(head.program[i]);
  }
  return printable_name(peer.pid, name, sizeof name);
}

void name_owner(Failure& failure) noexcept {
  Peer* const peer = Process::get().hold_peer(failure.remote_qpn);
  if (peer == nullptr) return;
  failure.remote = name_of(*peer);
  Process::get().release_peer(*peer);
}

bool knows_failure(Qp& qp, bool receives) noexcept {
  FailureRecord& record = known(qp).failures;
  LockGuard<SpinLock> guard(record.lock);
  return receives ? record.has_receive : record.has_send && !record.is_past;
}

void remember(Qp& qp, const Failure& failure) noexcept {
  FailureRecord& record = known(qp).failures;
  LockGuard<SpinLock> guard(record.lock);
  bool& has = failure.receives ? record.has_receive : record.has_send;
  const bool replaces = failure.over_qpn != 0 || (!failure.receives && record.is_past);
  if (has && !replaces) return;
  has = true;
  if (!failure.receives) record.is_past = false;
  (failure.receives ? record.receive : record.send) = failure;
  if (record.first == FailureRecord::First::kNone)
    record.first = failure.receives ? FailureRecord::First::kReceive : FailureRecord::First::kSend;
}

void note_led_back(Qp& qp) noexcept {
  LockGuard<SpinLock> guard(qp.failures.lock);
  qp.failures.is_past = true;
}

void want_said(Qp& qp) noexcept {
  enqueue(known(qp));
  LockGuard<BiasedLock> guard(qp.send_cq->lock);
  qp.send_cq->marks |= Cq::kUnsaid;
}

void want_said_locked(Qp& qp) noexcept {
  enqueue(known(qp));
  qp.recv_cq->marks |= Cq::kUnsaid;
}

void say_failures(bool all) noexcept {
  if (unsaid.first.load(std::memory_order_acquire) == nullptr &&
      !unsaid.holds.load(std::memory_order_relaxed))
    return;
  Line line;
  bool is_last;
  while (take_line(line, all, is_last)) {
    // At the end of the process nothing is waited for.
    const std::uint32_t connected =
        line.ended_pid == 0 || all ? 0 : count_connected(line.ended_pid);
    if (connected > 1)
      log_error("%s; %u queue pairs were connected to that process, and end so", line.text,
                connected);
    else if (line.more != 0)
      log_error("%s; %u more queue pairs with process %d failed so", line.text, line.more,
                static_cast<int>(line.peer_pid));
    else
      log_error("%s", line.text);
    if (is_last) log_error("no more of %u failures are said here: ask vbt_explain", kMostLines);
  }
}

void say_all_failures() noexcept { say_failures(true); }

void forget_failures(Qp& qp) noexcept {
  LockGuard<Mutex> guard(unsaid.mutex);
  FailureRecord& record = qp.failures;
  if (record.is_unsaid) {
    Qp* before = nullptr;
    for (Qp* at = unsaid.first.load(std::memory_order_relaxed); at != &qp;
         at = at->failures.next_unsaid)
      before = at;
    if (before == nullptr)
      unsaid.first.store(record.next_unsaid, std::memory_order_relaxed);
    else
      before->failures.next_unsaid = record.next_unsaid;
  }
  record.next_unsaid = nullptr;
  record.is_unsaid = record.was_said = false;
  LockGuard<SpinLock> copying(record.lock);
  record.first = FailureRecord::First::kNone;
  record.has_send = record.has_receive = record.is_past = false;
}

void forget_unsaid_in_child() noexcept {
  ::new (&unsaid.mutex) Mutex;
  unsaid.first.store(nullptr, std::memory_order_relaxed);
  unsaid.holds.store(false, std::memory_order_relaxed);
}

namespace {

/// The failure that a completion is about.
int find_failure(FailureRecord& record, const FailedCompletion* completion, Failure& out) noexcept {
  LockGuard<SpinLock> guard(record.lock);
  if (record.first == FailureRecord::First::kNone) return ENODATA;
  const auto fits = [&](bool has, const Failure& failure, bool exactly) {
    return has && failure.status == completion->status &&
           (!exactly || (failure.has_request && failure.wr_id == completion->wr_id));
  };
  const bool first_sends = record.first == FailureRecord::First::kSend;
  out = first_sends ? record.send : record.receive;
  if (completion == nullptr) return 0;
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
  return 0;
}

/// Of XRC: what a queue of this process remembers of a receive for a message over that target. No
/// lock is held.
bool find_failure_over(std::uint32_t qpn, Failure& out) noexcept {
  LockGuard<Mutex> guard(live.mutex);
  for (Qp* queue = live.first_qp; queue != nullptr; queue = queue->next_live) {
    if (queue->xrc != XrcRole::kQueue) continue;
    FailureRecord& record = queue->failures;
    LockGuard<SpinLock> copying(record.lock);
    if (!record.has_receive || record.receive.over_qpn != qpn) continue;
    out = record.receive;
    return true;
  }
  return false;
}

}  // namespace

int explain_qp(verbatim::Qp& handle, const FailedCompletion* completion, Failure& out) noexcept {
  Qp& qp = static_cast<Qp&>(handle);
  const int error = find_failure(qp.failures, completion, out);
  const bool fits = error == 0 && (completion == nullptr || out.status == completion->status);
  const bool receives_elsewhere = qp.xrc == XrcRole::kTarget || qp.xrc == XrcRole::kOpened;
  const bool found = !fits && receives_elsewhere && find_failure_over(qp.plain.qp_num, out);
  if (error != 0 && !found) return error;
  // What failed at home may have failed before the other process was met.
  if (out.remote.pid == 0 && out.remote_qpn != 0) name_owner(out);
  return 0;
}

}  // namespace verbatim::shm
