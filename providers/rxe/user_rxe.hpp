// SPDX-License-Identifier: BSD-2-Clause
// <rdma/rdma_user_rxe.h> behind libc's addresses. The kernel's header defines in6_addr and its
// relatives itself, unless libc has; two definitions in one program break the one-definition rule,
// and link-time optimisation says so.
#pragma once

#include <netinet/in.h>
//
#include <rdma/rdma_user_rxe.h>
