// SPDX-License-Identifier: BSD-2-Clause
//
// One queue pair of any transport whose other end is in this process, too.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "tests/support/expect.hpp"

namespace verbatim::harness {

/// A queue pair of a transport with a queue of four, which sends to its own process, by posts or by
/// calls.
struct LoneSender {
  LoneSender(ibv_qp_type transport, bool calls, bool by_cursor = false)
      : type(transport), built(calls) {
    QpWish wish;
    if (by_cursor) wish.send_cq = wish.receive_cq = own.adopt_cq(with_cursor());
    wish.type = type;
    wish.send_depth = 4;
    if (built) wish.send_ops = type == IBV_QPT_UD ? kSend : kWrite;
    if (type == IBV_QPT_XRC_SEND) {
      SrqWish there;
      there.xrc = 1;
      queue = own.create_srq(there);
      info = own.create_qp(wish);
      wish = {};
      wish.type = IBV_QPT_XRC_RECV;
      const QpInfo target = own.create_qp(wish);
      own.connect(info.id, target, {});
      own.connect(target.id, info, {});
    } else {
      info = own.create_qp(wish);
      own.connect(info.id, info, {});
    }
    if (type == IBV_QPT_UD) ah = own.create_ah(info, 0);
  }
  ibv_cq* with_cursor() {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 16;
    attr.wc_flags = IBV_WC_STANDARD_FLAGS;
    cursor = ibv_create_cq_ex(own.context(), &attr);
    return ibv_cq_ex_to_cq(cursor);
  }
  /// A write of so many bytes, or a datagram; the errno.
  int post(unsigned flags, std::uint32_t length = 8) {
    return built ? call(flags, length) : own.post_send(info.id, {request(flags, length)}).error;
  }
  Request request(unsigned flags, std::uint32_t length) const {
    Slice from = slice(memory, 0, length);
    from.lkey = lkey;
    Request made = type == IBV_QPT_UD ? datagram(wr_id, from, ah, info.qpn, kQkey)
                                      : write(wr_id, from, memory, 4096);
    made.remote_srqn = queue.srqn;
    made.flags = flags;
    return made;
  }
  int call(unsigned flags, std::uint32_t length) {
    ibv_qp_ex* const qp = ibv_qp_to_qp_ex(own.qp(info.id));
    ibv_wr_start(qp);
    qp->wr_id = wr_id;
    qp->wr_flags = flags & ~unsigned{IBV_SEND_INLINE};
    if (type == IBV_QPT_UD)
      ibv_wr_send(qp);
    else
      ibv_wr_rdma_write(qp, memory.rkey, memory.address + 4096);
    if (type == IBV_QPT_UD) ibv_wr_set_ud_addr(qp, own.ah(ah), info.qpn, kQkey);
    if (type == IBV_QPT_XRC_SEND) ibv_wr_set_xrc_srqn(qp, queue.srqn);
    if ((flags & IBV_SEND_INLINE) != 0)
      ibv_wr_set_inline_data(qp, own.bytes(memory.id), length);
    else
      ibv_wr_set_sge(qp, lkey, memory.address, length);
    return ibv_wr_complete(qp);
  }
  /// The status of the next completion.
  ibv_wc_status poll() {
    if (cursor == nullptr) return own.poll(info.send_cq, 1, kDefaultWaitMs)[0].status;
    ibv_poll_cq_attr attr{};
    if (!wait_until([&] { return ibv_start_poll(cursor, &attr) == 0; }))
      throw std::runtime_error("no completion by the cursor");
    EXPECT_EQ(cursor->wr_id, wr_id);
    const ibv_wc_status status = cursor->status;
    ibv_end_poll(cursor);
    return status;
  }

  static constexpr std::uint64_t kSend = IBV_QP_EX_WITH_SEND, kWrite = IBV_QP_EX_WITH_RDMA_WRITE;
  const ibv_qp_type type;
  const bool built;
  Endpoint own{std::make_shared<Session>()};
  RegionInfo memory = own.allocate(MemoryKind::kMapped, 8192, kAllAccess);
  std::uint32_t lkey = memory.lkey;  ///< of what is posted next
  std::uint64_t wr_id = 1;           ///< ... likewise
  ibv_cq_ex* cursor = nullptr;
  SrqInfo queue;
  QpInfo info;
  std::int32_t ah = -1;
};

/// "UdCalls", for names of tests.
inline std::string sender_name(ibv_qp_type type, bool calls) {
  const char* const name = type == IBV_QPT_RC   ? "Rc"
                           : type == IBV_QPT_UC ? "Uc"
                           : type == IBV_QPT_UD ? "Ud"
                                                : "Xrc";
  return std::string(name) + (calls ? "Calls" : "");
}

}  // namespace verbatim::harness
