// SPDX-License-Identifier: BSD-2-Clause
// Asynchronous events. Any thread.
#include "abi/entry/border.hpp"
#include "runtime/verbs/contexts.hpp"
#include "runtime/verbs/event_acks.hpp"

using namespace verbatim;

VBT_ENTRY int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  return as_minus_one(get_async_event(Context::from(context), *event));
}

VBT_ENTRY void ibv_ack_async_event(ibv_async_event* event) { acknowledge_async_event(*event); }
