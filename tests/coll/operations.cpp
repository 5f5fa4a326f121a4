// SPDX-License-Identifier: BSD-2-Clause
#include "tests/coll/operations.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/coll/member.hpp"

namespace verbatim::harness {
namespace {

struct Place {
  int rank;
  int size;
};
Place place_of(vbt_coll_team* team) {
  vbt_coll_team_facts facts;
  CHECK(vbt_coll_query_team(team, &facts, sizeof facts) == 0);
  return {static_cast<int>(facts.rank), static_cast<int>(facts.size)};
}

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};

/// Small numbers, of which any floating type holds sums and products exactly.
template <class T>
T value(int rank, std::size_t i) {
  const auto small = static_cast<signed char>((static_cast<std::size_t>(rank) * 7 + i * 3) % 3);
  if constexpr (IsComplex<T>::value)
    return T(static_cast<typename T::value_type>(small), 1);
  else
    return static_cast<T>(small);
}

template <class T>
T reduced(vbt_coll_op op, T a, T b) {
  switch (op) {
    case VBT_COLL_SUM:
      return static_cast<T>(a + b);
    case VBT_COLL_PROD:
      return static_cast<T>(a * b);
    default:
      break;
  }
  if constexpr (!IsComplex<T>::value) {
    switch (op) {
      case VBT_COLL_MIN:
        return std::min(a, b);
      case VBT_COLL_MAX:
        return std::max(a, b);
      case VBT_COLL_LAND:
        return static_cast<T>(a != T{} && b != T{});
      case VBT_COLL_LOR:
        return static_cast<T>(a != T{} || b != T{});
      case VBT_COLL_LXOR:
        return static_cast<T>((a != T{}) != (b != T{}));
      default:
        break;
    }
  }
  if constexpr (std::is_integral_v<T>) {
    switch (op) {
      case VBT_COLL_BAND:
        return static_cast<T>(a & b);
      case VBT_COLL_BOR:
        return static_cast<T>(a | b);
      case VBT_COLL_BXOR:
        return static_cast<T>(a ^ b);
      default:
        break;
    }
  }
  give_up("no such operation of the type: %d", static_cast<int>(op));
}

/// What is beyond the result must stay as it was.
template <class T>
struct Buffer {
  explicit Buffer(std::size_t count) : elements(count), memory(new T[count + 2]) {
    std::memset(static_cast<void*>(memory.get()), 0x5a, (count + 2) * sizeof(T));
  }
  T* data() { return memory.get() + 1; }
  T& operator[](std::size_t i) { return memory[i + 1]; }
  void check_ends() {
    for (const T* end : {&memory[0], &memory[elements + 1]})
      for (std::size_t i = 0; i < sizeof(T); ++i)
        CHECK(reinterpret_cast<const unsigned char*>(end)[i] == 0x5a);
  }
  std::size_t elements;
  std::unique_ptr<T[]> memory;
};

void end(int begun, vbt_coll_request*& request, How how) {
  CHECK(begun == 0);
  if (how == How::kBlocking) return;
  CHECK(request != nullptr);
  int error = EINPROGRESS;
  if (how == How::kWaited)
    error = vbt_coll_wait(&request);
  else
    while ((error = vbt_coll_poll(&request)) == EINPROGRESS) ::sched_yield();
  CHECK(error == 0);
  CHECK(request == nullptr);
}

template <class T>
void check_reductions(vbt_coll_team* team, vbt_coll_type type, std::size_t count, How how) {
  const auto [rank, size] = place_of(team);
  for (int number = VBT_COLL_SUM; number <= VBT_COLL_BXOR; ++number) {
    const auto op = static_cast<vbt_coll_op>(number);
    if (vbt_coll_is_op_of(op, type) == 0) continue;
    for (int root = -1; root<size; root += size> 3 && root > 0 ? 2 : 1) {
      for (const bool is_in_place : {false, true}) {
        const bool has_result = root < 0 || root == rank;
        Buffer<T> send(count);
        Buffer<T> receive(count);
        for (std::size_t i = 0; i < count; ++i)
          send[i] = value<T>(rank, i), receive[i] = is_in_place ? send[i] : T{};
        const void* const from = is_in_place && has_result ? VBT_COLL_IN_PLACE : send.data();
        vbt_coll_request* request = nullptr;
        const auto r = static_cast<std::uint32_t>(root);
        if (root < 0)
          end(how == How::kBlocking
                  ? vbt_coll_allreduce(team, from, receive.data(), count, type, op)
                  : vbt_coll_iallreduce(team, from, receive.data(), count, type, op, &request),
              request, how);
        else
          end(how == How::kBlocking
                  ? vbt_coll_reduce(team, from, has_result ? receive.data() : nullptr, count, type,
                                    op, r)
                  : vbt_coll_ireduce(team, from, has_result ? receive.data() : nullptr, count, type,
                                     op, r, &request),
              request, how);
        receive.check_ends();
        for (std::size_t i = 0; has_result && i < count; ++i) {
          T wanted = value<T>(0, i);
          for (int k = 1; k < size; ++k) wanted = reduced(op, wanted, value<T>(k, i));
          if (receive[i] != wanted)
            give_up("type %d, op %d, root %d, in place %d, %zu elements: [%zu] is wrong", type,
                    number, root, is_in_place, count, i);
        }
      }
    }
  }
}

template <class T>
void check_movements(vbt_coll_team* team, vbt_coll_type type, std::size_t count, How how) {
  const auto [rank, size] = place_of(team);
  const auto ranks = static_cast<std::size_t>(size);
  const auto own = static_cast<std::size_t>(rank);
  for (int root = 0; root<size; root += size> 3 && root > 0 ? 2 : 1) {
    Buffer<T> data(count);
    for (std::size_t i = 0; i < count; ++i) data[i] = rank == root ? value<T>(root + 3, i) : T{};
    vbt_coll_request* request = nullptr;
    const auto r = static_cast<std::uint32_t>(root);
    end(how == How::kBlocking ? vbt_coll_bcast(team, data.data(), count, type, r)
                              : vbt_coll_ibcast(team, data.data(), count, type, r, &request),
        request, how);
    data.check_ends();
    for (std::size_t i = 0; i < count; ++i) CHECK(data[i] == value<T>(root + 3, i));
  }
  for (const bool is_in_place : {false, true}) {
    Buffer<T> send(count);
    Buffer<T> receive(count * ranks);
    for (std::size_t i = 0; i < count * ranks; ++i) receive[i] = T{};
    for (std::size_t i = 0; i < count; ++i)
      (is_in_place ? receive[own * count + i] : send[i]) = value<T>(rank, i);
    const void* const from = is_in_place ? VBT_COLL_IN_PLACE : send.data();
    vbt_coll_request* request = nullptr;
    end(how == How::kBlocking
            ? vbt_coll_allgather(team, from, receive.data(), count, type)
            : vbt_coll_iallgather(team, from, receive.data(), count, type, &request),
        request, how);
    receive.check_ends();
    for (int k = 0; k < size; ++k)
      for (std::size_t i = 0; i < count; ++i)
        CHECK(receive[static_cast<std::size_t>(k) * count + i] == value<T>(k, i));
  }
  for (const bool is_in_place : {false, true}) {
    Buffer<T> send(count * ranks);
    Buffer<T> receive(count * ranks);
    for (int k = 0; k < size; ++k)
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t at = static_cast<std::size_t>(k) * count + i;
        send[at] = value<T>(rank * size + k, i);
        receive[at] = is_in_place ? send[at] : T{};
      }
    const void* const from = is_in_place ? VBT_COLL_IN_PLACE : send.data();
    vbt_coll_request* request = nullptr;
    end(how == How::kBlocking
            ? vbt_coll_alltoall(team, from, receive.data(), count, type)
            : vbt_coll_ialltoall(team, from, receive.data(), count, type, &request),
        request, how);
    receive.check_ends();
    for (int k = 0; k < size; ++k)
      for (std::size_t i = 0; i < count; ++i)
        CHECK(receive[static_cast<std::size_t>(k) * count + i] == value<T>(k * size + rank, i));
  }
}

void check_barrier(vbt_coll_team* team, How how) {
  vbt_coll_request* request = nullptr;
  end(how == How::kBlocking ? vbt_coll_barrier(team) : vbt_coll_ibarrier(team, &request), request,
      how);
}

template <class T>
void check_type(vbt_coll_team* team, vbt_coll_type type, std::size_t count, How how) {
  CHECK(vbt_coll_type_size(type) == sizeof(T));
  check_movements<T>(team, type, count, how);
  check_reductions<T>(team, type, count, how);
}

}  // namespace

void check_all(vbt_coll_team* team, std::size_t count, How how) {
  check_barrier(team, how);
  check_type<unsigned char>(team, VBT_COLL_BYTE, count, how);
  check_type<std::int8_t>(team, VBT_COLL_INT8, count, how);
  check_type<std::int16_t>(team, VBT_COLL_INT16, count, how);
  check_type<std::int32_t>(team, VBT_COLL_INT32, count, how);
  check_type<std::int64_t>(team, VBT_COLL_INT64, count, how);
  check_type<std::uint8_t>(team, VBT_COLL_UINT8, count, how);
  check_type<std::uint16_t>(team, VBT_COLL_UINT16, count, how);
  check_type<std::uint32_t>(team, VBT_COLL_UINT32, count, how);
  check_type<std::uint64_t>(team, VBT_COLL_UINT64, count, how);
  check_type<float>(team, VBT_COLL_FLOAT, count, how);
  check_type<double>(team, VBT_COLL_DOUBLE, count, how);
  check_type<long double>(team, VBT_COLL_LONG_DOUBLE, count, how);
  check_type<std::complex<float>>(team, VBT_COLL_FLOAT_COMPLEX, count, how);
  check_type<std::complex<double>>(team, VBT_COLL_DOUBLE_COMPLEX, count, how);
  check_type<std::complex<long double>>(team, VBT_COLL_LONG_DOUBLE_COMPLEX, count, how);
  check_type<bool>(team, VBT_COLL_BOOL, count, how);
  check_barrier(team, how);
}

void check_some(vbt_coll_team* team, std::size_t count) {
  check_barrier(team, How::kBlocking);
  check_movements<double>(team, VBT_COLL_DOUBLE, count, How::kBlocking);
  check_reductions<double>(team, VBT_COLL_DOUBLE, count, How::kBlocking);
}

void check_many_at_once(vbt_coll_team* team, std::size_t count) {
  const auto [rank, size] = place_of(team);
  const auto ranks = static_cast<std::size_t>(size);
  constexpr int kEach = 6;
  std::vector<std::vector<std::int64_t>> sums(kEach, std::vector<std::int64_t>(count));
  std::vector<std::vector<std::int64_t>> gathered(kEach, std::vector<std::int64_t>(count * ranks));
  std::vector<std::vector<std::int64_t>> own(kEach, std::vector<std::int64_t>(count));
  vbt_coll_request* requests[3 * kEach];
  for (int k = 0; k < kEach; ++k) {
    for (std::size_t i = 0; i < count; ++i) own[k][i] = value<std::int64_t>(rank + k, i);
    CHECK(vbt_coll_iallreduce(team, own[k].data(), sums[k].data(), count, VBT_COLL_INT64,
                              VBT_COLL_SUM, &requests[3 * k]) == 0);
    CHECK(vbt_coll_ibarrier(team, &requests[3 * k + 1]) == 0);
    CHECK(vbt_coll_iallgather(team, own[k].data(), gathered[k].data(), count, VBT_COLL_INT64,
                              &requests[3 * k + 2]) == 0);
    vbt_coll_progress();
  }
  check_barrier(team, How::kBlocking);
  for (int k = 3 * kEach - 1; k >= 0; --k) end(0, requests[k], How::kPolled);
  for (int k = 0; k < kEach; ++k)
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t sum = 0;
      for (int r = 0; r < size; ++r) {
        sum += value<std::int64_t>(r + k, i);
        CHECK(gathered[k][static_cast<std::size_t>(r) * count + i] ==
              value<std::int64_t>(r + k, i));
      }
      CHECK(sums[k][i] == sum);
    }
}

void check_in_place_read(vbt_coll_team* team, std::size_t count) {
  const auto [rank, size] = place_of(team);
  auto* const send = static_cast<double*>(vbt_coll_alloc(count * sizeof(double)));
  auto* const receive = static_cast<double*>(vbt_coll_alloc(count * sizeof(double)));
  CHECK(send != nullptr && receive != nullptr);
  for (int turn = 0; turn < 4; ++turn) {
    for (std::size_t i = 0; i < count; ++i) send[i] = value<double>(rank + turn, i);
    CHECK(vbt_coll_allreduce(team, send, receive, count, VBT_COLL_DOUBLE, VBT_COLL_SUM) == 0);
    for (std::size_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int r = 0; r < size; ++r) sum += value<double>(r + turn, i);
      CHECK(receive[i] == sum);
    }
  }
  CHECK(vbt_coll_free(send) == 0);
  CHECK(vbt_coll_free(receive) == 0);
  CHECK(vbt_coll_free(send) == EINVAL);
}

}  // namespace verbatim::harness
