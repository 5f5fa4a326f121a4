// SPDX-License-Identifier: BSD-2-Clause
//
// ibv_bind_mw.
#pragma once

#include "providers/shm/windows/windows.hpp"

namespace verbatim::shm {

// The plug's slot.
int bind_mw(verbatim::Qp& qp, verbatim::Mw& mw, ibv_mw_bind& bind) noexcept;

}  // namespace verbatim::shm
