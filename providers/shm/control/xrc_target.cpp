// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/control/xrc_target.hpp"

#include <time.h>

#include <cerrno>
#include <new>

#include "providers/shm/calls/work_calls.hpp"
#include "providers/shm/control/cq_create.hpp"
#include "providers/shm/control/qp_control.hpp"
#include "providers/shm/endpoints/endpoint.hpp"
#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/memory/region_fast.hpp"
#include "providers/shm/queues/cq_members.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/qp_event.hpp"
#include "providers/shm/queues/qp_kind.hpp"
#include "providers/shm/queues/qp_life.hpp"
#include "providers/shm/queues/qp_make.hpp"
#include "providers/shm/xrc/xrc_domain.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/time/clock.hpp"

namespace verbatim::shm {
namespace {

/// Targets have no completion queues, but locks that stand in one: this, of all of them.
struct Idle {
  Mutex mutex;
  Cq* cq = nullptr;
  std::uint32_t users = 0;
};
constinit Idle idle;

/// Guarded by live.mutex; through next_orphan.
Qp* first_orphan = nullptr;
std::atomic<bool> has_orphans{false};

Cq* hold_idle_cq(verbatim::Context& context) noexcept {
  LockGuard<Mutex> guard(idle.mutex);
  if (idle.cq == nullptr) {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 1;
    verbatim::Cq* made;
    if (create_cq(context, attr, nullptr, &made) != 0) return nullptr;
    idle.cq = static_cast<Cq*>(made);
  }
  ++idle.users;
  return idle.cq;
}

void release_idle_cq() noexcept {
  LockGuard<Mutex> guard(idle.mutex);
  if (idle.cq == nullptr || --idle.users != 0) return;
  hide_cq(*idle.cq);
  free_cq(*idle.cq);
  idle.cq = nullptr;
}

/// After end_qp().
void retire_target(Qp& target) noexcept {
  const bool counts_idle_cq = target.xrc_end->counts_idle_cq;
  retire_ended(target);
  if (counts_idle_cq) release_idle_cq();
}

/// Who may have a target open.
struct Openers {
  std::uint32_t qpn;
  bool found;
};

void look_for_opener(const Peer& peer, void* with) noexcept {
  auto& openers = *static_cast<Openers*>(with);
  std::uint32_t link = peer.segment.live_head().endpoint_link.load(std::memory_order_acquire);
  for (std::uint32_t steps = 0; link != 0 && steps < kMaxQps && !openers.found; ++steps) {
    if (link > peer.segment.qp_capacity()) return;
    const QpRecord& record = peer.segment.qps()[link - 1];
    openers.found = load_relaxed(record.type) == QpRecord::kXrcOpened &&
                    load_relaxed(record.dest_qpn) == openers.qpn;
    link = __atomic_load_n(&record.endpoint_link, __ATOMIC_ACQUIRE);
  }
}

bool is_open_elsewhere(const Qp& target) noexcept {
  Openers openers{target.own->qpn, false};
  Process::get().each_living_peer(look_for_opener, &openers);
  return openers.found;
}

/// Somebody else has it open. Else takes the domain off the record, so that nobody opens it any
/// more, and looks again.
bool stays_open(Qp& target) noexcept {
  // First without a touch: initiators that look for further queues read the domain too.
  if (is_open_elsewhere(target)) return true;
  const XrcDomainId domain = target.own->domain;
  show_domain(*target.own, {});
  // Either we see who says in his segment that he has it open, or he sees this; pairs with the one
  // in open_qp().
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!is_open_elsewhere(target)) return false;
  show_domain(*target.own, domain);
  return true;
}

/// The process that owns `qpn`, held, met if need be; nullptr: there is none.
Peer* find_owner(std::uint32_t qpn) noexcept {
  constexpr std::uint64_t kPatienceNs = 4'000'000'000;
  Process& process = Process::get();
  const std::uint64_t deadline = now_ns() + kPatienceNs;
  process.want_peer(qpn);
  for (;;) {
    // Asked before the look: who is met in between is found by it.
    const bool may_come = process.is_connecting(qpn) && now_ns() < deadline;
    if (Peer* peer = process.hold_peer(qpn); peer != nullptr) {
      if (peer->alive.load(std::memory_order_acquire)) return peer;
      process.release_peer(*peer);
    }
    if (!may_come) return nullptr;
    process.want_peer(qpn);
    const timespec pause{.tv_sec = 0, .tv_nsec = 50'000};
    ::nanosleep(&pause, nullptr);
  }
}

/// The record of a target that is there and of this domain.
const QpRecord* find_record(const Peer& owner, std::uint32_t qpn, const QpRecord& as) noexcept {
  const std::uint32_t index = Process::index_in(owner, qpn);
  if (index >= owner.segment.qp_capacity()) return nullptr;
  const QpRecord& record = owner.segment.qps()[index];
  return load_relaxed(record.qpn) == qpn && load_relaxed(record.type) == IBV_QPT_XRC_RECV &&
                 load_relaxed(record.speaks_for) == 0 && shares_domain(record, as)
             ? &record
             : nullptr;
}

/// What the record says, which is another process's word.
ibv_qp_state state_of(const QpRecord& record) noexcept {
  const std::uint32_t state = load_relaxed(record.state);
  return state <= IBV_QPS_ERR ? static_cast<ibv_qp_state>(state) : IBV_QPS_ERR;
}

/// The target itself, when it is this process's: it stays while `opened` is open.
Qp* target_here(const Qp& opened) noexcept {
  if (!opened.ep.record_owner->self) return nullptr;
  const std::uint32_t index = Process::index_in(*opened.ep.record_owner, opened.ep.target);
  LockGuard<Mutex> guard(live.mutex);
  Qp* target = index < kMaxQps ? live.qps[index] : nullptr;
  return target != nullptr && target->xrc == XrcRole::kTarget ? target : nullptr;
}

bool is_event_of_qp(std::uint32_t type) noexcept {
  return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR ||
         type == IBV_EVENT_QP_ACCESS_ERR || type == IBV_EVENT_COMM_EST ||
         type == IBV_EVENT_SQ_DRAINED;
}

// So that those who have a target open hear of it; and its end for the program that made it.
void tell_openers(Qp& target, ibv_event_type type) noexcept;
int destroy_target(Qp& target) noexcept;
constinit const QpKind kXrcTargetKind{.tell_openers = tell_openers, .destroy = destroy_target};

// A handle on a target. It is listed with the endpoints that leave.
int modify_opened(Qp& opened, ibv_qp_attr& attr, int mask) noexcept;
int query_opened(Qp& opened, ibv_qp_attr& attr) noexcept;
int close_opened(Qp& opened) noexcept;
constinit const QpKind kXrcOpenedKind{.modify = modify_opened,
                                      .query = query_opened,
                                      .destroy = close_opened,
                                      .retire = forget_outgoing};

}  // namespace

int create_target(verbatim::Context& context, ibv_qp_init_attr_ex& attr,
                  verbatim::Qp** out) noexcept {
  if (const int error = check_work_calls(attr); error != 0) return error;
  attr.cap = {};
  attr.send_cq = attr.recv_cq = nullptr;
  attr.srq = nullptr;
  attr.pd = nullptr;
  retire_parked();
  Cq* cq = hold_idle_cq(context);
  if (cq == nullptr) return ENOMEM;
  Qp* target = make_presence(context.handle(), IBV_QPT_XRC_RECV, XrcRole::kTarget, *cq);
  if (target != nullptr) target->kind = &kXrcTargetKind;
  if (target == nullptr || add_member(*cq, *target) != 0) {
    if (target != nullptr) {
      LockGuard<Mutex> guard(live.mutex);
      park(*target);
    }
    release_idle_cq();
    return ENOMEM;
  }
  target->xrc_end->counts_idle_cq = true;
  store_relaxed(target->own->state, IBV_QPS_RESET);
  store_relaxed(target->own->told, 0u);
  show_domain(*target->own, Xrcd::from(attr.xrcd).id);
  enlist(*target);
  *out = target;
  return 0;
}

namespace {

int destroy_target(Qp& target) noexcept {
  const XrcDomainId domain = target.own->domain;
  if (stays_open(target)) {
    Context::of(target.plain.context).events.retire(target);
    LockGuard<Mutex> guard(live.mutex);
    target.xrc_end->disowned = true;
    target.xrc_end->next_orphan = first_orphan;
    first_orphan = &target;
    has_orphans.store(true, std::memory_order_release);
    return 0;
  }
  if (const int error = end_qp(target); error != 0) {
    show_domain(*target.own, domain);
    return error;
  }
  Context::of(target.plain.context).events.retire(target);
  retire_target(target);
  return 0;
}

}  // namespace

void end_orphans() noexcept {
  if (!has_orphans.load(std::memory_order_acquire)) return;
  Qp* ended = nullptr;
  {
    LockGuard<Mutex> guard(live.mutex);
    for (Qp** link = &first_orphan; *link != nullptr;) {
      Qp& target = **link;
      if (stays_open(target)) {
        link = &target.xrc_end->next_orphan;
        continue;
      }
      *link = target.xrc_end->next_orphan;
      target.xrc_end->next_orphan = ended;
      ended = &target;
    }
    has_orphans.store(first_orphan != nullptr, std::memory_order_release);
  }
  while (ended != nullptr) {
    Qp& target = *ended;
    ended = target.xrc_end->next_orphan;
    if (end_qp(target) != 0) {  // an initiator that is stopped in the middle of a copy: later
      LockGuard<Mutex> guard(live.mutex);
      target.xrc_end->next_orphan = first_orphan;
      first_orphan = &target;
      has_orphans.store(true, std::memory_order_release);
      continue;
    }
    retire_target(target);
  }
}

void forget_orphans() noexcept {
  std::uint32_t forgotten = 0;
  {
    LockGuard<Mutex> guard(live.mutex);
    while (first_orphan != nullptr) {
      Qp& target = *first_orphan;
      first_orphan = target.xrc_end->next_orphan;
      unwatch_locked(target);
      delist_locked(target);
      if (Peer* peer = target.met.load(std::memory_order_relaxed); peer != nullptr)
        Process::get().release_peer(*peer);
      remove_member(*target.recv_cq, target);
      forgotten += target.xrc_end->counts_idle_cq;
      free_qp(target);
    }
    has_orphans.store(false, std::memory_order_release);
  }
  for (; forgotten != 0; --forgotten) release_idle_cq();
}

void forget_targets_of_parent() noexcept {
  ::new (&idle) Idle;
  first_orphan = nullptr;
  has_orphans.store(false, std::memory_order_relaxed);
}

namespace {

void tell_openers(Qp& target, ibv_event_type type) noexcept {
  const std::uint32_t count = (load_relaxed(target.own->told) >> 8) + 1;
  store_relaxed(target.own->told, count << 8 | (static_cast<std::uint32_t>(type) & 0xff));
}

}  // namespace

int open_qp(verbatim::Context& context, const ibv_qp_open_attr& attr, verbatim::Qp** out) noexcept {
  if (attr.qp_type != IBV_QPT_XRC_RECV) {
    log_refusal("ibv_open_qp: only XRC_RECV queue pairs can be opened; qp_type is %d",
                static_cast<int>(attr.qp_type));
    return EINVAL;
  }
  Cq* cq = hold_idle_cq(context);
  if (cq == nullptr) return ENOMEM;
  Qp* opened = make_presence(context.handle(), IBV_QPT_XRC_RECV, XrcRole::kOpened, *cq);
  if (opened == nullptr) {
    release_idle_cq();
    return ENOMEM;
  }
  opened->kind = &kXrcOpenedKind;
  opened->xrc_end->counts_idle_cq = true;
  opened->ep.target = attr.qp_num;
  show_domain(*opened->own, Xrcd::from(attr.xrcd).id);
  store_relaxed(opened->own->type, QpRecord::kXrcOpened);
  store_relaxed(opened->own->dest_qpn, attr.qp_num);
  list_outgoing(*opened);
  Peer* owner = find_owner(attr.qp_num);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in stays_open()
  const QpRecord* record =
      owner == nullptr ? nullptr : find_record(*owner, attr.qp_num, *opened->own);
  if (record == nullptr) {
    log_refusal("ibv_open_qp: no XRC_RECV queue pair of this domain has the number 0x%06x",
                attr.qp_num);
    if (owner != nullptr) Process::get().release_peer(*owner);
    {
      LockGuard<Mutex> guard(live.mutex);
      park(*opened);
    }
    release_idle_cq();
    return EINVAL;
  }
  opened->ep.record = record;
  opened->ep.record_owner = owner;
  opened->xrc_end->told = load_relaxed(record->told);
  opened->plain.qp_num = attr.qp_num;
  opened->plain.state = state_of(*record);
  enlist(*opened);
  *out = opened;
  return 0;
}

namespace {

int modify_opened(Qp& opened, ibv_qp_attr& attr, int mask) noexcept {
  Qp* target = target_here(opened);
  if (target == nullptr) {
    log_refusal(
        "ibv_modify_qp: XRC_RECV QP 0x%06x is another process's: with shm only the one that made "
        "it can modify it",
        opened.plain.qp_num);
    return EOPNOTSUPP;
  }
  // Of an orphan the context may be gone; ours lives as long as this call.
  if (target->xrc_end->disowned) target->plain.context = opened.plain.context;
  const int error = modify_qp(*target, attr, mask);
  opened.plain.state = target->plain.state;
  return error;
}

int query_opened(Qp& opened, ibv_qp_attr& attr) noexcept {
  if (Qp* target = target_here(opened); target != nullptr) {
    ibv_qp_init_attr nothing{};
    const int error = query_qp(*target, attr, 0, nothing);
    opened.plain.state = attr.qp_state;
    return error;
  }
  const QpRecord& record = *opened.ep.record;
  const bool is_there = opened.ep.record_owner->alive.load(std::memory_order_acquire) &&
                        load_relaxed(record.qpn) == opened.ep.target;
  attr = {};
  attr.qp_state = is_there ? state_of(record) : IBV_QPS_ERR;
  attr.cur_qp_state = attr.qp_state;
  attr.dest_qp_num = load_relaxed(record.dest_qpn);
  attr.rq_psn = load_relaxed(record.rq_psn);
  attr.qp_access_flags = load_relaxed(record.access);
  attr.min_rnr_timer = load_relaxed(record.min_rnr_timer);
  attr.max_dest_rd_atomic = load_relaxed(record.max_dest_rd_atomic);
  opened.plain.state = attr.qp_state;
  return 0;
}

int close_opened(Qp& opened) noexcept {
  const bool counts_idle_cq = opened.xrc_end->counts_idle_cq;
  delist(opened);  // the service thread raises nothing for it any more
  Context::of(opened.plain.context).events.retire(opened);
  {
    LockGuard<Mutex> guard(live.mutex);
    Process::get().release_peer(*opened.ep.record_owner);
    park(opened);
  }
  if (counts_idle_cq) release_idle_cq();
  end_orphans();
  return 0;
}

}  // namespace

void watch_target(Qp& opened) noexcept {
  const QpRecord& record = *opened.ep.record;
  if (load_relaxed(record.qpn) != opened.ep.target) return;
  const std::uint32_t told = load_relaxed(record.told);
  if (told != opened.xrc_end->told) {
    opened.xrc_end->told = told;
    if (is_event_of_qp(told & 0xff))
      raise_qp_event(opened, static_cast<ibv_event_type>(told & 0xff));
  }
  if (opened.in.broken || opened.ep.record_owner->alive.load(std::memory_order_acquire)) return;
  opened.in.broken = true;
  raise_qp_event(opened, IBV_EVENT_QP_FATAL);
}

}  // namespace verbatim::shm
