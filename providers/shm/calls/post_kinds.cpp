// SPDX-License-Identifier: BSD-2-Clause
//
// A post to a queue pair of a kind of its own: what can be sent at once is, else it is queued.
#include "providers/shm/calls/hot.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "providers/shm/ud/datagram.hpp"
#include "providers/shm/xrc/xrc_send.hpp"

namespace verbatim::shm {

int post_by_kind(Qp& qp, SendLock& lock, const ibv_send_wr& wr) noexcept {
  if (qp.datagrams != nullptr) {
    if (const int error = check_datagram(qp, wr); error != 0) {
      // The end of the list, and what stands before it waits for a look.
      if (qp.queued() != 0) advance(qp, lock);
      return error;
    }
    if (!qp.posts_generally && send_datagram_now(qp, lock, wr)) return 0;
  }
  if (qp.xrc == XrcRole::kInitiator && !qp.posts_generally && send_to_queue_now(qp, lock, wr))
    return 0;
  return post_slowly(qp, lock, wr);
}

}  // namespace verbatim::shm
