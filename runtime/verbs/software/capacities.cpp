// SPDX-License-Identifier: BSD-2-Clause
#include "runtime/verbs/software/capacities.hpp"

#include <bit>
#include <cerrno>
#include <cinttypes>

#include "runtime/base/log.hpp"
#include "runtime/verbs/qp_values.hpp"

namespace verbatim {

int grant_queue_pair_sizes(const QueueLimits& limits, ibv_qp_init_attr_ex& attr) noexcept {
  ibv_qp_cap& cap = attr.cap;
  const bool shares = attr.srq != nullptr;
  const struct {
    const char* name;
    std::uint32_t asked, limit;
  } sizes[] = {{"max_send_wr", cap.max_send_wr, limits.max_wr},
               {"max_recv_wr", shares ? 0 : cap.max_recv_wr, limits.max_wr},
               {"max_send_sge", cap.max_send_sge, limits.max_sge},
               {"max_recv_sge", shares ? 0 : cap.max_recv_sge, limits.max_sge},
               {"max_inline_data", cap.max_inline_data, limits.max_inline}};
  for (const auto& size : sizes) {
    if (size.asked <= size.limit) continue;
    log_refusal_of(size.name, "create_qp: %s %u asked, %s has %u", size.name, size.asked,
                   limits.provider, size.limit);
    return EINVAL;
  }
  cap.max_inline_data = limits.max_inline;
  if (cap.max_send_sge == 0) cap.max_send_sge = 1;
  if (cap.max_send_wr == 0) cap.max_send_wr = 1;
  if (cap.max_recv_sge == 0) cap.max_recv_sge = 1;
  if (shares || attr.qp_type == IBV_QPT_XRC_SEND) cap.max_recv_wr = cap.max_recv_sge = 0;
  return 0;
}

int refuse_lacking_extras(const char* provider, const ibv_qp_init_attr_ex& attr,
                          std::uint32_t known_flags, const char* flags_are) noexcept {
  const struct {
    bool is_asked_for;
    const char* why;
  } extras[] = {
      {asks_for_hashing(attr), "receives are spread by no hash (RSS)"},
      {attr.max_tso_header != 0, "messages are not segmented (max_tso_header)"},
      {(attr.create_flags & ~known_flags) != 0, flags_are},
  };
  for (const auto& extra : extras) {
    if (!extra.is_asked_for) continue;
    log_refusal_of(extra.why, "%s: create_qp: %s; not supported", provider, extra.why);
    return EOPNOTSUPP;
  }
  return 0;
}

int refuse_lacking_operations(const char* provider, const ibv_qp_init_attr_ex& attr,
                              std::uint64_t operations) noexcept {
  const std::uint64_t lacking = attr.send_ops_flags & ~operations;
  if (lacking == 0) return 0;
  log_refusal("ibv_create_qp_ex: send_ops_flags 0x%" PRIx64
              ": %s has no such operation for QP type %d",
              lacking, provider, static_cast<int>(attr.qp_type));
  return EOPNOTSUPP;
}

int check_shared_queue_sizes(const QueueLimits& limits, const char* verb, std::uint32_t max_wr,
                             std::uint32_t max_sge) noexcept {
  if (max_wr <= limits.max_wr && max_sge <= limits.max_sge) return 0;
  log_refusal_of(verb, "%s: max_wr %u, max_sge %u asked; %s has %u and %u", verb, max_wr, max_sge,
                 limits.provider, limits.max_wr, limits.max_sge);
  return EINVAL;
}

int check_completions(const QueueLimits& limits, const char* verb, std::int64_t cqe) noexcept {
  if (cqe >= 1 && cqe <= std::int64_t{limits.max_cqe}) return 0;
  log_refusal_of(verb, "%s: cqe %" PRId64 " asked, %s has 1 to %u", verb, cqe, limits.provider,
                 limits.max_cqe);
  return EINVAL;
}

std::uint32_t completion_places(std::uint32_t cqe) noexcept { return std::bit_ceil(cqe); }

}  // namespace verbatim
