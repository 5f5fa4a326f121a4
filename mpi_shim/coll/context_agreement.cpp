// SPDX-License-Identifier: BSD-2-Clause
// Contexts are a bit each; all processes of a new communicator AND what they have free, and take the
// lowest that is left. So a context is used again only when each of them has freed it.
//
// With several threads two agreements may be under way in a process, over other processes each. One
// at a time may offer bits, the others offer none and ask again; the one with the lowest number of
// its parent goes first everywhere, so that some agreement always succeeds.
#include "mpi_shim/coll/context_agreement.hpp"

#include <cstring>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/core/engine.hpp"

namespace vmpi {
namespace {

constexpr std::size_t kWords = kContextWords;
constexpr std::uint64_t kNobody = ~std::uint64_t{0};

constinit bool are_offered = false;
constinit std::uint64_t first_in_line = kNobody;

/// What travels. The last word is not zero when all have offered.
struct Offer {
  std::uint64_t words[kWords + 1];

  void intersect(const Offer& other) noexcept {
    for (std::size_t i = 0; i <= kWords; ++i) words[i] &= other.words[i];
  }
};

[[nodiscard]] bool try_to_offer(std::uint64_t priority, Offer& offer) noexcept {
  if (priority < first_in_line) first_in_line = priority;
  std::memset(&offer, 0, sizeof(offer));
  if (are_offered || priority != first_in_line) return false;
  are_offered = true;
  std::memcpy(offer.words, free_contexts(), kWords * sizeof(std::uint64_t));
  offer.words[kWords] = 1;
  return true;
}

/// `meet(offer)` leaves in every process what all of them offered; returns an error.
template <class Meet>
[[nodiscard]] std::uint32_t agree(std::uint64_t priority, Meet meet) noexcept {
  for (;;) {
    Offer offer;
    const bool is_ours = try_to_offer(priority, offer);
    const int error = meet(offer);
    if (is_ours) are_offered = false;
    const bool is_over = error != MPI_SUCCESS || offer.words[kWords] != 0;
    if (!is_over) continue;
    if (first_in_line == priority) first_in_line = kNobody;
    return error == MPI_SUCCESS ? take_lowest_context(offer.words) : 0;
  }
}

/// Binomial over a list of ranks, or all if it is null: to the first of them, and back.
[[nodiscard]] int meet_within(Comm& comm, const int* ranks, int count, int me, int tag,
                              Offer& offer) noexcept {
  const auto rank_at = [ranks](int i) noexcept { return ranks != nullptr ? ranks[i] : i; };
  Datatype& bytes = byte_type();
  constexpr std::int64_t kBytes = sizeof(Offer);
  int mask = 1;
  for (; mask < count && (me & mask) == 0; mask <<= 1) {
    if (me + mask >= count) continue;
    Offer theirs;
    if (const int error =
            receive_from(comm, Plane::kCollective, rank_at(me + mask), tag, &theirs, kBytes, bytes);
        error != MPI_SUCCESS)
      return error;
    offer.intersect(theirs);
  }
  if (me != 0) {
    const int parent = rank_at(me - mask);
    int error = send_to(comm, Plane::kCollective, parent, tag, &offer, kBytes, bytes);
    if (error == MPI_SUCCESS)
      error = receive_from(comm, Plane::kCollective, parent, tag, &offer, kBytes, bytes);
    if (error != MPI_SUCCESS) return error;
  }
  for (mask >>= 1; mask > 0; mask >>= 1) {
    if (me + mask >= count) continue;
    if (const int error =
            send_to(comm, Plane::kCollective, rank_at(me + mask), tag, &offer, kBytes, bytes);
        error != MPI_SUCCESS)
      return error;
  }
  return MPI_SUCCESS;
}

/// All of an intracommunicator.
[[nodiscard]] int meet_all(Comm& comm, Offer& offer) noexcept {
  return meet_within(comm, nullptr, comm.size(), comm.rank(), next_tag(comm), offer);
}

/// Both groups: each of their own, then their leaders, then each of their own again.
[[nodiscard]] int meet_between(Comm& local, int leader, Comm* peer, int remote_leader, int tag,
                               Offer& offer) noexcept {
  int error = meet_all(local, offer);
  if (error != MPI_SUCCESS) return error;
  if (local.rank() == leader) {
    Offer theirs;
    error = exchange(*peer, Plane::kCollective, remote_leader, tag, &offer, sizeof(offer),
                     byte_type(), remote_leader, tag, &theirs, sizeof(theirs), byte_type());
    if (error == MPI_SUCCESS) {
      offer.intersect(theirs);
    } else {  // the others learn that no context is left, and do not ask again
      std::memset(&offer, 0, sizeof(offer));
      offer.words[kWords] = 1;
    }
  }
  const int told = bcast_bytes(local, &offer, sizeof(offer), leader);
  return error != MPI_SUCCESS ? error : told;
}

}  // namespace

std::uint32_t agree_on_context(Comm& parent) noexcept {
  if (parent.local != nullptr) {
    Comm* const peer = parent.rank() == 0 ? &parent : nullptr;
    return agree_on_context_between(*parent.local, 0, peer, 0, next_tag(parent));
  }
  return agree(std::uint64_t{parent.context} << 32,
               [&](Offer& offer) noexcept { return meet_all(parent, offer); });
}

std::uint32_t agree_on_context_within(Comm& parent, const int* ranks, int count, int me,
                                      int tag) noexcept {
  const std::uint64_t priority =
      std::uint64_t{parent.context} << 32 | (static_cast<std::uint32_t>(tag) + 1u);
  return agree(priority, [&](Offer& offer) noexcept {
    return meet_within(parent, ranks, count, me, apart_tag(tag), offer);
  });
}

std::uint32_t agree_on_context_between(Comm& local, int leader, Comm* peer, int remote_leader,
                                       int tag) noexcept {
  return agree(std::uint64_t{local.context} << 32, [&](Offer& offer) noexcept {
    return meet_between(local, leader, peer, remote_leader, apart_tag(tag), offer);
  });
}

}  // namespace vmpi
