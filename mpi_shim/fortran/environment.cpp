// SPDX-License-Identifier: BSD-2-Clause
// Functions whose arguments or results differ from C's: the beginning, the clock, arithmetic of
// addresses, infos (whose texts lose blanks on both sides), sizes of Fortran's types.
#include "mpi_shim/core/missing.hpp"
#include "mpi_shim/fortran/entry.hpp"

using namespace vmpi::fortran;

VMPI_FORTRAN(mpi_init, (MPI_Fint * ierror)) { *ierror = PMPI_Init(nullptr, nullptr); }
VMPI_FORTRAN(mpi_init_thread, (const MPI_Fint* required, MPI_Fint* provided, MPI_Fint* ierror)) {
  *ierror = PMPI_Init_thread(nullptr, nullptr, *required, provided);
}
VMPI_FORTRAN(mpi_pcontrol, (const MPI_Fint* level)) { (void)PMPI_Pcontrol(*level); }

// Fortran's own: the call itself has the compiler think that the variable changes.
VMPI_FORTRAN(mpi_f_sync_reg, (const void*)) {}

VMPI_FORTRAN_RETURNING(double, mpi_wtime, ()) { return PMPI_Wtime(); }
VMPI_FORTRAN_RETURNING(double, mpi_wtick, ()) { return PMPI_Wtick(); }
VMPI_FORTRAN_RETURNING(MPI_Aint, mpi_aint_add, (const MPI_Aint* base, const MPI_Aint* disp)) {
  return PMPI_Aint_add(*base, *disp);
}
VMPI_FORTRAN_RETURNING(MPI_Aint, mpi_aint_diff, (const MPI_Aint* addr1, const MPI_Aint* addr2)) {
  return PMPI_Aint_diff(*addr1, *addr2);
}

// The address comes back to nobody: Fortran has no variable for it here.
VMPI_FORTRAN(mpi_buffer_detach, (void*, MPI_Fint* size, MPI_Fint* ierror)) {
  void* buffer = nullptr;
  *ierror = PMPI_Buffer_detach(static_cast<void*>(&buffer), size);
}
VMPI_FORTRAN(mpi_comm_detach_buffer,
             (From<MPI_Comm> comm, void*, MPI_Fint* size, MPI_Fint* ierror)) {
  void* buffer = nullptr;
  *ierror = PMPI_Comm_detach_buffer(handle_of<MPI_Comm>(*comm), static_cast<void*>(&buffer), size);
}
VMPI_FORTRAN(mpi_session_detach_buffer,
             (From<MPI_Session> session, void*, MPI_Fint* size, MPI_Fint* ierror)) {
  void* buffer = nullptr;
  *ierror = PMPI_Session_detach_buffer(handle_of<MPI_Session>(*session),
                                       static_cast<void*>(&buffer), size);
}

VMPI_FORTRAN(mpi_info_create_env, (MPI_Fint * info, MPI_Fint* ierror)) {
  const Length* none = nullptr;
  Argument<MPI_Info*> made{info, none};
  *ierror = PMPI_Info_create_env(0, nullptr, made.get());
}
VMPI_FORTRAN(mpi_info_set, (From<MPI_Info> info, const char* key, const char* value,
                            MPI_Fint* ierror, Length key_length, Length value_length)) {
  InText key_text{key, key_length, true};
  InText value_text{value, value_length, true};
  *ierror = PMPI_Info_set(handle_of<MPI_Info>(*info), key_text.get(), value_text.get());
}
VMPI_FORTRAN(mpi_info_delete,
             (From<MPI_Info> info, const char* key, MPI_Fint* ierror, Length key_length)) {
  InText text{key, key_length, true};
  *ierror = PMPI_Info_delete(handle_of<MPI_Info>(*info), text.get());
}
VMPI_FORTRAN(mpi_info_get,
             (From<MPI_Info> info, const char* key, const MPI_Fint* valuelen, char* value,
              MPI_Fint* flag, MPI_Fint* ierror, Length key_length, Length value_length)) {
  InText text{key, key_length, true};
  const Length* length = &value_length;
  Argument<char*> out{value, length};
  // No value is longer than the room in `out`, whatever the program says of its own.
  const int room = *valuelen > MPI_MAX_INFO_VAL ? MPI_MAX_INFO_VAL : *valuelen;
  *ierror = PMPI_Info_get(handle_of<MPI_Info>(*info), text.get(), room, out.get(), flag);
}
VMPI_FORTRAN(mpi_info_get_string,
             (From<MPI_Info> info, const char* key, MPI_Fint* buflen, char* value, MPI_Fint* flag,
              MPI_Fint* ierror, Length key_length, Length value_length)) {
  InText text{key, key_length, true};
  const Length* length = &value_length;
  Argument<char*> out{value, length};
  // Without the zero that C counts (MPI 5.0 section 10): 0 asks for the length alone.
  int room = *buflen > MPI_MAX_INFO_VAL ? MPI_MAX_INFO_VAL : *buflen;
  if (room > 0) ++room;
  *ierror = PMPI_Info_get_string(handle_of<MPI_Info>(*info), text.get(), &room, out.get(), flag);
  if (*ierror == MPI_SUCCESS && *flag != 0) *buflen = room > 0 ? room - 1 : 0;
}
VMPI_FORTRAN(mpi_info_get_valuelen, (From<MPI_Info> info, const char* key, MPI_Fint* valuelen,
                                     MPI_Fint* flag, MPI_Fint* ierror, Length key_length)) {
  InText text{key, key_length, true};
  *ierror = PMPI_Info_get_valuelen(handle_of<MPI_Info>(*info), text.get(), valuelen, flag);
}

// Of each type that MPI_SIZEOF of the module is for; `x` is whatever describes an array to Fortran.
#define VMPI_SIZEOF(type, bytes)                                                     \
  VMPI_FORTRAN(mpi_sizeof_##type, (const void*, MPI_Fint* size, MPI_Fint* ierror)) { \
    *size = bytes;                                                                   \
    *ierror = MPI_SUCCESS;                                                           \
  }
VMPI_SIZEOF(integer1, 1)
VMPI_SIZEOF(integer2, 2)
VMPI_SIZEOF(integer4, 4)
VMPI_SIZEOF(integer8, 8)
VMPI_SIZEOF(logical1, 1)
VMPI_SIZEOF(logical2, 2)
VMPI_SIZEOF(logical4, 4)
VMPI_SIZEOF(logical8, 8)
VMPI_SIZEOF(real4, 4)
VMPI_SIZEOF(real8, 8)
VMPI_SIZEOF(complex8, 8)
VMPI_SIZEOF(complex16, 16)
VMPI_SIZEOF(character, 1)
