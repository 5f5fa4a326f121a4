// SPDX-License-Identifier: BSD-2-Clause
#include "perf/footprint/program_size.hpp"

#include <elf.h>

#include <cstring>
#include <fstream>
#include <vector>

namespace verbatim::perf {
namespace {

template <class Part>
bool read_at(std::ifstream& file, std::uint64_t at, Part* part) {
  file.seekg(static_cast<std::streamoff>(at));
  file.read(reinterpret_cast<char*>(part), sizeof *part);
  return file.good();
}

}  // namespace

std::optional<std::uint64_t> stripped_size(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  const auto whole = static_cast<std::uint64_t>(file.tellg());
  Elf64_Ehdr head;
  if (!read_at(file, 0, &head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_shentsize != sizeof(Elf64_Shdr)) {
    return std::nullopt;
  }
  std::vector<Elf64_Shdr> sections(head.e_shnum);
  for (std::size_t i = 0; i < sections.size(); ++i) {
    if (!read_at(file, head.e_shoff + i * sizeof(Elf64_Shdr), &sections[i])) return std::nullopt;
  }
  std::uint64_t stripped = whole;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    const Elf64_Shdr& section = sections[i];
    // What is loaded stays, and so do the names of the sections.
    const bool stays = (section.sh_flags & SHF_ALLOC) != 0 || i == head.e_shstrndx;
    if (stays || section.sh_type == SHT_NOBITS || section.sh_type == SHT_NULL) continue;
    if (section.sh_size > stripped) return std::nullopt;
    stripped -= section.sh_size;
  }
  return stripped;
}

}  // namespace verbatim::perf
