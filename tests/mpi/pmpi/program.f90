! SPDX-License-Identifier: BSD-2-Clause
! The six collectives as a program in Fortran has them, of both modules.
module checked
  implicit none
  integer :: failed = 0
contains
  subroutine check(is_so, what)
    logical, intent(in) :: is_so
    character(*), intent(in) :: what
    if (is_so) return
    failed = failed + 1
    print *, 'not so: ', what
  end subroutine check
end module checked

subroutine check_by_numbers(rank, ranks)
  use mpi
  use checked
  implicit none
  integer, intent(in) :: rank, ranks
  integer :: ierror, i, told, total
  integer :: blocks(ranks), out(ranks)
  double precision :: mine(3), sums(3)
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call check(ierror == MPI_SUCCESS, 'MPI_Barrier')
  told = 0
  if (rank == ranks - 1) told = 42
  call MPI_Bcast(told, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, ierror)
  call check(told == 42, 'MPI_Bcast')
  mine = [1d0, 2d0, 3d0] * (rank + 1)
  call MPI_Allreduce(mine, sums, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(all(sums == [1d0, 2d0, 3d0] * ranks * (ranks + 1) / 2), 'MPI_Allreduce')
  call MPI_Allreduce(MPI_IN_PLACE, mine, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  call check(all(mine == sums), 'MPI_Allreduce in place')
  total = -1
  call MPI_Reduce(rank, total, 1, MPI_INTEGER, MPI_MAX, 0, MPI_COMM_WORLD, ierror)
  call check(rank /= 0 .or. total == ranks - 1, 'MPI_Reduce')
  blocks = -1
  call MPI_Allgather(rank, 1, MPI_INTEGER, blocks, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  call check(all(blocks == [(i, i = 0, ranks - 1)]), 'MPI_Allgather')
  out = [(10 * rank + i, i = 0, ranks - 1)]
  call MPI_Alltoall(out, 1, MPI_INTEGER, blocks, 1, MPI_INTEGER, MPI_COMM_WORLD, ierror)
  call check(all(blocks == [(10 * i + rank, i = 0, ranks - 1)]), 'MPI_Alltoall')
end subroutine check_by_numbers

subroutine check_by_types(rank, ranks)
  use mpi_f08
  use checked
  implicit none
  integer, intent(in) :: rank, ranks
  type(MPI_Comm) :: half
  integer :: total, wanted, i
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half)
  call MPI_Allreduce(rank, total, 1, MPI_INTEGER, MPI_SUM, half)
  wanted = 0
  do i = mod(rank, 2), ranks - 1, 2
    wanted = wanted + i
  end do
  call check(total == wanted, 'MPI_Allreduce of mpi_f08')
  call MPI_Barrier(half)
  call MPI_Barrier(MPI_COMM_WORLD)
  call MPI_Comm_free(half)
end subroutine check_by_types

subroutine finish
  use mpi_f08
  implicit none
  call MPI_Finalize()
end subroutine finish

program main
  use mpi
  use checked
  implicit none
  integer :: rank, ranks, ierror
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call check_by_numbers(rank, ranks)
  call check_by_types(rank, ranks)
  call MPI_Allreduce(MPI_IN_PLACE, failed, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  if (rank == 0 .and. failed == 0) print '(a,i0,a)', 'all is right at ', ranks, ' ranks'
  call finish
end program main
