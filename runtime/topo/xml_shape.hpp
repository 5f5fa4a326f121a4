// SPDX-License-Identifier: BSD-2-Clause
//
// Whether a text has the shape of a topology in XML: elements that nest and end, objects with the
// attributes and numbers that they must have. hwloc's small parser believes what it is given, and
// reads through null pointers where a set is missing or a tag was cut: so a file that somebody
// edited, or that was copied half, is refused here, with the line.
//
// Any thread; no allocation; reads the text only. Spec: hwloc2.dtd and hwloc.dtd of hwloc.
#pragma once

#include <cstddef>

namespace verbatim::topo {

struct XmlComplaint {
  const char* what;  // null: the shape is good
  unsigned line;
};

/// REQUIRES: text[length] is '\0'.
[[nodiscard]] XmlComplaint check_xml_shape(const char* text, std::size_t length) noexcept;

}  // namespace verbatim::topo
