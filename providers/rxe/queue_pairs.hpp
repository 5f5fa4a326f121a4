// SPDX-License-Identifier: BSD-2-Clause
// Slots: queue pairs of rxe. Any thread.
#pragma once

#include "providers/rxe/objects.hpp"

namespace verbatim::rxe {

int create_qp(verbatim::Context& context, ibv_qp_init_attr_ex& attr, verbatim::Qp** out) noexcept;
int modify_qp(verbatim::Qp& qp, ibv_qp_attr& attr, int mask) noexcept;
/// What posting has to know of what modify_qp was told, where the driver lets anything pass:
/// datagrams' keys and sizes, and reads of which none was agreed on.
void remember_for_posting(Qp& qp, const ibv_qp_attr& attr, int mask) noexcept;
int destroy_qp(verbatim::Qp& qp) noexcept;
/// The driver moves queue pairs to ERR by itself, so the kernel is asked.
[[nodiscard]] bool is_in_error(Qp& qp) noexcept;

}  // namespace verbatim::rxe
