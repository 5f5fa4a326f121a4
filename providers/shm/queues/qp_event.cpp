// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/queues/qp_event.hpp"

#include "providers/shm/memory/context.hpp"
#include "providers/shm/queues/qp_kind.hpp"

namespace verbatim::shm {
void raise_qp_event(Qp& qp, ibv_event_type type) noexcept {
  if (qp.kind != nullptr && qp.kind->tell_openers != nullptr) qp.kind->tell_openers(qp, type);
  if (qp.xrc_end != nullptr && qp.xrc_end->disowned) return;
  Context::of(qp.plain.context).events.raise(qp, type);
}

}  // namespace verbatim::shm
