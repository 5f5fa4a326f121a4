// SPDX-License-Identifier: BSD-2-Clause
// Completion channels and queues. Polling and arming go through ibv_context.ops, past this file.
#include "abi/entry/border.hpp"
#include "runtime/verbs/completion.hpp"
#include "runtime/verbs/event_acks.hpp"

namespace verbatim {
namespace {

ibv_cq_ex* create_cq_ex_slot(ibv_context* context, ibv_cq_init_attr_ex* attr) {
  const Result<Cq*> cq = create_cq(Context::from(context), *attr, true);
  return reinterpret_cast<ibv_cq_ex*>(as_pointer(cq));
}

int modify_cq_slot(ibv_cq* cq, ibv_modify_cq_attr* attr) {
  return as_errno(modify_cq(Cq::from(cq), *attr));
}

}  // namespace

void fill_cq_slots(verbs_context& slots) noexcept {
  slots.create_cq_ex = create_cq_ex_slot;
  slots.modify_cq = modify_cq_slot;
}

}  // namespace verbatim

using namespace verbatim;

VBT_ENTRY ibv_comp_channel* ibv_create_comp_channel(ibv_context* context) {
  return as_pointer(create_comp_channel(Context::from(context)));
}

VBT_ENTRY int ibv_destroy_comp_channel(ibv_comp_channel* channel) {
  return as_errno(destroy_comp_channel(CompChannel::from(channel)));
}

VBT_ENTRY ibv_cq* ibv_create_cq(ibv_context* context, int cqe, void* cq_context,
                                ibv_comp_channel* channel, int comp_vector) {
  ibv_cq_init_attr_ex attr{};
  // Negative numbers become large ones, which the runtime refuses.
  attr.cqe = static_cast<std::uint32_t>(cqe);
  attr.cq_context = cq_context;
  attr.channel = channel;
  attr.comp_vector = static_cast<std::uint32_t>(comp_vector);
  attr.wc_flags = IBV_WC_STANDARD_FLAGS;
  return as_pointer(create_cq(Context::from(context), attr, false));
}

VBT_ENTRY int ibv_resize_cq(ibv_cq* cq, int cqe) { return as_errno(resize_cq(Cq::from(cq), cqe)); }

VBT_ENTRY int ibv_destroy_cq(ibv_cq* cq) { return as_errno(destroy_cq(Cq::from(cq))); }

VBT_ENTRY int ibv_get_cq_event(ibv_comp_channel* channel, ibv_cq** cq, void** cq_context) {
  const Result<Cq*> event = get_cq_event(CompChannel::from(channel));
  if (!event.ok()) return as_minus_one(event.status());
  *cq = &event.value()->plain;
  *cq_context = event.value()->plain.cq_context;
  return 0;
}

VBT_ENTRY void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  // Programs that acknowledge in batches come here with nothing, too.
  if (count != 0) acknowledge_completion_events(Cq::from(cq), count);
}
