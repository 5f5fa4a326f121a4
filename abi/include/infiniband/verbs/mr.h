// SPDX-License-Identifier: BSD-2-Clause
//
// Memory regions: making memory reachable by a local key (lkey) and a remote key (rkey).
// Part of <infiniband/verbs.h>; usable alone. Any thread may call these.
// Source: IBTA 10.6; man ibv_reg_mr, ibv_rereg_mr, ibv_reg_mr_ex, ibv_advise_mr.
#ifndef INFINIBAND_VERBS_MR_H
#define INFINIBAND_VERBS_MR_H

#include <infiniband/verbs/base.h>
#include <infiniband/verbs/context.h>
#include <infiniband/verbs/pd.h>
#include <infiniband/verbs_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Rights over a region. Local reading is always allowed; a remote right to write or to do atomics
/// demands the local right to write.
enum ibv_access_flags {
  IBV_ACCESS_LOCAL_WRITE = 1 << 0,
  IBV_ACCESS_REMOTE_WRITE = 1 << 1,
  IBV_ACCESS_REMOTE_READ = 1 << 2,
  IBV_ACCESS_REMOTE_ATOMIC = 1 << 3,
  IBV_ACCESS_MW_BIND = 1 << 4,
  IBV_ACCESS_ZERO_BASED = 1 << 5,
  IBV_ACCESS_ON_DEMAND = 1 << 6,
  IBV_ACCESS_HUGETLB = 1 << 7,
  IBV_ACCESS_FLUSH_GLOBAL = 1 << 8,
  IBV_ACCESS_FLUSH_PERSISTENT = 1 << 9,
  IBV_ACCESS_RELAXED_ORDERING = IBV_ACCESS_OPTIONAL_FIRST,
};

/// A registered region. Programs read `lkey`, `rkey`, `addr` and `length`.
struct ibv_mr {
  struct ibv_context* context;
  struct ibv_pd* pd;
  void* addr;
  size_t length;
  uint32_t handle;
  uint32_t lkey;
  uint32_t rkey;
};

enum ibv_rereg_mr_flags {
  IBV_REREG_MR_CHANGE_TRANSLATION = 1 << 0,
  IBV_REREG_MR_CHANGE_PD = 1 << 1,
  IBV_REREG_MR_CHANGE_ACCESS = 1 << 2,
  IBV_REREG_MR_FLAGS_SUPPORTED = 7,  // all of the above
};

/// Why ibv_rereg_mr failed, and with it whether a region is left: the old one after INPUT and
/// DONT_FORK_NEW, the new one after DO_FORK_OLD, none that may be used after the two CMD codes.
enum ibv_rereg_mr_err_code {
  IBV_REREG_MR_ERR_INPUT = -1,
  IBV_REREG_MR_ERR_DONT_FORK_NEW = -2,
  IBV_REREG_MR_ERR_DO_FORK_OLD = -3,
  IBV_REREG_MR_ERR_CMD = -4,
  IBV_REREG_MR_ERR_CMD_AND_DO_FORK_NEW = -5,
};

/// Registers `length` bytes at `addr`; `access` of enum ibv_access_flags. The memory stays the
/// caller's and must outlive the region. NULL + errno. Also a macro, below.
struct ibv_mr* ibv_reg_mr(struct ibv_pd* pd, void* addr, size_t length, int access);

/// Registers `length` bytes at `addr`; requests name addresses that count from `iova` instead of
/// `addr`. NULL + errno. Also a macro, below.
struct ibv_mr* ibv_reg_mr_iova(struct ibv_pd* pd, void* addr, size_t length, uint64_t iova,
                               int access);

/// Registers as ibv_reg_mr_iova does, and knows optional access bits (IBV_ACCESS_OPTIONAL_RANGE),
/// which a device may ignore.
struct ibv_mr* ibv_reg_mr_iova2(struct ibv_pd* pd, void* addr, size_t length, uint64_t iova,
                                unsigned int access);

/// Registers part of a DMA buffer `fd` from `offset` on. NULL + errno: EOPNOTSUPP without support.
struct ibv_mr* ibv_reg_dmabuf_mr(struct ibv_pd* pd, uint64_t offset, size_t length, uint64_t iova,
                                 int fd, int access);

// Through unsigned: C++20 deprecates `&` between two enumerations, and callers write either.
#define VBT_ACCESS_BITS_(access) VBT_VALUE_CAST_(unsigned int, (access))

// Which function a registration calls is part of the ABI: one whose access bits are known when the
// program is compiled, and are none of the optional ones, calls the oldest function, so that it
// also runs with a library that has no other. All else calls ibv_reg_mr_iova2.
__attribute__((__always_inline__)) static inline struct ibv_mr* __ibv_reg_mr(
    struct ibv_pd* pd, void* addr, size_t length, unsigned int access, int is_access_const) {
  const unsigned int optional = access & VBT_ACCESS_BITS_(IBV_ACCESS_OPTIONAL_RANGE);
  if (!is_access_const || optional != 0)
    return ibv_reg_mr_iova2(pd, addr, length, VBT_POINTER_CAST_(uintptr_t, addr), access);
  return ibv_reg_mr(pd, addr, length, VBT_VALUE_CAST_(int, access));
}

__attribute__((__always_inline__)) static inline struct ibv_mr* __ibv_reg_mr_iova(
    struct ibv_pd* pd, void* addr, size_t length, uint64_t iova, unsigned int access,
    int is_access_const) {
  const unsigned int optional = access & VBT_ACCESS_BITS_(IBV_ACCESS_OPTIONAL_RANGE);
  if (!is_access_const || optional != 0) return ibv_reg_mr_iova2(pd, addr, length, iova, access);
  return ibv_reg_mr_iova(pd, addr, length, iova, VBT_VALUE_CAST_(int, access));
}

#define VBT_ACCESS_IS_CONSTANT_(access)                                                            \
  __builtin_constant_p((VBT_ACCESS_BITS_(access) & VBT_ACCESS_BITS_(IBV_ACCESS_OPTIONAL_RANGE)) == \
                       0)

#define ibv_reg_mr(pd, addr, length, access) \
  __ibv_reg_mr((pd), (addr), (length), VBT_ACCESS_BITS_(access), VBT_ACCESS_IS_CONSTANT_(access))

#define ibv_reg_mr_iova(pd, addr, length, iova, access)                       \
  __ibv_reg_mr_iova((pd), (addr), (length), (iova), VBT_ACCESS_BITS_(access), \
                    VBT_ACCESS_IS_CONSTANT_(access))

/// Changes what `flags` name of a region. 0, or an enum ibv_rereg_mr_err_code with errno.
int ibv_rereg_mr(struct ibv_mr* mr, int flags, struct ibv_pd* pd, void* addr, size_t length,
                 int access);

/// Ends a registration: when it returns 0, nobody reaches the memory by its keys any more.
/// 0 or an errno: EBUSY while a memory window is bound to it.
int ibv_dereg_mr(struct ibv_mr* mr);

/// A handle on a region of another process that shares the command channel. NULL + errno.
struct ibv_mr* ibv_import_mr(struct ibv_pd* pd, uint32_t mr_handle);

/// Drops the handle; the region itself stays with its maker.
void ibv_unimport_mr(struct ibv_mr* mr);

/// Tells the device how ranges of registered memory will be used. 0 or an errno: EOPNOTSUPP.
static inline int ibv_advise_mr(struct ibv_pd* pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                                struct ibv_sge* sg_list, uint32_t num_sge) {
  struct verbs_context* extended = verbs_get_ctx_op(pd->context, advise_mr);
  return extended ? extended->advise_mr(pd, advice, flags, sg_list, num_sge) : EOPNOTSUPP;
}

/// A region that swallows writes and reads as zeros. NULL + errno: EOPNOTSUPP.
static inline struct ibv_mr* ibv_alloc_null_mr(struct ibv_pd* pd) {
  struct verbs_context* extended = verbs_get_ctx_op(pd->context, alloc_null_mr);
  if (extended) return extended->alloc_null_mr(pd);
  errno = EOPNOTSUPP;
  return NULL;
}

/// What the memory behind a DMA handle is.
enum ibv_tph_mem_type {
  IBV_TPH_MEM_TYPE_VM = 0,  // volatile
  IBV_TPH_MEM_TYPE_PM = 1,  // persistent
};

enum ibv_dmah_init_attr_mask {
  IBV_DMAH_INIT_ATTR_MASK_CPU_ID = 1 << 0,
  IBV_DMAH_INIT_ATTR_MASK_PH = 1 << 1,
  IBV_DMAH_INIT_ATTR_MASK_TPH_MEM_TYPE = 1 << 2,
};

struct ibv_dmah_init_attr {
  uint32_t comp_mask;    // enum ibv_dmah_init_attr_mask: which members below are set
  uint32_t cpu_id;       // the processor that will read the data
  uint8_t ph;            // PCIe processing hint
  uint8_t tph_mem_type;  // enum ibv_tph_mem_type
};

/// A DMA handle: hints for the bus, attached to a region by ibv_reg_mr_ex.
struct ibv_dmah {
  struct ibv_context* context;
};

enum ibv_mr_init_attr_mask {
  IBV_REG_MR_MASK_IOVA = 1 << 0,
  IBV_REG_MR_MASK_ADDR = 1 << 1,
  IBV_REG_MR_MASK_FD = 1 << 2,
  IBV_REG_MR_MASK_FD_OFFSET = 1 << 3,
  IBV_REG_MR_MASK_DMAH = 1 << 4,
  IBV_REG_MR_MASK_BUF = 1 << 5,
};

struct ibv_mr_init_attr {
  size_t length;       // bytes
  int access;          // enum ibv_access_flags
  uint64_t comp_mask;  // enum ibv_mr_init_attr_mask: which members below are set
  uint64_t iova;
  void* addr;
  int fd;
  uint64_t fd_offset;
  struct ibv_dmah* dmah;
  struct ibv_buf* buf;  // of ibv_alloc_buf; `addr` then lies in it
};

/// A new DMA handle; the caller frees it. NULL + errno: EOPNOTSUPP (man ibv_alloc_dmah).
struct ibv_dmah* ibv_alloc_dmah(struct ibv_context* context, struct ibv_dmah_init_attr* attr);

/// 0 or an errno.
int ibv_dealloc_dmah(struct ibv_dmah* dmah);

/// Registers memory as the attributes say: an address, a DMA buffer, or an ibv_buf. NULL + errno: EINVAL,
/// EOPNOTSUPP (man ibv_reg_mr_ex).
struct ibv_mr* ibv_reg_mr_ex(struct ibv_pd* pd, struct ibv_mr_init_attr* mr_init_attr);

/// Memory allocated the way the provider of `pd` likes best. The result is its address; `*buf` gets
/// the handle to register and free it by. `pd` must outlive it. NULL + errno (man ibv_alloc_buf).
void* ibv_alloc_buf(struct ibv_pd* pd, size_t size, struct ibv_buf** buf);

/// Frees such memory; regions of it must be gone.
void ibv_free_buf(struct ibv_buf* buf);

/// Registers `length` bytes at `addr` within `buf`; `pd` must be the one it came from. NULL +
/// errno.
struct ibv_mr* ibv_reg_buf_mr(struct ibv_pd* pd, struct ibv_buf* buf, void* addr, size_t length,
                              int access);

/// A new descriptor of the DMA buffer behind such memory; the caller closes it. -1 + errno: ENODATA
/// where no DMA buffer is behind it.
int ibv_export_buf_dmabuf_fd(struct ibv_buf* buf);

/// A handle on memory of the program's own, for devices that take their queues from it; `dmabuf_fd`
/// is -1 or a DMA buffer that the memory belongs to. NULL + errno: EOPNOTSUPP (man
/// ibv_alloc_user_buf).
struct ibv_buf* ibv_alloc_user_buf(struct ibv_pd* pd, void* addr, size_t size, int dmabuf_fd);

/// Drops the handle; the memory stays.
void ibv_free_user_buf(struct ibv_buf* buf);

#ifdef __cplusplus
}
#endif

#endif  // INFINIBAND_VERBS_MR_H
