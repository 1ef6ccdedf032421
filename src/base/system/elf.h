#pragma once
// Reads what a shared library says about itself: enough of the ELF format to explain why the loader refuses a file.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sdx {

// "GLIBC_2.38", wanted from "libc.so.6".
struct ElfVersionNeed {
  std::string library;
  std::string version;
};

struct ElfInfo {
  int bits = 0;               // 32 or 64
  std::uint16_t machine = 0;  // e_machine: 62 x86-64, 183 AArch64
  bool shared = false;        // a shared object (or position-independent program)
  std::string soname;
  std::vector<std::string> needed;   // DT_NEEDED, in order
  std::vector<std::string> rpath;    // DT_RPATH, split at ':', $ORIGIN not yet replaced
  std::vector<std::string> runpath;  // DT_RUNPATH, likewise
  std::vector<ElfVersionNeed> version_needs;
  std::vector<std::string> version_defs;  // the versions that it offers itself
};

// Every offset and count is checked before it is followed: a damaged or hostile file is an Error(invalid_model) saying what is
// wrong with it, and the time taken is linear in its size. Source: System V ABI, "Object Files" and "Dynamic Linking"; symbol
// versions as in the Linux Standard Base. Only the machine's own byte order is read.
ElfInfo read_elf(std::span<const std::byte> file);

// The same for a file. Throws Error(io) where it cannot be read.
ElfInfo read_elf(const std::filesystem::path& path);

// "x86-64", "AArch64", …
std::string elf_machine_name(std::uint16_t machine);
// e_machine of this program; 0 where it is not known.
std::uint16_t own_elf_machine() noexcept;

// One line of the loader's cache.
struct LoaderCacheEntry {
  std::string soname;
  std::string path;
};

// Reads the "glibc-ld.so.cache1.1" format of ld.so.cache; entries for `machine` only, if the format tells the machine. A damaged
// file gives its readable part, never an error: it is only a hint.
std::vector<LoaderCacheEntry> read_loader_cache(std::span<const std::byte> file);

}  // namespace sdx
