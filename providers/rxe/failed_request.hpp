// SPDX-License-Identifier: BSD-2-Clause
// What rxe adds to the explanation of failures: the request, as long as its slot shows it.
#pragma once

#include "providers/uverbs/failures.hpp"

namespace verbatim::rxe {

extern const uverbs::FailureEyes failure_eyes;

}  // namespace verbatim::rxe
