// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/windows/windows.hpp"

#include <cerrno>
#include <new>

#include "providers/shm/fabric/process.hpp"
#include "providers/shm/memory/context.hpp"
#include "providers/shm/memory/region.hpp"
#include "providers/shm/memory/region_table.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/queues/meet.hpp"
#include "providers/shm/windows/authorize.hpp"
#include "providers/shm/windows/window_access.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/memory/arena.hpp"
#include "runtime/verbs/rights.hpp"
#include "runtime/verbs/software/window_rules.hpp"

namespace verbatim::shm {
namespace {

/// What a bind asks for.
BindRequest asked_of(const Qp& qp, const verbatim::Mw& mw, const PendingSend& send) noexcept {
  return {mw.plain.type,
          mw.plain.pd->handle,
          qp.pd_number,
          qp.own->qpn,
          send.remote_address,
          send.compare_add,
          send.immediate & ~kRightsOfRegions};
}

struct Windows {
  SpinLock lock;
  Mw* by_index[kMaxRegions] = {};  // zero pages until touched
};
constinit Windows windows;

Mw& of(ibv_mw* handle) noexcept { return static_cast<Mw&>(verbatim::Mw::from(handle)); }

/// What the window will show, or false: it may not.
bool describe(Mr& mr, const BindRequest& asked, Region& out) noexcept {
  std::uint64_t offset = 0;
  if (judge_bind(mr.shown, asked, offset) != WindowFault::kUnseen) return false;
  out = {};
  static_cast<KeyMeaning&>(out) = meaning_of_window(mr.shown, asked, offset);
  if (may_lack_pages(mr)) out.access |= IBV_ACCESS_ON_DEMAND;
  out.arena = mr.arena;
  if (mr.arena != 0 && mr.arena != RegionRecord::kOwnerOnly) {
    arena_share(mr.arena - 1);
    out.arena_offset = mr.arena_offset + offset;
  }
  return true;
}

void link_locked(Mw& mw, Qp& qp) noexcept {
  mw.qp = &qp;
  mw.prev = nullptr;
  mw.next = qp.windows;
  if (mw.next != nullptr) mw.next->prev = &mw;
  qp.windows = &mw;
}

void unlink_locked(Mw& mw) noexcept {
  if (mw.qp == nullptr) return;
  (mw.prev != nullptr ? mw.prev->next : mw.qp->windows) = mw.next;
  if (mw.next != nullptr) mw.next->prev = mw.prev;
  mw.qp = nullptr;
}

/// Its key means nothing from here on; whoever looked it up before may still be copying.
void unbind_locked(Mw& mw) noexcept {
  region_table.hide(mw.key);
  mw.mr->uses.fetch_sub(1, std::memory_order_release);
  mw.mr = nullptr;
  unlink_locked(mw);
}

/// The window of type 2 that is bound under `rkey` on `qp`; nullptr: none.
Mw* bound_locked(const Qp& qp, std::uint32_t rkey) noexcept {
  Mw* mw = rkey >> 8 < kMaxRegions ? windows.by_index[rkey >> 8] : nullptr;
  return mw != nullptr && mw->mr != nullptr && mw->qp == &qp && mw->key == rkey ? mw : nullptr;
}

bool unbind(const Qp& qp, std::uint32_t rkey) noexcept {
  LockGuard<SpinLock> guard(windows.lock);
  Mw* mw = bound_locked(qp, rkey);
  if (mw == nullptr) return false;
  unbind_locked(*mw);
  return true;
}

// ---- the wait for the one peer that may be copying through a window of type 2

/// The word that is odd while the peer of `qp` may be copying; nullptr: it cannot be.
const std::atomic<std::uint64_t>* word_of_peer(Qp& qp) noexcept {
  const std::uint32_t qpn = load_relaxed(qp.own->dest_qpn);
  if (qpn == qp.own->qpn) return nullptr;  // ourselves: whoever copied held the lock that we hold
  const Peer* peer = find_connected_peer(qp);
  if (peer == nullptr) return nullptr;
  const std::uint32_t index = Process::index_in(*peer, qpn);
  return index < peer->segment.qp_capacity() ? &peer->segment.qps()[index].active : nullptr;
}

QuietWait start_quiet(Qp& qp) noexcept {
  QuietWait quiet;
  quiet.word = word_of_peer(qp);
  if (quiet.word != nullptr) quiet.seen = look_at_mark(*quiet.word);
  quiet.service = live.service_active.load(std::memory_order_seq_cst);
  return quiet;
}

bool is_over(const Qp& qp, const QuietWait& quiet) noexcept {
  if ((quiet.service & 1) != 0 &&
      live.service_active.load(std::memory_order_acquire) == quiet.service)
    return false;
  if (quiet.word == nullptr || (quiet.seen & 1) == 0 ||
      quiet.word->load(std::memory_order_acquire) != quiet.seen)
    return true;
  const Peer* peer = qp.met.load(std::memory_order_acquire);
  return peer == nullptr || !peer->alive.load(std::memory_order_acquire);
}

Step close_window(Qp& qp, std::uint32_t rkey) noexcept {
  QuietWait& quiet = qp.sq.progress.quiet;
  if (!quiet.started) {
    if (!unbind(qp, rkey)) return Step::fails(IBV_WC_MW_BIND_ERR);
    quiet = start_quiet(qp);
    quiet.started = true;
  }
  return is_over(qp, quiet) ? Step::done() : Step::waits(Wait::kQuiet);
}

Step open_window(Qp& qp, const PendingSend& send) noexcept {
  Mw& mw = of(send.window);
  Region region;
  if (send.region == nullptr || send.rkey >> 8 != mw.plain.handle ||
      !describe(static_cast<Mr&>(verbatim::Mr::from(send.region)), asked_of(qp, mw, send), region))
    return Step::fails(IBV_WC_MW_BIND_ERR);
  LockGuard<SpinLock> guard(windows.lock);
  if (mw.mr != nullptr) return Step::fails(IBV_WC_MW_BIND_ERR);  // it must be closed first
  mw.mr = static_cast<Mr*>(&verbatim::Mr::from(send.region));
  mw.mr->uses.fetch_add(1, std::memory_order_relaxed);
  mw.key = send.rkey;
  mw.plain.rkey = send.rkey;
  if (mw.plain.type == IBV_MW_TYPE_2) link_locked(mw, qp);
  region_table.show(mw.key, region);
  return Step::done();
}

}  // namespace

int alloc_mw(verbatim::Pd&, ibv_mw_type, verbatim::Mw** out) noexcept {
  Mw* mw = make_nothrow<Mw>();
  if (mw == nullptr) return ENOMEM;
  if (const int error = region_table.reserve(mw->key); error != 0) {
    destroy_nothrow(mw);
    return error;
  }
  mw->plain.rkey = mw->key;
  mw->plain.handle = mw->key >> 8;
  LockGuard<SpinLock> guard(windows.lock);
  windows.by_index[mw->plain.handle] = mw;
  *out = mw;
  return 0;
}

int dealloc_mw(verbatim::Mw& handle) noexcept {
  Mw& mw = static_cast<Mw&>(handle);
  {
    LockGuard<SpinLock> guard(windows.lock);
    if (mw.mr != nullptr) unbind_locked(mw);
  }
  if (!await_all_peers()) {
    log_error(
        "dealloc_mw: a peer process was stopped in the middle of a copy; the window is closed, "
        "continue that process and deallocate again");
    return EBUSY;
  }
  {
    LockGuard<SpinLock> guard(windows.lock);
    windows.by_index[mw.plain.handle] = nullptr;
  }
  region_table.release(mw.key);
  destroy_nothrow(&mw);
  return 0;
}

bool close_bound(Mw& mw) noexcept {
  LockGuard<SpinLock> guard(windows.lock);
  if (mw.mr == nullptr) return false;
  unbind_locked(mw);
  return true;
}

int check_bind(const ibv_send_wr& wr) noexcept {
  const ibv_mw_bind_info& info = wr.bind_mw.bind_info;
  if (wr.bind_mw.mw == nullptr || wr.num_sge != 0) return EINVAL;
  return info.mr == nullptr && (info.length != 0 || info.addr != 0) ? EINVAL : 0;
}

Step do_window(Qp& qp, const PendingSend& send) noexcept {
  if (send.opcode == IBV_WR_LOCAL_INV) return close_window(qp, send.immediate);
  if (send.compare_add != 0) return open_window(qp, send);
  // Of no bytes: no longer bound (IBTA 10.6.7.2.2), which ibv_bind_mw has seen to.
  const Mw& mw = of(send.window);
  return mw.plain.type == IBV_MW_TYPE_1 ? Step::done() : close_window(qp, mw.key);
}

void judge_window(const Qp& qp, const PendingSend& send, Failure& failure) noexcept {
  KeyFacts& key = failure.key;
  key.key = send.opcode == IBV_WR_LOCAL_INV ? send.immediate : send.rkey;
  failure.window = WindowFault::kNotBound;
  if (send.opcode == IBV_WR_LOCAL_INV) return;
  const Mw& mw = of(send.window);
  if (send.compare_add == 0) {
    key.key = mw.key;
    return;
  }
  if (send.region == nullptr) {
    failure.window = WindowFault::kNoRegion;
    return;
  }
  if (send.rkey >> 8 != mw.plain.handle) {
    failure.window = WindowFault::kForeignKey;
    return;
  }
  const Region& whole = static_cast<Mr&>(verbatim::Mr::from(send.region)).shown;
  const BindRequest asked = asked_of(qp, mw, send);
  std::uint64_t offset;
  key.need = asked.access & ~kWindowRights;
  key.asked_at = asked.start;
  key.asked_bytes = asked.length;
  key.first = whole.iova;
  key.bytes = whole.length;
  failure.window = judge_bind(whole, asked, offset);
  if (failure.window == WindowFault::kUnseen) failure.window = WindowFault::kStillBound;
}

bool may_invalidate(Qp& qp, std::uint32_t rkey) noexcept {
  Region region;
  return regions_of_peer(qp).find(rkey, region) &&
         region.pd == (holder::kWindowOfQp | load_relaxed(qp.own->dest_qpn)) &&
         opens_window(qp, region);
}

bool remembers_enough(Qp& qp) noexcept {
  for (const EndedKey& ended : qp.ended)
    if (ended.serial == 0 ||
        qp.link.remote_regions[ended.index].serial.load(std::memory_order_relaxed) != ended.serial)
      return false;
  return true;
}

void note_invalidated(Qp& qp, std::uint32_t rkey) noexcept {
  const std::uint32_t index = rkey >> 8;
  qp.direct.write = {};
  for (EndedKey& ended : qp.ended) {
    if (ended.serial != 0 &&
        qp.link.remote_regions[ended.index].serial.load(std::memory_order_relaxed) == ended.serial)
      continue;
    ended = {qp.link.remote_regions[index].serial.load(std::memory_order_relaxed), index};
    return;
  }
}

Ended end_window(Qp& qp, std::uint64_t index, std::uint32_t rkey, EndedBy who) noexcept {
  if (index < qp.in.ended_messages) return Ended::kEnded;
  if (qp.in.ending_message != index) {
    if (!unbind(qp, rkey)) return Ended::kWrong;
    qp.in.ending = start_quiet(qp);
    if (who == EndedBy::kServiceThread) qp.in.ending.service = 0;  // it does not wait for itself
    qp.in.ending_message = index;
  }
  if (!is_over(qp, qp.in.ending)) return Ended::kNotYet;
  qp.in.ended_messages = index + 1;
  return Ended::kEnded;
}

void close_windows_of(Qp& qp) noexcept {
  LockGuard<SpinLock> guard(windows.lock);
  while (qp.windows != nullptr) unbind_locked(*qp.windows);
}

void remake_window_lock() noexcept { ::new (&windows.lock) SpinLock; }

}  // namespace verbatim::shm
