// SPDX-License-Identifier: BSD-2-Clause
//
// What a post refuses (request_checks.hpp).
#include <cerrno>

#include "providers/shm/memory/context.hpp"
#include "providers/shm/transfer/send_queue.hpp"
#include "providers/shm/windows/windows.hpp"
#include "runtime/verbs/software/request_checks.hpp"
#include "runtime/verbs/strict.hpp"

namespace verbatim::shm {
namespace {

struct PostedTo {
  const Qp& qp;

  std::uint32_t state() const noexcept { return qp.mode.load(std::memory_order_relaxed); }
  bool has_operation(unsigned opcode) const noexcept {
    if (qp.xrc > XrcRole::kInitiator) return false;  // they send nothing
    if (qp.datagrams != nullptr) return has_opcode(opcodes_of(IBV_QPT_UD), opcode);
    if (qp.plain.qp_type == IBV_QPT_UC) return has_opcode(opcodes_of(IBV_QPT_UC), opcode);
    return is_of_reliable(opcode);
  }
  std::uint32_t max_sge() const noexcept { return qp.max_send_sge; }
  std::uint32_t max_inline() const noexcept { return qp.max_inline; }
  std::uint32_t max_rd_atomic() const noexcept { return qp.attributes.max_rd_atomic; }
  int check_form(const ibv_send_wr& wr) const noexcept {
    if (wr.opcode == IBV_WR_BIND_MW) return check_bind(wr);
    if (qp.datagrams != nullptr && !is_addressed(wr, qp.plain.context)) return EINVAL;
    return has_form_of_operation(wr) ? 0 : EINVAL;
  }
  bool is_full() const noexcept { return !qp.has_place(); }
  void tell_early() const noexcept {
    tell_if_inherited(Context::of(qp.plain.context), "wr_complete");
  }
  void tell_long_inline(std::uint64_t bytes) const noexcept {
    verbatim::tell_long_inline(const_cast<Qp&>(qp), bytes, qp.max_inline);
  }
  void tell_full() const noexcept { tell_full_queue(const_cast<Qp&>(qp), qp.sq_entries); }
};

}  // namespace

int check_request(const Qp& qp, const ibv_send_wr& wr) noexcept {
  return check_send_request(PostedTo{qp}, wr);
}

}  // namespace verbatim::shm
