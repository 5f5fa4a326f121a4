// SPDX-License-Identifier: BSD-2-Clause
#include "mpi_shim/core/big_lock.hpp"

namespace vmpi {

BigLock big_lock;

}  // namespace vmpi
