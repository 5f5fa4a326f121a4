// SPDX-License-Identifier: BSD-2-Clause
// The ibv_wc_read_* of an extended completion queue whose cursor stands on an ibv_wc. What differs
// between providers, the polling itself and the clocks, is wired by them after this.
// Source: man ibv_create_cq_ex.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

namespace verbatim {

/// `kSeen`: const ibv_wc& (*)(ibv_cq_ex*) noexcept, the completion that the cursor stands on.
template <auto kSeen>
struct WcReaders {
  /// A member of ibv_wc as its reader.
  template <auto kMember>
  static auto read(ibv_cq_ex* cq) noexcept {
    return kSeen(cq).*kMember;
  }
  // imm_data is in an unnamed union, and slid is wider here: not members that can be pointed at.
  static __be32 read_imm_data(ibv_cq_ex* cq) noexcept { return kSeen(cq).imm_data; }
  static std::uint32_t read_slid(ibv_cq_ex* cq) noexcept { return kSeen(cq).slid; }
  // What no provider's messages travel with: whoever asked for it, or did not, reads nothing.
  template <class Field>
  static Field read_nothing(ibv_cq_ex*) noexcept {
    return 0;
  }
  static void read_no_tags(ibv_cq_ex*, ibv_wc_tm_info* info) noexcept { *info = {}; }

  static void wire(ibv_cq_ex& table) noexcept {
    table.read_opcode = read<&ibv_wc::opcode>;
    table.read_vendor_err = read<&ibv_wc::vendor_err>;
    table.read_byte_len = read<&ibv_wc::byte_len>;
    table.read_imm_data = read_imm_data;
    table.read_qp_num = read<&ibv_wc::qp_num>;
    table.read_src_qp = read<&ibv_wc::src_qp>;
    table.read_wc_flags = read<&ibv_wc::wc_flags>;
    table.read_slid = read_slid;
    table.read_sl = read<&ibv_wc::sl>;
    table.read_dlid_path_bits = read<&ibv_wc::dlid_path_bits>;
    table.read_completion_ts = read_nothing<std::uint64_t>;
    table.read_completion_wallclock_ns = read_nothing<std::uint64_t>;
    table.read_cvlan = read_nothing<std::uint16_t>;
    table.read_flow_tag = read_nothing<std::uint32_t>;
    table.read_tm_info = read_no_tags;
  }
};

}  // namespace verbatim
