// SPDX-License-Identifier: BSD-2-Clause
// The smallest verbs program, in C, linked statically by cc: opens the device, connects one RC
// queue pair and sends one message. Its start, its resident memory and its size are figures of the
// library.
//
//   first_message a|b [idle]     fd 3: the supervisor; fd 4: the other process
//                                idle: connect, but send nothing
//
// `b` reports one byte once it has the message; both report one byte when they are idle, and leave
// when the supervisor closes.
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kSupervisor = 3, kPeer = 4, kDepth = 128 };

struct address {
  uint32_t qpn;
  uint32_t psn;
  uint16_t lid;
  union ibv_gid gid;
};

static void need(int good, const char* what) {
  if (good) return;
  perror(what);
  exit(1);
}

static void tell(char byte) { need(send(kSupervisor, &byte, 1, 0) == 1, "report"); }

static void connect_qp(struct ibv_qp* qp, const struct address* own, const struct address* peer) {
  struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
  need(!ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
       "INIT");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                              .path_mtu = IBV_MTU_4096,
                              .dest_qp_num = peer->qpn,
                              .rq_psn = peer->psn,
                              .max_dest_rd_atomic = 1,
                              .min_rnr_timer = 12,
                              .ah_attr = {.dlid = peer->lid, .port_num = 1}};
  need(!ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
       "RTR");
  attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                              .timeout = 14,
                              .retry_cnt = 7,
                              .rnr_retry = 7,
                              .sq_psn = own->psn,
                              .max_rd_atomic = 1};
  need(!ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                          IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
       "RTS");
}

static void await(struct ibv_cq* cq) {
  struct ibv_wc wc;
  int found = 0;
  while (found == 0) found = ibv_poll_cq(cq, 1, &wc);
  need(found == 1 && wc.status == IBV_WC_SUCCESS, "completion");
}

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  alarm(60);  // the bound of every wait below
  if (argc < 2) return 2;
  const int sends = argv[1][0] == 'a';
  const int idle = argc > 2;
  static uint64_t message = 42;

  struct ibv_device** list = ibv_get_device_list(NULL);
  need(list != NULL && list[0] != NULL, "device list");
  struct ibv_context* context = ibv_open_device(list[0]);
  need(context != NULL, "open");
  ibv_free_device_list(list);
  struct ibv_pd* pd = ibv_alloc_pd(context);
  need(pd != NULL, "pd");
  struct ibv_mr* mr = ibv_reg_mr(pd, &message, sizeof message, IBV_ACCESS_LOCAL_WRITE);
  need(mr != NULL, "mr");
  struct ibv_cq* cq = ibv_create_cq(context, 2 * kDepth, NULL, NULL, 0);
  need(cq != NULL, "cq");
  struct ibv_qp_init_attr init = {
      .send_cq = cq,
      .recv_cq = cq,
      .cap = {.max_send_wr = kDepth, .max_recv_wr = kDepth, .max_send_sge = 1, .max_recv_sge = 1},
      .qp_type = IBV_QPT_RC};
  struct ibv_qp* qp = ibv_create_qp(pd, &init);
  need(qp != NULL, "qp");

  struct ibv_port_attr port;
  struct address own = {.qpn = qp->qp_num, .psn = qp->qp_num};
  struct address peer;
  need(!ibv_query_port(context, 1, &port) && !ibv_query_gid(context, 1, 0, &own.gid), "port");
  own.lid = port.lid;
  need(send(kPeer, &own, sizeof own, 0) == sizeof own, "send the address");
  need(recv(kPeer, &peer, sizeof peer, 0) == sizeof peer, "receive the address");
  connect_qp(qp, &own, &peer);

  struct ibv_sge sge = {(uintptr_t)&message, sizeof message, mr->lkey};
  char byte = 0;
  if (!sends) {
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1};
    struct ibv_recv_wr* bad;
    need(!ibv_post_recv(qp, &receive, &bad), "post a receive");
    need(send(kPeer, &byte, 1, 0) == 1, "say ready");
    if (!idle) {
      await(cq);
      tell('m');
    }
  } else {
    need(recv(kPeer, &byte, 1, 0) == 1, "await ready");
    if (!idle) {
      struct ibv_send_wr request = {
          .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
      struct ibv_send_wr* bad;
      need(!ibv_post_send(qp, &request, &bad), "post a send");
      await(cq);
    }
  }
  tell('i');
  need(recv(kSupervisor, &byte, 1, 0) == 0, "the supervisor's end");

  need(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd) &&
           !ibv_close_device(context),
       "destroy");
  return 0;
}
