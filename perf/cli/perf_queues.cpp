// SPDX-License-Identifier: BSD-2-Clause
#include "perf/cli/perf_queues.hpp"

#include <fcntl.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "perf/cli/failure.hpp"

namespace verbatim::cli {
namespace {

constexpr std::uint8_t kRnrTimer = 12;   // 0.64 ms
constexpr std::uint8_t kRnrRetries = 7;  // for ever
constexpr std::uint32_t kLatencyInline = 236;
constexpr std::uint8_t kHopLimit = 0xff;
constexpr std::uint32_t kMulticastQpn = 0xffffff;
// perftest's, of which a client of latency takes the next.
constexpr ibv_gid kGroup = {{255, 1, 0, 0, 0, 2, 201, 133, 0, 0, 0, 0, 0, 0, 0, 0}};

std::uint64_t send_operation(const PerfOptions& options) {
  switch (perf_opcode(options)) {
    case IBV_WR_RDMA_WRITE:
      return IBV_QP_EX_WITH_RDMA_WRITE;
    case IBV_WR_RDMA_WRITE_WITH_IMM:
      return IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
    case IBV_WR_SEND_WITH_IMM:
      return IBV_QP_EX_WITH_SEND_WITH_IMM;
    case IBV_WR_RDMA_READ:
      return IBV_QP_EX_WITH_RDMA_READ;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
      return IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
      return IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
    default:
      return IBV_QP_EX_WITH_SEND;
  }
}

[[noreturn]] void fail_inline_size(const Device& device, std::uint32_t asked) {
  fail("inline size %u is more than %s takes; choose a smaller -I", asked, device.name());
}

ibv_qp_type qp_type(PerfConnection connection) {
  switch (connection) {
    case PerfConnection::kUc:
      return IBV_QPT_UC;
    case PerfConnection::kUd:
      return IBV_QPT_UD;
    case PerfConnection::kXrc:
      return IBV_QPT_XRC_SEND;
    case PerfConnection::kRc:
      break;
  }
  return IBV_QPT_RC;
}

}  // namespace

std::uint8_t perf_link_layer(const Device& device, const PerfOptions& options) {
  return options.link_layer.value_or(device.port.link_layer);
}

int perf_gid_index(const Device& device, const PerfOptions& options) {
  if (options.gid_index >= 0) {
    if (options.gid_index < device.port.gid_tbl_len) return options.gid_index;
    fail("can't read sgid of index %d: port %d of %s has %d (-x)", options.gid_index,
         options.ib_port, device.name(), device.port.gid_tbl_len);
  }
  if (perf_link_layer(device, options) != IBV_LINK_LAYER_ETHERNET) return -1;
  // RoCE v2 crosses routers, and an IPv4 address is what users know; else what there is first.
  int best = 0, points = -1;
  for (int index = 0; index < device.port.gid_tbl_len; ++index) {
    ibv_gid_entry entry = {};
    if (ibv_query_gid_ex(device.context.get(), options.ib_port, static_cast<std::uint32_t>(index),
                         &entry, 0) != 0) {
      continue;
    }
    constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    const bool is_ipv4 = std::memcmp(entry.gid.raw, kMapped, sizeof kMapped) == 0;
    const int found = (entry.gid_type == IBV_GID_TYPE_ROCE_V2 ? 2 : 0) +
                      (is_ipv4 != options.prefers_ipv6 ? 1 : 0);
    if (found > points) {
      best = index;
      points = found;
    }
  }
  return best;
}

void check_inline_size(const Device& device, const PerfOptions& options) {
  if (options.inline_size.value_or(0) == 0) return;
  const perf::PdHandle pd(ibv_alloc_pd(device.context.get()));
  const perf::CqHandle cq(ibv_create_cq(device.context.get(), 1, nullptr, nullptr, 0));
  if (!pd || !cq) return;  // what lacks then is said by who needs it
  const auto takes = [&](std::uint32_t inline_size) {
    ibv_qp_init_attr_ex attr = {};
    attr.qp_type = qp_type(options.connection);
    attr.send_cq = cq.get();
    attr.cap.max_send_wr = options.tx_depth;
    attr.cap.max_send_sge = 1;
    attr.cap.max_inline_data = inline_size;
    if (!options.xrc()) {
      attr.recv_cq = cq.get();
      attr.cap.max_recv_wr = 1;
      attr.cap.max_recv_sge = 1;
    }
    attr.pd = pd.get();
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    return perf::QpHandle(ibv_create_qp_ex(device.context.get(), &attr)) != nullptr;
  };
  if (!takes(*options.inline_size) && takes(0)) fail_inline_size(device, *options.inline_size);
}

PerfQueues::PerfQueues(const Device& device, const PerfOptions& options, const PerfTerms& terms)
    : options_{options}, terms_{terms}, gid_index_{perf_gid_index(device, options)} {
  const ibv_device_attr& attr = device.attr.orig_attr;
  if (options.test.fetches()) {
    const auto most = static_cast<std::uint32_t>(std::clamp(attr.max_qp_rd_atom, 0, 255));
    reads_ = std::min(options.reads.value_or(most), most);
  }
  inline_size_ = options.inline_size.value_or(options.test.answered() ? kLatencyInline : 0);
  pd_.reset(ibv_alloc_pd(device.context.get()));
  if (!pd_) fail("Couldn't allocate PD: %s", std::strerror(errno));
  if (options.unlocked) create_domain(device);
  memory_.emplace(device, pd_.get(), options, terms);
  create_cqs(device);
  create_srq(device);
  PerftestAddress common;
  common.qp.lid = device.port.lid;
  common.reads = reads_;
  if (gid_index_ >= 0 &&
      ibv_query_gid(device.context.get(), options.ib_port, gid_index_, &common.qp.gid) != 0) {
    fail("can't read sgid of index %d of port %d of %s (-x)", gid_index_, options.ib_port,
         device.name());
  }
  if (options.xrc() && ibv_get_srq_num(srq_.get(), &common.srqn) != 0) {
    fail("Couldn't get SRQ number");
  }
  const std::uint32_t pairs = options.all_queue_pairs();
  for (std::uint32_t pair = 0; pair < pairs; ++pair) {
    qps_.push_back(create_qp(device, pair));
    to_init(qps_.back().get());
    common.qp.qpn = qps_.back()->qp_num;
    common.rkey = memory_->rkey(pair);
    common.memory = memory_->incoming(pair);
    if (getrandom(&common.qp.psn, sizeof common.qp.psn, 0) != sizeof common.qp.psn) {
      common.qp.psn = 0x1d872b;
    }
    common.qp.psn &= 0xffffff;
    addresses_.push_back(common);
  }
  if (options.multicast && options.receives()) join_group();
}

PerfQueues::~PerfQueues() {
  // Or the kernel keeps the queue pair.
  if (group_) (void)ibv_detach_mcast(qps_.front().get(), &*group_, 0);
}

/// The receiver tells its group in place of itself.
void PerfQueues::join_group() {
  PerftestAddress& told = addresses_.front();
  ibv_gid group = options_.group.value_or(kGroup);
  if (options_.client() && !options_.group) ++group.raw[15];
  if (const int error = ibv_attach_mcast(qps_.front().get(), &group, 0)) {
    fail("Couldn't attach QP to the multicast group: %s (-g)", std::strerror(error));
  }
  group_ = group;
  told.qp.gid = group;
  told.qp.lid = 0;
  told.qp.qpn = kMulticastQpn;
}

/// What is made in such a domain is used by one thread, and needs no locks.
void PerfQueues::create_domain(const Device& device) {
  ibv_td_init_attr thread = {};
  td_.reset(ibv_alloc_td(device.context.get(), &thread));
  if (td_) {
    ibv_parent_domain_init_attr parent = {};
    parent.pd = pd_.get();
    parent.td = td_.get();
    parent_.reset(ibv_alloc_parent_domain(device.context.get(), &parent));
  }
  if (!parent_) {
    fail("%s has no thread domains (%s): leave out --no_lock", device.name(), std::strerror(errno));
  }
}

perf::CqHandle PerfQueues::create_cq(const Device& device, int entries) {
  if (!parent_) {
    return perf::CqHandle(
        ibv_create_cq(device.context.get(), entries, nullptr, channel_.get(), options_.vector));
  }
  ibv_cq_init_attr_ex attr = {};
  attr.cqe = static_cast<std::uint32_t>(entries);
  attr.channel = channel_.get();
  attr.comp_vector = static_cast<std::uint32_t>(options_.vector);
  attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
  attr.parent_domain = parent_.get();
  ibv_cq_ex* const cq = ibv_create_cq_ex(device.context.get(), &attr);
  return perf::CqHandle(cq != nullptr ? ibv_cq_ex_to_cq(cq) : nullptr);
}

void PerfQueues::create_cqs(const Device& device) {
  if (options_.events) {
    channel_.reset(ibv_create_comp_channel(device.context.get()));
    if (!channel_) fail("Couldn't create completion channel: %s", std::strerror(errno));
    if (options_.vector >= device.context->num_comp_vectors) {
      fail("%s has %d completion vector%s: a smaller -X", device.name(),
           device.context->num_comp_vectors, device.context->num_comp_vectors == 1 ? "" : "s");
    }
  }
  const auto create = [&](std::uint32_t depth, const char* option) {
    const std::uint64_t entries = std::uint64_t{depth} * options_.all_queue_pairs();
    if (entries > static_cast<std::uint64_t>(device.attr.orig_attr.max_cqe)) {
      fail("%llu completions at once are more than %s takes (%d): a smaller %s or -q",
           static_cast<unsigned long long>(entries), device.name(), device.attr.orig_attr.max_cqe,
           option);
    }
    perf::CqHandle cq = create_cq(device, static_cast<int>(entries));
    if (!cq) fail("Couldn't create CQ: %s", std::strerror(errno));
    return cq;
  };
  send_cq_ = create(options_.tx_depth, "-t");
  recv_cq_ = create(options_.receives() ? options_.rx_depth : 1, "-r");
}

void PerfQueues::create_srq(const Device& device) {
  if (!options_.uses_srq() && !options_.xrc()) return;
  if (options_.xrc()) {
    ibv_xrcd_init_attr domain = {};
    domain.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    domain.fd = -1;
    domain.oflags = O_CREAT;  // of this process alone
    xrcd_.reset(ibv_open_xrcd(device.context.get(), &domain));
    if (!xrcd_) fail("%s has no XRC (%s): another -c", device.name(), std::strerror(errno));
  }
  ibv_srq_init_attr_ex attr = {};
  attr.attr.max_wr = options_.rx_depth;
  attr.attr.max_sge = 1;
  attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
  attr.srq_type = options_.xrc() ? IBV_SRQT_XRC : IBV_SRQT_BASIC;
  attr.pd = domain();
  if (options_.xrc()) {
    attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
    attr.xrcd = xrcd_.get();
    attr.cq = recv_cq_.get();
  }
  srq_.reset(ibv_create_srq_ex(device.context.get(), &attr));
  if (!srq_) {
    fail("Couldn't create SRQ of %u receives: %s; a smaller -r, or no --use-srq", options_.rx_depth,
         std::strerror(errno));
  }
}

std::uint32_t PerfQueues::first_receiver() const {
  return options_.all_queue_pairs() - options_.queue_pairs;
}

/// Of XRC, whose queue pairs have a direction.
bool PerfQueues::receives_only(std::uint32_t pair) const {
  if (!options_.xrc()) return false;
  return options_.both_directions() ? pair >= first_receiver() : !options_.client();
}

perf::QpHandle PerfQueues::create_qp(const Device& device, std::uint32_t pair) {
  ibv_qp_init_attr_ex attr = {};
  if (receives_only(pair)) {
    attr.qp_type = IBV_QPT_XRC_RECV;
    attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attr.xrcd = xrcd_.get();
    perf::QpHandle qp(ibv_create_qp_ex(device.context.get(), &attr));
    if (!qp) fail("Couldn't create XRC receive QP: %s", std::strerror(errno));
    return qp;
  }
  attr.qp_type = qp_type(options_.connection);
  attr.send_cq = send_cq_.get();
  attr.cap.max_send_wr = options_.tx_depth;
  attr.cap.max_send_sge = 1;
  attr.cap.max_inline_data = inline_size_;
  if (!options_.xrc()) {
    attr.recv_cq = recv_cq_.get();
    attr.srq = srq_.get();
    if (!srq_) {
      attr.cap.max_recv_wr = options_.receives() ? options_.rx_depth : 1;
      attr.cap.max_recv_sge = 1;
    }
  }
  attr.pd = domain();
  attr.comp_mask = IBV_QP_INIT_ATTR_PD;
  perf::QpHandle qp;
  if (!options_.classic_post) {
    attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = send_operation(options_);
    qp.reset(ibv_create_qp_ex(device.context.get(), &attr));
    extended_ = qp != nullptr;
  }
  if (!qp && (options_.classic_post || errno == EOPNOTSUPP || errno == ENOSYS)) {
    attr.comp_mask = IBV_QP_INIT_ATTR_PD;
    attr.send_ops_flags = 0;
    qp.reset(ibv_create_qp_ex(device.context.get(), &attr));
  }
  if (!qp && inline_size_ != 0) return create_qp_without_inline(device, pair);
  if (!qp) {
    fail("Couldn't create %s QP: %s: a smaller -t (%u) or -r (%u), or another -c",
         connection_name(options_.connection), std::strerror(errno), options_.tx_depth,
         options_.rx_depth);
  }
  return qp;
}

/// A default is for what the device can; what was asked for it must have.
perf::QpHandle PerfQueues::create_qp_without_inline(const Device& device, std::uint32_t pair) {
  const std::uint32_t asked = std::exchange(inline_size_, 0);
  perf::QpHandle qp = create_qp(device, pair);
  if (options_.inline_size) fail_inline_size(device, asked);
  return qp;
}

void PerfQueues::to_init(ibv_qp* qp) const {
  ibv_qp_attr attr = {};
  attr.qp_state = IBV_QPS_INIT;
  attr.pkey_index = options_.pkey_index;
  attr.port_num = options_.ib_port;
  int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
  if (options_.datagrams()) {
    attr.qkey = kPerfQkey;
    mask |= IBV_QP_QKEY;
  } else {
    attr.qp_access_flags = remote_access(options_.test.verb);
    mask |= IBV_QP_ACCESS_FLAGS;
  }
  if (const int error = ibv_modify_qp(qp, &attr, mask)) {
    fail("Failed to modify QP to INIT: %s", std::strerror(error));
  }
}

ibv_ah_attr PerfQueues::path_to(const PerftestAddress& peer) const {
  ibv_ah_attr path = {};
  path.dlid = peer.qp.lid;
  path.sl = options_.service_level;
  path.port_num = options_.ib_port;
  if (gid_index_ >= 0) {
    path.is_global = 1;
    path.grh.dgid = peer.qp.gid;
    path.grh.sgid_index = static_cast<std::uint8_t>(gid_index_);
    path.grh.hop_limit = kHopLimit;
    path.grh.traffic_class = options_.traffic_class;
  }
  if (options_.destination_lid != 0) path.dlid = options_.destination_lid;
  return path;
}

std::uint32_t PerfQueues::peer_of(std::uint32_t pair) const {
  const std::uint32_t all = options_.all_queue_pairs();
  return (pair + all - options_.queue_pairs) % all;
}

void PerfQueues::connect(const std::vector<PerftestAddress>& peer) {
  for (std::uint32_t pair = 0; pair < qps_.size(); ++pair) {
    const PerftestAddress& remote = peer[peer_of(pair)];
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_RTR;
    int mask = IBV_QP_STATE;
    const bool reliable =
        options_.connection == PerfConnection::kRc || options_.connection == PerfConnection::kXrc;
    if (!options_.datagrams()) {
      attr.ah_attr = path_to(remote);
      attr.path_mtu = terms_.mtu;
      attr.dest_qp_num = remote.qp.qpn;
      attr.rq_psn = remote.qp.psn;
      mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    }
    if (reliable) {
      attr.max_dest_rd_atomic = static_cast<std::uint8_t>(reads_);
      attr.min_rnr_timer = kRnrTimer;
      mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    if (const int error = ibv_modify_qp(qps_[pair].get(), &attr, mask)) {
      fail("Failed to modify QP to RTR: %s", std::strerror(error));
    }
    if (receives_only(pair)) continue;
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = addresses_[pair].qp.psn;
    mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (reliable) {
      attr.timeout = options_.timeout;
      attr.retry_cnt = options_.retries;
      attr.rnr_retry = kRnrRetries;
      attr.max_rd_atomic = static_cast<std::uint8_t>(std::min(reads_, remote.reads));
      mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    }
    if (const int error = ibv_modify_qp(qps_[pair].get(), &attr, mask)) {
      fail("Failed to modify QP to RTS: %s", std::strerror(error));
    }
    if (options_.datagrams()) {
      ibv_ah_attr path = path_to(remote);
      ahs_.emplace_back(ibv_create_ah(pd_.get(), &path));
      if (!ahs_.back()) fail("Failed to create AH: %s", std::strerror(errno));
    }
  }
}

}  // namespace verbatim::cli
