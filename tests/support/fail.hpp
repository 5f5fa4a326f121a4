// SPDX-License-Identifier: BSD-2-Clause
// What the harness says of a call that had to succeed.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

namespace verbatim::harness {

[[noreturn]] inline void fail(const std::string& what, int error) {
  throw std::runtime_error(what + ": " + std::strerror(error));
}

}  // namespace verbatim::harness
