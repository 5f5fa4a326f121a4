// SPDX-License-Identifier: BSD-2-Clause
//
// Send requests as they are posted, in a list (ibv_post_send) or built by calls (ibv_wr_*).
#include <cerrno>
#include <cstring>

#include "runtime/verbs/software/built_requests.hpp"
#include "runtime/verbs/software/operations.hpp"
#include "runtime/verbs/software/request_checks.hpp"
#include "runtime/verbs/software/request_list.hpp"
#include "runtime/verbs/software/routing_header.hpp"
#include "tests/support/packet/objects.hpp"

namespace verbatim::packet {

std::uint64_t operations(ibv_qp_type type) {
  constexpr std::uint64_t kLacking = IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV |
                                     IBV_QP_EX_WITH_SEND_WITH_INV | IBV_QP_EX_WITH_FLUSH |
                                     IBV_QP_EX_WITH_ATOMIC_WRITE;
  return operations_of(type) & ~kLacking;
}

/// A send queue as a request finds it.
struct PostedTo {
  Qp& qp;
  std::uint32_t
      ahead;  ///< so many requests of its batch are before it, none of which has been taken

  ibv_qp_state state() const noexcept { return qp.state(); }
  bool has_operation(unsigned opcode) const noexcept {
    return (operations(qp.plain.qp_type) & operation_bit(opcode)) != 0;
  }
  std::uint32_t max_sge() const noexcept { return qp.init.cap.max_send_sge; }
  std::uint32_t max_inline() const noexcept { return qp.init.cap.max_inline_data; }
  std::uint32_t max_rd_atomic() const noexcept { return qp.attributes.max_rd_atomic; }
  int check_form(const ibv_send_wr& wr) const noexcept {
    if (qp.plain.qp_type != IBV_QPT_UD) return 0;
    const std::uint64_t bytes = bytes_of(wr.sg_list, static_cast<std::size_t>(wr.num_sge));
    return is_addressed(wr, qp.plain.context) && bytes <= kMtu ? 0 : EINVAL;
  }
  /// Takes memory for the request, if there has been none: has_place() makes the store larger.
  bool is_full() const noexcept {
    const std::uint32_t most = qp.init.cap.max_send_wr;
    return qp.tail - qp.freed + ahead >= most ||
           !qp.sends.has_place({}, most, max_sge(), qp.head, qp.tail);
  }
  void tell_early() const noexcept {}
  void tell_long_inline(std::uint64_t) const noexcept {}
  void tell_full() const noexcept {}
};

void take_request(Qp& qp, const ibv_send_wr& wr) {
  Send& send = qp.sends.keep(qp.tail++, wr, std::memcpy);
  send.to = qp.attributes.dest_qp_num;
  send.from = qp.plain.qp_num;
  send.immediate = wr.imm_data;
  send.rkey = is_atomic(wr.opcode) ? wr.wr.atomic.rkey : wr.wr.rdma.rkey;
  send.address = is_atomic(wr.opcode) ? wr.wr.atomic.remote_addr : wr.wr.rdma.remote_addr;
  send.compare_add = wr.wr.atomic.compare_add;
  send.swap = wr.wr.atomic.swap;
  if (is_atomic(wr.opcode)) send.length = 8;
  if (qp.plain.qp_type == IBV_QPT_UD) {
    send.kind = Kind::kDatagram;
    send.to = wr.wr.ud.remote_qpn;
    send.rkey = carried_qkey(wr.wr.ud.remote_qkey, qp.attributes.qkey);
    send.path = Ah::from(wr.wr.ud.ah).attr;
  }
  if (qp.state() == IBV_QPS_ERR || qp.state() == IBV_QPS_SQE) flush_sends(qp);
}

int post_list(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  const LockGuard guard(world().lock);
  const int error = post_in_order(wr, bad, [&](const ibv_send_wr& next) {
    const int refusal = check_send_request(PostedTo{qp, 0}, next);
    if (refusal == 0) take_request(qp, next);
    return refusal;
  });
  transmit(qp);
  progress();
  return error;
}

int post_batch(Qp& qp) {
  const LockGuard guard(world().lock);
  const int error = qp.batch.complete(
      [&](const ibv_send_wr& wr, std::uint32_t ahead) {
        return check_send_request(PostedTo{qp, ahead}, wr);
      },
      [&](const ibv_send_wr& wr) { take_request(qp, wr); });
  transmit(qp);
  progress();
  return error;
}

/// The device's lock is for what is built, not for who builds.
struct Requests : BatchedRequests<Qp> {
  static void start(ibv_qp_ex* handle) noexcept {
    Qp& qp = of(handle);
    qp.builds.lock();
    qp.batch.start();
  }
  static int complete(ibv_qp_ex* handle) noexcept {
    Qp& qp = of(handle);
    const int error = post_batch(qp);
    qp.builds.unlock();
    return error;
  }
  static void abort(ibv_qp_ex* handle) noexcept { of(handle).builds.unlock(); }
};

bool make_calls(Qp& qp, const ibv_qp_init_attr_ex& attr) {
  if (attr.send_ops_flags == 0) return true;
  const ibv_qp_cap& cap = attr.cap;
  using Built = BuiltRequests<Requests>;
  set_work_calls<Built::refuse_call>(qp.extended, attr.send_ops_flags, Built::kCalls);
  // A batch is taken as a whole: none of it may lack a place.
  return qp.sends.make({}, cap.max_send_wr, cap.max_send_sge) &&
         qp.batch.make({}, cap.max_send_wr, cap.max_send_sge, cap.max_inline_data);
}

}  // namespace verbatim::packet
