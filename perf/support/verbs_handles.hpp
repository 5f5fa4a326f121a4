// SPDX-License-Identifier: BSD-2-Clause
// Owners of verbs objects, each of which destroys its object when it goes out of scope. Declare them
// in the order in which the objects depend on each other: members are destroyed from the last to
// the first, as verbs demand.
//
// A verb that destroys may refuse (EBUSY while something depends on the object), and a destructor
// has nobody to tell. What becomes of the error is a policy, a type with
//
//   static void refused(const char* verb, int error);
//
// The handles that are named here ignore it, as suits a program that ends anyhow. A program that
// must hear of it names its own by Handle<Object, Refusal>. Who wants the verdict calls destroy().
#pragma once

#include <infiniband/verbs.h>
#include <verbatim/memory.h>

#include <cstddef>
#include <memory>

namespace verbatim::perf {

/// The verb that was called for an object, and its answer: 0 or an errno.
struct Destroyed {
  const char* verb;
  int error;
};

// Each type of object with its verb. Some of these verbs are static inline functions of the C
// header, whose address is no argument for a template: so all are called here by their names.
inline Destroyed destroy_object(ibv_context* context) {
  return {"ibv_close_device", ibv_close_device(context)};
}
inline Destroyed destroy_object(ibv_td* td) { return {"ibv_dealloc_td", ibv_dealloc_td(td)}; }
inline Destroyed destroy_object(ibv_pd* pd) { return {"ibv_dealloc_pd", ibv_dealloc_pd(pd)}; }
inline Destroyed destroy_object(ibv_mr* mr) { return {"ibv_dereg_mr", ibv_dereg_mr(mr)}; }
inline Destroyed destroy_object(ibv_mw* mw) { return {"ibv_dealloc_mw", ibv_dealloc_mw(mw)}; }
inline Destroyed destroy_object(ibv_dm* dm) { return {"ibv_free_dm", ibv_free_dm(dm)}; }
inline Destroyed destroy_object(ibv_comp_channel* channel) {
  return {"ibv_destroy_comp_channel", ibv_destroy_comp_channel(channel)};
}
inline Destroyed destroy_object(ibv_comp_cntr* counter) {
  return {"ibv_destroy_comp_cntr", ibv_destroy_comp_cntr(counter)};
}
inline Destroyed destroy_object(ibv_cq* cq) { return {"ibv_destroy_cq", ibv_destroy_cq(cq)}; }
inline Destroyed destroy_object(ibv_srq* srq) { return {"ibv_destroy_srq", ibv_destroy_srq(srq)}; }
inline Destroyed destroy_object(ibv_qp* qp) { return {"ibv_destroy_qp", ibv_destroy_qp(qp)}; }
inline Destroyed destroy_object(ibv_ah* ah) { return {"ibv_destroy_ah", ibv_destroy_ah(ah)}; }
inline Destroyed destroy_object(ibv_xrcd* xrcd) { return {"ibv_close_xrcd", ibv_close_xrcd(xrcd)}; }
inline Destroyed destroy_object(std::byte* shared) {
  return {"vbt_free_shared", vbt_free_shared(shared)};
}

struct IgnoreRefusal {
  static void refused(const char*, int) noexcept {}
};

template <class Refusal>
struct Destroyer {
  template <class Object>
  void operator()(Object* object) const noexcept {
    const Destroyed answer = destroy_object(object);
    if (answer.error != 0) Refusal::refused(answer.verb, answer.error);
  }
};

template <class Object, class Refusal = IgnoreRefusal>
using Handle = std::unique_ptr<Object, Destroyer<Refusal>>;

/// Destroys what `handle` owns, which gives it up whatever the verb answers: 0 or an errno, of
/// which `Refusal` is not told.
template <class Object, class Refusal>
[[nodiscard]] int destroy(std::unique_ptr<Object, Destroyer<Refusal>>& handle) {
  return handle ? destroy_object(handle.release()).error : 0;
}

using ContextHandle = Handle<ibv_context>;
using TdHandle = Handle<ibv_td>;
using PdHandle = Handle<ibv_pd>;
using MrHandle = Handle<ibv_mr>;
using DmHandle = Handle<ibv_dm>;
using ChannelHandle = Handle<ibv_comp_channel>;
using CqHandle = Handle<ibv_cq>;
using SrqHandle = Handle<ibv_srq>;
using QpHandle = Handle<ibv_qp>;
using AhHandle = Handle<ibv_ah>;
using XrcdHandle = Handle<ibv_xrcd>;
/// Of vbt_alloc_shared().
using SharedMemory = Handle<std::byte>;

}  // namespace verbatim::perf
