// SPDX-License-Identifier: BSD-2-Clause
// Rights of IBV_ACCESS_* by whom they say something of. Programs pass one set of them to regions,
// queue pairs and windows; drivers look at what concerns each. Any thread.
#pragma once

#include <infiniband/verbs.h>

namespace verbatim {

/// What a peer may be allowed: all that a queue pair's qp_access_flags, or a window's, can say.
inline constexpr unsigned kRightsOfPeers = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                           IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_FLUSH_GLOBAL |
                                           IBV_ACCESS_FLUSH_PERSISTENT;

/// What only a region can have; elsewhere it is taken, and says nothing. ZERO_BASED is not among
/// them, since a window of type 2 can be so too.
inline constexpr unsigned kRightsOfRegions = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND |
                                             IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB |
                                             static_cast<unsigned>(IBV_ACCESS_OPTIONAL_RANGE);

}  // namespace verbatim
