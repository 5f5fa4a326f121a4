// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/quirks.hpp"

#include <sys/utsname.h>

#include <cstdio>

namespace verbatim::harness {

KernelVersion kernel_version() {
  utsname name{};
  KernelVersion version;
  if (uname(&name) != 0 || std::sscanf(name.release, "%u.%u", &version.major, &version.minor) != 2)
    return {};
  return version;
}

std::string quirk_of(std::uint32_t vendor, const Quirk& quirk) {
  const KernelVersion kernel = kernel_version();
  if (vendor != quirk.vendor || kernel < quirk.since || !(kernel < quirk.before)) return {};
  return std::string("a quirk of the driver: ") + quirk.done + " (" + quirk.specified + ")";
}

bool is_status(std::uint32_t vendor, ibv_wc_status seen, ibv_wc_status specified) {
  if (seen == specified) return true;
  switch (specified) {
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_LEN_ERR:
      return vendor == kOneStatusForLocalErrors.vendor && seen == IBV_WC_LOC_QP_OP_ERR;
    case IBV_WC_REM_INV_REQ_ERR:
      return vendor == kOneStatusForRefusals.vendor && seen == IBV_WC_REM_OP_ERR;
    default:
      return false;
  }
}

}  // namespace verbatim::harness
