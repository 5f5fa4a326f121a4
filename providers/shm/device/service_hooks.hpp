// SPDX-License-Identifier: BSD-2-Clause
//
// What the data path does on the service thread: everything that must happen while the application
// computes or sleeps.
#pragma once

#include "providers/shm/fabric/process.hpp"

namespace verbatim::shm {

extern const ServiceHooks service_hooks;

}  // namespace verbatim::shm
