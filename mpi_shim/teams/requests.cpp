// SPDX-License-Identifier: BSD-2-Clause
// The end of operations that were begun, and memory that members read in place.
#include "mpi_shim/teams/requests.hpp"

#include <cerrno>

#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/peers.hpp"
#include "mpi_shim/teams/entry.hpp"
#include "runtime/base/make_nothrow.hpp"

namespace vmpi {
namespace {

/// EINPROGRESS, or it is given back.
[[nodiscard]] int take_end_of(vbt_coll_request*& request) noexcept {
  Request& of_engine = request->of_engine;
  vbt_coll_team& team = *request->team;
  if (!of_engine.is_complete) return EINPROGRESS;
  const int error = answer_for(team, of_engine.error);
  --team.requests;
  request->magic = 0;
  verbatim::destroy_nothrow(request);
  request = nullptr;
  return error;
}

[[nodiscard]] int check_request(vbt_coll_request* const* request, const char* function) noexcept {
  if (request == nullptr || (*request != nullptr && (*request)->magic != kTeamRequestMagic))
    return refuse_call(EINVAL, "%s: that is no request", function);
  if (is_forked_child())
    return refuse_call(EPERM, "%s: the request is that of the process which forked", function);
  return 0;
}

void move_on() noexcept {
  (void)progress();
  if (wait_in_vain != nullptr) wait_in_vain();
}

}  // namespace
}  // namespace vmpi

using namespace vmpi;

VBT_COLL_ENTRY int vbt_coll_poll(vbt_coll_request** request) {
  if (const int error = check_request(request, "vbt_coll_poll"); error != 0) return error;
  if (*request == nullptr) return 0;
  const BigGuard guard;
  move_on();
  vbt_coll_request& asked = **request;
  const std::int64_t timeout = asked.team->timeout_ns;
  if (!asked.of_engine.is_complete && timeout != 0 && now_ns() - asked.since > timeout)
    fail_by_time(*asked.team, timeout);
  return take_end_of(*request);
}

VBT_COLL_ENTRY int vbt_coll_wait(vbt_coll_request** request) {
  if (const int error = check_request(request, "vbt_coll_wait"); error != 0) return error;
  if (*request == nullptr) return 0;
  const BigGuard guard;
  vbt_coll_request& asked = **request;
  const WaitingCall call(*asked.team, asked.team->timeout_ns, asked.since);
  (void)wait_for(asked.of_engine);
  return take_end_of(*request);
}

VBT_COLL_ENTRY void vbt_coll_progress() {
  if (is_forked_child()) return;
  const BigGuard guard;
  move_on();
}

VBT_COLL_ENTRY void* vbt_coll_alloc(std::size_t size) {
  const int refused = size == 0           ? refuse_call(EINVAL, "vbt_coll_alloc: size is 0")
                      : is_forked_child() ? refuse_call(EPERM, "vbt_coll_alloc: this is a child")
                                          : 0;
  if (refused != 0) {
    errno = refused;
    return nullptr;
  }
  const BigGuard guard;
  void* const memory = alloc_mapped(size);
  if (memory == nullptr)
    errno = refuse_call(ENOMEM, "vbt_coll_alloc: there are no %zu bytes", size);
  return memory;
}

VBT_COLL_ENTRY int vbt_coll_free(void* memory) {
  if (memory == nullptr) return 0;
  if (is_forked_child()) return refuse_call(EPERM, "vbt_coll_free: it is the parent's");
  const BigGuard guard;
  if (free_mapped(memory)) return 0;
  return refuse_call(EINVAL, "vbt_coll_free: that is no memory of vbt_coll_alloc");
}
