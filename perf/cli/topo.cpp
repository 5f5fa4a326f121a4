// SPDX-License-Identifier: BSD-2-Clause
// `verbatim topo`: the machine as the library sees it, and what follows for buffers and threads.
#include <getopt.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "perf/cli/commands.hpp"
#include "perf/cli/failure.hpp"
#include "perf/cli/option_values.hpp"
#include "perf/cli/topo_views.hpp"
#include "perf/support/lost_output.hpp"
#include "runtime/topo/machine_read.hpp"

namespace verbatim::cli {
namespace {

void topo_usage(const char* name) {
  std::printf(
      "Usage:\n"
      "  %s            print the machine as the library sees it\n"
      "\n"
      "Options:\n"
      "  -j, --json         as JSON\n"
      "  -s, --svg=<file>   draw it into <file> instead ('-': standard output)\n"
      "  -h, --help         print a help text and exit\n"
      "\n"
      "HWLOC_XMLFILE=<file> and HWLOC_SYNTHETIC=<description> show another machine.\n",
      name);
}

struct TopoOptions {
  bool json = false;
  bool help = false;
  std::string svg;
};

TopoOptions parse_topo(int argc, char** argv) {
  static const option kLong[] = {{"json", no_argument, nullptr, 'j'},
                                 {"svg", required_argument, nullptr, 's'},
                                 {"help", no_argument, nullptr, 'h'},
                                 {nullptr, 0, nullptr, 0}};
  TopoOptions options;
  static constexpr char kLetters[] = ":js:h";
  opterr = 0;
  for (int c; (c = getopt_long(argc, argv, kLetters, kLong, nullptr)) != -1;) {
    if (c == 'j') {
      options.json = true;
    } else if (c == 's') {
      options.svg = optarg;
      if (options.svg.empty()) fail("%s: --svg needs the name of a file", argv[0]);
    } else if (c == 'h') {
      options.help = true;
    } else {
      refuse_option(c, kLetters, argv);
    }
  }
  if (optind < argc) fail("%s: '%s' is too much (see --help)", argv[0], argv[optind]);
  if (options.json && !options.svg.empty()) fail("%s: --json or --svg, not both", argv[0]);
  return options;
}

void write(const std::string& text, const std::string& path) {
  const bool standard = path.empty() || path == "-";
  std::FILE* const file = standard ? stdout : std::fopen(path.c_str(), "we");
  int error = file == nullptr ? errno : 0;
  if (file != nullptr) {
    if (std::fwrite(text.data(), 1, text.size(), file) != text.size()) error = errno;
    if ((standard ? std::fflush(file) : std::fclose(file)) != 0 && error == 0) error = errno;
  }
  if (error != 0) {
    if (standard) perf::forget_lost_output();
    fail("verbatim topo: cannot write %s: %s", standard ? "what it found" : path.c_str(),
         std::strerror(error));
  }
}

}  // namespace

int topology(Calling, int argc, char** argv) {
  try {
    const TopoOptions options = parse_topo(argc, argv);
    if (options.help) {
      topo_usage(argv[0]);
      return 0;
    }
    const auto facts = std::make_unique<TopoFacts>();
    gather(*facts);
    if (!options.svg.empty()) {
      if (!facts->machine->known())
        fail("%s: nothing is known that could be drawn%s", argv[0],
             topo::reader_version() == 0 ? ": built without hwloc" : "");
      write(topo_svg(*facts), options.svg);
    } else {
      write(options.json ? topo_json(*facts) : topo_text(*facts), "");
    }
    // Whoever built it without hwloc knows; anything else that hides the machine is a failure.
    return facts->machine->known() || topo::reader_version() == 0 ? 0 : 1;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s\n", failure.line.c_str());
    return failure.status;
  }
}

}  // namespace verbatim::cli
