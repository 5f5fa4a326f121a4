// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/run_sweep.hpp"

#include <infiniband/verbs.h>

#include <cstdlib>

#include "perf/cli/device_list.hpp"

namespace verbatim::cli {
namespace {

/// Numbers of queue pairs are claimed in the folder, which is when names of the dead are looked for.
void claim_a_number(ibv_context* context) {
  ibv_pd* const pd = ibv_alloc_pd(context);
  ibv_cq* const cq = ibv_create_cq(context, 1, nullptr, nullptr, 0);
  if (pd != nullptr && cq != nullptr) {
    ibv_qp_init_attr wanted{};
    wanted.send_cq = wanted.recv_cq = cq;
    wanted.qp_type = IBV_QPT_RC;
    wanted.cap = {.max_send_wr = 1,
                  .max_recv_wr = 1,
                  .max_send_sge = 1,
                  .max_recv_sge = 1,
                  .max_inline_data = 0};
    ibv_qp* const qp = ibv_create_qp(pd, &wanted);
    if (qp != nullptr) (void)ibv_destroy_qp(qp);
  }
  if (cq != nullptr) (void)ibv_destroy_cq(cq);
  if (pd != nullptr) (void)ibv_dealloc_pd(pd);
}

}  // namespace

void sweep_fabric_folder() {
  // What is wrong with the place was told by the ranks.
  (void)setenv("VERBATIM_LOG", "off", 1);
  const DeviceList devices;
  ibv_device* const memory = devices ? devices.find("shm0") : nullptr;
  ibv_context* const context = memory != nullptr ? ibv_open_device(memory) : nullptr;
  if (context == nullptr) return;
  claim_a_number(context);
  (void)ibv_close_device(context);
}

}  // namespace verbatim::cli
