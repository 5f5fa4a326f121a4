// SPDX-License-Identifier: BSD-2-Clause
// Owning handles of verbs objects, released in the reverse order of their declaration.
#pragma once

#include <infiniband/verbs.h>
#include <verbatim/memory.h>

#include <memory>

namespace verbatim::perf {

template <auto kRelease>
struct Releaser {
  template <class Object>
  void operator()(Object* object) const noexcept {
    kRelease(object);  // at the end of a measurement there is nobody to tell
  }
};

using ContextHandle = std::unique_ptr<ibv_context, Releaser<ibv_close_device>>;
using PdHandle = std::unique_ptr<ibv_pd, Releaser<ibv_dealloc_pd>>;
using MrHandle = std::unique_ptr<ibv_mr, Releaser<ibv_dereg_mr>>;
using CqHandle = std::unique_ptr<ibv_cq, Releaser<ibv_destroy_cq>>;
using ChannelHandle = std::unique_ptr<ibv_comp_channel, Releaser<ibv_destroy_comp_channel>>;
using SrqHandle = std::unique_ptr<ibv_srq, Releaser<ibv_destroy_srq>>;
using AhHandle = std::unique_ptr<ibv_ah, Releaser<ibv_destroy_ah>>;
using QpHandle = std::unique_ptr<ibv_qp, Releaser<ibv_destroy_qp>>;

struct ThreadDomainReleaser {
  void operator()(ibv_td* domain) const noexcept { ibv_dealloc_td(domain); }
};
using TdHandle = std::unique_ptr<ibv_td, ThreadDomainReleaser>;

struct SharedMemoryReleaser {
  void operator()(std::byte* memory) const noexcept { vbt_free_shared(memory); }
};
using SharedMemory = std::unique_ptr<std::byte, SharedMemoryReleaser>;

}  // namespace verbatim::perf
