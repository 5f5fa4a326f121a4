// SPDX-License-Identifier: BSD-2-Clause
// Our objects behind the C handles. The C struct is the first member (of Context: the last part of
// it, see below), so that an application's pointer and ours are the same address; providers derive:
//   struct shm::Qp : verbatim::Qp { ... };
//
// Who writes what: constructors make the locks; the provider fills what only it knows (keys,
// qp_num, cqe, fd, handle, Srq::attributes); the runtime fills the rest (context, pd, queues, user
// contexts, types) after the provider's create slot succeeded and before the application sees the
// pointer. `uses` counts the objects that depend on this one: kept by the runtime, and destroy
// answers EBUSY while it is not 0. Layouts: infiniband/verbs.h; sizes pinned below.
#pragma once

#include <infiniband/verbs.h>
#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "runtime/base/container_of.hpp"
#include "runtime/base/kept_fd.hpp"
#include "runtime/base/unique_fd.hpp"

/// Opaque to applications: memory of ibv_alloc_buf.
struct ibv_buf {
  ibv_pd* pd;
  void* memory;
  size_t size;
  bool is_runtimes;  ///< the provider has no memory of its own to give
};

namespace verbatim {

struct ProviderTable;
struct Membership;
class Context;

/// A place in a queue of events. Only the software defaults (software/soft_comp_channel,
/// software/soft_events) use it, under their own lock; an object is in a queue at most once, so
/// announcing an event never allocates.
struct EventLink {
  EventLink* next = nullptr;
  std::uint64_t kinds = 0;      ///< waiting async event types, oldest in the lowest 5 bits
  std::uint32_t waiting = 0;    ///< events not fetched yet
  std::uint32_t delivered = 0;  ///< events ever fetched; the application acknowledges each
};

/// What a context has, in the order in which it ends at close: each before what it depends on.
enum class ObjectKind : std::uint8_t {
  kFlow,
  kQp,
  kCompCntr,
  kMw,
  kMr,
  kAh,
  kSrq,
  kRwqIndTable,
  kWq,
  kCq,
  kCompChannel,
  kDm,
  kPd,
  kTd,
  kXrcd
};
inline constexpr std::size_t kObjectKinds = 15;

/// An object's place among those of its context, by which ibv_close_device finds what was left. The
/// memory of such an object outlives it, since the application has its address still
/// (context_objects.hpp, which changes all of this under its lock).
struct Owned {
  enum class State : std::uint8_t {
    kOutside,   ///< of no list: it is being made or destroyed, or is a provider's own
    kListed,    ///< among its context's objects
    kLeft,      ///< its context is closed; the provider may have use for it still
    kEnding,    ///< left, and its destructor runs
    kEnded,     ///< left, and its memory is all that is there
    kUnwanted,  ///< left, and destroyed by the application since: its memory goes with it
  };
  Owned* next = nullptr;
  Owned** link = nullptr;  ///< what points here
  State state = State::kOutside;
  std::uint32_t imports = 0;  ///< handles that the application has beyond one (imports.hpp)

  /// destroy_nothrow asks: whether the memory stays, and then says when only memory is left.
  [[nodiscard]] bool begin_to_outlive() noexcept {
    return state != State::kOutside && state != State::kListed && begins_to_end();
  }
  void outlived() noexcept;

 private:
  [[nodiscard]] bool begins_to_end() noexcept;
};

struct Device {
  ibv_device plain{};
  /// Always zero: direct-access libraries of other vendors ask "is this my device" by reading a
  /// pointer at byte 664 of a device that grew to 712 bytes.
  unsigned char foreign_tail[48] = {};
  const ProviderTable* provider = nullptr;
  std::uint32_t index = 0;  ///< the provider's own numbering
  int kernel_index = -1;    ///< what ibv_get_device_index tells; -1: the kernel does not know it
  __be64 guid = 0;
  /// Lists and contexts that hold it; device_list.cpp frees it with the last.
  std::atomic<std::uint32_t> references{0};
  Device* next = nullptr;  ///< device_list.cpp, under its lock

  [[nodiscard]] static Device& from(ibv_device* handle) noexcept {
    return *reinterpret_cast<Device*>(handle);
  }
};

/// Another handle to a context, with the descriptor that it was imported by.
struct ContextImport {
  ContextImport* next = nullptr;
  UniqueFd fd;
};

/// An opened device. The C side sees `extended.context`, the last member of the verbs_context
/// layout: slots are found backwards from it.
class Context {
 public:
  /// Leaves the ops empty: the runtime and the C border fill them when open has succeeded.
  explicit Context(Device& owner) noexcept : device(owner), table(owner.provider) {
    ibv_context& c = extended.context;
    c.device = &owner.plain;
    c.cmd_fd = -1;
    c.async_fd = -1;
    c.num_comp_vectors = 1;
    ::pthread_mutex_init(&c.mutex, nullptr);
    c.abi_compat = __VERBS_ABI_IS_EXTENDED;
    extended.sz = sizeof(verbs_context);
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { ::pthread_mutex_destroy(&extended.context.mutex); }

  [[nodiscard]] ibv_context* handle() noexcept { return &extended.context; }
  /// REQUIRES: a context made by this library (every one that an application can hold).
  [[nodiscard]] static inline Context& from(ibv_context* handle) noexcept;

  verbs_context extended{};
  Device& device;
  /// What its verbs do: the provider's table, or another that the provider puts here.
  const ProviderTable* table;
  std::atomic<std::uint32_t> uses{0};
  /// Ports 1 ... port_count exist; the runtime asks the provider once, at open.
  std::uint32_t port_count = 0;
  pid_t opener = 0;                   ///< the process that opened it, or a parent of this one
  std::atomic<bool> closing{false};   ///< what is left of it is being ended
  Owned* objects[kObjectKinds] = {};  ///< context_objects.hpp; the newest of each kind first
  KeptFd command_fd;                  ///< cmd_fd where the runtime has made it
  Context* next_open = nullptr;       ///< context_objects.hpp
  ContextImport* imports = nullptr;   ///< handles that the application has beyond one
  std::atomic<std::uint32_t> strict_told{0};  ///< strict.hpp: of what it has warned for its AHs
  /// How many events of its objects are not acknowledged yet.
  std::atomic<std::uint32_t> strict_unacked{0}, strict_unacked_async{0};
};

struct Td {
  static constexpr ObjectKind kKind = ObjectKind::kTd;
  ibv_td plain{};
  std::atomic<std::uint32_t> uses{0};
  Owned owned;
  [[nodiscard]] static Td& from(ibv_td* handle) noexcept { return *reinterpret_cast<Td*>(handle); }
};

/// The allocators of a parent domain, for what is private of its queues' memory (queue_memory.hpp).
struct QueueAllocators {
  decltype(ibv_parent_domain_init_attr::alloc) alloc = nullptr;  ///< nullptr: the library
  decltype(ibv_parent_domain_init_attr::free) free = nullptr;
  void* context = nullptr;
};

struct Pd {
  static constexpr ObjectKind kKind = ObjectKind::kPd;
  ibv_pd plain{};
  std::atomic<std::uint32_t> uses{0};
  /// A parent domain stands for another PD, perhaps with a thread domain; null in a plain PD.
  Pd* original = nullptr;
  Td* thread_domain = nullptr;
  QueueAllocators allocators;
  Owned owned;
  [[nodiscard]] static Pd& from(ibv_pd* handle) noexcept { return *reinterpret_cast<Pd*>(handle); }
};

struct Mr {
  static constexpr ObjectKind kKind = ObjectKind::kMr;
  ibv_mr plain{};
  std::uint32_t type = 0;    ///< at 48 and 52 as in the layout that vendor libraries know
  std::uint32_t access = 0;  ///< ibv_access_flags
  std::uint64_t iova = 0;
  /// Memory windows bound to it. The provider counts them: binding is a work request.
  std::atomic<std::uint32_t> uses{0};
  ibv_dm* device_memory = nullptr;
  std::uint64_t held = 0;    ///< what ledger_hold answered for the range
  std::uint64_t pinned = 0;  ///< bytes that count against RLIMIT_MEMLOCK; the provider's word
  Owned owned;
  [[nodiscard]] static Mr& from(ibv_mr* handle) noexcept { return *reinterpret_cast<Mr*>(handle); }
};

struct Mw {
  static constexpr ObjectKind kKind = ObjectKind::kMw;
  ibv_mw plain{};
  Owned owned;
  [[nodiscard]] static Mw& from(ibv_mw* handle) noexcept { return *reinterpret_cast<Mw*>(handle); }
};

struct Dm {
  static constexpr ObjectKind kKind = ObjectKind::kDm;
  ibv_dm plain{};
  std::atomic<std::uint32_t> uses{0};
  Owned owned;
  [[nodiscard]] static Dm& from(ibv_dm* handle) noexcept { return *reinterpret_cast<Dm*>(handle); }
};

/// `plain.refcnt`, under the context's mutex, counts the CQs: it is public, so it is the count.
struct CompChannel {
  static constexpr ObjectKind kKind = ObjectKind::kCompChannel;
  ibv_comp_channel plain{};
  Owned owned;
  CompChannel() noexcept { plain.fd = -1; }
  [[nodiscard]] static CompChannel& from(ibv_comp_channel* handle) noexcept {
    return *reinterpret_cast<CompChannel*>(handle);
  }
};

struct CompCntr {
  static constexpr ObjectKind kKind = ObjectKind::kCompCntr;
  ibv_comp_cntr plain{};
  Owned owned;
  /// Queue pairs that it is attached to. The provider counts them, down when one is destroyed.
  std::atomic<std::uint32_t> uses{0};
  [[nodiscard]] static CompCntr& from(ibv_comp_cntr* handle) noexcept {
    return *reinterpret_cast<CompCntr*>(handle);
  }
};

struct Cq {
  static constexpr ObjectKind kKind = ObjectKind::kCq;
  union {
    ibv_cq plain;
    ibv_cq_ex extended;  ///< a provider of extended polling sets start_poll and its companions
  };
  std::atomic<std::uint32_t> uses{0};           ///< QPs (each counts per side), WQs, SRQs
  std::atomic<std::uint32_t> strict_wanted{0};  ///< strict.hpp: completions of all that use it
  std::atomic<std::uint32_t> strict_told{0};    ///< ... of what it has warned
  /// ... events that the application was given, while it counts; under the public mutex
  std::uint32_t strict_given = 0, strict_given_async = 0;
  Pd* parent_domain = nullptr;
  EventLink completion_events;
  EventLink async_events;
  Owned owned;

  Cq() noexcept : extended{} {
    ::pthread_mutex_init(&plain.mutex, nullptr);
    ::pthread_cond_init(&plain.cond, nullptr);
  }
  Cq(const Cq&) = delete;
  Cq& operator=(const Cq&) = delete;
  ~Cq() {
    ::pthread_cond_destroy(&plain.cond);
    ::pthread_mutex_destroy(&plain.mutex);
  }
  [[nodiscard]] static Cq& from(ibv_cq* handle) noexcept { return *reinterpret_cast<Cq*>(handle); }
  [[nodiscard]] static Cq& from(ibv_cq_ex* handle) noexcept {
    return *reinterpret_cast<Cq*>(handle);
  }
};

struct Xrcd {
  static constexpr ObjectKind kKind = ObjectKind::kXrcd;
  ibv_xrcd plain{};
  std::atomic<std::uint32_t> uses{0};
  Owned owned;
  [[nodiscard]] static Xrcd& from(ibv_xrcd* handle) noexcept {
    return *reinterpret_cast<Xrcd*>(handle);
  }
};

struct Srq {
  static constexpr ObjectKind kKind = ObjectKind::kSrq;
  ibv_srq plain{};
  std::atomic<std::uint32_t> uses{0};         ///< QPs
  std::atomic<std::uint32_t> strict_told{0};  ///< strict.hpp: of what it has warned
  std::uint32_t strict_given = 0;             ///< ... events, as in Cq
  std::uint32_t strict_receives = 0;          ///< ... its size since it was resized
  EventLink async_events;
  ibv_srq_attr attributes{};  ///< actual sizes and limit; the provider writes them at create
  ibv_srq_type type = IBV_SRQT_BASIC;
  Xrcd* xrcd = nullptr;
  Cq* cq = nullptr;
  Owned owned;

  Srq() noexcept {
    ::pthread_mutex_init(&plain.mutex, nullptr);
    ::pthread_cond_init(&plain.cond, nullptr);
  }
  Srq(const Srq&) = delete;
  Srq& operator=(const Srq&) = delete;
  ~Srq() {
    ::pthread_cond_destroy(&plain.cond);
    ::pthread_mutex_destroy(&plain.mutex);
  }
  [[nodiscard]] static Srq& from(ibv_srq* handle) noexcept {
    return *reinterpret_cast<Srq*>(handle);
  }
};

struct Wq {
  static constexpr ObjectKind kKind = ObjectKind::kWq;
  /// ibv_create_wq, inline in the application, makes the mutex and the condition.
  ibv_wq plain{};
  std::atomic<std::uint32_t> uses{0};         ///< indirection tables
  std::atomic<std::uint32_t> strict_told{0};  ///< strict.hpp: of what it has warned
  std::uint32_t strict_given = 0;             ///< ... events, as in Cq
  EventLink async_events;
  Owned owned;
  [[nodiscard]] static Wq& from(ibv_wq* handle) noexcept { return *reinterpret_cast<Wq*>(handle); }
};

struct RwqIndTable {
  static constexpr ObjectKind kKind = ObjectKind::kRwqIndTable;
  ibv_rwq_ind_table plain{};
  std::atomic<std::uint32_t> uses{0};  ///< QPs
  Wq** queues = nullptr;               ///< those it spreads over, in an array of the runtime's
  std::uint32_t queue_count = 0;
  Owned owned;
  [[nodiscard]] static RwqIndTable& from(ibv_rwq_ind_table* handle) noexcept {
    return *reinterpret_cast<RwqIndTable*>(handle);
  }
};

struct Qp {
  static constexpr ObjectKind kKind = ObjectKind::kQp;
  union {
    ibv_qp plain;
    ibv_qp_ex extended;  ///< a provider of ibv_wr_* sets wr_start and its companions
  };
  std::atomic<std::uint32_t> uses{0};         ///< multicast groups and flows attached
  std::atomic<std::uint32_t> strict_told{0};  ///< strict.hpp: of what it has warned
  std::uint32_t strict_unsignaled = 0;        ///< ... requests posted since one that completes
  std::uint32_t strict_given = 0;             ///< ... events, as in Cq
  bool sq_sig_all = false;
  bool takes_work_calls = false;          ///< made with send_ops_flags: ibv_qp_to_qp_ex answers
  std::atomic<bool> logs_failures{true};  ///< vbt_log_failures
  EventLink async_events;
  ibv_qp_init_attr init{};  ///< as created, with the actual capacities
  Xrcd* xrcd = nullptr;
  RwqIndTable* ind_table = nullptr;
  Membership* groups = nullptr;  ///< multicast groups it is in (queue_pairs.cpp)
  /// The last values set by modify_qp, and the mask of those ever set. Software providers keep them
  /// through software/qp_states; a provider whose kernel knows them need not.
  ibv_qp_attr attributes{};
  std::uint32_t attributes_set = 0;
  Owned owned;

  Qp() noexcept : extended{} {
    ::pthread_mutex_init(&plain.mutex, nullptr);
    ::pthread_cond_init(&plain.cond, nullptr);
  }
  Qp(const Qp&) = delete;
  Qp& operator=(const Qp&) = delete;
  ~Qp() {
    ::pthread_cond_destroy(&plain.cond);
    ::pthread_mutex_destroy(&plain.mutex);
  }
  [[nodiscard]] static Qp& from(ibv_qp* handle) noexcept { return *reinterpret_cast<Qp*>(handle); }
  [[nodiscard]] static Qp& from(ibv_qp_ex* handle) noexcept {
    return *reinterpret_cast<Qp*>(handle);
  }
};

struct Flow {
  static constexpr ObjectKind kKind = ObjectKind::kFlow;
  ibv_flow plain{};
  Qp* qp = nullptr;
  Owned owned;
  [[nodiscard]] static Flow& from(ibv_flow* handle) noexcept {
    return *reinterpret_cast<Flow*>(handle);
  }
};

struct Ah {
  static constexpr ObjectKind kKind = ObjectKind::kAh;
  ibv_ah plain{};
  /// The path that it was asked for; the runtime fills it when create_ah has answered.
  ibv_ah_attr attr{};
  Owned owned;
  [[nodiscard]] static Ah& from(ibv_ah* handle) noexcept { return *reinterpret_cast<Ah*>(handle); }
};

// Context holds a reference, so the language calls its offsetof conditional; both compilers lay it
// out as written. This is the one place that relies on it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
inline Context& Context::from(ibv_context* handle) noexcept {
  return *container_of<Context>(handle, offsetof(Context, extended.context));
}
static_assert(offsetof(Context, extended) == 0);
static_assert(offsetof(verbs_context, context) + sizeof(ibv_context) == sizeof(verbs_context));
#pragma GCC diagnostic pop

static_assert(offsetof(Device, plain) == 0 && sizeof(ibv_device) == 664);
static_assert(offsetof(Device, provider) >= 712, "the foreign tail must stay readable zeroes");
static_assert(offsetof(Pd, plain) == 0 && offsetof(Td, plain) == 0 && offsetof(Mw, plain) == 0);
static_assert(offsetof(Mr, plain) == 0 && offsetof(Mr, type) == 48 && offsetof(Mr, access) == 52);
static_assert(offsetof(CompChannel, plain) == 0 && offsetof(Dm, plain) == 0);
static_assert(offsetof(CompCntr, plain) == 0);
static_assert(offsetof(Cq, plain) == 0 && offsetof(Cq, extended) == 0);
static_assert(offsetof(Srq, plain) == 0 && offsetof(Xrcd, plain) == 0 && offsetof(Wq, plain) == 0);
static_assert(offsetof(Qp, plain) == 0 && offsetof(Qp, extended) == 0);
static_assert(offsetof(Ah, plain) == 0 && offsetof(RwqIndTable, plain) == 0);
static_assert(offsetof(Flow, plain) == 0);

}  // namespace verbatim
