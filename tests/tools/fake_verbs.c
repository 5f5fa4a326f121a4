/* SPDX-License-Identifier: BSD-2-Clause */
/* A libibverbs whose answers are drawn from a seed.
 *
 * Built twice: as libibverbs.so.1, which the distribution's ibv_devices and ibv_devinfo load, and
 * linked into our own tool. The same seed gives both the same devices, so their output can be
 * compared byte for byte over every flag, enumerator and out-of-range value, on a machine that has
 * no RDMA device at all. (fake_rc.c does the same for the pingpong program.)
 *
 *   FAKE_VERBS_SEED     0: every field zero; 1: every bit set; else: a random draw per field
 *   FAKE_VERBS_DEVICES  how many devices exist (default 2); -1: the list itself fails with ENOSYS
 *   FAKE_VERBS_FAIL     name of the one function that fails: open, query_device, query_device_ex,
 *                       query_port, query_gid, close
 *   FAKE_VERBS_EVENTS   each asynchronous event that there is has happened, one after the other
 *   FAKE_VERBS_PORT     "state max_mtu active_mtu link_layer" of every port, as numbers
 *   FAKE_VERBS_GIDS     a letter for each GID of every port: v of RoCE v2, l of RoCE v2 and local
 * to the link, o of the older RoCE; none beyond them FAKE_VERBS_SYSFS    folder that stands for the
 * device's folder in sysfs (board_id lives there)
 */
#include "tests/tools/fake_verbs.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

enum { kMaxDevices = 8, kGidTable = 6, kTailOfDevice = 64 };

/* Clients of the classic library may look past ibv_device (its private tail): keep that readable.
 */
struct fake_device {
  struct ibv_device base;
  unsigned char tail[kTailOfDevice];
  unsigned index;
};

static struct fake_device devices[kMaxDevices];

static long from_env(const char* name, long otherwise) {
  const char* text = getenv(name);
  return text != NULL ? strtol(text, NULL, 0) : otherwise;
}

int fake_fails(const char* what) {
  const char* which = getenv("FAKE_VERBS_FAIL");
  return which != NULL && strcmp(which, what) == 0;
}

int fake_lacks(const char* feature) {
  const char* list = getenv("FAKE_VERBS_LACKS");
  const size_t length = strlen(feature);
  const char* at;
  for (at = list; at != NULL && *at != '\0'; at += *at == ',') {
    const size_t word = strcspn(at, ",");
    if (word == length && memcmp(at, feature, length) == 0) return 1;
    at += word;
  }
  return 0;
}

/* SplitMix64 over (seed, device, port, field): each answer is a pure function of its name, so the
 * order in which a tool asks cannot change what it is told. */
static uint64_t draw(unsigned device, unsigned port, unsigned field) {
  const uint64_t seed = (uint64_t)from_env("FAKE_VERBS_SEED", 2);
  uint64_t x;
  if (seed == 0) return 0;
  if (seed == 1) return UINT64_MAX;
  x = seed * UINT64_C(0x9e3779b97f4a7c15) + ((uint64_t)device << 40) + ((uint64_t)port << 32) +
      field;
  x += UINT64_C(0x9e3779b97f4a7c15);
  x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
  return x ^ (x >> 31);
}

static unsigned index_of(const struct ibv_device* device) {
  return ((const struct fake_device*)(const void*)device)->index;
}

FAKE_EXPORT struct ibv_device** ibv_get_device_list(int* num_devices) {
  const long count = from_env("FAKE_VERBS_DEVICES", 2);
  const char* sysfs = getenv("FAKE_VERBS_SYSFS");
  struct ibv_device** list;
  long i;
  if (count < 0 || count > kMaxDevices) {
    errno = ENOSYS;
    return NULL;
  }
  list = calloc((size_t)count + 1, sizeof(*list));
  if (list == NULL) return NULL;
  for (i = 0; i < count; ++i) {
    struct ibv_device* d = &devices[i].base;
    static const enum ibv_node_type kNodes[] = {IBV_NODE_CA, IBV_NODE_SWITCH, IBV_NODE_RNIC,
                                                IBV_NODE_USNIC};
    devices[i].index = (unsigned)i;
    d->node_type = kNodes[draw((unsigned)i, 0, 1) % 4];
    d->transport_type = (enum ibv_transport_type)((int)(draw((unsigned)i, 0, 2) % 7) - 1);
    snprintf(d->name, sizeof(d->name), i == 3 ? "a_device_with_a_long_name%ld" : "fake%ld", i);
    snprintf(d->dev_name, sizeof(d->dev_name), "uverbs%ld", i);
    snprintf(d->ibdev_path, sizeof(d->ibdev_path), "%s", sysfs != NULL ? sysfs : "/nonexistent");
    list[i] = d;
  }
  if (num_devices != NULL) *num_devices = (int)count;
  return list;
}

FAKE_EXPORT void ibv_free_device_list(struct ibv_device** list) { free(list); }

FAKE_EXPORT const char* ibv_get_device_name(struct ibv_device* device) { return device->name; }

FAKE_EXPORT __be64 ibv_get_device_guid(struct ibv_device* device) {
  return draw(index_of(device), 0, 3);
}

static int fill_device(struct ibv_context* context, struct ibv_device_attr* a) {
  const unsigned device = index_of(context->device);
  unsigned field = 10;
  memset(a, 0, sizeof(*a));
  if (fake_rc_wanted()) {
    struct ibv_device_attr_ex whole = {0};
    fake_rc_device(&whole);
    *a = whole.orig_attr;
    return 0;
  }
#define DRAW(member) a->member = (__typeof__(a->member))draw(device, 0, field++)
  snprintf(a->fw_ver, sizeof(a->fw_ver), "%u.%u", (unsigned)(draw(device, 0, 4) % 100), device);
  DRAW(node_guid), DRAW(sys_image_guid), DRAW(max_mr_size), DRAW(page_size_cap), DRAW(vendor_id);
  DRAW(vendor_part_id), DRAW(hw_ver), DRAW(max_qp), DRAW(max_qp_wr), DRAW(device_cap_flags);
  DRAW(max_sge), DRAW(max_sge_rd), DRAW(max_cq), DRAW(max_cqe), DRAW(max_mr), DRAW(max_pd);
  DRAW(max_qp_rd_atom), DRAW(max_ee_rd_atom), DRAW(max_res_rd_atom), DRAW(max_qp_init_rd_atom);
  DRAW(max_ee_init_rd_atom), DRAW(max_ee), DRAW(max_rdd), DRAW(max_mw), DRAW(max_raw_ipv6_qp);
  DRAW(max_raw_ethy_qp), DRAW(max_mcast_grp), DRAW(max_mcast_qp_attach);
  DRAW(max_total_mcast_qp_attach), DRAW(max_ah), DRAW(max_fmr), DRAW(max_map_per_fmr);
  DRAW(max_srq), DRAW(max_srq_wr), DRAW(max_srq_sge), DRAW(max_pkeys), DRAW(local_ca_ack_delay);
  a->atomic_cap = (enum ibv_atomic_cap)(draw(device, 0, field++) % 4);
  a->phys_port_cnt = (uint8_t)(draw(device, 0, field++) % 4);
#undef DRAW
  return 0;
}

FAKE_EXPORT int ibv_query_device(struct ibv_context* context, struct ibv_device_attr* attr) {
  return fake_fails("query_device") ? EIO : fill_device(context, attr);
}

/* A capability word: half of the draws leave it empty, since tools print that case differently. */
static uint64_t capability(unsigned device, unsigned field, uint64_t mask) {
  const uint64_t x = draw(device, 0, field);
  return (x >> 63) != 0 || x == 0 ? x & mask : 0;
}

static int query_device_ex(struct ibv_context* context, const struct ibv_query_device_ex_input* in,
                           struct ibv_device_attr_ex* attr, size_t attr_size) {
  const unsigned device = index_of(context->device);
  struct ibv_device_attr_ex a;
  unsigned field = 100;
  (void)in;
  if (fake_fails("query_device_ex")) return EIO;
  if (from_env("FAKE_VERBS_SEED", 2) % 5 == 4)
    return EOPNOTSUPP; /* the caller then asks the old way */
  memset(&a, 0, sizeof(a));
  if (fake_rc_wanted()) {
    fake_rc_device(&a);
    memcpy(attr, &a, attr_size < sizeof(a) ? attr_size : sizeof(a));
    return 0;
  }
  fill_device(context, &a.orig_attr);
#define CAP(member, mask) a.member = (__typeof__(a.member))capability(device, field++, mask)
  CAP(odp_caps.general_caps, draw(device, 0, 90) % 2 != 0 ? 0x3 : 0xf0000000fu);
  CAP(odp_caps.per_transport_caps.rc_odp_caps, 0x3f), CAP(xrc_odp_caps, 0x1ff);
  CAP(odp_caps.per_transport_caps.uc_odp_caps, 0x7f);
  CAP(odp_caps.per_transport_caps.ud_odp_caps, 0xffffffffu);
  CAP(completion_timestamp_mask, UINT64_MAX), CAP(hca_core_clock, UINT32_MAX);
  CAP(device_cap_flags_ex, UINT64_MAX), CAP(tso_caps.max_tso, UINT32_MAX);
  CAP(tso_caps.supported_qpts, UINT32_MAX), CAP(rss_caps.supported_qpts, UINT32_MAX);
  CAP(rss_caps.max_rwq_indirection_tables, UINT32_MAX);
  CAP(rss_caps.max_rwq_indirection_table_size, UINT32_MAX);
  CAP(rss_caps.rx_hash_fields_mask, UINT64_MAX), CAP(rss_caps.rx_hash_function, 0xff);
  CAP(max_wq_type_rq, UINT32_MAX), CAP(packet_pacing_caps.qp_rate_limit_min, UINT32_MAX);
  CAP(packet_pacing_caps.qp_rate_limit_max, UINT32_MAX);
  CAP(packet_pacing_caps.supported_qpts, UINT32_MAX), CAP(raw_packet_caps, 0x1f);
  CAP(tm_caps.max_rndv_hdr_size, UINT32_MAX), CAP(tm_caps.max_num_tags, UINT32_MAX);
  CAP(tm_caps.flags, 0x3), CAP(tm_caps.max_ops, UINT32_MAX), CAP(tm_caps.max_sge, UINT32_MAX);
  CAP(cq_mod_caps.max_cq_count, UINT16_MAX), CAP(cq_mod_caps.max_cq_period, UINT16_MAX);
  CAP(max_dm_size, UINT64_MAX), CAP(pci_atomic_caps.fetch_add, 0xf);
  CAP(pci_atomic_caps.swap, 0xf), CAP(pci_atomic_caps.compare_swap, 0xf);
#undef CAP
  a.phys_port_cnt_ex = a.orig_attr.phys_port_cnt;
  memcpy(attr, &a, attr_size < sizeof(a) ? attr_size : sizeof(a));
  return 0;
}

#undef ibv_query_port
FAKE_EXPORT int ibv_query_port(struct ibv_context* context, uint8_t port,
                               struct _compat_ibv_port_attr* attr);

static int fill_port(struct ibv_context* context, uint8_t port, struct ibv_port_attr* p) {
  const unsigned device = index_of(context->device);
  unsigned field = 200;
  memset(p, 0, sizeof(*p));
  if (fake_rc_wanted()) {
    fake_rc_port(p);
    return 0;
  }
#define DRAW(member, modulo) \
  p->member = (__typeof__(p->member))(draw(device, port, field++) % (modulo))
  DRAW(state, 7), DRAW(max_mtu, 7), DRAW(active_mtu, 7), DRAW(port_cap_flags, UINT64_MAX);
  DRAW(max_msg_sz, UINT64_MAX), DRAW(bad_pkey_cntr, UINT64_MAX), DRAW(qkey_viol_cntr, UINT64_MAX);
  DRAW(pkey_tbl_len, UINT64_MAX), DRAW(lid, UINT64_MAX), DRAW(sm_lid, UINT64_MAX);
  DRAW(lmc, UINT64_MAX), DRAW(max_vl_num, 17), DRAW(sm_sl, UINT64_MAX);
  DRAW(subnet_timeout, UINT64_MAX), DRAW(init_type_reply, UINT64_MAX), DRAW(active_width, 34);
  DRAW(phys_state, 9), DRAW(link_layer, 4), DRAW(flags, 2), DRAW(port_cap_flags2, UINT64_MAX);
#undef DRAW
  p->active_speed =
      (uint8_t)(draw(device, port, field) % 3 == 0 ? draw(device, port, field + 1) % 258
                                                   : 1u << (draw(device, port, field + 1) % 8));
  if (draw(device, port, field + 2) % 2 != 0)
    p->port_cap_flags &= ~(uint32_t)IBV_PORT_CAP_MASK2_SUP;
  p->gid_tbl_len = kGidTable;
  if (getenv("FAKE_VERBS_PORT") != NULL) {
    int state = 0, most = 0, active = 0, link = 0;
    if (sscanf(getenv("FAKE_VERBS_PORT"), "%d %d %d %d", &state, &most, &active, &link) != 4)
      abort();
    p->state = (enum ibv_port_state)state;
    p->max_mtu = (enum ibv_mtu)most;
    p->active_mtu = (enum ibv_mtu)active;
    p->link_layer = (uint8_t)link;
  }
  return 0;
}

FAKE_EXPORT int ibv_query_port(struct ibv_context* context, uint8_t port,
                               struct _compat_ibv_port_attr* attr) {
  struct ibv_port_attr p;
  if (fake_fails("query_port")) return EIO;
  fill_port(context, port, &p);
  memcpy(attr, &p, offsetof(struct ibv_port_attr, port_cap_flags2)); /* the layout of 2018 */
  return 0;
}

static int query_port(struct ibv_context* context, uint8_t port, struct ibv_port_attr* attr,
                      size_t size) {
  struct ibv_port_attr p;
  if (fake_fails("query_port")) return EIO;
  fill_port(context, port, &p);
  memcpy(attr, &p, size < sizeof(p) ? size : sizeof(p));
  return 0;
}

/* The letter of a GID that the environment says; '\0': it says nothing of GIDs, '.': no GID. */
static char given_gid(unsigned gid) {
  const char* letters = getenv("FAKE_VERBS_GIDS");
  if (letters == NULL) return '\0';
  return gid < strlen(letters) ? letters[gid] : '.';
}

/* 0: InfiniBand or RoCE v1 (the classic sysfs files cannot tell), 1: RoCE v2. */
static unsigned gid_type(struct ibv_context* context, unsigned port, unsigned gid) {
  const char given = given_gid(gid);
  if (given != '\0') return given != 'o';
  return draw(index_of(context->device), port, 400 + gid) & 1;
}

FAKE_EXPORT int ibv_query_gid(struct ibv_context* context, uint8_t port, int index,
                              union ibv_gid* gid) {
  const unsigned device = index_of(context->device);
  uint64_t kind = draw(device, port, 300 + (unsigned)index) % 4;
  if (fake_fails("query_gid") && index == 2) return -1;
  switch (given_gid((unsigned)index)) {
    case '\0':
      break;
    case '.':
      kind = 0;
      break;
    case 'l':
      kind = 2;
      break;
    default:
      kind = 1;
  }
  memset(gid, 0, sizeof(*gid));
  switch (kind) {
    case 0:
      break; /* an empty entry */
    case 1:  /* an IPv4 address in IPv6 clothes */
      gid->raw[10] = gid->raw[11] = 0xff;
      gid->raw[12] = 192, gid->raw[13] = 0, gid->raw[14] = 2, gid->raw[15] = (uint8_t)index;
      break;
    case 2:
      gid->global.subnet_prefix = UINT64_C(0x80fe); /* fe80:: in network order, low-endian host */
      gid->global.interface_id = draw(device, port, 320 + (unsigned)index);
      break;
    default:
      gid->global.subnet_prefix = draw(device, port, 340 + (unsigned)index);
      gid->global.interface_id = draw(device, port, 360 + (unsigned)index);
  }
  return 0;
}

enum { kSysfsIbOrRoceV1 = 0, kSysfsRoceV2 = 1 };
FAKE_EXPORT int ibv_query_gid_type(struct ibv_context* context, uint8_t port, unsigned index,
                                   int* type);
int ibv_query_gid_type(struct ibv_context* context, uint8_t port, unsigned index, int* type) {
  *type = gid_type(context, port, index) != 0 ? kSysfsRoceV2 : kSysfsIbOrRoceV1;
  return 0;
}

FAKE_EXPORT int _ibv_query_gid_ex(struct ibv_context* context, uint32_t port, uint32_t index,
                                  struct ibv_gid_entry* entry, uint32_t flags, size_t entry_size) {
  struct ibv_gid_entry e;
  struct ibv_port_attr p;
  (void)flags;
  memset(&e, 0, sizeof(e));
  if (ibv_query_gid(context, (uint8_t)port, (int)index, &e.gid) != 0) return EIO;
  fill_port(context, (uint8_t)port, &p);
  e.gid_index = index;
  e.port_num = port;
  e.gid_type = gid_type(context, port, index) != 0       ? IBV_GID_TYPE_ROCE_V2
               : p.link_layer == IBV_LINK_LAYER_ETHERNET ? IBV_GID_TYPE_ROCE_V1
                                                         : IBV_GID_TYPE_IB;
  memcpy(entry, &e, entry_size < sizeof(e) ? entry_size : sizeof(e));
  return 0;
}

FAKE_EXPORT struct ibv_context* ibv_open_device(struct ibv_device* device) {
  struct verbs_context* v;
  if (fake_fails("open")) {
    errno = EACCES;
    return NULL;
  }
  v = calloc(1, sizeof(*v));
  if (v == NULL) return NULL;
  v->sz = sizeof(*v);
  v->query_device_ex = query_device_ex;
  v->query_port = query_port;
  if (fake_rc_wanted()) fake_rc_fill_context(v);
  v->context.device = device;
  fake_tells("device %s", device->name);
  v->context.abi_compat = (void*)UINTPTR_MAX;
  v->context.num_comp_vectors = (int)(draw(index_of(device), 0, 5) % 64);
  v->context.async_fd = v->context.cmd_fd = -1;
  if (getenv("FAKE_VERBS_EVENTS") != NULL) v->context.async_fd = eventfd(1, EFD_CLOEXEC);
  return &v->context;
}

FAKE_EXPORT int ibv_get_async_event(struct ibv_context* context, struct ibv_async_event* event) {
  static int next;
  (void)context;
  if (next > IBV_EVENT_WQ_FATAL + 1) return errno = ENODEV, -1; /* the device is gone */
  memset(event, 0, sizeof(*event));
  event->event_type = (enum ibv_event_type)next++;
  event->element.port_num = next % 3;
  return 0;
}
FAKE_EXPORT void ibv_ack_async_event(struct ibv_async_event* event) { (void)event; }

FAKE_EXPORT int ibv_close_device(struct ibv_context* context) {
  free((char*)context - offsetof(struct verbs_context, context));
  return fake_fails("close") ? EIO : 0;
}

/* The classic library exports this reader of small sysfs files; its devinfo asks for board_id. */
FAKE_EXPORT int ibv_read_sysfs_file(const char* dir, const char* file, char* buf, size_t size);
int ibv_read_sysfs_file(const char* dir, const char* file, char* buf, size_t size) {
  char path[600];
  size_t n;
  FILE* f;
  snprintf(path, sizeof(path), "%s/%s", dir, file);
  f = fopen(path, "r");
  if (f == NULL) return -1;
  n = fread(buf, 1, size - 1, f);
  fclose(f);
  while (n > 0 && buf[n - 1] == '\n') --n;
  buf[n] = '\0';
  return (int)n;
}
