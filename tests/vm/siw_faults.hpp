// SPDX-License-Identifier: BSD-2-Clause
// Connections over siw on which something goes wrong, seen from both ends: what the driver tells of
// it, and what is explained. The endings:
//
//   wrong        a READ with a key that is none
//   invalidated  a WRITE with a key that was taken away before (SEND_WITH_INV)
//   beyond       a WRITE that ends behind its region
//   mistaken     a SEND of memory that is not the sender's
//   scarce       nothing goes wrong, but a shared receive queue runs low
#pragma once

#include <string_view>

#include "tests/vm/siw_end.hpp"

namespace verbatim::vm {

/// The serving side, from the connection to what it hears of its end.
void suffer(End& end, std::string_view ending);
/// The calling side. True: the connection ends by that.
[[nodiscard]] bool do_wrong(End& end, std::string_view ending);

/// What the driver lacks is EOPNOTSUPP, and the log says why (siw_lacks.cpp). 0.
int show_what_lacks();

}  // namespace verbatim::vm
