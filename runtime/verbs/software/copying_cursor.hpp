// SPDX-License-Identifier: BSD-2-Clause
// ibv_start_poll and its companions over whatever gives one completion after the other. The cursor
// stands on a copy: the ring has its place back at once, and nothing depends on how the application
// ends its turn. From start to end it belongs to one thread; the queue's own lock is taken for each
// completion only, so a program may post, poll and destroy in between.
#pragma once

#include <infiniband/verbs.h>

#include <cerrno>

#include "runtime/sync/spin_lock.hpp"
#include "runtime/verbs/handles.hpp"
#include "runtime/verbs/wc_readers.hpp"

namespace verbatim {

/// Where a completion queue is being read.
struct CopiedCompletion {
  SpinLock lock;
  ibv_wc wc{};
};

/// Checks the fields before the queue is made: 0, or EOPNOTSUPP and why in the log. Clocks, which an
/// ibv_wc does not carry, cannot be asked for; `provider`: its name.
[[nodiscard]] int check_wc_fields(const ibv_cq_init_attr_ex& attr, const char* provider) noexcept;

/// Cq: a provider's, with a member `CopiedCompletion cursor`. take(cq, wc): the next completion, and
/// whether there is one.
template <class Cq, bool (*take)(Cq&, ibv_wc&) noexcept>
struct CopyingCursor {
  static void wire(Cq& cq) noexcept {
    ibv_cq_ex& table = cq.extended;
    table.start_poll = start_poll;
    table.next_poll = next_poll;
    table.end_poll = end_poll;
    WcReaders<seen>::wire(table);
  }

 private:
  static Cq& cq_of(ibv_cq_ex* cq) noexcept { return static_cast<Cq&>(verbatim::Cq::from(cq)); }
  static const ibv_wc& seen(ibv_cq_ex* cq) noexcept { return cq_of(cq).cursor.wc; }

  static bool step(Cq& cq) noexcept {
    if (!take(cq, cq.cursor.wc)) return false;
    cq.extended.status = cq.cursor.wc.status;
    cq.extended.wr_id = cq.cursor.wc.wr_id;
    return true;
  }
  static int start_poll(ibv_cq_ex* handle, ibv_poll_cq_attr* attr) noexcept {
    if (attr != nullptr && attr->comp_mask != 0) return EINVAL;
    Cq& cq = cq_of(handle);
    cq.cursor.lock.lock();
    if (step(cq)) return 0;
    cq.cursor.lock.unlock();
    return ENOENT;
  }
  static int next_poll(ibv_cq_ex* handle) noexcept { return step(cq_of(handle)) ? 0 : ENOENT; }
  static void end_poll(ibv_cq_ex* handle) noexcept { cq_of(handle).cursor.lock.unlock(); }
};

}  // namespace verbatim
