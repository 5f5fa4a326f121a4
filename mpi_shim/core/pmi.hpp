// SPDX-License-Identifier: BSD-2-Clause
// What a process asks of its launcher, in the launcher's protocol. A further one (PMIx) is a
// further table.
#pragma once

#include <cstddef>

#include "mpi_shim/core/pmi_wire.hpp"
#include "mpi_shim/core/world.hpp"

namespace vmpi {

struct PmiProtocol {
  /// Says hello, and learns what the launcher knows of us. Null, or what went wrong.
  const char* (*begin)(PmiWire& wire, World& world) noexcept;
  bool (*put)(PmiWire& wire, const char* key, const char* value) noexcept;
  KeyAnswer (*get)(PmiWire& wire, const char* key, char* value, std::size_t room) noexcept;
  KeyAnswer (*get_mapping)(PmiWire& wire, char* value, std::size_t room) noexcept;
  /// The barrier in two parts, so that messages can go on meanwhile.
  bool (*enter_barrier)(PmiWire& wire) noexcept;
  PmiWire::Got (*leave_barrier)(PmiWire& wire, int milliseconds) noexcept;
  void (*finalize)(PmiWire& wire) noexcept;
  void (*abort)(PmiWire& wire, int code, const char* message) noexcept;
};

/// One text line per request; Hydra, `verbatim run`. RFC: the source of PMI-1's simple client
/// is the specification that everybody implements (MPICH's wiki, "PMI v1 Wire Protocol").
extern const PmiProtocol pmi1;
/// Records with their length in front; Slurm's `--mpi=pmi2` ("PMI v2 Wire Protocol", ibid.).
extern const PmiProtocol pmi2;

/// The number that names us to a launcher that we reached by PMI_PORT; -1: its descriptor was ours
/// from the start.
extern int pmi_id;

/// The job as its launcher names it: part of what peers must know to talk to us.
[[nodiscard]] const char* job_name() noexcept;
void set_job_name(const char* name) noexcept;

}  // namespace vmpi
