// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cerrno>

#include "runtime/base/log.hpp"

namespace verbatim::dropin {

/// Tells, as an error, why a call of `version` ("name@node") does nothing here. Any thread.
[[gnu::cold]] void tell_refused(const char* version) noexcept;

}  // namespace verbatim::dropin
