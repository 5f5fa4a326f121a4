// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/pmpi/communicator.hpp"

#include <pthread.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "mpi_shim/pmpi/agreement.hpp"
#include "mpi_shim/pmpi/handles.hpp"
#include "runtime/base/log.hpp"

namespace vmpi::pmpi {

constinit std::atomic<std::uint32_t> gone_communicators{0};
thread_local constinit RememberedCommunicator remembered[kRemembered] = {};

namespace {

using verbatim::log_error;
using verbatim::log_info;

/// Up to as many ranks the engine has flags and slots in memory that all map.
constexpr int kMostRanks = 64;

/// Held for the list, the sum and the key alone: never while other ranks are waited for.
constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit Communicator* communicators = nullptr;
/// Whose teams have not ended yet.
constinit Communicator* departed = nullptr;
constinit Tally tally_of_gone = {};
constinit int keyval = 0;
constinit bool has_keyval = false;
constinit std::atomic<bool> is_over{false};

class Locked {
 public:
  Locked() noexcept { (void)::pthread_mutex_lock(&lock); }
  ~Locked() { (void)::pthread_mutex_unlock(&lock); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

/// MPI_Comm_dup: the new one has a team of its own, once it is used.
int copy_nothing(Handle, int, void*, void*, void*, int* is_copied) noexcept {
  *is_copied = 0;
  return kSuccess;
}

/// The MPI may be moved on in the midst of a call of the engine's, which may not be called then: the
/// team ends later.
int forget(Handle, int, void* value, void*) noexcept {
  Communicator* const communicator = static_cast<Communicator*>(value);
  const Locked locked;
  tally_of_gone.add(communicator->tally);
  *communicator->at = communicator->next;
  if (communicator->next != nullptr) communicator->next->at = communicator->at;
  communicator->next = departed;
  departed = communicator;
  gone_communicators.fetch_add(1, std::memory_order_release);
  return kSuccess;
}

/// Waits for nobody: other ranks may free the communicator long after this one.
void end_teams_of_departed() noexcept {
  Communicator* first = nullptr;
  {
    const Locked locked;
    first = departed;
    departed = nullptr;
  }
  while (first != nullptr) {
    Communicator* const communicator = first;
    first = first->next;
    if (vbt_coll_destroy_team(communicator->team) != 0)
      log_error("a team of libverbatim_pmpi.so does not end: %s", vbt_coll_why());
    std::free(communicator);
  }
}

[[nodiscard]] bool make_keyval() noexcept {
  const Locked locked;
  if (!has_keyval)
    has_keyval =
        library().call.comm_create_keyval(copy_nothing, forget, &keyval, nullptr) == kSuccess;
  return has_keyval;
}

[[nodiscard]] bool is_mpi_there() noexcept {
  int is_begun = 0;
  int is_ended = 0;
  return library().call.initialized(&is_begun) == kSuccess && is_begun != 0 &&
         library().call.finalized(&is_ended) == kSuccess && is_ended == 0;
}

[[nodiscard]] Communicator* make_communicator(Handle handle) noexcept {
  const Functions& call = library().call;
  int is_between_groups = 0;
  int size = 0;
  int rank = 0;
  if (call.comm_test_inter(handle, &is_between_groups) != kSuccess ||
      call.comm_size(handle, &size) != kSuccess || call.comm_rank(handle, &rank) != kSuccess)
    return nullptr;
  void* const place = std::calloc(1, sizeof(Communicator));
  Communicator* const communicator = place != nullptr ? ::new (place) Communicator() : nullptr;
  if (communicator == nullptr || call.comm_set_attr(handle, keyval, communicator) != kSuccess) {
    // Other ranks may go on and take calls: one alone cannot leave them out.
    log_error("libverbatim_pmpi.so has no memory for a communicator: the job is ended");
    (void)call.abort(handle, 1);
    std::free(place);
    return nullptr;
  }
  communicator->handle = handle;
  communicator->rank = rank;
  communicator->size = size;
  communicator->why_not = is_between_groups != 0 ? Reason::kIntercommunicator
                          : size == 1            ? Reason::kOneRank
                          : size > kMostRanks    ? Reason::kTooManyRanks
                                                 : Reason::kNone;
  communicator->is_decided = communicator->why_not != Reason::kNone;
  const Locked locked;
  communicator->next = communicators;
  communicator->at = &communicators;
  if (communicators != nullptr) communicators->at = &communicator->next;
  communicators = communicator;
  return communicator;
}

}  // namespace

Communicator* look_up(Handle handle) noexcept {
  const Library& mpi = library();
  if (mpi.family == Family::kOther || is_over.load(std::memory_order_acquire) || handle == 0 ||
      handle == mpi.comm_null || !is_mpi_there() || !make_keyval())
    return nullptr;
  const std::uint32_t gone = gone_communicators.load(std::memory_order_acquire);
  void* value = nullptr;
  int is_there = 0;
  if (mpi.call.comm_get_attr(handle, keyval, &value, &is_there) != kSuccess) return nullptr;
  Communicator* const communicator =
      is_there != 0 ? static_cast<Communicator*>(value) : make_communicator(handle);
  if (communicator != nullptr)
    remembered[(handle ^ handle >> 9) % kRemembered] = {handle, gone, communicator};
  return communicator;
}

void decide(Communicator& communicator) noexcept {
  communicator.is_decided = true;
  end_teams_of_departed();  // What they have is used for the new one's.
  communicator.why_not = make_team(communicator);
  if (communicator.team != nullptr || communicator.rank != 0) return;
  static constinit verbatim::LogOnce once;
  if (once.first())
    log_info("collectives of a communicator of %d ranks are left to %s: %s", communicator.size,
             library().version, text_of(communicator.why_not));
}

void do_other_work() noexcept {
  move_mpi_on();
  end_teams_of_departed();
}

void end_communicators() noexcept {
  const Library& mpi = library();
  if (mpi.family == Family::kOther || !is_mpi_there()) return;
  Tally own = {};
  {
    const Locked locked;
    own.add(tally_of_gone);
    for (Communicator* at = communicators; at != nullptr; at = at->next) own.add(at->tally);
  }
  Meeting world = {mpi.comm_world, 0, 1, "MPI_Finalize: if others wait in it too"};
  (void)mpi.call.comm_rank(mpi.comm_world, &world.rank);
  (void)mpi.call.comm_size(mpi.comm_world, &world.size);
  // It is also what all ranks wait for: then nobody is in a call that was taken.
  Tally all = {};
  const bool is_told =
      combine(world, numbers_of(own), numbers_of(all), kNumbersOfTally, handle_of_sum());
  // Functions of the program that MPI calls while it ends are not taken any more.
  is_over.store(true, std::memory_order_release);
  for (;;) {
    Handle handle = 0;
    {
      const Locked locked;
      if (communicators != nullptr) handle = communicators->handle;
    }
    if (handle == 0 || mpi.call.comm_delete_attr(handle, keyval) != kSuccess) break;
  }
  end_teams_of_departed();
  // Of who ends before the others have left their teams they would say that it has died.
  const std::uint64_t has_left = 1;
  std::uint64_t have_left = 0;
  if (is_told) (void)combine(world, &has_left, &have_left, 1, handle_of_sum());
  if (is_told && world.rank == 0) tell(all, world.size, mpi.version);
}

int raise(const Communicator& communicator, Collective collective, int error_class,
          const char* why) noexcept {
  log_error("%s of rank %d among %d: %s", name_of(collective), communicator.rank, communicator.size,
            why);
  (void)library().call.comm_call_errhandler(communicator.handle, error_class);
  return error_class;
}

int judge(Communicator& communicator, Collective collective, int error) noexcept {
  const Library& mpi = library();
  // The line is the thread's until its next call of the engine.
  const char* const why = vbt_coll_why();
  switch (error) {
    case EINVAL:  // nothing was done
      return raise(communicator, collective, kErrorBuffer, why);
    case EMSGSIZE:  // told to all ranks
      return raise(communicator, collective, mpi.error_truncate, why);
    case EPERM:
      return raise(communicator, collective, mpi.error_other, why);
    default:
      break;
  }
  log_error("%s of rank %d among %d: %s: %s; the job is ended", name_of(collective),
            communicator.rank, communicator.size, std::strerror(error), why);
  (void)mpi.call.abort(communicator.handle, 1);
  return mpi.error_other;
}

}  // namespace vmpi::pmpi
