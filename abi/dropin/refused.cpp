// SPDX-License-Identifier: BSD-2-Clause
#include "abi/dropin/refused.hpp"

#include <cstring>

namespace verbatim::dropin {

void tell_refused(const char* version) noexcept {
  if (std::strstr(version, "@IBVERBS_PRIVATE_") != nullptr) {
    log_error(
        "%s: only drivers of rdma-core call this, and this libibverbs (Verbatim) has its own: such "
        "a driver's device cannot be used with it",
        version);
  } else {
    log_error(
        "%s: the program was linked before 2007, when the structures of libibverbs had other "
        "layouts; compile it anew",
        version);
  }
}

}  // namespace verbatim::dropin
