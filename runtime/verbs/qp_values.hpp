// SPDX-License-Identifier: BSD-2-Clause
// The ranges of the attributes that ibv_modify_qp sets, and what ibv_create_qp_ex asks for: the
// same for every device: software keeps to them by itself, and a kernel's driver that forgets to
// look (rxe takes an MTU of 0 and eight retries of three bits) is not asked. Control code; the
// caller holds whatever orders modify_qp. Spec: IBTA 11.2.5.2; man ibv_modify_qp.
#pragma once

#include "runtime/verbs/handles.hpp"

namespace verbatim {

/// 0, or EINVAL for the first attribute of `mask` whose value cannot be; the log names it with its
/// range. Limits (ports, GID and P_Key tables, MTU, atomics in flight) are asked of the QP's
/// provider, and its errno is passed on. `largest_mtu`: which one of the port bounds a path.
/// It does not check which attributes a transition takes.
[[nodiscard]] int check_qp_values(const Qp& qp, const ibv_qp_attr& attr, int mask,
                                  ibv_mtu ibv_port_attr::*largest_mtu) noexcept;

/// Whether receives are to be spread over work queues (RSS).
[[nodiscard]] inline bool asks_for_hashing(const ibv_qp_init_attr_ex& attr) noexcept {
  const ibv_rx_hash_conf& hash = attr.rx_hash_conf;
  return attr.rwq_ind_tbl != nullptr || hash.rx_hash_function != 0 || hash.rx_hash_key_len != 0 ||
         hash.rx_hash_fields_mask != 0;
}

}  // namespace verbatim
