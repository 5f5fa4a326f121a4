// SPDX-License-Identifier: BSD-2-Clause
// A name in the fabric folder that several processes hold at once (FabricFolder::hold). In the
// list of its process's while it is held, so it stays where it is.
#pragma once

#include "runtime/base/kept_fd.hpp"

namespace verbatim::shm {

struct HeldName {
  char text[48] = "";
  KeptFd file;
  HeldName* next = nullptr;
};

}  // namespace verbatim::shm
