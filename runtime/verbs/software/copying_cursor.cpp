// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/software/copying_cursor.hpp"

#include <cstdint>

#include "runtime/base/log.hpp"

namespace verbatim {

int check_wc_fields(const ibv_cq_init_attr_ex& attr, const char* provider) noexcept {
  // Those of a datagram's sender and of InfiniBand's addresses are nothing on a connection, and 0;
  // so are VLAN and flow tags and tag matching, which software has none of.
  constexpr std::uint64_t kHas =
      IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP |
      IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL | IBV_WC_EX_WITH_DLID_PATH_BITS |
      IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_TM_INFO;
  const std::uint64_t lacking = attr.wc_flags & ~kHas;
  if (lacking == 0) return 0;
  log_refusal("ibv_create_cq_ex: wc_flags 0x%llx: %s's completions do not carry that",
              static_cast<unsigned long long>(lacking), provider);
  return EOPNOTSUPP;
}

}  // namespace verbatim
