// SPDX-License-Identifier: BSD-2-Clause
//
// What most tests include, parsed once for all of them (toolchains/cmake/VerbatimTest.cmake).
// Nobody includes this: a file names what it uses, and is compiled without this where ccache is
// used.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/support/handles.hpp"
#include "tests/support/log_watch.hpp"
#include "tests/support/pair.hpp"
#include "tests/support/requests.hpp"
