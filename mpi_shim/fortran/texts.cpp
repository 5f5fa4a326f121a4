// SPDX-License-Identifier: BSD-2-Clause
// CHARACTER arguments: padded with blanks in Fortran, ended by a zero in C.
#include <algorithm>

#include "mpi_shim/fortran/entry.hpp"

namespace vmpi::fortran {

InText::InText(const char* from, Length length, bool strip_leading) noexcept : copy_{length + 1} {
  while (length != 0 && from[length - 1] == ' ') --length;
  while (strip_leading && length != 0 && *from == ' ') ++from, --length;
  if (copy_.data() == nullptr) return;
  std::memcpy(copy_.data(), from, length);
  copy_.data()[length] = '\0';
}

Argument<char*>::~Argument() {
  if (text_[0] == kNotWritten && text_[1] == '\0') return;
  const Length written = std::min<Length>(std::strlen(text_), length_);
  std::memcpy(to_, text_, written);
  std::memset(to_ + written, ' ', length_ - written);
}

}  // namespace vmpi::fortran
