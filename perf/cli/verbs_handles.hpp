// SPDX-License-Identifier: BSD-2-Clause
// Owners of verbs objects. Declare them in the order in which they depend on each other: members
// are destroyed from the last to the first, as verbs demand.
#pragma once

#include <infiniband/verbs.h>

#include <memory>

namespace verbatim::cli {

template <auto Destroy>
struct Destroyer {
  template <class T>
  void operator()(T* object) const {
    Destroy(object);
  }
};

using ContextHandle = std::unique_ptr<ibv_context, Destroyer<ibv_close_device>>;
using PdHandle = std::unique_ptr<ibv_pd, Destroyer<ibv_dealloc_pd>>;
using MrHandle = std::unique_ptr<ibv_mr, Destroyer<ibv_dereg_mr>>;
using ChannelHandle = std::unique_ptr<ibv_comp_channel, Destroyer<ibv_destroy_comp_channel>>;
using CqHandle = std::unique_ptr<ibv_cq, Destroyer<ibv_destroy_cq>>;
using SrqHandle = std::unique_ptr<ibv_srq, Destroyer<ibv_destroy_srq>>;
using QpHandle = std::unique_ptr<ibv_qp, Destroyer<ibv_destroy_qp>>;
using AhHandle = std::unique_ptr<ibv_ah, Destroyer<ibv_destroy_ah>>;

struct DmFree {
  void operator()(ibv_dm* dm) const { ibv_free_dm(dm); }  // an inline of the header: no address
};
using DmHandle = std::unique_ptr<ibv_dm, DmFree>;

/// Destroys what `handle` owns and answers the verb's verdict, which a destructor would swallow.
template <class T, auto Destroy>
int destroy(std::unique_ptr<T, Destroyer<Destroy>>& handle) {
  return handle ? Destroy(handle.release()) : 0;
}
inline int destroy(DmHandle& handle) { return handle ? ibv_free_dm(handle.release()) : 0; }

}  // namespace verbatim::cli
