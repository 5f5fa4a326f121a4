// SPDX-License-Identifier: BSD-2-Clause
// How the files of this folder define a function of verbatim/coll.h.
#pragma once

#include <verbatim/coll.h>

#define VBT_COLL_ENTRY extern "C" [[gnu::visibility("default")]]
