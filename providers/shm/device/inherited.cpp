// SPDX-License-Identifier: BSD-2-Clause
#include "providers/shm/device/inherited.hpp"

#include "providers/shm/device/provider_slots.hpp"
#include "providers/shm/queues/cq.hpp"
#include "runtime/verbs/software/child_slots.hpp"

namespace verbatim::shm {
namespace {

void tell(verbatim::Context& context, const char* verb) noexcept {
  tell_if_inherited(static_cast<Context&>(context), verb);
}

/// What of shm a child has in its own way.
struct Inherited : ChildSlots<Shm, tell> {
  static int query_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask,
                      ibv_qp_init_attr& init) noexcept {
    if (static_cast<Qp&>(qp).xrc != XrcRole::kOpened) return shm::query_qp(qp, attr, mask, init);
    // The other end of the handle is where only the parent looks.
    attr = {};
    attr.qp_state = attr.cur_qp_state = IBV_QPS_RESET;
    return 0;
  }
  static constexpr auto read_comp_cntr = shm::read_stored_count;
  static constexpr auto alloc_dm = shm::alloc_dm_of_child;
  static constexpr auto free_buf = shm::free_inherited_buf;
};

constinit const ProviderTable inherited_table = make_table_of_child<Shm, Inherited>();

}  // namespace

void put_out_of_service(Context& context) noexcept {
  put_child_table(context, inherited_table);
  context.is_inherited = true;
  context.events.part_from_parent();
}

void put_cursor_out_of_service(Cq& cq) noexcept {
  Inherited::put_cursor_out_of_service(cq.extended);
}

}  // namespace verbatim::shm
