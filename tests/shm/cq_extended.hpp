// SPDX-License-Identifier: BSD-2-Clause
//
// A pair of queue pairs of which `a`, in this process, has extended completion queues.
#pragma once

#include <cerrno>
#include <stdexcept>
#include <tuple>

#include "tests/support/expect.hpp"

namespace verbatim::harness {

inline constexpr std::uint64_t kClockFields =
    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

inline ibv_cq_init_attr_ex extended_attr(std::uint64_t fields, std::uint32_t entries = 256,
                                         std::uint32_t flags = 0) {
  ibv_cq_init_attr_ex attr{};
  attr.cqe = entries;
  attr.wc_flags = fields;
  attr.comp_mask = flags != 0 ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0;
  attr.flags = flags;
  return attr;
}

struct ExtendedPair {
  Pair pair;
  ibv_cq_ex* sends;
  ibv_cq_ex* receives;
  QpInfo qa;
  QpInfo qb;
  RegionInfo at_a;
  RegionInfo at_b;
  QpWish wish;  ///< for more queue pairs with these queues

  explicit ExtendedPair(Setting setting, std::uint64_t fields = IBV_WC_STANDARD_FLAGS,
                        std::uint32_t entries = 256, std::uint32_t flags = 0)
      : pair(setting),
        sends(make(fields, entries, flags)),
        receives(make(fields, entries, flags)),
        at_a(pair.a.allocate(setting.memory, 4096)),
        at_b(pair.b.allocate(setting.memory, 4096)) {
    wish.send_cq = pair.a.here().adopt_cq(ibv_cq_ex_to_cq(sends));
    wish.receive_cq = pair.a.here().adopt_cq(ibv_cq_ex_to_cq(receives));
    std::tie(qa, qb) = pair.add_qps(wish, {});
  }

  /// A message from `b` that lies in a's ring when this returns.
  void send_to_a(std::uint64_t wr_id, const Request& request) {
    expect_posted(pair.a.post_receive(qa, receive(wr_id, slice(at_a, 0, 64))));
    expect_posted(pair.b.post_send(qb, request));
    EXPECT_EQ(pair.b.poll_sends(qb, 1)[0].status, IBV_WC_SUCCESS);
  }
  /// A write of `a` that is done when this returns.
  void write_from_a(std::uint64_t wr_id) {
    expect_posted(pair.a.post_send(qa, write(wr_id, slice(at_a, 0, 8), at_b)));
  }

 private:
  ibv_cq_ex* make(std::uint64_t fields, std::uint32_t entries, std::uint32_t flags) {
    ibv_cq_init_attr_ex attr = extended_attr(fields, entries, flags);
    ibv_cq_ex* const made = ibv_create_cq_ex(pair.a.here().context(), &attr);
    if (made == nullptr) throw std::runtime_error("ibv_create_cq_ex refused");
    return made;
  }
};

/// ibv_start_poll until there is something.
inline int start(ibv_cq_ex* cq) {
  ibv_poll_cq_attr attr{};
  int answer = ENOENT;
  const bool came = wait_until([&] { return (answer = ibv_start_poll(cq, &attr)) != ENOENT; });
  return came ? answer : ENOENT;
}

}  // namespace verbatim::harness
