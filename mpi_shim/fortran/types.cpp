// SPDX-License-Identifier: BSD-2-Clause
// Functions with lists of datatypes, and those of MPI-1 whose addresses are INTEGERs in Fortran.
#include <climits>

#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/comm.hpp"
#include "mpi_shim/core/errors.hpp"
#include "mpi_shim/core/neighbours.hpp"
#include "mpi_shim/fortran/entry.hpp"

using namespace vmpi::fortran;

namespace {

/// Ranks that a collective of this communicator sends to; 0 for what is none, which C will say.
[[nodiscard]] int peers_of(MPI_Fint comm) noexcept {
  const vmpi::BigGuard guard;
  const vmpi::Comm* const found = vmpi::find_comm(handle_of<MPI_Comm>(comm));
  return found != nullptr ? found->peers().size() : 0;
}

/// An address or a displacement for those who have only an INTEGER for it.
void write_integer(int error, MPI_Aint value, const char* function, MPI_Fint* to,
                   MPI_Fint* ierror) noexcept {
  *ierror = error;
  if (error != MPI_SUCCESS) return;
  if (value < INT_MIN || value > INT_MAX) {
    const vmpi::BigGuard guard;
    *ierror = vmpi::raise(nullptr, MPI_ERR_VALUE_TOO_LARGE, function,
                          "%td does not fit into an INTEGER: the functions that replaced this one "
                          "have INTEGER(KIND=MPI_ADDRESS_KIND)",
                          static_cast<std::ptrdiff_t>(value));
    return;
  }
  *to = static_cast<MPI_Fint>(value);
}

/// Displacements of MPI-1.
class Displacements {
 public:
  Displacements(const MPI_Fint* from, MPI_Fint count) noexcept
      : copies_{count < 0 ? 0 : static_cast<std::size_t>(count)} {
    for (MPI_Fint i = 0; copies_.data() != nullptr && i < count; ++i) copies_.data()[i] = from[i];
  }
  [[nodiscard]] MPI_Aint* get() noexcept { return copies_.data(); }

 private:
  Scratch<MPI_Aint, 64> copies_;
};

void create_struct(MPI_Fint count, const MPI_Fint lengths[], const MPI_Aint displacements[],
                   const MPI_Fint types[], MPI_Fint* newtype, MPI_Fint* ierror) noexcept {
  Handles<MPI_Datatype> handles{types, count};
  MPI_Datatype made = handle_of<MPI_Datatype>(*newtype);
  *ierror = PMPI_Type_create_struct(count, lengths, displacements, handles.get(), &made);
  *newtype = number_of_handle(made);
}

}  // namespace

VMPI_FORTRAN(mpi_type_create_struct,
             (const MPI_Fint* count, const MPI_Fint lengths[], const MPI_Aint displacements[],
              const MPI_Fint types[], MPI_Fint* newtype, MPI_Fint* ierror)) {
  create_struct(*count, lengths, displacements, types, newtype, ierror);
}

VMPI_FORTRAN(mpi_type_get_contents,
             (const MPI_Fint* datatype, const MPI_Fint* max_integers, const MPI_Fint* max_addresses,
              const MPI_Fint* max_datatypes, MPI_Fint integers[], MPI_Aint addresses[],
              MPI_Fint types[], MPI_Fint* ierror)) {
  const auto room = *max_datatypes < 0 ? 0 : static_cast<std::size_t>(*max_datatypes);
  Scratch<MPI_Datatype, 64> made{room};
  for (std::size_t i = 0; made.data() != nullptr && i < room; ++i) made.data()[i] = nullptr;
  *ierror =
      PMPI_Type_get_contents(handle_of<MPI_Datatype>(*datatype), *max_integers, *max_addresses,
                             *max_datatypes, integers, addresses, made.data());
  if (*ierror != MPI_SUCCESS) return;
  for (std::size_t i = 0; i < room; ++i)
    if (made.data()[i] != nullptr) types[i] = number_of_handle(made.data()[i]);
}

VMPI_FORTRAN(mpi_alltoallw,
             (From<const void*> sendbuf, const MPI_Fint sendcounts[], const MPI_Fint sdispls[],
              const MPI_Fint sendtypes[], From<void*> recvbuf, const MPI_Fint recvcounts[],
              const MPI_Fint rdispls[], const MPI_Fint recvtypes[], From<MPI_Comm> comm,
              MPI_Fint* ierror)) {
  const int peers = peers_of(*comm);
  const Length* none = nullptr;
  const Argument<const void*> from{sendbuf, none};
  const Argument<void*> to{recvbuf, none};
  // In place, the arrays of the sender's side are nothing that may be read.
  Handles<MPI_Datatype> of_senders{sendtypes, from.get() == MPI_IN_PLACE ? 0 : peers};
  Handles<MPI_Datatype> of_receivers{recvtypes, peers};
  *ierror = PMPI_Alltoallw(from.get(), sendcounts, sdispls, of_senders.get(), to.get(), recvcounts,
                           rdispls, of_receivers.get(), handle_of<MPI_Comm>(*comm));
}

VMPI_FORTRAN(mpi_ialltoallw,
             (From<const void*> sendbuf, const MPI_Fint sendcounts[], const MPI_Fint sdispls[],
              const MPI_Fint sendtypes[], From<void*> recvbuf, const MPI_Fint recvcounts[],
              const MPI_Fint rdispls[], const MPI_Fint recvtypes[], From<MPI_Comm> comm,
              MPI_Fint* request, MPI_Fint* ierror)) {
  const int peers = peers_of(*comm);
  const Length* none = nullptr;
  const Argument<const void*> from{sendbuf, none};
  const Argument<void*> to{recvbuf, none};
  Argument<MPI_Request*> started{request, none};
  Handles<MPI_Datatype> of_senders{sendtypes, from.get() == MPI_IN_PLACE ? 0 : peers};
  Handles<MPI_Datatype> of_receivers{recvtypes, peers};
  *ierror = PMPI_Ialltoallw(from.get(), sendcounts, sdispls, of_senders.get(), to.get(), recvcounts,
                            rdispls, of_receivers.get(), handle_of<MPI_Comm>(*comm), started.get());
}

namespace {

struct Degrees {
  int in = 0;
  int out = 0;
};

/// Zeros for what has no topology, which C will say.
[[nodiscard]] Degrees degrees_of(MPI_Fint comm) noexcept {
  const vmpi::BigGuard guard;
  const vmpi::Comm* const found = vmpi::find_comm(handle_of<MPI_Comm>(comm));
  vmpi::Neighbours beside;
  if (found == nullptr || found->topology == vmpi::TopologyKind::kNone || !beside.find(*found))
    return {};
  return {static_cast<int>(beside.sources.size()), static_cast<int>(beside.destinations.size())};
}

}  // namespace

VMPI_FORTRAN(mpi_neighbor_alltoallw,
             (From<const void*> sendbuf, const MPI_Fint sendcounts[], const MPI_Aint sdispls[],
              const MPI_Fint sendtypes[], From<void*> recvbuf, const MPI_Fint recvcounts[],
              const MPI_Aint rdispls[], const MPI_Fint recvtypes[], From<MPI_Comm> comm,
              MPI_Fint* ierror)) {
  const Degrees degrees = degrees_of(*comm);
  const Length* none = nullptr;
  Handles<MPI_Datatype> of_senders{sendtypes, degrees.out};
  Handles<MPI_Datatype> of_receivers{recvtypes, degrees.in};
  *ierror =
      PMPI_Neighbor_alltoallw(Argument<const void*>{sendbuf, none}.get(), sendcounts, sdispls,
                              of_senders.get(), Argument<void*>{recvbuf, none}.get(), recvcounts,
                              rdispls, of_receivers.get(), handle_of<MPI_Comm>(*comm));
}

VMPI_FORTRAN(mpi_ineighbor_alltoallw,
             (From<const void*> sendbuf, const MPI_Fint sendcounts[], const MPI_Aint sdispls[],
              const MPI_Fint sendtypes[], From<void*> recvbuf, const MPI_Fint recvcounts[],
              const MPI_Aint rdispls[], const MPI_Fint recvtypes[], From<MPI_Comm> comm,
              MPI_Fint* request, MPI_Fint* ierror)) {
  const Degrees degrees = degrees_of(*comm);
  const Length* none = nullptr;
  Argument<MPI_Request*> started{request, none};
  Handles<MPI_Datatype> of_senders{sendtypes, degrees.out};
  Handles<MPI_Datatype> of_receivers{recvtypes, degrees.in};
  *ierror = PMPI_Ineighbor_alltoallw(Argument<const void*>{sendbuf, none}.get(), sendcounts,
                                     sdispls, of_senders.get(),
                                     Argument<void*>{recvbuf, none}.get(), recvcounts, rdispls,
                                     of_receivers.get(), handle_of<MPI_Comm>(*comm), started.get());
}

// MPI-1.

VMPI_FORTRAN(mpi_address, (From<const void*> location, MPI_Fint* address, MPI_Fint* ierror)) {
  const Length* none = nullptr;
  MPI_Aint found = 0;
  const int error = PMPI_Get_address(Argument<const void*>{location, none}.get(), &found);
  write_integer(error, found, "MPI_Address", address, ierror);
}

VMPI_FORTRAN(mpi_type_extent, (From<MPI_Datatype> datatype, MPI_Fint* extent, MPI_Fint* ierror)) {
  MPI_Aint lower = 0;
  MPI_Aint found = 0;
  const int error = PMPI_Type_get_extent(handle_of<MPI_Datatype>(*datatype), &lower, &found);
  write_integer(error, found, "MPI_Type_extent", extent, ierror);
}

VMPI_FORTRAN(mpi_type_lb, (From<MPI_Datatype> datatype, MPI_Fint* bound, MPI_Fint* ierror)) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  const int error = PMPI_Type_get_extent(handle_of<MPI_Datatype>(*datatype), &lower, &extent);
  write_integer(error, lower, "MPI_Type_lb", bound, ierror);
}

VMPI_FORTRAN(mpi_type_ub, (From<MPI_Datatype> datatype, MPI_Fint* bound, MPI_Fint* ierror)) {
  MPI_Aint lower = 0;
  MPI_Aint extent = 0;
  const int error = PMPI_Type_get_extent(handle_of<MPI_Datatype>(*datatype), &lower, &extent);
  write_integer(error, lower + extent, "MPI_Type_ub", bound, ierror);
}

VMPI_FORTRAN(mpi_type_hvector,
             (const MPI_Fint* count, const MPI_Fint* length, const MPI_Fint* stride,
              From<MPI_Datatype> oldtype, MPI_Fint* newtype, MPI_Fint* ierror)) {
  const MPI_Aint bytes = *stride;
  call(PMPI_Type_create_hvector, ierror, nullptr, count, length, &bytes, oldtype, newtype);
}

VMPI_FORTRAN(mpi_type_hindexed,
             (const MPI_Fint* count, const MPI_Fint lengths[], const MPI_Fint displacements[],
              From<MPI_Datatype> oldtype, MPI_Fint* newtype, MPI_Fint* ierror)) {
  Displacements bytes{displacements, *count};
  call(PMPI_Type_create_hindexed, ierror, nullptr, count, lengths, bytes.get(), oldtype, newtype);
}

VMPI_FORTRAN(mpi_type_struct,
             (const MPI_Fint* count, const MPI_Fint lengths[], const MPI_Fint displacements[],
              const MPI_Fint types[], MPI_Fint* newtype, MPI_Fint* ierror)) {
  Displacements bytes{displacements, *count};
  create_struct(*count, lengths, bytes.get(), types, newtype, ierror);
}
