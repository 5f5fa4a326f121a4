/* SPDX-License-Identifier: BSD-2-Clause */
/* The half of the fake library that pretends to be a connected peer: each send completes at once
 * and is "answered" by a message into the next posted receive, of the queue pair's own or of the
 * shared ones. So one pingpong program plays alone, over any transport, with every option
 * (timestamps, device memory, on-demand paging, the new send calls) that a real device may lack,
 * and what it prints and does on TCP can be compared with the classic program's.
 *
 *   FAKE_VERBS_RC      set: this half is on
 *   FAKE_VERBS_GREETS  a message arrives when the QP reaches RTS, as a server's first does:
 *                      "pattern" is what a client with -c sends, "noise" is not
 *   FAKE_VERBS_ARRIVALS  how many messages arrive in all (default: no end)
 *   FAKE_VERBS_LACKS   list of: odp rc_odp srq_odp xrc_odp iodp ts dm dm_size lid infiniband xrc
 *                      mtu
 *   FAKE_VERBS_PORTS   how many ports the device has (default 1)
 *   FAKE_VERBS_TELLS   a file, to which a line is added for each thing asked for that options
 * choose: "device fake1", "port 1", "mtu 3", "path ...", "receives 500", "posted 500", "send 4096",
 * "armed" FAKE_VERBS_FAIL    alloc_pd reg_mr create_cq create_qp create_srq create_ah open_xrcd
 * INIT RTR RTS post_send post_recv send recv
 */
#include "tests/tools/fake_verbs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { kDepth = 4096, kDmSize = 65536, kPattern = 0x7b, kGlobalRoutingHeader = 40 };

struct done {
  uint64_t wr_id;
  enum ibv_wc_status status;
  enum ibv_wc_opcode opcode;
  uint32_t qpn;
};
struct fake_cq {
  union {
    struct ibv_cq plain;
    struct ibv_cq_ex extended;
  } u;
  struct done ring[kDepth];
  unsigned head, tail;
  uint64_t clock; /* ticks of a counter 20 bits wide, so that it wraps within a run */
  bool armed;
  unsigned events; /* raised and not fetched */
};
struct receives {
  uint64_t id[kDepth];
  struct ibv_sge at[kDepth];
  unsigned head, tail, depth;
};
struct fake_srq {
  struct ibv_srq base;
  struct receives receives;
  struct ibv_cq* cq; /* of XRC, where it has its own */
};
struct fake_qp {
  union {
    struct ibv_qp plain;
    struct ibv_qp_ex extended;
  } u;
  struct receives own;
  struct receives* receives;
  uint64_t next_id;
};
struct fake_dm {
  struct ibv_dm base;
  unsigned char bytes[kDmSize];
};
static struct fake_dm* device_memory; /* the one there is: zero-based addresses lie in it */

/* There is one program, so one of each suffices: what a message over XRC arrives at. */
static struct fake_srq* xrc_queue;
static uint32_t xrc_target;

enum { kMostCqs = 4 };
static struct fake_cq* cqs[kMostCqs];
static unsigned cq_count;

void fake_tells(const char* format, ...) {
  const char* name = getenv("FAKE_VERBS_TELLS");
  FILE* f = name != NULL ? fopen(name, "ae") : NULL;
  va_list words;
  if (f == NULL) return;
  va_start(words, format);
  vfprintf(f, format, words);
  va_end(words);
  fputc('\n', f);
  fclose(f);
}

static unsigned ports(void) {
  const char* text = getenv("FAKE_VERBS_PORTS");
  return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 1;
}

static void tell_path(const struct ibv_ah_attr* a) {
  fake_tells("path sl %u port %u global %u gid %u", a->sl, a->port_num, a->is_global,
             a->is_global != 0 ? a->grh.sgid_index : 0u);
}

int fake_rc_wanted(void) { return getenv("FAKE_VERBS_RC") != NULL; }

void fake_rc_device(struct ibv_device_attr_ex* a) {
  const uint32_t odp = IBV_ODP_SUPPORT_SEND | (fake_lacks("rc_odp") ? 0u : IBV_ODP_SUPPORT_RECV) |
                       (fake_lacks("srq_odp") ? 0u : IBV_ODP_SUPPORT_SRQ_RECV);
  a->orig_attr.phys_port_cnt = (uint8_t)ports();
  a->orig_attr.device_cap_flags = fake_lacks("xrc") ? 0u : IBV_DEVICE_XRC;
  a->orig_attr.max_qp_wr = a->orig_attr.max_srq_wr = a->orig_attr.max_cqe = kDepth - 1;
  a->odp_caps.general_caps = (fake_lacks("odp") ? 0u : IBV_ODP_SUPPORT) |
                             (fake_lacks("iodp") ? 0u : IBV_ODP_SUPPORT_IMPLICIT);
  a->odp_caps.per_transport_caps.rc_odp_caps = odp;
  a->xrc_odp_caps = fake_lacks("xrc_odp") ? 0 : odp;
  a->completion_timestamp_mask = fake_lacks("ts") ? 0 : 0xfffff;
  a->max_dm_size = fake_lacks("dm") ? 0 : fake_lacks("dm_size") ? 16 : kDmSize;
}

void fake_rc_port(struct ibv_port_attr* p) {
  p->state = IBV_PORT_ACTIVE;
  p->max_mtu = IBV_MTU_4096;
  p->active_mtu = fake_lacks("mtu") ? IBV_MTU_1024 : IBV_MTU_4096;
  p->max_msg_sz = 1u << 30;
  p->lid = fake_lacks("lid") ? 0 : 0x1234;
  p->link_layer = fake_lacks("infiniband") ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
  p->gid_tbl_len = 4;
}

FAKE_EXPORT struct ibv_pd* ibv_alloc_pd(struct ibv_context* context) {
  struct ibv_pd* pd = fake_fails("alloc_pd") ? NULL : calloc(1, sizeof(*pd));
  if (pd == NULL) return errno = ENOMEM, NULL;
  pd->context = context;
  return pd;
}
FAKE_EXPORT int ibv_dealloc_pd(struct ibv_pd* pd) { return free(pd), 0; }

static struct ibv_mr* new_mr(struct ibv_pd* pd, void* addr, size_t length) {
  struct ibv_mr* mr = fake_fails("reg_mr") ? NULL : calloc(1, sizeof(*mr));
  if (mr == NULL) return errno = ENOMEM, NULL;
  mr->context = pd->context, mr->pd = pd, mr->addr = addr, mr->length = length;
  mr->lkey = mr->rkey = 7;
  return mr;
}
#undef ibv_reg_mr
FAKE_EXPORT struct ibv_mr* ibv_reg_mr(struct ibv_pd* pd, void* addr, size_t length, int access) {
  (void)access;
  return new_mr(pd, addr, length);
}
FAKE_EXPORT struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* addr, size_t length,
                                            uint64_t iova, unsigned access) {
  (void)iova, (void)access;
  return new_mr(pd, addr, length);
}
FAKE_EXPORT int ibv_dereg_mr(struct ibv_mr* mr) { return free(mr), 0; }

FAKE_EXPORT struct ibv_comp_channel* ibv_create_comp_channel(struct ibv_context* context) {
  struct ibv_comp_channel* channel = calloc(1, sizeof(*channel));
  if (channel == NULL) return NULL;
  channel->context = context;
  channel->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
  return channel;
}
FAKE_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel* channel) {
  close(channel->fd);
  return free(channel), 0;
}

static void complete_in(struct ibv_cq* where, uint32_t qpn, uint64_t wr_id,
                        enum ibv_wc_opcode opcode) {
  struct fake_cq* cq = (struct fake_cq*)(void*)where;
  const char* name = opcode == IBV_WC_RECV ? "recv" : "send";
  const uint64_t one = 1;
  struct done* d = &cq->ring[cq->tail++ % kDepth];
  d->wr_id = wr_id;
  d->status = fake_fails(name) ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS;
  d->opcode = opcode;
  d->qpn = qpn;
  if (cq->armed && cq->u.plain.channel != NULL) {
    cq->armed = false;
    ++cq->events;
    if (write(cq->u.plain.channel->fd, &one, sizeof(one)) != sizeof(one)) abort();
  }
}

static void complete(const struct fake_qp* qp, uint64_t wr_id, enum ibv_wc_opcode opcode) {
  if (opcode == IBV_WC_RECV && qp->u.plain.qp_type == IBV_QPT_XRC_SEND)
    complete_in(xrc_queue->cq, xrc_target, wr_id, opcode);
  else /* of others there is one for both directions */
    complete_in(qp->u.plain.send_cq, qp->u.plain.qp_num, wr_id, opcode);
}

static void fill(const struct fake_qp* qp, const struct ibv_sge* sge) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const size_t header = qp->u.plain.qp_type == IBV_QPT_UD ? kGlobalRoutingHeader : 0;
  unsigned char* to = device_memory != NULL ? device_memory->bytes + sge->addr
                                            : (unsigned char*)(uintptr_t)sge->addr;
  size_t i;
  memset(to + header, qp->u.plain.srq != NULL ? 0 : kPattern, sge->length - header);
  for (i = header; i < sge->length; i += page) to[i] = 0;
}

static void arrive(struct fake_qp* qp) {
  const char* greets = getenv("FAKE_VERBS_GREETS");
  struct receives* r = qp->receives;
  const unsigned slot = r->head % kDepth;
  static long arrived;
  const char* limit = getenv("FAKE_VERBS_ARRIVALS");
  if (r->head == r->tail || (limit != NULL && arrived++ >= strtol(limit, NULL, 10))) return;
  if (greets != NULL && strcmp(greets, "pattern") == 0) fill(qp, &r->at[slot]);
  ++r->head;
  complete(qp, r->id[slot], IBV_WC_RECV);
}

static int sent(struct fake_qp* qp, uint64_t wr_id) {
  if (fake_fails("post_send")) return EINVAL;
  complete(qp, wr_id, IBV_WC_SEND);
  arrive(qp);
  return 0;
}

static int post_send(struct ibv_qp* qp, struct ibv_send_wr* wr, struct ibv_send_wr** bad) {
  for (; wr != NULL; wr = wr->next) {
    int error;
    fake_tells("send %u", wr->sg_list[0].length);
    error = sent((struct fake_qp*)(void*)qp, wr->wr_id);
    if (error != 0) return *bad = wr, error;
  }
  return 0;
}

static int take_receives(struct receives* r, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad) {
  for (; wr != NULL; wr = wr->next) {
    if (fake_fails("post_recv") || r->tail - r->head == r->depth) return *bad = wr, ENOMEM;
    r->id[r->tail % kDepth] = wr->wr_id;
    r->at[r->tail++ % kDepth] = wr->sg_list[0];
  }
  return 0;
}
static int post_recv(struct ibv_qp* qp, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad) {
  return take_receives(((struct fake_qp*)(void*)qp)->receives, wr, bad);
}
static int post_srq_recv(struct ibv_srq* srq, struct ibv_recv_wr* wr, struct ibv_recv_wr** bad) {
  return take_receives(&((struct fake_srq*)(void*)srq)->receives, wr, bad);
}

static int poll_cq(struct ibv_cq* where, int count, struct ibv_wc* wc) {
  struct fake_cq* cq = (struct fake_cq*)(void*)where;
  int n = 0;
  for (; n < count && cq->head != cq->tail; ++n) {
    const struct done* d = &cq->ring[cq->head++ % kDepth];
    memset(&wc[n], 0, sizeof(wc[n]));
    wc[n].wr_id = d->wr_id, wc[n].status = d->status, wc[n].opcode = d->opcode;
    wc[n].qp_num = d->qpn;
  }
  return n;
}

static int req_notify_cq(struct ibv_cq* cq, int solicited) {
  (void)solicited;
  fake_tells("armed");
  ((struct fake_cq*)(void*)cq)->armed = true;
  return 0;
}

static int start_poll(struct ibv_cq_ex* where, struct ibv_poll_cq_attr* attr) {
  struct fake_cq* cq = (struct fake_cq*)(void*)where;
  (void)attr;
  if (cq->head == cq->tail) return ENOENT;
  cq->clock += 1000 + cq->head % 97;
  where->wr_id = cq->ring[cq->head % kDepth].wr_id;
  where->status = cq->ring[cq->head++ % kDepth].status;
  return 0;
}
static int next_poll(struct ibv_cq_ex* cq) { return start_poll(cq, NULL); }
static void end_poll(struct ibv_cq_ex* cq) { (void)cq; }
static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex* where) {
  struct fake_cq* cq = (struct fake_cq*)(void*)where;
  return cq->ring[(cq->head - 1) % kDepth].opcode;
}
static uint64_t read_completion_ts(struct ibv_cq_ex* cq) {
  return ((struct fake_cq*)(void*)cq)->clock & 0xfffff;
}

FAKE_EXPORT struct ibv_cq* ibv_create_cq(struct ibv_context* context, int cqe, void* cq_context,
                                         struct ibv_comp_channel* channel, int comp_vector) {
  struct fake_cq* cq = fake_fails("create_cq") ? NULL : calloc(1, sizeof(*cq));
  (void)comp_vector;
  if (cq == NULL) return errno = ENOMEM, NULL;
  cq->u.plain.context = context, cq->u.plain.channel = channel;
  cq->u.plain.cq_context = cq_context, cq->u.plain.cqe = cqe;
  if (cq_count < kMostCqs) cqs[cq_count++] = cq;
  return &cq->u.plain;
}
static struct ibv_cq_ex* create_cq_ex(struct ibv_context* context,
                                      struct ibv_cq_init_attr_ex* attr) {
  struct ibv_cq* cq = ibv_create_cq(context, (int)attr->cqe, attr->cq_context, attr->channel, 0);
  struct ibv_cq_ex* extended = (struct ibv_cq_ex*)(void*)cq;
  if (cq == NULL) return NULL;
  extended->start_poll = start_poll, extended->next_poll = next_poll;
  extended->end_poll = end_poll, extended->read_opcode = read_opcode;
  extended->read_completion_ts = read_completion_ts;
  return extended;
}
FAKE_EXPORT int ibv_destroy_cq(struct ibv_cq* cq) { return free(cq), 0; }
FAKE_EXPORT int ibv_get_cq_event(struct ibv_comp_channel* channel, struct ibv_cq** cq, void** ctx) {
  uint64_t count;
  unsigned i = 0;
  if (read(channel->fd, &count, sizeof(count)) != sizeof(count)) return -1;
  while (i + 1 < cq_count && cqs[i]->events == 0) ++i;
  --cqs[i]->events;
  *cq = &cqs[i]->u.plain;
  *ctx = (*cq)->cq_context;
  return 0;
}
FAKE_EXPORT void ibv_ack_cq_events(struct ibv_cq* cq, unsigned count) { (void)cq, (void)count; }

static void wr_start(struct ibv_qp_ex* qp) { (void)qp; }
static void wr_send(struct ibv_qp_ex* qp) { ((struct fake_qp*)(void*)qp)->next_id = qp->wr_id; }
static void wr_set_sge(struct ibv_qp_ex* qp, uint32_t lkey, uint64_t addr, uint32_t length) {
  (void)qp, (void)lkey, (void)addr;
  fake_tells("send %u", length);
}
static int wr_complete(struct ibv_qp_ex* qp) {
  return sent((struct fake_qp*)(void*)qp, ((struct fake_qp*)(void*)qp)->next_id);
}

FAKE_EXPORT struct ibv_srq* ibv_create_srq(struct ibv_pd* pd, struct ibv_srq_init_attr* attr) {
  struct fake_srq* srq = fake_fails("create_srq") ? NULL : calloc(1, sizeof(*srq));
  if (srq == NULL) return errno = ENOMEM, NULL;
  srq->base.context = pd->context, srq->base.pd = pd;
  srq->receives.depth = attr->attr.max_wr;
  fake_tells("receives %u", attr->attr.max_wr);
  return &srq->base;
}
static struct ibv_srq* create_srq_ex(struct ibv_context* context,
                                     struct ibv_srq_init_attr_ex* attr) {
  struct ibv_srq_init_attr plain = {.attr = attr->attr};
  struct ibv_srq* srq = ibv_create_srq(attr->pd, &plain);
  (void)context;
  if (srq == NULL) return NULL;
  xrc_queue = (struct fake_srq*)(void*)srq;
  xrc_queue->cq = attr->cq;
  return srq;
}
static int get_srq_num(struct ibv_srq* srq, uint32_t* number) {
  (void)srq;
  return *number = 0x77, 0;
}
static struct ibv_xrcd* open_xrcd(struct ibv_context* context, struct ibv_xrcd_init_attr* attr) {
  struct ibv_xrcd* domain = fake_fails("open_xrcd") ? NULL : calloc(1, sizeof(*domain));
  (void)attr;
  if (domain == NULL) return errno = ENOSYS, NULL;
  domain->context = context;
  return domain;
}
static int close_xrcd(struct ibv_xrcd* domain) { return free(domain), 0; }
FAKE_EXPORT int ibv_destroy_srq(struct ibv_srq* srq) { return free(srq), 0; }

FAKE_EXPORT struct ibv_ah* ibv_create_ah(struct ibv_pd* pd, struct ibv_ah_attr* attr) {
  struct ibv_ah* ah =
      fake_fails("create_ah") || attr->port_num > ports() ? NULL : calloc(1, sizeof(*ah));
  if (ah == NULL) return errno = EINVAL, NULL;
  ah->context = pd->context, ah->pd = pd;
  tell_path(attr);
  return ah;
}
FAKE_EXPORT int ibv_destroy_ah(struct ibv_ah* ah) { return free(ah), 0; }

FAKE_EXPORT struct ibv_qp* ibv_create_qp(struct ibv_pd* pd, struct ibv_qp_init_attr* attr) {
  struct fake_qp* qp = fake_fails("create_qp") ? NULL : calloc(1, sizeof(*qp));
  static uint32_t made;
  if (qp == NULL) return errno = ENOMEM, NULL;
  if (pd != NULL) qp->u.plain.context = pd->context;
  qp->u.plain.pd = pd;
  qp->u.plain.send_cq = attr->send_cq, qp->u.plain.recv_cq = attr->recv_cq;
  qp->u.plain.qp_type = attr->qp_type, qp->u.plain.qp_num = 0xabcde + made++;
  qp->u.plain.srq = attr->srq;
  qp->own.depth = attr->cap.max_recv_wr;
  if (attr->cap.max_recv_wr != 0) fake_tells("receives %u", attr->cap.max_recv_wr);
  qp->receives = attr->srq != NULL ? &((struct fake_srq*)(void*)attr->srq)->receives : &qp->own;
  if (attr->qp_type == IBV_QPT_XRC_RECV) xrc_target = qp->u.plain.qp_num;
  if (attr->qp_type == IBV_QPT_XRC_SEND) qp->receives = &xrc_queue->receives;
  return &qp->u.plain;
}
static struct ibv_qp* create_qp_ex(struct ibv_context* context, struct ibv_qp_init_attr_ex* attr) {
  struct ibv_qp_init_attr plain = {.send_cq = attr->send_cq,
                                   .recv_cq = attr->recv_cq,
                                   .cap = attr->cap,
                                   .qp_type = attr->qp_type};
  struct ibv_qp* qp = ibv_create_qp(attr->pd, &plain);
  struct ibv_qp_ex* extended = (struct ibv_qp_ex*)(void*)qp;
  if (qp == NULL) return NULL;
  qp->context = context;
  extended->wr_start = wr_start, extended->wr_send = wr_send;
  extended->wr_set_sge = wr_set_sge, extended->wr_complete = wr_complete;
  return qp;
}
FAKE_EXPORT struct ibv_qp_ex* ibv_qp_to_qp_ex(struct ibv_qp* qp) {
  return (struct ibv_qp_ex*)(void*)qp;
}
FAKE_EXPORT int ibv_query_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int mask,
                             struct ibv_qp_init_attr* init) {
  (void)qp, (void)mask;
  memset(attr, 0, sizeof(*attr));
  memset(init, 0, sizeof(*init));
  return 0;
}
FAKE_EXPORT int ibv_modify_qp(struct ibv_qp* qp, struct ibv_qp_attr* attr, int mask) {
  static const char* const kNames[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  if ((mask & IBV_QP_STATE) == 0) return 0;
  if (fake_fails(kNames[attr->qp_state])) return EINVAL;
  qp->state = attr->qp_state;
  if ((mask & IBV_QP_PORT) != 0) fake_tells("port %u", attr->port_num);
  if ((mask & IBV_QP_PATH_MTU) != 0) fake_tells("mtu %d", (int)attr->path_mtu);
  if ((mask & IBV_QP_AV) != 0) tell_path(&attr->ah_attr);
  if (qp->state == IBV_QPS_RTR && qp->qp_type != IBV_QPT_XRC_RECV)
    fake_tells("posted %u", ((struct fake_qp*)(void*)qp)->receives->tail);
  if (qp->state == IBV_QPS_RTS && qp->qp_type != IBV_QPT_XRC_RECV &&
      getenv("FAKE_VERBS_GREETS") != NULL) {
    arrive((struct fake_qp*)(void*)qp);
  }
  return 0;
}
FAKE_EXPORT int ibv_attach_mcast(struct ibv_qp* qp, const union ibv_gid* gid, uint16_t lid) {
  return (void)qp, (void)gid, (void)lid, EOPNOTSUPP;
}
FAKE_EXPORT int ibv_detach_mcast(struct ibv_qp* qp, const union ibv_gid* gid, uint16_t lid) {
  return (void)qp, (void)gid, (void)lid, EOPNOTSUPP;
}
FAKE_EXPORT int ibv_destroy_qp(struct ibv_qp* qp) { return free(qp), 0; }

FAKE_EXPORT const char* ibv_wc_status_str(enum ibv_wc_status status) {
  return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "some status";
}

static int memcpy_to_dm(struct ibv_dm* dm, uint64_t at, const void* from, size_t length) {
  return memcpy(((struct fake_dm*)(void*)dm)->bytes + at, from, length), 0;
}
static int memcpy_from_dm(void* to, struct ibv_dm* dm, uint64_t at, size_t length) {
  return memcpy(to, ((struct fake_dm*)(void*)dm)->bytes + at, length), 0;
}
static struct ibv_dm* alloc_dm(struct ibv_context* context, struct ibv_alloc_dm_attr* attr) {
  struct fake_dm* dm = attr->length > kDmSize ? NULL : calloc(1, sizeof(*dm));
  if (dm == NULL) return errno = ENOMEM, NULL;
  dm->base.context = context;
  dm->base.memcpy_to_dm = memcpy_to_dm, dm->base.memcpy_from_dm = memcpy_from_dm;
  return &(device_memory = dm)->base;
}
static int free_dm(struct ibv_dm* dm) {
  device_memory = NULL;
  return free(dm), 0;
}
static struct ibv_mr* reg_dm_mr(struct ibv_pd* pd, struct ibv_dm* dm, uint64_t offset,
                                size_t length, unsigned access) {
  (void)dm, (void)offset;
  return (access & IBV_ACCESS_ZERO_BASED) != 0 ? new_mr(pd, NULL, length) : NULL;
}
static int advise_mr(struct ibv_pd* pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                     struct ibv_sge* sge, uint32_t count) {
  (void)pd, (void)advice, (void)flags, (void)sge, (void)count;
  return fake_fails("advise_mr") ? EOPNOTSUPP : 0;
}

void fake_rc_fill_context(struct verbs_context* v) {
  v->create_cq_ex = create_cq_ex, v->create_qp_ex = create_qp_ex;
  v->alloc_dm = alloc_dm, v->free_dm = free_dm, v->reg_dm_mr = reg_dm_mr;
  v->advise_mr = advise_mr;
  v->open_xrcd = open_xrcd, v->close_xrcd = close_xrcd;
  v->create_srq_ex = create_srq_ex, v->get_srq_num = get_srq_num;
  v->context.ops.post_send = post_send, v->context.ops.post_recv = post_recv;
  v->context.ops.post_srq_recv = post_srq_recv;
  v->context.ops.poll_cq = poll_cq, v->context.ops.req_notify_cq = req_notify_cq;
}
