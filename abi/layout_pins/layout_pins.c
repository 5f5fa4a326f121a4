// SPDX-License-Identifier: BSD-2-Clause
// The pins, judged by a C compiler.
#include "layout_pins.h"
