// SPDX-License-Identifier: BSD-2-Clause
// A line that is put together in a caller's buffer, as snprintf would: cut where the buffer ends,
// counted to its own end.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdio>

namespace verbatim {

class TextLine {
 public:
  TextLine(char* text, std::size_t size) noexcept : text_(text), size_(size) {
    if (size_ != 0) text_[0] = 0;
  }

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) noexcept {
    std::va_list arguments;
    va_start(arguments, format);
    const bool room = length_ < size_;
    const int written = std::vsnprintf(room ? text_ + length_ : nullptr, room ? size_ - length_ : 0,
                                       format, arguments);
    va_end(arguments);
    if (written > 0) length_ += static_cast<std::size_t>(written);
  }
  [[nodiscard]] std::size_t length() const noexcept { return length_; }

 private:
  char* text_;
  std::size_t size_;
  std::size_t length_ = 0;
};

}  // namespace verbatim
