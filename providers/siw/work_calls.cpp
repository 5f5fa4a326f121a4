// SPDX-License-Identifier: BSD-2-Clause
#include "providers/siw/work_calls.hpp"

#include <cerrno>

#include "providers/siw/completion_fast.hpp"
#include "providers/siw/objects.hpp"
#include "providers/siw/request_fast.hpp"
#include "providers/siw/send.hpp"
#include "runtime/verbs/software/capacities.hpp"
#include "runtime/verbs/software/work_calls.hpp"

namespace verbatim::siw {
namespace {

using Call = ibv_qp_ex*;

Qp& qp_of(Call qp) noexcept { return static_cast<Qp&>(verbatim::Qp::from(qp)); }

void refuse_work(WorkBatch& work, int error) noexcept {
  if (work.error == 0) work.error = error;
}

std::uint16_t& current_flags(Qp& qp) noexcept { return qp.pending_flags[qp.work.count - 1]; }

siw_sqe& add_work(Call handle, ibv_wr_opcode opcode) noexcept {
  Qp& qp = qp_of(handle);
  WorkBatch& work = qp.work;
  const unsigned flags = handle->wr_flags & ~unsigned{IBV_SEND_INLINE};
  if ((flags & ~kSendFlags) != 0) refuse_work(work, EINVAL);
  siw_sqe* element = qp.send_ring.vacant(work.count);
  if (element == nullptr) {
    refuse_work(work, ENOMEM);
    element = &work.spare;
  }
  if (work.error == 0) ++work.count;
  begin_request(*element, handle->wr_id, opcode);
  if (work.error == 0) current_flags(qp) = siw_flags_of(opcode, flags, qp.sq_sig_all);
  work.current = element;
  return *element;
}

void wr_send(Call qp) noexcept { static_cast<void>(add_work(qp, IBV_WR_SEND)); }

void wr_send_inv(Call qp, std::uint32_t rkey) noexcept {
  add_work(qp, IBV_WR_SEND_WITH_INV).rkey = rkey;
}

void wr_rdma_write(Call qp, std::uint32_t rkey, std::uint64_t address) noexcept {
  set_remote(add_work(qp, IBV_WR_RDMA_WRITE), address, rkey);
}

void wr_rdma_read(Call handle, std::uint32_t rkey, std::uint64_t address) noexcept {
  Qp& qp = qp_of(handle);
  if (!may_read_locked(qp)) refuse_work(qp.work, EINVAL);
  siw_sqe& element = add_work(handle, IBV_WR_RDMA_READ);
  set_remote(element, address, rkey);
  element.num_sge = 1;
}

void wr_set_sge_list(Call handle, std::size_t count, const ibv_sge* list) noexcept {
  Qp& qp = qp_of(handle);
  if (qp.work.error == 0)
    current_flags(qp) = static_cast<std::uint16_t>(current_flags(qp) & ~unsigned{SIW_WQE_INLINE});
  if (const int error = set_list(*qp.work.current, qp.max_send_sge, list, count); error != 0)
    refuse_work(qp.work, error);
}

void wr_set_inline_data_list(Call handle, std::size_t count, const ibv_data_buf* list) noexcept {
  Qp& qp = qp_of(handle);
  siw_sqe& element = *qp.work.current;
  if (!may_be_inline(element.opcode)) return refuse_work(qp.work, EINVAL);
  element.sge[0] = {};
  for (std::size_t i = 0; i < count; ++i) {
    if (append_inline(element, list[i].addr, list[i].length) != 0)
      return refuse_work(qp.work, EINVAL);
  }
  if (qp.work.error != 0) return;
  const unsigned before = current_flags(qp) & ~unsigned{SIW_WQE_INLINE};
  current_flags(qp) = static_cast<std::uint16_t>(before | end_inline(element));
}

void wr_start(Call handle) noexcept {
  Qp& qp = qp_of(handle);
  qp.send_lock.lock();
  const Stand stand = stand_of_locked(qp);
  WorkBatch& work = qp.work;
  work.current = &work.spare;
  work.count = 0;
  work.flushes = stand == Stand::kFlushes;
  work.error = stand == Stand::kRefuses ? EINVAL : 0;
}

/// A batch on a queue pair that has failed. It is all or nothing here too, except that a completion
/// queue which becomes full between two of its requests ends it there.
[[gnu::cold]] int flush_batch_locked(Qp& qp) noexcept {
  for (std::uint32_t i = 0; i < qp.work.count; ++i) {
    const siw_sqe& element = *qp.send_ring.vacant(i);
    const int error = flush(qp.plain.send_cq, qp, element.id, wc_opcode_of(element.opcode));
    if (error != 0) return error;
  }
  return 0;
}

int wr_complete(Call handle) noexcept {
  Qp& qp = qp_of(handle);
  WorkBatch& work = qp.work;
  int error = work.error;
  const bool posts = error == 0 && work.count != 0 && !work.flushes;
  if (posts) {
    for (std::uint32_t i = 0; i < work.count; ++i) qp.send_ring.publish(qp.pending_flags[i]);
  } else if (error == 0 && work.flushes) [[unlikely]] {
    error = flush_batch_locked(qp);
  }
  qp.send_lock.unlock();
  if (posts) ring_bell(qp);
  return error;
}

void wr_abort(Call handle) noexcept { qp_of(handle).send_lock.unlock(); }

void refuse_call(Call qp) noexcept {
  // The setters of its data come after it.
  WorkBatch& work = qp_of(qp).work;
  work.current = &work.spare;
  begin_request(work.spare, 0, IBV_WR_SEND);
  refuse_work(work, EOPNOTSUPP);
}

constexpr WorkCalls kCalls{.wr_rdma_read = wr_rdma_read,
                           .wr_rdma_write = wr_rdma_write,
                           .wr_send = wr_send,
                           .wr_send_inv = wr_send_inv,
                           .wr_set_inline_data = set_one_buffer<wr_set_inline_data_list>,
                           .wr_set_inline_data_list = wr_set_inline_data_list,
                           .wr_set_sge = set_one_sge<wr_set_sge_list>,
                           .wr_set_sge_list = wr_set_sge_list,
                           .wr_start = wr_start,
                           .wr_complete = wr_complete,
                           .wr_abort = wr_abort};

}  // namespace

int check_work_calls(const ibv_qp_init_attr_ex& attr) noexcept {
  // The bits of these calls are those of the opcodes (operation_bit()).
  return refuse_lacking_operations("siw", attr, kOpcodes);
}

void wire_work_calls(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept {
  if (attr.send_ops_flags != 0)
    set_work_calls<refuse_call>(qp.extended, attr.send_ops_flags, kCalls);
}

}  // namespace verbatim::siw
