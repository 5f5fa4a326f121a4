// SPDX-License-Identifier: BSD-2-Clause
#pragma once

namespace verbatim::cli {

/// Ranks that were killed leave their names in the folder where processes meet. Whoever comes there
/// takes away those of the dead, and so do we. Main thread.
void sweep_fabric_folder();

}  // namespace verbatim::cli
