// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/control/bind_window.hpp"

#include <cerrno>

#include "providers/shm/calls/hot.hpp"
#include "providers/shm/queues/live.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::shm {

// The old key dies here, not when the request comes to the head of its queue: here one can wait.
int bind_mw(verbatim::Qp& qp, verbatim::Mw& handle, ibv_mw_bind& bind) noexcept {
  Mw& mw = static_cast<Mw&>(handle);
  ibv_send_wr wr{};
  wr.wr_id = bind.wr_id;
  wr.opcode = IBV_WR_BIND_MW;
  wr.send_flags = bind.send_flags & ~unsigned{IBV_SEND_INLINE};
  wr.bind_mw = {&mw.plain, ibv_inc_rkey(mw.plain.rkey), bind.bind_info};
  if (const int error = check_bind(wr); error != 0) return error;
  Qp& poster = static_cast<Qp&>(qp);
  {
    SendLock lock(poster);
    if (const int error = check_request(poster, wr); error != 0) return error;
  }
  if (close_bound(mw) && !await_all_peers()) {
    log_error(
        "bind_mw: a peer process was stopped in the middle of a copy; the window is closed, "
        "continue that process and bind again");
    return EBUSY;
  }
  ibv_send_wr* bad;
  if (const int error = post_send(&qp.plain, &wr, &bad); error != 0) return error;
  mw.plain.rkey = wr.bind_mw.rkey;
  return 0;
}

}  // namespace verbatim::shm
