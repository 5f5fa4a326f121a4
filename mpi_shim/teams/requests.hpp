// SPDX-License-Identifier: BSD-2-Clause
// What an operation of a team that was begun is, until its caller has heard of its end.
#pragma once

#include <verbatim/coll.h>

#include <cstdint>

#include "mpi_shim/core/engine.hpp"
#include "mpi_shim/teams/team.hpp"

namespace vmpi {
inline constexpr std::uint32_t kTeamRequestMagic = 0x71657276u;
}  // namespace vmpi

struct vbt_coll_request {
  std::uint32_t magic = vmpi::kTeamRequestMagic;
  vbt_coll_team* team = nullptr;
  std::int64_t since = 0;  ///< ns: when it was begun, if its time is bounded
  vmpi::Request of_engine;
};
