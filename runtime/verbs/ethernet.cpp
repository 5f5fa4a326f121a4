// SPDX-License-Identifier: BSD-2-Clause
// An indirection table pins its context and each of its work queues, a flow its QP. ibv_flow_action
// and ibv_counters have no object of ours around them, and pin their context alone.
#include "runtime/verbs/ethernet.hpp"

#include <cerrno>
#include <cstdlib>

#include "runtime/verbs/context_objects.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/strict_events.hpp"

namespace verbatim {
namespace {

/// Handles that have no object of ours around them: they count on the context alone, and the
/// provider keeps what else they need.
template <class Plain>
const ProviderTable& table_of_plain(const Plain& object) noexcept {
  return table_of(Context::from(object.context));
}

}  // namespace

Result<Wq*> create_wq(Context& context, ibv_wq_init_attr& attr) noexcept {
  constexpr const char* kVerb = "ibv_create_wq";
  if (attr.comp_mask >= IBV_WQ_INIT_ATTR_RESERVED) {
    return refuse(EINVAL, kVerb, "unknown bits in comp_mask");
  }
  if (attr.wq_type != IBV_WQT_RQ) return refuse(EINVAL, kVerb, "unknown wq_type");
  if (attr.pd == nullptr || attr.cq == nullptr || attr.pd->context != context.handle() ||
      attr.cq->context != context.handle()) {
    return refuse(EINVAL, kVerb, "needs a protection domain and a CQ of this context");
  }
  Wq* wq = nullptr;
  if (const int error = table_of(context).create_wq(context, attr, &wq)) {
    return Error{error, "create_wq"};
  }
  wq->plain.context = context.handle();
  wq->plain.pd = attr.pd;
  wq->plain.cq = attr.cq;
  wq->plain.wq_type = attr.wq_type;
  pin(&Pd::from(attr.pd), &Cq::from(attr.cq));
  own(*wq);
  return wq;
}

Status modify_wq(Wq& wq, ibv_wq_attr& attr) noexcept {
  if (attr.attr_mask >= IBV_WQ_ATTR_RESERVED) {
    return refuse(EINVAL, "ibv_modify_wq", "unknown bits in attr_mask");
  }
  return Status::from_errno(table_of(wq).modify_wq(wq, attr), "modify_wq");
}

Status destroy_wq(Wq& wq) noexcept {
  if (was_left(wq)) return {};
  if (const std::uint32_t uses = still_used(wq)) {
    return refuse_busy("ibv_destroy_wq", uses, "indirection tables");
  }
  Pd& pd = Pd::from(wq.plain.pd);
  Cq& cq = Cq::from(wq.plain.cq);
  check_acks(wq);
  disown(wq);
  if (const int error = table_of(wq).destroy_wq(wq)) {
    own_again(wq);
    return Error{error, "destroy_wq"};
  }
  unpin(&pd, &cq);
  return {};
}

Result<RwqIndTable*> create_rwq_ind_table(Context& context,
                                          ibv_rwq_ind_table_init_attr& attr) noexcept {
  constexpr const char* kVerb = "ibv_create_rwq_ind_table";
  constexpr std::uint32_t kLargestLog = 16;
  if (attr.comp_mask >= IBV_CREATE_IND_TABLE_RESERVED) {
    return refuse(EINVAL, kVerb, "unknown bits in comp_mask");
  }
  if (attr.ind_tbl == nullptr) return refuse(EINVAL, kVerb, "needs a table of work queues");
  if (attr.log_ind_tbl_size > kLargestLog) return refuse(EINVAL, kVerb, "the table is too large");
  const std::uint32_t count = 1u << attr.log_ind_tbl_size;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (attr.ind_tbl[i] == nullptr || attr.ind_tbl[i]->context != context.handle()) {
      return refuse(EINVAL, kVerb, "a work queue is missing or of another context");
    }
  }
  auto** const queues = static_cast<Wq**>(std::calloc(count, sizeof(Wq*)));
  if (queues == nullptr) return Error{ENOMEM, "no memory for the indirection table"};
  RwqIndTable* table = nullptr;
  if (const int error = table_of(context).create_rwq_ind_table(context, attr, &table)) {
    std::free(queues);
    return Error{error, "create_rwq_ind_table"};
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    queues[i] = &Wq::from(attr.ind_tbl[i]);
    pin(queues[i]);
  }
  table->plain.context = context.handle();
  table->queues = queues;
  table->queue_count = count;
  pin(&context);
  own(*table);
  return table;
}

Status destroy_rwq_ind_table(RwqIndTable& table) noexcept {
  if (was_left(table)) return {};
  if (const std::uint32_t uses = still_used(table)) {
    return refuse_busy("ibv_destroy_rwq_ind_table", uses, "queue pairs");
  }
  Context& context = context_of(table);
  Wq** const queues = table.queues;
  const std::uint32_t count = table.queue_count;
  disown(table);
  if (const int error = table_of(context).destroy_rwq_ind_table(table)) {
    own_again(table);
    return Error{error, "destroy_rwq_ind_table"};
  }
  for (std::uint32_t i = 0; i < count; ++i) unpin(queues[i]);
  std::free(queues);
  unpin(&context);
  return {};
}

Result<Flow*> create_flow(Qp& qp, ibv_flow_attr& attr) noexcept {
  Flow* flow = nullptr;
  if (const int error = table_of(qp).create_flow(qp, attr, &flow)) {
    return Error{error, "create_flow"};
  }
  flow->plain.context = qp.plain.context;
  flow->qp = &qp;
  pin(&qp);
  own(*flow);
  return flow;
}

Status destroy_flow(Flow& flow) noexcept {
  if (was_left(flow)) return {};
  Qp* const qp = flow.qp;
  disown(flow);
  if (const int error = table_of(flow).destroy_flow(flow)) {
    own_again(flow);
    return Error{error, "destroy_flow"};
  }
  unpin(qp);
  return {};
}

Result<ibv_flow_action*> create_flow_action_esp(Context& context,
                                                ibv_flow_action_esp_attr& attr) noexcept {
  ibv_flow_action* action = nullptr;
  if (const int error = table_of(context).create_flow_action_esp(context, attr, &action)) {
    return Error{error, "create_flow_action_esp"};
  }
  action->context = context.handle();
  pin(&context);
  return action;
}

Status modify_flow_action_esp(ibv_flow_action& action, ibv_flow_action_esp_attr& attr) noexcept {
  return Status::from_errno(table_of_plain(action).modify_flow_action_esp(action, attr),
                            "modify_flow_action_esp");
}

Status destroy_flow_action(ibv_flow_action& action) noexcept {
  Context& context = Context::from(action.context);
  if (const int error = table_of(context).destroy_flow_action(action)) {
    return Error{error, "destroy_flow_action"};
  }
  unpin(&context);
  return {};
}

Result<ibv_counters*> create_counters(Context& context, ibv_counters_init_attr& attr) noexcept {
  if (attr.comp_mask != 0) {
    return refuse(EINVAL, "ibv_create_counters", "unknown bits in comp_mask");
  }
  ibv_counters* counters = nullptr;
  if (const int error = table_of(context).create_counters(context, attr, &counters)) {
    return Error{error, "create_counters"};
  }
  counters->context = context.handle();
  pin(&context);
  return counters;
}

Status destroy_counters(ibv_counters& counters) noexcept {
  Context& context = Context::from(counters.context);
  if (const int error = table_of(context).destroy_counters(counters)) {
    return Error{error, "destroy_counters"};
  }
  unpin(&context);
  return {};
}

Status attach_counters_point_flow(ibv_counters& counters, ibv_counter_attach_attr& attr,
                                  ibv_flow* flow) noexcept {
  return Status::from_errno(
      table_of_plain(counters).attach_counters_point_flow(counters, attr, flow),
      "attach_counters_point_flow");
}

Status read_counters(ibv_counters& counters, std::uint64_t* values, std::uint32_t count,
                     std::uint32_t flags) noexcept {
  return Status::from_errno(table_of_plain(counters).read_counters(counters, values, count, flags),
                            "read_counters");
}

}  // namespace verbatim
