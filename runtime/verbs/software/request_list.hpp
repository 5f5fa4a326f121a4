// SPDX-License-Identifier: BSD-2-Clause
// A list of work requests as it is posted: what each of them must be whatever it asks for, and in which
// order they are taken. Spec: man ibv_post_send, ibv_post_recv, ibv_post_srq_recv.
#pragma once

#include <cstdint>

namespace verbatim {

/// Has a request as many SGEs as it says, and no more than `max_sge`?
template <class Wr>
[[nodiscard]] inline bool has_sound_list(const Wr& wr, std::uint32_t max_sge) noexcept {
  // A number below 0 is a large one here.
  return static_cast<std::uint32_t>(wr.num_sge) <= max_sge &&
         (wr.num_sge == 0 || wr.sg_list != nullptr);
}

/// Posts the requests of a list from `wr` on. The first that post(request) refuses, with an errno, is
/// *bad_wr, and those behind it are not posted.
template <class Wr, class Post>
[[nodiscard]] inline int post_in_order(Wr* wr, Wr** bad_wr, const Post& post) noexcept {
  for (; wr != nullptr; wr = wr->next) {
    if (const int error = post(*wr); error != 0) {
      *bad_wr = wr;
      return error;
    }
  }
  return 0;
}

}  // namespace verbatim
