// SPDX-License-Identifier: BSD-2-Clause
// What siw adds to the explanation of failures: the request, as long as its element shows it, and
// where the queue pair stands, which its driver does not tell.
#pragma once

#include "providers/uverbs/failures.hpp"

namespace verbatim::siw {

extern const uverbs::FailureEyes failure_eyes;

}  // namespace verbatim::siw
