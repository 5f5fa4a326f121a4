// SPDX-License-Identifier: BSD-2-Clause
#include "providers/rxe/work_calls.hpp"

#include <cerrno>

#include "providers/rxe/objects.hpp"
#include "providers/rxe/request_fast.hpp"
#include "providers/rxe/send.hpp"
#include "runtime/verbs/software/capacities.hpp"
#include "runtime/verbs/software/work_calls.hpp"

namespace verbatim::rxe {
namespace {

using Call = ibv_qp_ex*;

Qp& qp_of(Call qp) noexcept { return static_cast<Qp&>(verbatim::Qp::from(qp)); }

void refuse_work(WorkBatch& work, int error) noexcept {
  if (work.error == 0) work.error = error;
}

/// What could only be seen when the calls that belong to a request have all been made.
void end_request(const Qp& qp, WorkBatch& work) noexcept {
  if (work.lacks_address || (work.current != nullptr && is_too_long(qp, *work.current)))
    refuse_work(work, EINVAL);
}

SendElement& add_work(Call handle, ibv_wr_opcode opcode) noexcept {
  Qp& qp = qp_of(handle);
  WorkBatch& work = qp.work;
  end_request(qp, work);
  const unsigned flags = handle->wr_flags & ~unsigned{IBV_SEND_INLINE};
  if ((flags & ~kSendFlags) != 0 || is_barred(qp, opcode)) refuse_work(work, EINVAL);
  SendElement& element = work.ring.slot<SendElement>();
  begin_request(element, handle->wr_id, opcode, flags);
  if (work.ring.room() != 0)
    work.ring.advance();
  else
    refuse_work(work, ENOMEM);
  work.current = &element;
  work.lacks_address = qp.plain.qp_type == IBV_QPT_UD;
  return element;
}

void wr_send(Call qp) noexcept { static_cast<void>(add_work(qp, IBV_WR_SEND)); }

void wr_send_imm(Call qp, __be32 imm) noexcept {
  add_work(qp, IBV_WR_SEND_WITH_IMM).wr.ex.imm_data = imm;
}

void wr_send_inv(Call qp, std::uint32_t rkey) noexcept {
  add_work(qp, IBV_WR_SEND_WITH_INV).wr.ex.invalidate_rkey = rkey;
}

void wr_rdma_write(Call qp, std::uint32_t rkey, std::uint64_t address) noexcept {
  set_remote(add_work(qp, IBV_WR_RDMA_WRITE), address, rkey);
}

void wr_rdma_write_imm(Call qp, std::uint32_t rkey, std::uint64_t address, __be32 imm) noexcept {
  SendElement& element = add_work(qp, IBV_WR_RDMA_WRITE_WITH_IMM);
  element.wr.ex.imm_data = imm;
  set_remote(element, address, rkey);
}

void wr_rdma_read(Call qp, std::uint32_t rkey, std::uint64_t address) noexcept {
  set_remote(add_work(qp, IBV_WR_RDMA_READ), address, rkey);
}

void wr_atomic_cmp_swp(Call qp, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                       std::uint64_t swap) noexcept {
  set_atomic(add_work(qp, IBV_WR_ATOMIC_CMP_AND_SWP), address, compare, swap, rkey);
}

void wr_atomic_fetch_add(Call qp, std::uint32_t rkey, std::uint64_t address,
                         std::uint64_t add) noexcept {
  set_atomic(add_work(qp, IBV_WR_ATOMIC_FETCH_AND_ADD), address, add, 0, rkey);
}

void wr_local_inv(Call qp, std::uint32_t rkey) noexcept {
  add_work(qp, IBV_WR_LOCAL_INV).wr.ex.invalidate_rkey = rkey;
}

void wr_bind_mw(Call qp, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) noexcept {
  SendElement& element = add_work(qp, IBV_WR_BIND_MW);
  if (info == nullptr || check_window(qp_of(qp), mw, *info) != 0)
    refuse_work(qp_of(qp).work, EINVAL);
  else
    set_window(element, *mw, rkey, *info);
}

void wr_atomic_write(Call qp, std::uint32_t rkey, std::uint64_t address,
                     const void* value) noexcept {
  set_atomic_write(add_work(qp, IBV_WR_ATOMIC_WRITE), address, rkey, value);
}

void wr_flush(Call qp, std::uint32_t rkey, std::uint64_t address, std::size_t length,
              std::uint8_t type, std::uint8_t level) noexcept {
  SendElement& element = add_work(qp, IBV_WR_FLUSH);
  if (level == IBV_FLUSH_MR) length = 0;  // the range means nothing
  if (check_flush(length, type, level) != 0)
    refuse_work(qp_of(qp).work, EINVAL);
  else
    set_flush(element, {address, static_cast<std::uint32_t>(length), rkey, type, level, {}});
}

void wr_set_ud_addr(Call handle, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) noexcept {
  Qp& qp = qp_of(handle);
  WorkBatch& work = qp.work;
  if (ah == nullptr) return refuse_work(work, EINVAL);
  set_destination(qp, *work.current, ah, qpn, qkey);
  work.lacks_address = false;
}

/// Others bring what they need with their call: of more, the driver would send what lies behind.
bool takes_buffers(unsigned opcode) noexcept {
  return opcode != IBV_WR_FLUSH && opcode != IBV_WR_ATOMIC_WRITE;
}

void wr_set_sge_list(Call handle, std::size_t count, const ibv_sge* list) noexcept {
  Qp& qp = qp_of(handle);
  if (!takes_buffers(qp.work.current->wr.opcode)) return refuse_work(qp.work, EINVAL);
  qp.work.current->wr.send_flags &= ~unsigned{IBV_SEND_INLINE};
  if (const int error = set_list(*qp.work.current, limits_of(qp), list, count); error != 0)
    refuse_work(qp.work, error);
}

void wr_set_inline_data_list(Call handle, std::size_t count, const ibv_data_buf* list) noexcept {
  Qp& qp = qp_of(handle);
  SendElement& element = *qp.work.current;
  const unsigned opcode = element.wr.opcode;
  if (opcode == IBV_WR_RDMA_READ || is_atomic(opcode) || !takes_buffers(opcode))
    return refuse_work(qp.work, EINVAL);
  element.wr.send_flags |= IBV_SEND_INLINE;
  element.dma = {};
  for (std::size_t i = 0; i < count; ++i) {
    if (append_inline(element, limits_of(qp), list[i].addr, list[i].length) != 0)
      return refuse_work(qp.work, EINVAL);
  }
}

void wr_start(Call handle) noexcept {
  Qp& qp = qp_of(handle);
  qp.send_lock.lock();
  qp.work.ring = Producer(qp.send_ring);
  qp.work.current = nullptr;
  qp.work.lacks_address = false;
  qp.work.error = takes_sends(qp) ? 0 : EINVAL;
}

int wr_complete(Call handle) noexcept {
  Qp& qp = qp_of(handle);
  WorkBatch& work = qp.work;
  end_request(qp, work);
  const int error = work.error;
  const bool has_work = error == 0 && work.current != nullptr;
  if (has_work) work.ring.publish();
  qp.send_lock.unlock();
  return has_work ? ring_bell(qp) : error;
}

void wr_abort(Call handle) noexcept { qp_of(handle).send_lock.unlock(); }

void refuse_call(Call qp) noexcept {
  // The setters of its data come after it.
  WorkBatch& work = qp_of(qp).work;
  work.current = &work.ring.slot<SendElement>();
  begin_request(*work.current, 0, IBV_WR_SEND, 0);
  work.lacks_address = false;
  refuse_work(work, EOPNOTSUPP);
}

constexpr WorkCalls kCalls{.wr_atomic_cmp_swp = wr_atomic_cmp_swp,
                           .wr_atomic_fetch_add = wr_atomic_fetch_add,
                           .wr_bind_mw = wr_bind_mw,
                           .wr_local_inv = wr_local_inv,
                           .wr_rdma_read = wr_rdma_read,
                           .wr_rdma_write = wr_rdma_write,
                           .wr_rdma_write_imm = wr_rdma_write_imm,
                           .wr_send = wr_send,
                           .wr_send_imm = wr_send_imm,
                           .wr_send_inv = wr_send_inv,
                           .wr_set_ud_addr = wr_set_ud_addr,
                           .wr_set_inline_data = set_one_buffer<wr_set_inline_data_list>,
                           .wr_set_inline_data_list = wr_set_inline_data_list,
                           .wr_set_sge = set_one_sge<wr_set_sge_list>,
                           .wr_set_sge_list = wr_set_sge_list,
                           .wr_start = wr_start,
                           .wr_complete = wr_complete,
                           .wr_abort = wr_abort,
                           .wr_atomic_write = wr_atomic_write,
                           .wr_flush = wr_flush};

}  // namespace

int check_work_calls(Context& context, const ibv_qp_init_attr_ex& attr) noexcept {
  ibv_device_attr_ex device{};
  if ((attr.send_ops_flags & kPlacementCalls) != 0) {
    if (const int error = uverbs::query_device(context, device)) return error;
  }
  const std::uint64_t calls = calls_of(attr.qp_type, device.device_cap_flags_ex);
  return refuse_lacking_operations("this kernel's rxe", attr, calls);
}

void wire_work_calls(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept {
  if (attr.send_ops_flags != 0)
    set_work_calls<refuse_call>(qp.extended, attr.send_ops_flags, kCalls);
}

}  // namespace verbatim::rxe
