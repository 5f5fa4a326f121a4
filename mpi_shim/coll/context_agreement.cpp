// SPDX-License-Identifier: BSD-2-Clause
// Contexts are a bit each; all processes of a new communicator AND what they have free, and take the
// lowest that is left. So a context is used again only when each of them has freed it.
//
// With several threads two agreements may be under way in a process, over other processes each. One
// at a time may offer bits, the others offer none and ask again; the one with the lowest number of
// its parent goes first everywhere, so that some agreement always succeeds.
//
// Who meets an error goes on, and says so in its offer: the others wait for its word.
#include "mpi_shim/coll/context_agreement.hpp"

#include <cstring>

#include "mpi_shim/coll/collectives.hpp"
#include "mpi_shim/core/engine.hpp"

namespace vmpi {
namespace {

constexpr std::size_t kWords = kContextWords;
constexpr std::uint64_t kNobody = ~std::uint64_t{0};

constinit std::uint64_t first_in_line = kNobody;

/// What travels. Its last word is the AND of what each says of itself.
struct Offer {
  static constexpr std::uint64_t kOffers = 1;
  static constexpr std::uint64_t kHasHeardAll = 2;  ///< no error has been met

  std::uint64_t words[kWords + 1];

  [[nodiscard]] bool have_all_offered() const noexcept { return (words[kWords] & kOffers) != 0; }
  [[nodiscard]] bool is_refused() const noexcept { return (words[kWords] & kHasHeardAll) == 0; }
  void refuse() noexcept { std::memset(words, 0, sizeof(words)); }
  void intersect(const Offer& other) noexcept {
    for (std::size_t i = 0; i <= kWords; ++i) words[i] &= other.words[i];
  }
};

[[nodiscard]] bool try_to_offer(std::uint64_t priority, Offer& offer) noexcept {
  if (priority < first_in_line) first_in_line = priority;
  std::memset(&offer, 0, sizeof(offer));
  offer.words[kWords] = Offer::kHasHeardAll;
  if (are_contexts_offered() || priority != first_in_line) return false;
  offer_contexts(true);
  std::memcpy(offer.words, free_contexts(), kWords * sizeof(std::uint64_t));
  offer.words[kWords] |= Offer::kOffers;
  return true;
}

/// `meet(offer)` leaves in every process what all of them offered; returns an error.
template <class Meet>
[[nodiscard]] Agreed agree(std::uint64_t priority, Meet meet) noexcept {
  for (;;) {
    Offer offer;
    const bool is_ours = try_to_offer(priority, offer);
    int error = meet(offer);
    if (is_ours) offer_contexts(false);
    if (error == MPI_SUCCESS && offer.is_refused()) error = MPI_ERR_PROC_ABORTED;
    if (error == MPI_SUCCESS && !offer.have_all_offered()) continue;
    if (first_in_line == priority) first_in_line = kNobody;
    if (error == MPI_ERR_PROC_ABORTED) return {error, 0};
    const std::uint32_t context = error == MPI_SUCCESS ? take_lowest_context(offer.words) : 0;
    return {context != 0 ? MPI_SUCCESS : MPI_ERR_OTHER, context};
  }
}

/// Binomial over a list of ranks, or all if it is null: to the first of them, and back. The first
/// error is returned.
[[nodiscard]] int meet_within(Comm& comm, const int* ranks, int count, int me, int tag,
                              Offer& offer) noexcept {
  const auto rank_at = [ranks](int i) noexcept { return ranks != nullptr ? ranks[i] : i; };
  Datatype& bytes = byte_type();
  constexpr std::int64_t kBytes = sizeof(Offer);
  int result = MPI_SUCCESS;
  const auto heed = [&](int error) noexcept {
    if (error == MPI_SUCCESS) return;
    offer.refuse();
    if (result == MPI_SUCCESS) result = error;
  };
  int mask = 1;
  for (; mask < count && (me & mask) == 0; mask <<= 1) {
    if (me + mask >= count) continue;
    Offer theirs;
    const int error =
        receive_from(comm, Plane::kCollective, rank_at(me + mask), tag, &theirs, kBytes, bytes);
    heed(error);
    if (error == MPI_SUCCESS) offer.intersect(theirs);
  }
  if (me != 0) {
    const int parent = rank_at(me - mask);
    heed(send_to(comm, Plane::kCollective, parent, tag, &offer, kBytes, bytes));
    heed(receive_from(comm, Plane::kCollective, parent, tag, &offer, kBytes, bytes));
    if (result != MPI_SUCCESS) offer.refuse();
  }
  for (mask >>= 1; mask > 0; mask >>= 1)
    if (me + mask < count)
      heed(send_to(comm, Plane::kCollective, rank_at(me + mask), tag, &offer, kBytes, bytes));
  return result;
}

/// All of an intracommunicator.
[[nodiscard]] int meet_all(Comm& comm, Offer& offer) noexcept {
  return meet_within(comm, nullptr, comm.size(), comm.rank(), next_tag(comm), offer);
}

[[nodiscard]] int exchange_offers(Comm& peer, int remote_leader, int tag, const Offer& ours,
                                  Offer& theirs) noexcept {
  return exchange(peer, Plane::kCollective, remote_leader, tag, &ours, sizeof(ours), byte_type(),
                  remote_leader, tag, &theirs, sizeof(theirs), byte_type());
}

void refuse(Comm& peer, int remote_leader, int tag) noexcept {
  Offer none;
  none.refuse();
  Offer theirs;
  (void)exchange_offers(peer, remote_leader, tag, none, theirs);
}

/// Both groups: each of their own, then their leaders, then each of their own again.
[[nodiscard]] int meet_between(Comm& local, int leader, Comm* peer, int remote_leader, int tag,
                               Offer& offer) noexcept {
  const bool is_leader = local.rank() == leader;
  int error = meet_all(local, offer);
  if (is_leader) {
    Offer theirs;
    const int exchanged = exchange_offers(*peer, remote_leader, tag, offer, theirs);
    if (exchanged == MPI_SUCCESS)
      offer.intersect(theirs);
    else
      offer.refuse();
    if (error == MPI_SUCCESS) error = exchanged;
  }
  const int told = bcast_bytes(local, &offer, sizeof(offer), leader);
  // The other leader offers again.
  if (is_leader && told != MPI_SUCCESS && !offer.is_refused() && !offer.have_all_offered())
    refuse(*peer, remote_leader, tag);
  return error != MPI_SUCCESS ? error : told;
}

}  // namespace

void refuse_context_between(Comm& peer, int remote_leader, int tag) noexcept {
  refuse(peer, remote_leader, apart_tag(tag));
}

Agreed agree_on_context(Comm& parent) noexcept {
  if (parent.local != nullptr) {
    Comm* const peer = parent.rank() == 0 ? &parent : nullptr;
    return agree_on_context_between(*parent.local, 0, peer, 0, next_tag(parent));
  }
  return agree(std::uint64_t{parent.context} << 32,
               [&](Offer& offer) noexcept { return meet_all(parent, offer); });
}

Agreed agree_on_context_within(Comm& parent, const int* ranks, int count, int me,
                               int tag) noexcept {
  const std::uint64_t priority =
      std::uint64_t{parent.context} << 32 | (static_cast<std::uint32_t>(tag) + 1u);
  return agree(priority, [&](Offer& offer) noexcept {
    return meet_within(parent, ranks, count, me, apart_tag(tag), offer);
  });
}

Agreed agree_on_context_between(Comm& local, int leader, Comm* peer, int remote_leader,
                                int tag) noexcept {
  return agree(std::uint64_t{local.context} << 32, [&](Offer& offer) noexcept {
    return meet_between(local, leader, peer, remote_leader, apart_tag(tag), offer);
  });
}

}  // namespace vmpi
