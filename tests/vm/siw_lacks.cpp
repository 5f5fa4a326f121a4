// SPDX-License-Identifier: BSD-2-Clause
// What iWARP or its driver does not have: each call answers EOPNOTSUPP, and the log says once which
// it was.
#include <cerrno>
#include <cstdio>
#include <functional>
#include <string>

#include "tests/unit/captured_stderr.hpp"
#include "tests/vm/siw_faults.hpp"

namespace verbatim::vm {
namespace {

struct Objects {
  ibv_context* context = open_siw();
  ibv_pd* pd = ibv_alloc_pd(context);
  ibv_cq* cq = ibv_create_cq(context, 10, nullptr, nullptr, 0);
  char memory[64] = {};
  ibv_mr* mr = ibv_reg_mr(pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);

  ibv_qp_init_attr_ex shape(ibv_qp_type type) const {
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.pd = pd;
    attr.qp_type = type;
    attr.cap = {4, 4, 1, 1, 0};
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    return attr;
  }
  ibv_qp* create(ibv_qp_type type, std::uint64_t operations = 0) const {
    ibv_qp_init_attr_ex attr = shape(type);
    attr.send_ops_flags = operations;
    if (operations != 0) attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    return ibv_create_qp_ex(context, &attr);
  }
};

int errno_unless(const void* made) { return made != nullptr ? 0 : errno; }

/// EOPNOTSUPP, and one line with `word` in it.
void lacks(const char* word, const std::function<int()>& call) {
  int error = 0;
  std::string said;
  {
    const unit::CapturedStderr captured;
    errno = 0;
    error = call();
    said = captured.text();
  }
  std::printf("%s: %d, %s\n", word, error, said.c_str());
  VM_REQUIRE(error == EOPNOTSUPP);
  VM_REQUIRE(said.find("siw") != std::string::npos);
  VM_REQUIRE(said.find(word) != std::string::npos);
}

}  // namespace

int show_what_lacks() {
  const Objects all;
  VM_REQUIRE(all.mr != nullptr && all.cq != nullptr);
  lacks("iWARP has no other type", [&] { return errno_unless(all.create(IBV_QPT_UD)); });
  lacks("send_ops_flags",
        [&] { return errno_unless(all.create(IBV_QPT_RC, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)); });
  lacks("send_ops_flags",
        [&] { return errno_unless(all.create(IBV_QPT_RC, IBV_QP_EX_WITH_SEND_WITH_IMM)); });
  lacks("create_ah", [&] {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    return errno_unless(ibv_create_ah(all.pd, &attr));
  });
  lacks("alloc_mw", [&] { return errno_unless(ibv_alloc_mw(all.pd, IBV_MW_TYPE_1)); });
  lacks("resize_cq", [&] { return ibv_resize_cq(all.cq, 20); });
  lacks("rereg_mr", [&] {
    return ibv_rereg_mr(all.mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 0) == 0 ? 0
                                                                                         : errno;
  });
  lacks("wc_flags", [&] {
    ibv_cq_init_attr_ex attr{};
    attr.cqe = 10;
    attr.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
    return errno_unless(ibv_create_cq_ex(all.context, &attr));
  });
  lacks("address", [&] {
    return errno_unless(ibv_reg_mr_iova(all.pd, const_cast<char*>(all.memory), 64, 0x10000, 0));
  });
  VM_REQUIRE(ibv_dereg_mr(all.mr) == 0 && ibv_destroy_cq(all.cq) == 0);
  VM_REQUIRE(ibv_dealloc_pd(all.pd) == 0 && ibv_close_device(all.context) == 0);
  return 0;
}

}  // namespace verbatim::vm
