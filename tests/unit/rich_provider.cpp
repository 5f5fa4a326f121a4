// SPDX-License-Identifier: BSD-2-Clause
#include "tests/unit/rich_provider.hpp"

#include <atomic>

#include "runtime/base/make_nothrow.hpp"

namespace verbatim::unit {
namespace {

std::atomic<int> alive{0};

template <class Handle, class... Args>
int make(Handle** out, Args&&... args) {
  *out = make_nothrow<Handle>(std::forward<Args>(args)...);
  if (*out == nullptr) return ENOMEM;
  ++alive;
  return 0;
}

template <class Handle>
int drop(Handle& handle) {
  destroy_nothrow(&handle);
  --alive;
  return 0;
}

struct Rich {
  static constexpr const char* kName = "rich";
  using Context = verbatim::Context;
  using Mr = verbatim::Mr;
  using Cq = verbatim::Cq;
  using Qp = verbatim::Qp;

  static int list_devices(DeviceSink& sink) noexcept { return sink.add({.name = "rich0"}); }
  static int open(Device& device, Context** out) noexcept { return make(out, device); }
  static void close(Context& context) noexcept { drop(context); }
  static int query_device(Context&, ibv_device_attr_ex& attr) noexcept {
    attr.phys_port_cnt_ex = 1;
    return 0;
  }

  static int alloc_pd(Context&, Pd** out) noexcept { return make(out); }
  static int dealloc_pd(Pd& pd) noexcept { return drop(pd); }
  static int alloc_td(Context&, const ibv_td_init_attr&, Td** out) noexcept { return make(out); }
  static int dealloc_td(Td& td) noexcept { return drop(td); }
  static int alloc_parent_domain(Context&, const ibv_parent_domain_init_attr&, Pd** out) noexcept {
    return make(out);
  }
  static int open_xrcd(Context&, const ibv_xrcd_init_attr&, Xrcd** out) noexcept {
    return make(out);
  }
  static int close_xrcd(Xrcd& xrcd) noexcept { return drop(xrcd); }

  static int reg_mr(Pd&, void*, std::size_t, std::uint64_t iova, unsigned, Mr** out) noexcept {
    const int error = make(out);
    // A mark for the test: which address the region is known by.
    if (error == 0) (*out)->plain.lkey = static_cast<std::uint32_t>(iova);
    return error;
  }
  static int reg_dmabuf_mr(Pd&, std::uint64_t, std::size_t, std::uint64_t, int, unsigned,
                           Mr** out) noexcept {
    return make(out);
  }
  static int reg_dm_mr(Pd&, ibv_dm&, std::uint64_t, std::size_t, unsigned, Mr** out) noexcept {
    return make(out);
  }
  static int alloc_null_mr(Pd&, Mr** out) noexcept { return make(out); }
  static int reg_buf_mr(Pd&, ibv_buf&, void*, std::size_t, unsigned, Mr** out) noexcept {
    return make(out);
  }
  static int dereg_mr(Mr& mr) noexcept { return drop(mr); }
  static int alloc_mw(Pd&, ibv_mw_type, Mw** out) noexcept { return make(out); }
  static int bind_mw(Qp&, Mw& mw, ibv_mw_bind& bind) noexcept {
    Mr::from(bind.bind_info.mr).uses.fetch_add(1);
    mw.plain.rkey = 0x42;
    return 0;
  }
  static int dealloc_mw(Mw& mw) noexcept { return drop(mw); }
  static int alloc_dm(Context&, const ibv_alloc_dm_attr&, Dm** out) noexcept { return make(out); }
  static int free_dm(Dm& dm) noexcept { return drop(dm); }
  static int alloc_buf(Pd&, std::size_t size, ibv_buf** out) noexcept {
    static char memory[4096];
    const int error = make(out);
    if (error == 0) {
      (*out)->memory = memory;
      (*out)->size = size;
    }
    return error;
  }
  static void free_buf(ibv_buf& buf) noexcept { drop(buf); }

  static int create_cq(Context&, const ibv_cq_init_attr_ex&, CompChannel*, Cq** out) noexcept {
    const int error = make(out);
    if (error == 0) {
      (*out)->extended.start_poll = [](ibv_cq_ex*, ibv_poll_cq_attr*) { return ENOENT; };
    }
    return error;
  }
  static int destroy_cq(Cq& cq) noexcept { return drop(cq); }
  static int create_srq(Context&, const ibv_srq_init_attr_ex&, Srq** out) noexcept {
    return make(out);
  }
  static int destroy_srq(Srq& srq) noexcept { return drop(srq); }
  static int get_srq_num(Srq&, std::uint32_t& number) noexcept {
    number = 99;
    return 0;
  }
  static int create_qp(Context&, ibv_qp_init_attr_ex&, Qp** out) noexcept {
    const int error = make(out);
    if (error == 0) (*out)->extended.wr_start = [](ibv_qp_ex*) {};
    return error;
  }
  static int open_qp(Context&, const ibv_qp_open_attr& attr, Qp** out) noexcept {
    const int error = make(out);
    if (error == 0) (*out)->plain.qp_num = attr.qp_num;
    return error;
  }
  static int destroy_qp(Qp& qp) noexcept { return drop(qp); }

  static int create_wq(Context&, ibv_wq_init_attr&, Wq** out) noexcept { return make(out); }
  static int destroy_wq(Wq& wq) noexcept { return drop(wq); }
  static int create_rwq_ind_table(Context&, ibv_rwq_ind_table_init_attr&,
                                  RwqIndTable** out) noexcept {
    return make(out);
  }
  static int destroy_rwq_ind_table(RwqIndTable& table) noexcept { return drop(table); }
  static int create_flow(Qp&, ibv_flow_attr&, Flow** out) noexcept { return make(out); }
  static int destroy_flow(Flow& flow) noexcept { return drop(flow); }
  static int create_counters(Context&, ibv_counters_init_attr&, ibv_counters** out) noexcept {
    return make(out);
  }
  static int destroy_counters(ibv_counters& counters) noexcept { return drop(counters); }
};

}  // namespace

constinit const ProviderTable kRich = make_provider_table<Rich>();

int rich_handles() { return alive.load(); }

}  // namespace verbatim::unit
