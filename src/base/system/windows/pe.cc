#include "base/system/windows/pe.h"

#include <cstring>

#include "base/error.h"
#include "base/system/mapped_file.h"

namespace sdx::windows {
namespace {

[[noreturn]] void fail_damaged(const char* what) { fail(ErrorCode::invalid_model, "not a usable library: {}", what); }

class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : file_(file) {}

  template <class T>
  T at(std::uint64_t offset) const {
    if (offset > file_.size() || file_.size() - offset < sizeof(T)) fail_damaged("it is cut short");
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof value);
    return value;
  }

  // Text that ends with a zero.
  std::string text(std::uint64_t offset) const {
    constexpr std::size_t kMost = 4096;
    std::string out;
    for (; out.size() < kMost; ++offset) {
      const char letter = at<char>(offset);
      if (letter == '\0') return out;
      out += letter;
    }
    fail_damaged("a name does not end");
  }

  std::size_t size() const { return file_.size(); }

 private:
  std::span<const std::byte> file_;
};

struct Section {
  std::uint32_t address, bytes, offset;
};

// A place in the file for an address in memory.
std::uint64_t offset_of(const std::vector<Section>& sections, std::uint32_t address) {
  for (const Section& s : sections) {
    if (address >= s.address && address - s.address < s.bytes) return std::uint64_t{s.offset} + (address - s.address);
  }
  fail_damaged("an address is in none of its sections");
}

std::vector<Section> sections_of(const Reader& r, std::uint64_t table, unsigned count) {
  constexpr std::uint64_t kEntry = 40;
  std::vector<Section> out;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t at = table + kEntry * i;
    out.push_back({r.at<std::uint32_t>(at + 12), r.at<std::uint32_t>(at + 16), r.at<std::uint32_t>(at + 20)});
    if (std::uint64_t{out.back().offset} + out.back().bytes > r.size()) fail_damaged("it is cut short");
  }
  return out;
}

}  // namespace

PeInfo read_pe(std::span<const std::byte> file) {
  const Reader r(file);
  if (file.size() < 64 || r.at<std::uint16_t>(0) != 0x5A4D) fail_damaged("it has not the form of a library");  // "MZ"
  const std::uint64_t header = r.at<std::uint32_t>(0x3C);
  if (r.at<std::uint32_t>(header) != 0x4550) fail_damaged("it has not the form of a library");  // "PE"
  PeInfo info;
  info.machine = r.at<std::uint16_t>(header + 4);
  info.library = (r.at<std::uint16_t>(header + 22) & 0x2000U) != 0;
  const unsigned sections = r.at<std::uint16_t>(header + 6);
  const std::uint64_t optional = header + 24, table = optional + r.at<std::uint16_t>(header + 20);
  const bool wide = r.at<std::uint16_t>(optional) == 0x20B;  // 64 bits
  const std::uint64_t directories = optional + (wide ? 112 : 96);
  const std::vector<Section> all = sections_of(r, table, sections);
  const bool has_imports = r.at<std::uint32_t>(directories - 4) > 1;
  const std::uint32_t imports = has_imports ? r.at<std::uint32_t>(directories + 8) : 0;
  if (imports == 0) return info;
  constexpr std::uint64_t kEntry = 20;
  for (std::uint64_t at = offset_of(all, imports);; at += kEntry) {
    const auto name = r.at<std::uint32_t>(at + 12);
    if (name == 0) break;
    info.imports.push_back(r.text(offset_of(all, name)));
  }
  return info;
}

PeInfo read_pe(const std::filesystem::path& path) { return read_pe(MappedFile::open(path, 0)->bytes()); }

std::string pe_machine_name(std::uint16_t machine) {
  switch (machine) {
    case 0x8664: return "x86-64";
    case 0xAA64: return "AArch64";
    case 0x014C: return "32-bit x86";
    case 0xA641: return "ARM64EC";
    default: return fmt::format("another machine ({:#x})", machine);
  }
}

std::uint16_t own_pe_machine() noexcept {
#if defined(__x86_64__)
  return 0x8664;
#elif defined(__aarch64__)
  return 0xAA64;
#else
  return 0;
#endif
}

}  // namespace sdx::windows
