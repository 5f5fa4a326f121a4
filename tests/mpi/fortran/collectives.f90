! SPDX-License-Identifier: BSD-2-Clause
! Collectives, operations, attributes and texts by the module mpi, whose interfaces check the arguments.
module expectations
  use mpi
  implicit none
  integer :: rank, ranks, failed = 0
  integer :: deleted = 0

contains
  subroutine expect(is_so, what)
    logical, intent(in) :: is_so
    character(len=*), intent(in) :: what
    if (is_so) return
    failed = failed + 1
    print '(a,i0,2a)', 'rank ', rank, ': ', what
  end subroutine expect

  ! |a| > |b| ? a : b, on pairs of a type of the program's.
  subroutine larger(in, inout, length, datatype)
    integer :: length, datatype, i
    real(8) :: in(2, length), inout(2, length)
    call expect(datatype /= MPI_DOUBLE_PRECISION, 'the type of an operation')
    do i = 1, length
      if (abs(in(1, i)) > abs(inout(1, i))) inout(:, i) = in(:, i)
    end do
  end subroutine larger

  subroutine copy_attribute(comm, keyval, extra_state, value_in, value_out, flag, ierror)
    integer :: comm, keyval, ierror
    integer(MPI_ADDRESS_KIND) :: extra_state, value_in, value_out
    logical :: flag
    call expect(comm == MPI_COMM_WORLD, 'the communicator of a copy')
    value_out = value_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine copy_attribute

  subroutine delete_attribute(comm, keyval, value, extra_state, ierror)
    integer :: comm, keyval, ierror
    integer(MPI_ADDRESS_KIND) :: value, extra_state
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine delete_attribute

  subroutine query(extra_state, status, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: status(MPI_STATUS_SIZE), ierror
    call MPI_Status_set_elements(status, MPI_BYTE, int(extra_state), ierror)
    call MPI_Status_set_cancelled(status, .false., ierror)
    status(MPI_SOURCE) = 3
    status(MPI_TAG) = 4
  end subroutine query
  subroutine free_state(extra_state, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    integer :: ierror
    deleted = deleted + 1
    ierror = MPI_SUCCESS
  end subroutine free_state
  subroutine cancel(extra_state, complete, ierror)
    integer(MPI_ADDRESS_KIND) :: extra_state
    logical :: complete
    integer :: ierror
    ierror = MPI_SUCCESS
  end subroutine cancel
end module expectations

program collectives
  use expectations
  implicit none
  integer :: ierr, total, provided
  double precision :: began
  call MPI_Init_thread(MPI_THREAD_MULTIPLE, provided, ierr)
  began = MPI_Wtime()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  call in_place()
  call rows()
  call many_types()
  call operations()
  call attributes()
  call topologies()
  call groups()
  call texts()
  call generalized()
  call memory()
  call expect(provided >= MPI_THREAD_SINGLE, 'threads')
  call expect(MPI_Wtime() >= began .and. MPI_Wtick() > 0, 'the clock')
  call MPI_Allreduce(failed, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (rank == 0 .and. total == 0) print '(a)', 'all is well'
  call MPI_Finalize(ierr)
  if (total /= 0) stop 1

contains
  subroutine in_place()
    integer :: i, numbers(4), gathered(ranks)
    complex(8) :: sum
    numbers = [(rank + i, i = 1, 4)]
    call MPI_Allreduce(MPI_IN_PLACE, numbers, 4, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
    call expect(all(numbers == [(ranks * i + ranks * (ranks - 1) / 2, i = 1, 4)]), 'Allreduce in place')
    gathered = -1
    gathered(rank + 1) = rank * rank
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, gathered, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call expect(all(gathered == [((i - 1) ** 2, i = 1, ranks)]), 'Allgather in place')
    sum = (1d0, 2d0)
    if (rank == 0) then
      call MPI_Reduce(MPI_IN_PLACE, sum, 1, MPI_DOUBLE_COMPLEX, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
      call expect(sum == ranks * (1d0, 2d0), 'Reduce in place')
    else
      call MPI_Reduce(sum, sum, 1, MPI_DOUBLE_COMPLEX, MPI_SUM, 0, MPI_COMM_WORLD, ierr)
    end if
  end subroutine in_place

  subroutine rows()
    integer :: i, counts(ranks), displacements(ranks), mine(rank + 1), all_rows(ranks * (ranks + 1) / 2)
    logical :: flags(2)
    character(len=8) :: word
    counts = [(i, i = 1, ranks)]
    displacements = [((i - 1) * i / 2, i = 1, ranks)]
    mine = rank
    all_rows = -1
    call MPI_Gatherv(mine, rank + 1, MPI_INTEGER, all_rows, counts, displacements, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, ierr)
    if (rank == ranks - 1) then
      do i = 1, ranks
        call expect(all(all_rows(displacements(i) + 1:displacements(i) + i) == i - 1), 'rows of Gatherv')
      end do
    end if
    word = ''
    flags = .false.
    if (rank == 0) then
      word = 'Verbatim'
      flags = [.true., .false.]
    end if
    call MPI_Bcast(word, 8, MPI_CHARACTER, 0, MPI_COMM_WORLD, ierr)
    call expect(word == 'Verbatim', 'Bcast of characters')
    call MPI_Bcast(flags, 2, MPI_LOGICAL, 0, MPI_COMM_WORLD, ierr)
    call expect(flags(1) .and. .not. flags(2), 'Bcast of logicals')
    flags = rank == 0
    call MPI_Allreduce(MPI_IN_PLACE, flags, 2, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, ierr)
    call expect(flags(1) .eqv. ranks == 1, 'Allreduce of logicals')
  end subroutine rows

  subroutine many_types()
    integer :: i, counts(ranks), places(ranks), types(ranks), given(ranks), got(ranks)
    integer :: again(ranks), sums(ranks), requests(2)
    counts = 1
    places = [(4 * (i - 1), i = 1, ranks)]
    types = MPI_INTEGER
    given = [(100 * rank + i, i = 1, ranks)]
    got = -1
    call MPI_Alltoallw(given, counts, places, types, got, counts, places, types, MPI_COMM_WORLD, ierr)
    call expect(all(got == [(100 * (i - 1) + rank + 1, i = 1, ranks)]), 'Alltoallw')
    call MPI_Alltoallw(MPI_IN_PLACE, counts, places, types, given, counts, places, types, MPI_COMM_WORLD, ierr)
    call expect(all(given == got), 'Alltoallw in place')
    given = [(100 * rank + i, i = 1, ranks)]
    call MPI_Ialltoallw(given, counts, places, types, again, counts, places, types, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Iallreduce(given, sums, ranks, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, ierr)
    call expect(all(again == got), 'Ialltoallw')
    call expect(all(sums == [(50 * ranks * (ranks - 1) + ranks * i, i = 1, ranks)]), 'Iallreduce')
  end subroutine many_types

  subroutine operations()
    integer :: op, pair_type
    real(8) :: mine(2, 3), result(2, 3)
    logical :: commutes
    call MPI_Type_contiguous(2, MPI_DOUBLE_PRECISION, pair_type, ierr)
    call MPI_Type_commit(pair_type, ierr)
    call MPI_Op_create(larger, .true., op, ierr)
    call MPI_Op_commutative(op, commutes, ierr)
    call expect(commutes, 'an operation that commutes')
    mine(1, :) = [1d0 * rank, -2d0 * rank, 5d0 - rank]
    mine(2, :) = rank
    call MPI_Allreduce(mine, result, 3, pair_type, op, MPI_COMM_WORLD, ierr)
    call expect(all(result(2, :) == [ranks - 1, ranks - 1, 0]), 'an operation of the program')
    call MPI_Op_free(op, ierr)
    call MPI_Type_free(pair_type, ierr)
    call expect(op == MPI_OP_NULL .and. pair_type == MPI_DATATYPE_NULL, 'freed handles')
  end subroutine operations

  subroutine attributes()
    integer :: keyval, other, dup, type, type_keyval
    integer(MPI_ADDRESS_KIND) :: value
    logical :: flag
    call MPI_Comm_create_keyval(copy_attribute, delete_attribute, keyval, 1000000000000_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, other, 0_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, 7_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, other, 8_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_dup(MPI_COMM_WORLD, dup, ierr)
    call MPI_Comm_get_attr(dup, keyval, value, flag, ierr)
    call expect(flag .and. value == 1000000000007_MPI_ADDRESS_KIND, 'a copied attribute')
    call MPI_Comm_get_attr(dup, other, value, flag, ierr)
    call expect(.not. flag, 'an attribute that is not copied')
    deleted = 0
    call MPI_Comm_free(dup, ierr)
    call expect(deleted == 1, 'the attribute of a freed communicator')
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval, ierr)
    call expect(deleted == 2, 'a deleted attribute')
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, other, ierr)
    call MPI_Comm_free_keyval(keyval, ierr)
    call MPI_Comm_free_keyval(other, ierr)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
    call expect(flag .and. value >= 32767, 'MPI_TAG_UB')
    call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, type_keyval, 0_MPI_ADDRESS_KIND, ierr)
    call MPI_Type_contiguous(2, MPI_INTEGER, type, ierr)
    call MPI_Type_set_attr(type, type_keyval, -5_MPI_ADDRESS_KIND, ierr)
    call MPI_Type_dup(type, dup, ierr)
    call MPI_Type_get_attr(dup, type_keyval, value, flag, ierr)
    call expect(flag .and. value == -5, 'an attribute of a datatype')
    call MPI_Type_free(type, ierr)
    call MPI_Type_free(dup, ierr)
    call MPI_Type_free_keyval(type_keyval, ierr)
  end subroutine attributes

  subroutine topologies()
    integer :: cart, dims(1), coords(1), before, next, kinds(2), given(2), got(2)
    integer(MPI_ADDRESS_KIND), parameter :: places(2) = [0, 4]
    integer :: graph, from(1), to(1), weights(2), degrees(2)
    logical :: periods(1), weighted
    call MPI_Cart_create(MPI_COMM_WORLD, 1, [ranks], [.true.], .false., cart, ierr)
    call MPI_Cart_get(cart, 1, dims, periods, coords, ierr)
    call expect(dims(1) == ranks .and. periods(1) .and. coords(1) == rank, 'a ring')
    call MPI_Cart_shift(cart, 0, 1, before, next, ierr)
    call expect(before == mod(rank + ranks - 1, ranks) .and. next == mod(rank + 1, ranks), 'neighbours')
    kinds = MPI_INTEGER
    given = [10 * rank + 1, 10 * rank + 2]
    got = -1
    call MPI_Neighbor_alltoallw(given, [1, 1], places, kinds, got, [1, 1], places, kinds, cart, ierr)
    call expect(all(got == [10 * before + 2, 10 * next + 1]), 'what neighbours have sent')
    call MPI_Comm_free(cart, ierr)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [before], [3], 1, [next], [4], MPI_INFO_NULL, .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, degrees(1), degrees(2), weighted, ierr)
    call expect(all(degrees == 1) .and. weighted, 'degrees')
    call MPI_Dist_graph_neighbors(graph, 1, from, weights(1:1), 1, to, weights(2:2), ierr)
    call expect(from(1) == before .and. to(1) == next .and. all(weights == [3, 4]), 'a graph')
    call MPI_Comm_free(graph, ierr)
    call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [rank], [1], [next], MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, degrees(1), degrees(2), weighted, ierr)
    call expect(all(degrees == 1) .and. .not. weighted, 'no weights')
    call MPI_Comm_free(graph, ierr)
  end subroutine topologies

  subroutine groups()
    integer :: group, part, ranges(3, 1), n
    call MPI_Comm_group(MPI_COMM_WORLD, group, ierr)
    ranges(:, 1) = [0, ranks - 1, 2]
    call MPI_Group_range_incl(group, 1, ranges, part, ierr)
    call MPI_Group_size(part, n, ierr)
    call expect(n == (ranks + 1) / 2, 'every other rank')
    call MPI_Group_free(part, ierr)
    call MPI_Group_free(group, ierr)
  end subroutine groups

  subroutine texts()
    character(len=MPI_MAX_PROCESSOR_NAME) :: name
    character(len=MPI_MAX_OBJECT_NAME) :: given
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    character(len=20) :: value
    integer :: length, info, n
    logical :: flag
    call MPI_Get_processor_name(name, length, ierr)
    call expect(length > 0 .and. len_trim(name) == length, 'the name of the processor')
    call MPI_Get_library_version(version, length, ierr)
    call expect(index(version, 'Verbatim') > 0 .and. len_trim(version) == length, 'the version of the library')
    call MPI_Comm_set_name(MPI_COMM_SELF, 'mine alone   ', ierr)
    call MPI_Comm_get_name(MPI_COMM_SELF, given, length, ierr)
    call expect(given == 'mine alone' .and. length == 10, 'the name of a communicator')
    call MPI_Info_create(info, ierr)
    call MPI_Info_set(info, ' key ', ' a value  ', ierr)
    value = 'x'
    call MPI_Info_get(info, 'key', len(value), value, flag, ierr)
    call expect(flag .and. value == 'a value', 'a value of an info')
    value = 'x'
    call MPI_Info_get(info, 'absent', len(value), value, flag, ierr)
    call expect(.not. flag .and. value == 'x', 'no value of an info')
    n = len(value)
    call MPI_Info_get_string(info, 'key', n, value, flag, ierr)
    call expect(flag .and. value == 'a value' .and. n == 7, 'a value of an info with its length')
    call MPI_Info_get_nthkey(info, 0, value, ierr)
    call expect(value == 'key', 'the first key')
    call MPI_Info_free(info, ierr)
  end subroutine texts

  subroutine generalized()
    integer :: request, status(MPI_STATUS_SIZE), n, none(1)
    logical :: flag
    deleted = 0
    call MPI_Grequest_start(query, free_state, cancel, 12_MPI_ADDRESS_KIND, request, ierr)
    call MPI_Test(request, flag, status, ierr)
    call expect(.not. flag, 'a request of the program')
    call MPI_Grequest_complete(request, ierr)
    call MPI_Wait(request, status, ierr)
    call MPI_Get_count(status, MPI_BYTE, n, ierr)
    call expect(n == 12 .and. status(MPI_SOURCE) == 3 .and. status(MPI_TAG) == 4, 'its status')
    call expect(deleted == 1, 'its end')
    none = MPI_REQUEST_NULL
    call MPI_Waitany(1, none, index=n, status=status, ierror=ierr)
    call expect(n == MPI_UNDEFINED, 'no request')
  end subroutine generalized

  subroutine memory()
    use, intrinsic :: iso_c_binding
    type(c_ptr) :: place
    real(8), pointer :: numbers(:)
    integer :: length
    real(4) :: single(2, 2)
    integer(2) :: short
    call MPI_Alloc_mem(800_MPI_ADDRESS_KIND, MPI_INFO_NULL, place, ierr)
    call c_f_pointer(place, numbers, [100])
    numbers = rank
    call MPI_Bcast(numbers, 100, MPI_REAL8, ranks - 1, MPI_COMM_WORLD, ierr)
    call expect(all(numbers == ranks - 1), 'memory of MPI')
    call MPI_Free_mem(numbers, ierr)
    call MPI_Sizeof(single, length, ierr)
    call expect(length == 4, 'MPI_Sizeof of an array')
    call MPI_Sizeof(short, length, ierr)
    call expect(length == 2, 'MPI_Sizeof of a variable')
    call MPI_F_sync_reg(short)
    call expect(PMPI_Aint_diff(PMPI_Aint_add(8_MPI_ADDRESS_KIND, 4_MPI_ADDRESS_KIND), 5_MPI_ADDRESS_KIND) == 7, 'PMPI_Aint_add')
  end subroutine memory
end program collectives
