// SPDX-License-Identifier: BSD-2-Clause
// One lock for all contexts, since a forked child has to make it anew. Objects that were left stay
// in one list of the process, in which leak checkers find their memory; their handles lead to one
// context that is always closed.
#include "runtime/verbs/context_objects.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include "runtime/base/container_of.hpp"
#include "runtime/base/log.hpp"
#include "runtime/base/make_nothrow.hpp"
#include "runtime/verbs/addresses.hpp"
#include "runtime/verbs/completion.hpp"
#include "runtime/verbs/completion_counters.hpp"
#include "runtime/verbs/dependency.hpp"
#include "runtime/verbs/domains.hpp"
#include "runtime/verbs/ethernet.hpp"
#include "runtime/verbs/memory_regions.hpp"
#include "runtime/verbs/provider.hpp"
#include "runtime/verbs/queue_pairs.hpp"
#include "runtime/verbs/srqs.hpp"
#include "runtime/verbs/strict.hpp"
#include "runtime/verbs/text_line.hpp"

namespace verbatim {

constinit SpinLock objects_lock;
constinit Context* first_open_context = nullptr;

namespace {

using State = Owned::State;

constinit Owned* first_left = nullptr;  ///< of all contexts that were closed

// Each step leaves a list that can be walked forwards, and from which anybody can be taken: a fork
// may copy it in between, and what one of the parent's threads was at is not looked for.
void link_locked(Owned*& first, Owned& owned) noexcept {
  owned.next = first;
  owned.link = &first;
  std::atomic_signal_fence(std::memory_order_release);
  first = &owned;
  std::atomic_signal_fence(std::memory_order_release);
  if (owned.next != nullptr) owned.next->link = &owned.next;
}

void unlink_locked(Owned& owned) noexcept {
  if (owned.next != nullptr) owned.next->link = owned.link;
  std::atomic_signal_fence(std::memory_order_release);
  *owned.link = owned.next;
}

// ---- the context to which handles lead that were left

/// A slot that is not named here is refused.
struct Closed {
  static constexpr const char* kName = "closed";
  using Context = verbatim::Context;
  using Mr = verbatim::Mr;
  using Cq = verbatim::Cq;
  using Qp = verbatim::Qp;

  static int list_devices(DeviceSink&) noexcept { return 0; }
  static int open(Device&, verbatim::Context**) noexcept { return ENODEV; }
  static void close(verbatim::Context&) noexcept {}

  template <class Object>
  static int refuse(const char* verb, const Object&) noexcept {
    static constinit LogOnce once;
    if (once.first()) {
      log_warn("ibv_%s: of an object whose device was closed: nothing is left of it but memory",
               verb);
    }
    return EINVAL;
  }
};

constinit const ProviderTable closed_table = make_provider_table<Closed>();
constinit Device closed_device;
alignas(Context) constinit unsigned char closed_memory[sizeof(Context)] = {};
constinit Context* closed_context = nullptr;  ///< under objects_lock until it is there

/// `like`: whose slots it gets, of which many verbs are made in the application.
ibv_context* closed_handle(const Context& like) noexcept {
  const LockGuard guard(objects_lock);
  if (closed_context == nullptr) {
    std::memcpy(closed_device.plain.name, Closed::kName, sizeof "closed");
    closed_device.provider = &closed_table;
    auto* const made = ::new (static_cast<void*>(closed_memory)) Context(closed_device);
    std::memcpy(static_cast<void*>(&made->extended), &like.extended,
                offsetof(verbs_context, context));
    ibv_context_ops& ops = made->handle()->ops;
    ops = like.extended.context.ops;
    ops.post_send = closed_table.hot.post_send;
    ops.post_recv = closed_table.hot.post_recv;
    ops.post_srq_recv = closed_table.hot.post_srq_recv;
    ops.poll_cq = closed_table.hot.poll_cq;
    ops.req_notify_cq = closed_table.hot.req_notify_cq;
    closed_context = made;
  }
  return closed_context->handle();
}

// ---- how an object of each kind ends

Status end(Flow& flow) noexcept { return destroy_flow(flow); }
Status end(Qp& qp) noexcept { return destroy_qp(qp); }
Status end(CompCntr& counter) noexcept { return destroy_comp_cntr(counter); }
Status end(Mw& mw) noexcept { return dealloc_mw(mw); }
Status end(Ah& ah) noexcept { return destroy_ah(ah); }
Status end(Srq& srq) noexcept { return destroy_srq(srq); }
Status end(RwqIndTable& table) noexcept { return destroy_rwq_ind_table(table); }
Status end(Wq& wq) noexcept { return destroy_wq(wq); }
Status end(Cq& cq) noexcept { return destroy_cq(cq); }
Status end(CompChannel& channel) noexcept { return destroy_comp_channel(channel); }
Status end(Td& td) noexcept { return dealloc_td(td); }
Status end(Xrcd& xrcd) noexcept { return close_xrcd(xrcd); }
Status end(Mr& mr) noexcept { return dereg_mr(mr); }
Status end(Dm& dm) noexcept { return free_dm(dm); }
Status end(Pd& pd) noexcept { return dealloc_pd(pd); }

/// What depends on it did not end.
template <class Handle>
bool is_used(const Handle& object) noexcept {
  if constexpr (requires { object.uses; }) {
    return still_used(object) != 0;
  } else if constexpr (requires { object.plain.refcnt; }) {
    return object.plain.refcnt != 0;
  } else {
    return false;
  }
}

/// visit(object) for each of the kind. `next` is read before, since a visited object goes.
template <class Handle, class Visit>
void each_of(Context& context, Visit&& visit) noexcept {
  for (Owned* at = context.objects[static_cast<std::size_t>(Handle::kKind)]; at != nullptr;) {
    Owned* const next = at->next;
    visit(*container_of<Handle>(at, offsetof(Handle, owned)));
    at = next;
  }
}
template <class... Handles>
struct Kinds {
  static constexpr bool are_in_order() noexcept {
    std::size_t at = 0;
    return ((static_cast<std::size_t>(Handles::kKind) == at++) && ...) && at == kObjectKinds;
  }
  template <class Visit>
  static void each(Context& context, Visit visit) noexcept {
    (each_of<Handles>(context, visit), ...);
  }
};
using InOrder =
    Kinds<Flow, Qp, CompCntr, Mw, Mr, Ah, Srq, RwqIndTable, Wq, Cq, CompChannel, Dm, Pd, Td, Xrcd>;
static_assert(InOrder::are_in_order());

/// A child that closes what its parent opened closes its own descriptor, and must not end what the
/// parent goes on using through it; unless the provider has made copies of the child's own.
bool is_parents(const Context& context) noexcept {
  return context.table == context.device.provider && context.opener != ::getpid();
}

}  // namespace

bool Owned::begins_to_end() noexcept {
  const LockGuard guard(objects_lock);
  if (state != State::kLeft) return false;
  state = State::kEnding;
  return true;
}

void Owned::outlived() noexcept {
  const LockGuard guard(objects_lock);
  state = State::kEnded;
}

void enlist(Context& context, ObjectKind kind, Owned& owned) noexcept {
  const LockGuard guard(objects_lock);
  if (owned.state == State::kLeft) unlink_locked(owned);  // it could not be ended
  owned.state = State::kListed;
  link_locked(context.objects[static_cast<std::size_t>(kind)], owned);
}

void delist(Context& context, Owned& owned) noexcept {
  const LockGuard guard(objects_lock);
  if (owned.link == nullptr) return;
  unlink_locked(owned);
  owned.state = State::kOutside;
  if (owned.imports == 0 && !context.closing.load(std::memory_order_relaxed)) return;
  owned.state = State::kLeft;
  link_locked(first_left, owned);
}

void note_open(Context& context) noexcept {
  const LockGuard guard(objects_lock);
  context.next_open = first_open_context;
  first_open_context = &context;
}

void forget_open(Context& context) noexcept {
  const LockGuard guard(objects_lock);
  for (Context** at = &first_open_context; *at != nullptr; at = &(*at)->next_open) {
    if (*at != &context) continue;
    *at = context.next_open;
    return;
  }
}

bool end_import(Context& context) noexcept {
  ContextImport* ended;
  {
    const LockGuard guard(objects_lock);
    ended = context.imports;
    if (ended == nullptr) return false;
    context.imports = ended->next;
  }
  destroy_nothrow(ended);
  return true;
}

void leave_to_other_handles(ibv_context*& context, Owned& owned) noexcept {
  context = closed_handle(Context::from(context));
  const LockGuard guard(objects_lock);
  --owned.imports;
}

void give_up(Owned& owned, void* memory) noexcept {
  {
    const LockGuard guard(objects_lock);
    if (owned.imports != 0) {
      --owned.imports;
      return;
    }
    const State before = owned.state;
    // While its destructor runs in another thread, the memory stays for good.
    if (before == State::kEnding || before == State::kUnwanted) return;
    unlink_locked(owned);
    owned.state = State::kUnwanted;
    if (before == State::kLeft) return;
  }
  std::free(memory);
}

int end_objects(Context& context) noexcept {
  ibv_context* const closed = closed_handle(context);
  context.closing.store(true, std::memory_order_relaxed);
  bool is_busy = false;
  if (!is_parents(context)) {
    each_of<Qp>(context, leave_groups);
    InOrder::each(context, [&](auto& object) {
      if (is_used(object)) return;
      const Status status = end(object);
      if (status.ok())
        object.plain.context = closed;
      else
        is_busy |= status.error().code == EBUSY;
    });
  }
  if (is_busy) {
    context.closing.store(false, std::memory_order_relaxed);
    return EBUSY;
  }
  InOrder::each(context, [&](auto& object) {
    disown(object);
    object.plain.context = closed;
  });
  return 0;
}

void tell_left(Context& context) noexcept {
  if (!is_strict() || is_parents(context)) return;
  static constexpr const char* kNames[kObjectKinds] = {"flow",
                                                       "QP",
                                                       "completion counter",
                                                       "MW",
                                                       "MR",
                                                       "AH",
                                                       "SRQ",
                                                       "indirection table",
                                                       "WQ",
                                                       "CQ",
                                                       "completion channel",
                                                       "device memory",
                                                       "PD",
                                                       "thread domain",
                                                       "XRC domain"};
  std::uint32_t counts[kObjectKinds] = {};
  InOrder::each(context,
                [&]<class Handle>(Handle&) { ++counts[static_cast<std::size_t>(Handle::kKind)]; });
  char text[256];
  TextLine line(text, sizeof text);
  for (std::size_t kind = 0; kind < kObjectKinds; ++kind) {
    if (counts[kind] != 0)
      line.add("%s%s (%u)", line.length() == 0 ? "" : ", ", kNames[kind], counts[kind]);
  }
  if (line.length() == 0) return;
  log_warn("strict: ibv_close_device: of %s was left: %s; destroy those first",
           context.device.plain.name, text);
}

void remake_objects_lock_in_child() noexcept { ::new (&objects_lock) SpinLock; }

}  // namespace verbatim
