#pragma once
// Reads what a DLL says about itself: enough of the PE format to explain why the loader refuses a file.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace sdx::windows {

struct PeInfo {
  std::uint16_t machine = 0;  // 0x8664 x86-64, 0xAA64 AArch64, 0x14C 32-bit x86
  bool library = false;
  std::vector<std::string> imports;  // DLLs, in order
};

// Every offset and count is checked before it is followed: a damaged or hostile file is an Error(invalid_model) saying what is
// wrong with it. Source: Microsoft, "PE Format".
PeInfo read_pe(std::span<const std::byte> file);
// The same for a file. Throws Error(io) where it cannot be read.
PeInfo read_pe(const std::filesystem::path& path);

// "x86-64", "AArch64", …
std::string pe_machine_name(std::uint16_t machine);
std::uint16_t own_pe_machine() noexcept;

}  // namespace sdx::windows
