// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_coll_calls.hpp"

#include <array>
#include <string>

namespace verbatim::cli {
namespace {

using vmpi::Collective;
using A = CollArguments;
using R = MPI_Request;
using Side = CollSide;

constexpr std::array kCalls = {
    CollCall{"barrier", Collective::kBarrier, Side::kNone, Side::kNone, false, false, false,
             [](const A& a) { return MPI_Barrier(a.comm); },
             [](const A& a, R* r) { return MPI_Ibarrier(a.comm, r); }},
    CollCall{
        "bcast", Collective::kBcast, Side::kOneOfRoot, Side::kOne, false, true, false,
        [](const A& a) { return MPI_Bcast(a.taken, a.count, a.type, a.root, a.comm); },
        [](const A& a, R* r) { return MPI_Ibcast(a.taken, a.count, a.type, a.root, a.comm, r); }},
    CollCall{
        "gather", Collective::kGather, Side::kOne, Side::kEachOfRoot, false, true, false,
        [](const A& a) {
          return MPI_Gather(a.given, a.count, a.type, a.taken, a.count, a.type, a.root, a.comm);
        },
        [](const A& a, R* r) {
          return MPI_Igather(a.given, a.count, a.type, a.taken, a.count, a.type, a.root, a.comm, r);
        }},
    CollCall{"gatherv", Collective::kGather, Side::kOne, Side::kEachOfRoot, false, true, false,
             [](const A& a) {
               return MPI_Gatherv(a.given, a.count, a.type, a.taken, a.counts, a.displacements,
                                  a.type, a.root, a.comm);
             },
             [](const A& a, R* r) {
               return MPI_Igatherv(a.given, a.count, a.type, a.taken, a.counts, a.displacements,
                                   a.type, a.root, a.comm, r);
             }},
    CollCall{"scatter", Collective::kScatter, Side::kEachOfRoot, Side::kOne, false, true, false,
             [](const A& a) {
               return MPI_Scatter(a.given, a.count, a.type, a.taken, a.count, a.type, a.root,
                                  a.comm);
             },
             [](const A& a, R* r) {
               return MPI_Iscatter(a.given, a.count, a.type, a.taken, a.count, a.type, a.root,
                                   a.comm, r);
             }},
    CollCall{"scatterv", Collective::kScatter, Side::kEachOfRoot, Side::kOne, false, true, false,
             [](const A& a) {
               return MPI_Scatterv(a.given, a.counts, a.displacements, a.type, a.taken, a.count,
                                   a.type, a.root, a.comm);
             },
             [](const A& a, R* r) {
               return MPI_Iscatterv(a.given, a.counts, a.displacements, a.type, a.taken, a.count,
                                    a.type, a.root, a.comm, r);
             }},
    CollCall{"allgather", Collective::kAllgather, Side::kOne, Side::kEach, false, false, false,
             [](const A& a) {
               return MPI_Allgather(a.given, a.count, a.type, a.taken, a.count, a.type, a.comm);
             },
             [](const A& a, R* r) {
               return MPI_Iallgather(a.given, a.count, a.type, a.taken, a.count, a.type, a.comm, r);
             }},
    CollCall{"allgatherv", Collective::kAllgather, Side::kOne, Side::kEach, false, false, false,
             [](const A& a) {
               return MPI_Allgatherv(a.given, a.count, a.type, a.taken, a.counts, a.displacements,
                                     a.type, a.comm);
             },
             [](const A& a, R* r) {
               return MPI_Iallgatherv(a.given, a.count, a.type, a.taken, a.counts, a.displacements,
                                      a.type, a.comm, r);
             }},
    CollCall{"alltoall", Collective::kAlltoall, Side::kEach, Side::kEach, false, false, false,
             [](const A& a) {
               return MPI_Alltoall(a.given, a.count, a.type, a.taken, a.count, a.type, a.comm);
             },
             [](const A& a, R* r) {
               return MPI_Ialltoall(a.given, a.count, a.type, a.taken, a.count, a.type, a.comm, r);
             }},
    CollCall{"alltoallv", Collective::kAlltoall, Side::kEach, Side::kEach, false, false, false,
             [](const A& a) {
               return MPI_Alltoallv(a.given, a.counts, a.displacements, a.type, a.taken, a.counts,
                                    a.displacements, a.type, a.comm);
             },
             [](const A& a, R* r) {
               return MPI_Ialltoallv(a.given, a.counts, a.displacements, a.type, a.taken, a.counts,
                                     a.displacements, a.type, a.comm, r);
             }},
    CollCall{"alltoallw", Collective::kAlltoall, Side::kEach, Side::kEach, false, false, false,
             [](const A& a) {
               return MPI_Alltoallw(a.given, a.counts, a.byte_displacements, a.types, a.taken,
                                    a.counts, a.byte_displacements, a.types, a.comm);
             },
             [](const A& a, R* r) {
               return MPI_Ialltoallw(a.given, a.counts, a.byte_displacements, a.types, a.taken,
                                     a.counts, a.byte_displacements, a.types, a.comm, r);
             }},
    CollCall{"reduce", Collective::kReduce, Side::kOne, Side::kOneOfRoot, true, true, false,
             [](const A& a) {
               return MPI_Reduce(a.given, a.taken, a.count, a.type, a.op, a.root, a.comm);
             },
             [](const A& a, R* r) {
               return MPI_Ireduce(a.given, a.taken, a.count, a.type, a.op, a.root, a.comm, r);
             }},
    CollCall{
        "allreduce", Collective::kAllreduce, Side::kOne, Side::kOne, true, false, false,
        [](const A& a) { return MPI_Allreduce(a.given, a.taken, a.count, a.type, a.op, a.comm); },
        [](const A& a, R* r) {
          return MPI_Iallreduce(a.given, a.taken, a.count, a.type, a.op, a.comm, r);
        }},
    CollCall{"reduce_scatter", Collective::kReduceScatter, Side::kEach, Side::kOne, true, false,
             true,
             [](const A& a) {
               return MPI_Reduce_scatter(a.given, a.taken, a.counts, a.type, a.op, a.comm);
             },
             [](const A& a, R* r) {
               return MPI_Ireduce_scatter(a.given, a.taken, a.counts, a.type, a.op, a.comm, r);
             }},
    CollCall{"reduce_scatter_block", Collective::kReduceScatter, Side::kEach, Side::kOne, true,
             false, true,
             [](const A& a) {
               return MPI_Reduce_scatter_block(a.given, a.taken, a.count, a.type, a.op, a.comm);
             },
             [](const A& a, R* r) {
               return MPI_Ireduce_scatter_block(a.given, a.taken, a.count, a.type, a.op, a.comm, r);
             }},
    CollCall{"scan", Collective::kScan, Side::kOne, Side::kOne, true, false, false,
             [](const A& a) { return MPI_Scan(a.given, a.taken, a.count, a.type, a.op, a.comm); },
             [](const A& a, R* r) {
               return MPI_Iscan(a.given, a.taken, a.count, a.type, a.op, a.comm, r);
             }},
    CollCall{"exscan", Collective::kExscan, Side::kOne, Side::kOne, true, false, false,
             [](const A& a) { return MPI_Exscan(a.given, a.taken, a.count, a.type, a.op, a.comm); },
             [](const A& a, R* r) {
               return MPI_Iexscan(a.given, a.taken, a.count, a.type, a.op, a.comm, r);
             }},
};

const CollCall* find(std::string_view name) {
  for (const CollCall& each : kCalls)
    if (name == each.name) return &each;
  return nullptr;
}

}  // namespace

CollName coll_call_named(std::string_view name) {
  if (const CollCall* const call = find(name)) return {call, false};
  if (!name.starts_with('i')) return {};
  return {find(name.substr(1)), true};
}

std::uint64_t coll_moved(const CollCall& call, std::uint64_t bytes, int ranks) {
  const auto others = static_cast<std::uint64_t>(ranks - 1);
  if (call.gets == CollSide::kNone) return 0;
  if (call.is_scattered) return bytes / static_cast<std::uint64_t>(ranks);
  const bool is_of_each = call.gets == CollSide::kEach;
  return is_of_each ? others * bytes : bytes;
}

bool coll_waits_partly(const CollCall& call) {
  return call.has_root || call.family == Collective::kScan || call.family == Collective::kExscan;
}

std::string_view coll_call_names() {
  return "barrier, bcast, gather, gatherv, scatter, scatterv, allgather, allgatherv, alltoall, "
         "alltoallv, alltoallw, reduce, allreduce, reduce_scatter, reduce_scatter_block, scan, "
         "exscan";
}

}  // namespace verbatim::cli
