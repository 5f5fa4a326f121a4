// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/work_calls.hpp"

#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "providers/shm/hot.hpp"
#include "providers/shm/work_fast.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace verbatim::shm {

void refuse_work(WorkBatch& work, int error) noexcept {
  if (work.error == 0) work.error = error;
}

void copy_long(unsigned char* to, const unsigned char* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}

int complete_slowly(Qp& qp, SendLock& lock) noexcept {
  WorkBatch& work = *qp.work;
  if (work.error != 0) return work.error;
  const auto count = static_cast<std::uint32_t>(work.next - work.first);
  if (qp.sq_next + count - qp.sq_polled.load(std::memory_order_acquire) > qp.sq_entries)
    return ENOMEM;
  // All are judged before the first is performed.
  for (const WorkEntry* entry = work.first; entry != work.next; ++entry)
    if (const int error = check_request(qp, entry->wr); error != 0) return error;
  for (const WorkEntry* entry = work.first; entry != work.next; ++entry)
    (void)post_slowly(qp, lock, entry->wr);
  return 0;
}

namespace {

using Call = ibv_qp_ex*;

void send_inv(Call qp, std::uint32_t rkey) noexcept {
  add_general(Qp::from(qp), IBV_WR_SEND_WITH_INV).wr.invalidate_rkey = rkey;
}

void rdma_write_imm(Call qp, std::uint32_t rkey, std::uint64_t address, __be32 imm) noexcept {
  ibv_send_wr& wr = add_general(Qp::from(qp), IBV_WR_RDMA_WRITE_WITH_IMM).wr;
  wr.imm_data = imm;
  wr.wr.rdma = {address, rkey};
}

void rdma_read(Call qp, std::uint32_t rkey, std::uint64_t address) noexcept {
  add_general(Qp::from(qp), IBV_WR_RDMA_READ).wr.wr.rdma = {address, rkey};
}

void atomic_cmp_swp(Call qp, std::uint32_t rkey, std::uint64_t address, std::uint64_t compare,
                    std::uint64_t swap) noexcept {
  add_general(Qp::from(qp), IBV_WR_ATOMIC_CMP_AND_SWP).wr.wr.atomic = {address, compare, swap,
                                                                       rkey};
}

void atomic_fetch_add(Call qp, std::uint32_t rkey, std::uint64_t address,
                      std::uint64_t add) noexcept {
  add_general(Qp::from(qp), IBV_WR_ATOMIC_FETCH_AND_ADD).wr.wr.atomic = {address, add, 0, rkey};
}

void local_inv(Call qp, std::uint32_t rkey) noexcept {
  add_general(Qp::from(qp), IBV_WR_LOCAL_INV).wr.invalidate_rkey = rkey;
}

void bind_mw(Call qp, ibv_mw* mw, std::uint32_t rkey, const ibv_mw_bind_info* info) noexcept {
  ibv_send_wr& wr = add_general(Qp::from(qp), IBV_WR_BIND_MW).wr;
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = rkey;
  wr.bind_mw.bind_info = *info;
}

void atomic_write(Call handle, std::uint32_t rkey, std::uint64_t address,
                  const void* value) noexcept {
  Qp& qp = Qp::from(handle);
  add_general(qp, IBV_WR_ATOMIC_WRITE).wr.wr.rdma = {address, rkey};
  set_inline_data(qp, value, 8);
}

void flush(Call qp, std::uint32_t rkey, std::uint64_t address, std::size_t length,
           std::uint8_t type, std::uint8_t level) noexcept {
  add_general(Qp::from(qp), IBV_WR_FLUSH).wr.wr.atomic = {
      address, length, std::uint64_t{type} | std::uint64_t{level} << 8, rkey};
}

// SEND of a datagram or into a shared receive queue of XRC: whom to is said by a setter.
void addressed_send(Call qp) noexcept { add_general(Qp::from(qp), IBV_WR_SEND).wr.imm_data = 0; }
void addressed_send_imm(Call qp, __be32 imm) noexcept {
  add_general(Qp::from(qp), IBV_WR_SEND_WITH_IMM).wr.imm_data = imm;
}
void addressed_write(Call qp, std::uint32_t rkey, std::uint64_t address) noexcept {
  add_general(Qp::from(qp), IBV_WR_RDMA_WRITE).wr.wr.rdma = {address, rkey};
}

void set_ud_addr(Call qp, ibv_ah* ah, std::uint32_t remote_qpn,
                 std::uint32_t remote_qkey) noexcept {
  Qp::from(qp).work->current->wr.wr.ud = {ah, remote_qpn, remote_qkey};
}

void set_xrc_srqn(Call qp, std::uint32_t srqn) noexcept {
  Qp::from(qp).work->current->wr.qp_type.xrc.remote_srqn = srqn;
}

void set_sge_list(Call handle, std::size_t count, const ibv_sge* list) noexcept {
  Qp& qp = Qp::from(handle);
  WorkBatch& work = *qp.work;
  if (count == 1) return set_sge(qp, list->lkey, list->addr, list->length);
  if (count > qp.max_send_sge) return refuse_work(work, EINVAL);
  WorkEntry& entry = *work.current;
  ibv_sge* const own = work.lists + (work.current - work.first) * qp.max_send_sge;
  if (count != 0) std::memcpy(own, list, count * sizeof(ibv_sge));
  entry.wr.sg_list = own;
  entry.wr.num_sge = static_cast<int>(count);
}

void set_inline_data_list(Call handle, std::size_t count, const ibv_data_buf* list) noexcept {
  Qp& qp = Qp::from(handle);
  unsigned char bytes[kMaxInline];
  std::size_t filled = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (list[i].length > kMaxInline - filled) return refuse_work(*qp.work, EINVAL);
    if (list[i].length != 0) std::memcpy(bytes + filled, list[i].addr, list[i].length);
    filled += list[i].length;
  }
  set_inline_data(qp, bytes, filled);
}

void abort_work(Call handle) noexcept {
  Qp& qp = Qp::from(handle);
  const SendLock lock(qp, qp.work->lock_value);
}

/// In place of a call that was not asked for at create: the batch fails.
template <class Slot>
struct Unasked;
template <class... Arguments>
struct Unasked<void (*)(ibv_qp_ex*, Arguments...)> {
  static void call(ibv_qp_ex* qp, Arguments...) noexcept {
    refuse_work(*Qp::from(qp).work, EOPNOTSUPP);
  }
};

constexpr std::uint64_t kSends =
    IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_SEND_WITH_INV;
constexpr std::uint64_t kWrites = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
constexpr std::uint64_t kWindows = IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW;
constexpr std::uint64_t kReliable = IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                    IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_FLUSH |
                                    IBV_QP_EX_WITH_ATOMIC_WRITE;

/// IBTA table 45 (operations of the transports).
std::uint64_t calls_of(ibv_qp_type type) noexcept {
  switch (type) {
    case IBV_QPT_RC:
    case IBV_QPT_XRC_SEND:
      return kSends | kWrites | kWindows | kReliable;
    case IBV_QPT_UC:
      return kSends | kWrites | kWindows;
    case IBV_QPT_UD:
      return IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
    default:
      return 0;
  }
}

bool make_work(Qp& qp) noexcept {
  qp.work = make_nothrow<WorkBatch>();
  if (qp.work == nullptr || !make_queue(qp) || !make_inline_store(qp)) return false;
  WorkBatch& work = *qp.work;
  // One more than the send queue has, for requests that are refused.
  const std::size_t entries = std::size_t{qp.sq_entries} + 1;
  work.first = static_cast<WorkEntry*>(std::aligned_alloc(kCacheLine, entries * sizeof(WorkEntry)));
  work.inline_bytes = static_cast<unsigned char*>(std::malloc(entries * kMaxInline));
  work.lists = static_cast<ibv_sge*>(std::calloc(entries * qp.max_send_sge, sizeof(ibv_sge)));
  if (work.first == nullptr || work.inline_bytes == nullptr || work.lists == nullptr) return false;
  std::memset(static_cast<void*>(work.first), 0, entries * sizeof(WorkEntry));
  for (std::size_t i = 0; i < entries; ++i)
    work.first[i].inline_bytes = work.inline_bytes + i * kMaxInline;
  work.next = work.current = work.first;
  work.end = work.first + qp.sq_entries;
  return true;
}

}  // namespace

int check_work_calls(const ibv_qp_init_attr_ex& attr) noexcept {
  const std::uint64_t lacking = attr.send_ops_flags & ~calls_of(attr.qp_type);
  if (lacking == 0) return 0;
  log_error("ibv_create_qp_ex: send_ops_flags 0x%llx: QP type %d has no such operation",
            static_cast<unsigned long long>(lacking), static_cast<int>(attr.qp_type));
  return EOPNOTSUPP;
}

int wire_work_calls(Qp& qp, const ibv_qp_init_attr_ex& attr) noexcept {
  const std::uint64_t asked = attr.send_ops_flags;
  if (asked == 0) return 0;
  if (!make_work(qp)) return ENOMEM;
  const bool connected = attr.qp_type == IBV_QPT_RC || attr.qp_type == IBV_QPT_UC;
  ibv_qp_ex& table = qp.extended;
  const auto wire = [asked]<class Slot>(std::uint64_t flag, Slot& slot,
                                        std::type_identity_t<Slot> call) {
    slot = (asked & flag) != 0 ? call : Unasked<Slot>::call;
  };
  wire(IBV_QP_EX_WITH_SEND, table.wr_send, connected ? wr_send : addressed_send);
  wire(IBV_QP_EX_WITH_SEND_WITH_IMM, table.wr_send_imm,
       connected ? wr_send_imm : addressed_send_imm);
  wire(IBV_QP_EX_WITH_RDMA_WRITE, table.wr_rdma_write, connected ? wr_rdma_write : addressed_write);
  wire(IBV_QP_EX_WITH_SEND_WITH_INV, table.wr_send_inv, send_inv);
  wire(IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, table.wr_rdma_write_imm, rdma_write_imm);
  wire(IBV_QP_EX_WITH_RDMA_READ, table.wr_rdma_read, rdma_read);
  wire(IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, table.wr_atomic_cmp_swp, atomic_cmp_swp);
  wire(IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, table.wr_atomic_fetch_add, atomic_fetch_add);
  wire(IBV_QP_EX_WITH_LOCAL_INV, table.wr_local_inv, local_inv);
  wire(IBV_QP_EX_WITH_BIND_MW, table.wr_bind_mw, bind_mw);
  wire(IBV_QP_EX_WITH_FLUSH, table.wr_flush, flush);
  wire(IBV_QP_EX_WITH_ATOMIC_WRITE, table.wr_atomic_write, atomic_write);
  table.wr_send_tso = Unasked<decltype(table.wr_send_tso)>::call;
  table.wr_set_ud_addr = set_ud_addr;
  table.wr_set_xrc_srqn = set_xrc_srqn;
  table.wr_set_sge = wr_set_sge;
  table.wr_set_sge_list = set_sge_list;
  table.wr_set_inline_data = wr_set_inline_data;
  table.wr_set_inline_data_list = set_inline_data_list;
  table.wr_start = wr_start;
  table.wr_complete = wr_complete;
  table.wr_abort = abort_work;
  return 0;
}

void free_work(Qp& qp) noexcept {
  if (qp.work == nullptr) return;
  std::free(qp.work->first);
  std::free(qp.work->inline_bytes);
  std::free(qp.work->lists);
  destroy_nothrow(qp.work);
}

}  // namespace verbatim::shm
