// SPDX-License-Identifier: BSD-2-Clause
// Handles as Fortran has them: numbers of 32 bits, which ours are (core/handle.hpp). At any time,
// from any thread. A pointer that is no handle becomes 0, which is none either.
#include <cstring>

#include "mpi_shim/api/entry.hpp"
#include "mpi_shim/core/big_lock.hpp"
#include "mpi_shim/core/errors.hpp"
#include "mpi_shim/core/handle.hpp"

namespace {

template <class Handle>
Handle handle_of_number(int number) noexcept {
  return reinterpret_cast<Handle>(static_cast<std::uintptr_t>(static_cast<std::uint32_t>(number)));
}
template <class Handle>
int number_of_handle(Handle handle) noexcept {
  return static_cast<int>(vmpi::number_of(handle));
}

static_assert(sizeof(MPI_Status) == MPI_F_STATUS_SIZE * sizeof(MPI_Fint));

int copy_status(const char* function, const void* from, void* to) noexcept {
  if (from == nullptr || to == nullptr) {
    vmpi::BigGuard guard;
    return vmpi::raise(nullptr, MPI_ERR_ARG, function, "a status is a null pointer");
  }
  std::memmove(to, from, sizeof(MPI_Status));
  return MPI_SUCCESS;
}

}  // namespace

VMPI_ENTRY(MPI_Fint, MPI_Comm_c2f, (MPI_Comm comm)) { return number_of_handle(comm); }
VMPI_ENTRY(MPI_Comm, MPI_Comm_f2c, (MPI_Fint comm)) { return handle_of_number<MPI_Comm>(comm); }
VMPI_ENTRY(MPI_Fint, MPI_Type_c2f, (MPI_Datatype datatype)) { return number_of_handle(datatype); }
VMPI_ENTRY(MPI_Datatype, MPI_Type_f2c, (MPI_Fint datatype)) {
  return handle_of_number<MPI_Datatype>(datatype);
}
VMPI_ENTRY(MPI_Fint, MPI_Errhandler_c2f, (MPI_Errhandler errhandler)) {
  return number_of_handle(errhandler);
}
VMPI_ENTRY(MPI_Errhandler, MPI_Errhandler_f2c, (MPI_Fint errhandler)) {
  return handle_of_number<MPI_Errhandler>(errhandler);
}
VMPI_ENTRY(MPI_Fint, MPI_File_c2f, (MPI_File file)) { return number_of_handle(file); }
VMPI_ENTRY(MPI_File, MPI_File_f2c, (MPI_Fint file)) { return handle_of_number<MPI_File>(file); }
VMPI_ENTRY(MPI_Fint, MPI_Group_c2f, (MPI_Group group)) { return number_of_handle(group); }
VMPI_ENTRY(MPI_Group, MPI_Group_f2c, (MPI_Fint group)) {
  return handle_of_number<MPI_Group>(group);
}
VMPI_ENTRY(MPI_Fint, MPI_Info_c2f, (MPI_Info info)) { return number_of_handle(info); }
VMPI_ENTRY(MPI_Info, MPI_Info_f2c, (MPI_Fint info)) { return handle_of_number<MPI_Info>(info); }
VMPI_ENTRY(MPI_Fint, MPI_Message_c2f, (MPI_Message message)) { return number_of_handle(message); }
VMPI_ENTRY(MPI_Message, MPI_Message_f2c, (MPI_Fint message)) {
  return handle_of_number<MPI_Message>(message);
}
VMPI_ENTRY(MPI_Fint, MPI_Op_c2f, (MPI_Op op)) { return number_of_handle(op); }
VMPI_ENTRY(MPI_Op, MPI_Op_f2c, (MPI_Fint op)) { return handle_of_number<MPI_Op>(op); }
VMPI_ENTRY(MPI_Fint, MPI_Request_c2f, (MPI_Request request)) { return number_of_handle(request); }
VMPI_ENTRY(MPI_Request, MPI_Request_f2c, (MPI_Fint request)) {
  return handle_of_number<MPI_Request>(request);
}
VMPI_ENTRY(MPI_Fint, MPI_Session_c2f, (MPI_Session session)) { return number_of_handle(session); }
VMPI_ENTRY(MPI_Session, MPI_Session_f2c, (MPI_Fint session)) {
  return handle_of_number<MPI_Session>(session);
}
VMPI_ENTRY(MPI_Fint, MPI_Win_c2f, (MPI_Win win)) { return number_of_handle(win); }
VMPI_ENTRY(MPI_Win, MPI_Win_f2c, (MPI_Fint win)) { return handle_of_number<MPI_Win>(win); }

VMPI_ENTRY(int, MPI_Comm_toint, (MPI_Comm comm)) { return number_of_handle(comm); }
VMPI_ENTRY(MPI_Comm, MPI_Comm_fromint, (int comm)) { return handle_of_number<MPI_Comm>(comm); }
VMPI_ENTRY(int, MPI_Type_toint, (MPI_Datatype datatype)) { return number_of_handle(datatype); }
VMPI_ENTRY(MPI_Datatype, MPI_Type_fromint, (int datatype)) {
  return handle_of_number<MPI_Datatype>(datatype);
}
VMPI_ENTRY(int, MPI_Errhandler_toint, (MPI_Errhandler errhandler)) {
  return number_of_handle(errhandler);
}
VMPI_ENTRY(MPI_Errhandler, MPI_Errhandler_fromint, (int errhandler)) {
  return handle_of_number<MPI_Errhandler>(errhandler);
}
VMPI_ENTRY(int, MPI_File_toint, (MPI_File file)) { return number_of_handle(file); }
VMPI_ENTRY(MPI_File, MPI_File_fromint, (int file)) { return handle_of_number<MPI_File>(file); }
VMPI_ENTRY(int, MPI_Group_toint, (MPI_Group group)) { return number_of_handle(group); }
VMPI_ENTRY(MPI_Group, MPI_Group_fromint, (int group)) { return handle_of_number<MPI_Group>(group); }
VMPI_ENTRY(int, MPI_Info_toint, (MPI_Info info)) { return number_of_handle(info); }
VMPI_ENTRY(MPI_Info, MPI_Info_fromint, (int info)) { return handle_of_number<MPI_Info>(info); }
VMPI_ENTRY(int, MPI_Message_toint, (MPI_Message message)) { return number_of_handle(message); }
VMPI_ENTRY(MPI_Message, MPI_Message_fromint, (int message)) {
  return handle_of_number<MPI_Message>(message);
}
VMPI_ENTRY(int, MPI_Op_toint, (MPI_Op op)) { return number_of_handle(op); }
VMPI_ENTRY(MPI_Op, MPI_Op_fromint, (int op)) { return handle_of_number<MPI_Op>(op); }
VMPI_ENTRY(int, MPI_Request_toint, (MPI_Request request)) { return number_of_handle(request); }
VMPI_ENTRY(MPI_Request, MPI_Request_fromint, (int request)) {
  return handle_of_number<MPI_Request>(request);
}
VMPI_ENTRY(int, MPI_Session_toint, (MPI_Session session)) { return number_of_handle(session); }
VMPI_ENTRY(MPI_Session, MPI_Session_fromint, (int session)) {
  return handle_of_number<MPI_Session>(session);
}
VMPI_ENTRY(int, MPI_Win_toint, (MPI_Win win)) { return number_of_handle(win); }
VMPI_ENTRY(MPI_Win, MPI_Win_fromint, (int win)) { return handle_of_number<MPI_Win>(win); }

// The three public fields come first in both.
VMPI_ENTRY(int, MPI_Status_f2c, (const MPI_Fint* f_status, MPI_Status* c_status)) {
  return copy_status("MPI_Status_f2c", f_status, c_status);
}
VMPI_ENTRY(int, MPI_Status_c2f, (const MPI_Status* c_status, MPI_Fint* f_status)) {
  return copy_status("MPI_Status_c2f", c_status, f_status);
}
