// SPDX-License-Identifier: BSD-2-Clause
#include <cerrno>

#include "providers/rxe/completion_fast.hpp"
#include "providers/rxe/cursor.hpp"
#include "providers/rxe/hot.hpp"
#include "providers/rxe/objects.hpp"
#include "providers/rxe/ring_fast.hpp"
#include "runtime/base/log.hpp"

namespace verbatim::rxe {
namespace {

Cq& cq_of(ibv_cq_ex* cq) noexcept { return static_cast<Cq&>(verbatim::Cq::from(cq)); }

void note(const Cq& cq, ibv_wc_status status) noexcept {
  if (tells_of_trouble(status)) [[unlikely]]
    uverbs::context_of(cq).troubles.fetch_add(1, std::memory_order_relaxed);
}

/// Puts the cursor on the next completion, if there is one. It is a copy, so the kernel gets the
/// slot back at once, and nothing depends on how the application ends its turn.
bool step(Cq& cq) noexcept {
  {
    LockGuard<SpinLock> guard(cq.lock);
    Consumer ring(cq.ring);
    if (ring.count() == 0) return false;
    read_completion(ring.front<ib_uverbs_wc>(), cq.cursor.wc);
    ring.advance();
    ring.give_back();
  }
  note(cq, cq.cursor.wc.status);
  cq.extended.status = cq.cursor.wc.status;
  cq.extended.wr_id = cq.cursor.wc.wr_id;
  return true;
}

int start_poll(ibv_cq_ex* handle, ibv_poll_cq_attr* attr) noexcept {
  if (attr != nullptr && attr->comp_mask != 0) return EINVAL;
  Cq& cq = cq_of(handle);
  cq.cursor.lock.lock();
  if (step(cq)) return 0;
  cq.cursor.lock.unlock();
  return ENOENT;
}
int next_poll(ibv_cq_ex* handle) noexcept { return step(cq_of(handle)) ? 0 : ENOENT; }
void end_poll(ibv_cq_ex* handle) noexcept { cq_of(handle).cursor.lock.unlock(); }

/// A member of ibv_wc as its reader.
template <auto kMember>
auto read(ibv_cq_ex* cq) noexcept {
  return cq_of(cq).cursor.wc.*kMember;
}
// imm_data is in an unnamed union, and slid is wider here: not members that can be pointed at.
__be32 read_imm_data(ibv_cq_ex* cq) noexcept { return cq_of(cq).cursor.wc.imm_data; }
std::uint32_t read_slid(ibv_cq_ex* cq) noexcept { return cq_of(cq).cursor.wc.slid; }

// Nobody may ask for these; a program that calls them all the same reads nothing.
template <class Field>
Field read_nothing(ibv_cq_ex*) noexcept {
  return 0;
}
void read_no_tags(ibv_cq_ex*, ibv_wc_tm_info* info) noexcept { *info = {}; }

}  // namespace

int poll_cq(ibv_cq* handle, int entries, ibv_wc* wc) noexcept {
  Cq& cq = static_cast<Cq&>(verbatim::Cq::from(handle));
  LockGuard<SpinLock> guard(cq.lock);
  Consumer ring(cq.ring);
  int found = 0;
  for (; found < entries && ring.count() != 0; ++found) {
    read_completion(ring.front<ib_uverbs_wc>(), wc[found]);
    note(cq, wc[found].status);
    ring.advance();
  }
  if (found != 0) ring.give_back();
  return found;
}

int check_fields(const ibv_cq_init_attr_ex& attr) noexcept {
  constexpr std::uint64_t kHas =
      IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP |
      IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL | IBV_WC_EX_WITH_DLID_PATH_BITS;
  const std::uint64_t lacking = attr.wc_flags & ~kHas;
  if (lacking == 0) return 0;
  log_error("ibv_create_cq_ex: wc_flags 0x%llx: rxe's completions do not carry that",
            static_cast<unsigned long long>(lacking));
  return EOPNOTSUPP;
}

void wire_cursor(Cq& cq) noexcept {
  ibv_cq_ex& table = cq.extended;
  table.start_poll = start_poll;
  table.next_poll = next_poll;
  table.end_poll = end_poll;
  table.read_opcode = read<&ibv_wc::opcode>;
  table.read_vendor_err = read<&ibv_wc::vendor_err>;
  table.read_byte_len = read<&ibv_wc::byte_len>;
  table.read_imm_data = read_imm_data;
  table.read_qp_num = read<&ibv_wc::qp_num>;
  table.read_src_qp = read<&ibv_wc::src_qp>;
  table.read_wc_flags = read<&ibv_wc::wc_flags>;
  table.read_slid = read_slid;
  table.read_sl = read<&ibv_wc::sl>;
  table.read_dlid_path_bits = read<&ibv_wc::dlid_path_bits>;
  table.read_completion_ts = read_nothing<std::uint64_t>;
  table.read_completion_wallclock_ns = read_nothing<std::uint64_t>;
  table.read_cvlan = read_nothing<std::uint16_t>;
  table.read_flow_tag = read_nothing<std::uint32_t>;
  table.read_tm_info = read_no_tags;
}

}  // namespace verbatim::rxe
