// SPDX-License-Identifier: BSD-2-Clause
//
// The only way to hwloc: a copy of the static library that is ours alone. The build joins its
// members into one object, gives the functions below the names to the right, hides every other
// name, and turns what would load code, read the environment or end the program to hwloc_shims.cpp.
// So a program may link its own hwloc, of another version, beside us; and a static program stays
// one. The list is read by CMakeLists.txt: a function that is missing here does not link.
//
// Included by machine_read_hwloc.cpp alone. Spec: hwloc.h of hwloc 2.
#pragma once

// What hwloc.h includes, so that only its own declarations are hidden.
#include <limits.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define hwloc_bitmap_alloc vbt_hwloc_bitmap_alloc
#define hwloc_bitmap_free vbt_hwloc_bitmap_free
#define hwloc_bitmap_isset vbt_hwloc_bitmap_isset
#define hwloc_cpukinds_get_info vbt_hwloc_cpukinds_get_info
#define hwloc_cpukinds_get_nr vbt_hwloc_cpukinds_get_nr
#define hwloc_distances_get_by_type vbt_hwloc_distances_get_by_type
#define hwloc_distances_release vbt_hwloc_distances_release
#define hwloc_get_api_version vbt_hwloc_get_api_version
#define hwloc_get_nbobjs_by_depth vbt_hwloc_get_nbobjs_by_depth
#define hwloc_get_obj_by_depth vbt_hwloc_get_obj_by_depth
#define hwloc_get_type_depth vbt_hwloc_get_type_depth
#define hwloc_topology_destroy vbt_hwloc_topology_destroy
#define hwloc_topology_init vbt_hwloc_topology_init
#define hwloc_topology_load vbt_hwloc_topology_load
#define hwloc_topology_set_all_types_filter vbt_hwloc_topology_set_all_types_filter
#define hwloc_topology_set_components vbt_hwloc_topology_set_components
#define hwloc_topology_set_flags vbt_hwloc_topology_set_flags
#define hwloc_topology_set_synthetic vbt_hwloc_topology_set_synthetic
#define hwloc_topology_set_type_filter vbt_hwloc_topology_set_type_filter
#define hwloc_topology_set_xmlbuffer vbt_hwloc_topology_set_xmlbuffer

#pragma GCC visibility push(hidden)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wcast-qual"
#pragma GCC diagnostic ignored "-Wundef"
#include <hwloc/autogen/config.h>
#undef HWLOC_DECLSPEC  // "default", which is for a library that programs share
#define HWLOC_DECLSPEC
#include <hwloc.h>
#pragma GCC diagnostic pop
#pragma GCC visibility pop
