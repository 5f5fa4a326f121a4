// SPDX-License-Identifier: BSD-2-Clause
// A program over verbs that is built twice, with this library and with Debian's, for
// compare_test.sh: the same calls on the same devices, so that what differs is the library.
//
//   work WHAT COUNT     does COUNT times what WHAT says and prints the nanoseconds that each took
//     batches           16 SENDs of 8 bytes in one list, and the polls that find them; sleeps in
//                       between, so that the polls find them at once
//     latency           a SEND of 8 bytes, until it has arrived and is completed
//     bandwidth         16 WRITEs of 4 KiB in one list
//     queue_pairs       a queue pair made and destroyed
//     regions           64 KiB registered and deregistered
//
// From rxe0 to rxe1, both this process's. The calls that are counted by themselves stand in
// functions named measured_*.
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// Found by their names in the profile, so the compiler may neither inline nor clone them.
#ifdef __clang__
#define MEASURED static __attribute__((noinline))
#else
#define MEASURED static __attribute__((noipa))
#endif
enum { kBatch = 16, kMessage = 8, kPiece = 4096, kGidIndex = 1, kRegion = 64 * 1024 };

static void need(int good, const char* what) {
  if (good) return;
  fprintf(stderr, "work: %s failed\n", what);
  exit(1);
}

static uint64_t now_ns(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

struct End {
  struct ibv_context* context;
  struct ibv_pd* pd;
  struct ibv_comp_channel* channel;
  struct ibv_cq* cq;
  struct ibv_qp* qp;
  struct ibv_mr* mr;
  unsigned char* memory;
  union ibv_gid gid;
};

static struct ibv_qp_init_attr queue_pair_of(const struct End* end) {
  struct ibv_qp_init_attr attr = {.send_cq = end->cq,
                                  .recv_cq = end->cq,
                                  .cap = {.max_send_wr = 2 * kBatch,
                                          .max_recv_wr = 2 * kBatch,
                                          .max_send_sge = 1,
                                          .max_recv_sge = 1},
                                  .qp_type = IBV_QPT_RC};
  return attr;
}

static struct ibv_context* open_named(const char* name) {
  int count = 0;
  struct ibv_device** const list = ibv_get_device_list(&count);
  need(list != NULL, "ibv_get_device_list");
  struct ibv_context* context = NULL;
  for (int i = 0; i < count && context == NULL; ++i)
    if (strcmp(ibv_get_device_name(list[i]), name) == 0) context = ibv_open_device(list[i]);
  ibv_free_device_list(list);
  need(context != NULL, name);
  return context;
}

static void start(struct End* end, const char* device) {
  end->context = open_named(device);
  end->pd = ibv_alloc_pd(end->context);
  need(end->pd != NULL, "ibv_alloc_pd");
  end->channel = ibv_create_comp_channel(end->context);
  need(end->channel != NULL, "ibv_create_comp_channel");
  end->cq = ibv_create_cq(end->context, 4 * kBatch, NULL, end->channel, 0);
  need(end->cq != NULL, "ibv_create_cq");
  struct ibv_qp_init_attr attr = queue_pair_of(end);
  end->qp = ibv_create_qp(end->pd, &attr);
  need(end->qp != NULL, "ibv_create_qp");
  end->memory = aligned_alloc(kPiece, kRegion);
  need(end->memory != NULL, "aligned_alloc");
  memset(end->memory, 1, kRegion);
  end->mr =
      ibv_reg_mr(end->pd, end->memory, kRegion, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
  need(end->mr != NULL, "ibv_reg_mr");
  need(ibv_query_gid(end->context, 1, kGidIndex, &end->gid) == 0, "ibv_query_gid");
}

static void join(struct End* end, const struct End* other) {
  struct ibv_qp_attr attr = {
      .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE};
  need(ibv_modify_qp(end->qp, &attr,
                     IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
       "ibv_modify_qp to INIT");
  struct ibv_qp_attr ready = {
      .qp_state = IBV_QPS_RTR,
      .path_mtu = IBV_MTU_1024,
      .dest_qp_num = other->qp->qp_num,
      .max_dest_rd_atomic = 1,
      .min_rnr_timer = 12,
      .ah_attr = {.is_global = 1,
                  .port_num = 1,
                  .grh = {.dgid = other->gid, .sgid_index = kGidIndex, .hop_limit = 1}}};
  need(ibv_modify_qp(end->qp, &ready,
                     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                         IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
       "ibv_modify_qp to RTR");
  struct ibv_qp_attr sending = {
      .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1};
  need(ibv_modify_qp(end->qp, &sending,
                     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                         IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
       "ibv_modify_qp to RTS");
}

// ---- what is counted by itself

MEASURED int measured_post_send(struct ibv_qp* qp, struct ibv_send_wr* list) {
  struct ibv_send_wr* bad;
  return ibv_post_send(qp, list, &bad);
}

MEASURED int measured_post_recv(struct ibv_qp* qp, struct ibv_recv_wr* list) {
  struct ibv_recv_wr* bad;
  return ibv_post_recv(qp, list, &bad);
}

MEASURED int measured_poll(struct ibv_cq* cq, struct ibv_wc* wc) {
  return ibv_poll_cq(cq, kBatch, wc);
}

MEASURED void measured_queue_pair(const struct End* end) {
  struct ibv_qp_init_attr attr = queue_pair_of(end);
  struct ibv_qp* const qp = ibv_create_qp(end->pd, &attr);
  need(qp != NULL && ibv_destroy_qp(qp) == 0, "a queue pair");
}

MEASURED void measured_region(const struct End* end) {
  struct ibv_mr* const mr = ibv_reg_mr(end->pd, end->memory, kRegion, IBV_ACCESS_LOCAL_WRITE);
  need(mr != NULL && ibv_dereg_mr(mr) == 0, "a region");
}

// ---- the work

struct Lists {
  struct ibv_sge from[kBatch], into[kBatch];
  struct ibv_send_wr sends[kBatch];
  struct ibv_recv_wr receives[kBatch];
};

/// Lists of `count` requests, all signaled.
static void prepare(struct Lists* lists, int count, const struct End* ends,
                    enum ibv_wr_opcode opcode, uint32_t bytes) {
  memset(lists, 0, sizeof *lists);
  for (int i = 0; i < count; ++i) {
    const uint64_t place = (uint64_t)i * (kRegion / kBatch);
    lists->from[i] = (struct ibv_sge){(uintptr_t)ends[0].memory + place, bytes, ends[0].mr->lkey};
    lists->into[i] = (struct ibv_sge){(uintptr_t)ends[1].memory + place, bytes, ends[1].mr->lkey};
    lists->sends[i].sg_list = &lists->from[i];
    lists->sends[i].num_sge = 1;
    lists->sends[i].opcode = opcode;
    lists->sends[i].send_flags = IBV_SEND_SIGNALED;
    lists->sends[i].wr.rdma.remote_addr = lists->into[i].addr;
    lists->sends[i].wr.rdma.rkey = ends[1].mr->rkey;
    lists->receives[i].sg_list = &lists->into[i];
    lists->receives[i].num_sge = 1;
    if (i != 0) {
      lists->sends[i - 1].next = &lists->sends[i];
      lists->receives[i - 1].next = &lists->receives[i];
    }
  }
}

/// Polls until `count` have completed well. Who sleeps first finds them all at once.
static void collect(const struct End* end, int count, int sleeps) {
  struct ibv_wc wc[kBatch];
  const uint64_t deadline = now_ns() + 20000000000u;
  while (count > 0) {
    if (sleeps) {
      const struct timespec pause = {0, 5000000};
      nanosleep(&pause, NULL);
    }
    const int got = measured_poll(end->cq, wc);
    need(got >= 0 && now_ns() < deadline, "completing in 20 s");
    for (int i = 0; i < got; ++i)
      need(wc[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(wc[i].status));
    count -= got;
  }
}

static void send_lists(const struct End* ends, int size, int sleeps, long count) {
  struct Lists lists;
  prepare(&lists, size, ends, IBV_WR_SEND, kMessage);
  for (long i = 0; i < count; ++i) {
    need(measured_post_recv(ends[1].qp, lists.receives) == 0, "ibv_post_recv");
    need(measured_post_send(ends[0].qp, lists.sends) == 0, "ibv_post_send");
    collect(&ends[1], size, sleeps);
    collect(&ends[0], size, sleeps);
  }
}

static void write_lists(const struct End* ends, long count) {
  struct Lists lists;
  prepare(&lists, kBatch, ends, IBV_WR_RDMA_WRITE, kPiece);
  for (long i = 0; i < count; ++i) {
    need(measured_post_send(ends[0].qp, lists.sends) == 0, "ibv_post_send");
    collect(&ends[0], kBatch, 0);
  }
}

int main(int argc, char** argv) {
  const char* const what = argc == 3 ? argv[1] : "";
  const long count = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
  struct End ends[2] = {0};
  need(count > 0, "reading WHAT COUNT");
  start(&ends[0], "rxe0");
  start(&ends[1], "rxe1");
  join(&ends[0], &ends[1]);
  join(&ends[1], &ends[0]);
  const uint64_t begin = now_ns();
  if (strcmp(what, "batches") == 0)
    send_lists(ends, kBatch, 1, count);
  else if (strcmp(what, "latency") == 0)
    send_lists(ends, 1, 0, count);
  else if (strcmp(what, "bandwidth") == 0)
    write_lists(ends, count);
  else if (strcmp(what, "queue_pairs") == 0)
    for (long i = 0; i < count; ++i) measured_queue_pair(&ends[0]);
  else if (strcmp(what, "regions") == 0)
    for (long i = 0; i < count; ++i) measured_region(&ends[0]);
  else
    need(0, "reading WHAT");
  printf("%llu\n", (unsigned long long)((now_ns() - begin) / (uint64_t)count));
  for (int i = 0; i < 2; ++i) {
    need(ibv_destroy_qp(ends[i].qp) == 0 && ibv_destroy_cq(ends[i].cq) == 0 &&
             ibv_dereg_mr(ends[i].mr) == 0,
         "cleaning up");
    need(ibv_destroy_comp_channel(ends[i].channel) == 0 && ibv_dealloc_pd(ends[i].pd) == 0 &&
             ibv_close_device(ends[i].context) == 0,
         "cleaning up");
    free(ends[i].memory);
  }
  return 0;
}
