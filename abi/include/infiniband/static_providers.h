/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The application's own choice of providers: compile with -DRDMA_STATIC_PROVIDERS=shm,rxe (or all,
 * or none).
 *
 * Included by verbs.h. Each translation unit compiled with the macro leaves pointers to the
 * providers it names in the section `vbt_providers`; the library takes the union of all units.
 * Naming a provider is what links it in, so the program carries those and no other; a name that the
 * library does not have is a link error that says it (verbs_provider_foo). Without the macro
 * nothing is emitted and the program gets every provider the library was built with.
 *
 * Needs nothing but a C11 or C++ compiler with GNU attributes, and no constructor runs at load.
 */
#ifndef INFINIBAND_STATIC_PROVIDERS_H
#define INFINIBAND_STATIC_PROVIDERS_H

#ifdef RDMA_STATIC_PROVIDERS

/* Linkers with --gc-sections keep what is marked `retain`, though no code of the program refers to
 * it. */
#if defined(__has_attribute)
#if __has_attribute(retain)
#define VBT_KEEP __attribute__((used, retain, section("vbt_providers")))
#endif
#endif
#ifndef VBT_KEEP
#define VBT_KEEP __attribute__((used, section("vbt_providers")))
#endif

/* VBT_EACH(do, a, b) is do(a) do(b): the list is filled up with 0s, which VBT_SKIP_0 drops. */
#define VBT_SKIP_0 ~, VBT_NOTHING
#define VBT_NOTHING(name)
#define VBT_SECOND(first, second, ...) second
#define VBT_PICK(...) VBT_SECOND(__VA_ARGS__)
#define VBT_UNLESS_0(do, name) VBT_PICK(VBT_SKIP_##name, do, ~)(name)
/* clang-format off */
#define VBT_EACH_OF_32(do, a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, \
                       a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, past, ...) \
  VBT_UNLESS_0(do, a0) VBT_UNLESS_0(do, a1) VBT_UNLESS_0(do, a2) VBT_UNLESS_0(do, a3) \
  VBT_UNLESS_0(do, a4) VBT_UNLESS_0(do, a5) VBT_UNLESS_0(do, a6) VBT_UNLESS_0(do, a7) \
  VBT_UNLESS_0(do, a8) VBT_UNLESS_0(do, a9) VBT_UNLESS_0(do, a10) VBT_UNLESS_0(do, a11) \
  VBT_UNLESS_0(do, a12) VBT_UNLESS_0(do, a13) VBT_UNLESS_0(do, a14) VBT_UNLESS_0(do, a15) \
  VBT_UNLESS_0(do, a16) VBT_UNLESS_0(do, a17) VBT_UNLESS_0(do, a18) VBT_UNLESS_0(do, a19) \
  VBT_UNLESS_0(do, a20) VBT_UNLESS_0(do, a21) VBT_UNLESS_0(do, a22) VBT_UNLESS_0(do, a23) \
  VBT_UNLESS_0(do, a24) VBT_UNLESS_0(do, a25) VBT_UNLESS_0(do, a26) VBT_UNLESS_0(do, a27) \
  VBT_UNLESS_0(do, a28) VBT_UNLESS_0(do, a29) VBT_UNLESS_0(do, a30) VBT_UNLESS_0(do, a31) \
  VBT_UNLESS_0(VBT_TOO_MANY, past)
/* clang-format on */
/* Not a declaration: the compiler stops at this name. */
#define VBT_TOO_MANY(name) vbt_at_most_32_static_providers
#define VBT_EACH(do, ...)                                                                        \
  VBT_EACH_OF_32(do, __VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, \
                 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

#define VBT_DECLARE_PROVIDER(name) extern const struct vbt_provider verbs_provider_##name;
#define VBT_POINT_AT_PROVIDER(name) &verbs_provider_##name,

#ifdef __cplusplus
extern "C" {
#endif

struct vbt_provider;
VBT_EACH(VBT_DECLARE_PROVIDER, RDMA_STATIC_PROVIDERS)

/* Not const: the section must have the same flags in every unit, position independent or not. */
static const struct vbt_provider* vbt_chosen_providers[] VBT_KEEP = {
    VBT_EACH(VBT_POINT_AT_PROVIDER, RDMA_STATIC_PROVIDERS)};

/* While this weak definition stands, the linker has no reason to pull the library's own list, and
 * the providers in it. Of void: the library knows more of the type, and LTO compares. */
extern const void* const* vbt_default_providers;
const void* const* vbt_default_providers __attribute__((weak));

#ifdef __cplusplus
}
#endif

#undef VBT_KEEP
#undef VBT_SKIP_0
#undef VBT_NOTHING
#undef VBT_SECOND
#undef VBT_PICK
#undef VBT_UNLESS_0
#undef VBT_EACH_OF_32
#undef VBT_TOO_MANY
#undef VBT_EACH
#undef VBT_DECLARE_PROVIDER
#undef VBT_POINT_AT_PROVIDER

#endif /* RDMA_STATIC_PROVIDERS */

#endif /* INFINIBAND_STATIC_PROVIDERS_H */
