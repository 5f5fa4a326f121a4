// SPDX-License-Identifier: BSD-2-Clause
//
// The witness that a provider in software is made of runtime/verbs/software: one device, packet0,
// whose queue pairs (RC and UD, with receives of their own or shared ones) speak with each other
// within the process by packets over a link in memory, which may lose, double and reorder them.
//
// Everything happens in the application's calls: posting requests sends their packets and takes
// what arrives, a poll does too, and repeats what was not answered in time.
#pragma once

#include "runtime/verbs/provider.hpp"

namespace verbatim::packet {

extern const ProviderTable kProvider;

}  // namespace verbatim::packet
