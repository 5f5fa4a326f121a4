// SPDX-License-Identifier: BSD-2-Clause
// A counter pins its context; the queue pairs that it counts pin the counter.
#include "runtime/verbs/completion_counters.hpp"

#include <cerrno>
#include <cstring>

#include "runtime/verbs/context_objects.hpp"
#include "runtime/verbs/dependency.hpp"

namespace verbatim {

Status query_comp_cntr_caps(Context& context, ibv_comp_cntr_caps& out) noexcept {
  ibv_comp_cntr_caps caps{};
  if (const int error = table_of(context).query_comp_cntr_caps(context, caps)) {
    return Error{error, "query_comp_cntr_caps"};
  }
  out = caps;
  return {};
}

Result<CompCntr*> create_comp_cntr(Context& context, const ibv_comp_cntr_init_attr& attr) noexcept {
  constexpr const char* kVerb = "ibv_create_comp_cntr";
  if (attr.comp_mask != 0) return refuse(EINVAL, kVerb, "unknown bits in comp_mask");
  if (attr.flags != 0) return refuse(EINVAL, kVerb, "unknown flags");
  // As a number: an application's may be no value of the type.
  std::uint32_t type;
  static_assert(sizeof type == sizeof attr.type);
  std::memcpy(&type, &attr.type, sizeof type);
  if (type != IBV_COMP_CNTR_TYPE_WRS && type != IBV_COMP_CNTR_TYPE_BYTES) {
    return refuse(EINVAL, kVerb, "counts neither requests nor bytes");
  }
  CompCntr* counter = nullptr;
  if (const int error = table_of(context).create_comp_cntr(context, attr, &counter)) {
    return Error{error, "create_comp_cntr"};
  }
  counter->plain.context = context.handle();
  pin(&context);
  own(*counter);
  return counter;
}

Status destroy_comp_cntr(CompCntr& counter) noexcept {
  if (was_left(counter)) return {};
  if (const std::uint32_t uses = still_used(counter)) {
    return refuse_busy("ibv_destroy_comp_cntr", uses, "queue pairs that it counts");
  }
  Context& context = context_of(counter);
  disown(counter);
  if (const int error = table_of(context).destroy_comp_cntr(counter)) {
    own_again(counter);
    return Error{error, "destroy_comp_cntr"};
  }
  unpin(&context);
  return {};
}

Status set_comp_cntr(CompCntr& counter, CountOf which, std::uint64_t value) noexcept {
  return Status::from_errno(table_of(counter).set_comp_cntr(counter, which, value),
                            "set_comp_cntr");
}

Status inc_comp_cntr(CompCntr& counter, CountOf which, std::uint64_t amount) noexcept {
  return Status::from_errno(table_of(counter).inc_comp_cntr(counter, which, amount),
                            "inc_comp_cntr");
}

Status read_comp_cntr(CompCntr& counter, CountOf which, std::uint64_t& out) noexcept {
  std::uint64_t value = 0;
  if (const int error = table_of(counter).read_comp_cntr(counter, which, value)) {
    return Error{error, "read_comp_cntr"};
  }
  out = value;
  return {};
}

Status attach_comp_cntr(Qp& qp, CompCntr& counter,
                        const ibv_qp_attach_comp_cntr_attr& attr) noexcept {
  constexpr const char* kVerb = "ibv_qp_attach_comp_cntr";
  constexpr std::uint32_t kKnown = (IBV_QP_ATTACH_COMP_CNTR_OP_REMOTE_RDMA_WRITE << 1) - 1;
  if (attr.comp_mask != 0) return refuse(EINVAL, kVerb, "unknown bits in comp_mask");
  if (attr.op_mask == 0) return refuse(EINVAL, kVerb, "op_mask names no operation to count");
  if ((attr.op_mask & ~kKnown) != 0) return refuse(EOPNOTSUPP, kVerb, "unknown bits in op_mask");
  if (counter.plain.context != qp.plain.context) {
    return refuse(EINVAL, kVerb, "the counter belongs to another context");
  }
  return Status::from_errno(table_of(qp).attach_comp_cntr(qp, counter, attr.op_mask),
                            "attach_comp_cntr");
}

}  // namespace verbatim
