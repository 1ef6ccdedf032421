#pragma once
// Small ELF files made by tests.

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/system/elf.h"

namespace sdx::testing {

struct ElfSpec {
  std::string soname{};
  std::vector<std::string> needed{};
  std::string rpath{}, runpath{};
  std::vector<ElfVersionNeed> version_needs{};
  std::vector<std::string> version_defs{};
  std::uint16_t machine = own_elf_machine();
};

// A 64-bit shared object with one segment that holds everything at its file offset.
inline std::string elf_bytes(const ElfSpec& spec) {
  constexpr std::size_t kDynamicAt = 64 + 2 * 56;
  std::string strings(1, '\0');
  const auto text = [&](const std::string& s) {
    const std::size_t at = strings.size();
    strings += s + '\0';
    return static_cast<std::uint64_t>(at);
  };
  const auto put = [](std::string& out, auto value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); };
  std::vector<std::pair<std::uint64_t, std::uint64_t>> tags;
  for (const std::string& n : spec.needed) tags.emplace_back(1, text(n));
  if (!spec.soname.empty()) tags.emplace_back(14, text(spec.soname));
  if (!spec.rpath.empty()) tags.emplace_back(15, text(spec.rpath));
  if (!spec.runpath.empty()) tags.emplace_back(29, text(spec.runpath));
  std::string needs, defs;
  for (std::size_t i = 0; i < spec.version_needs.size(); ++i) {
    const bool last = i + 1 == spec.version_needs.size();
    put(needs, std::uint16_t{1}), put(needs, std::uint16_t{1});
    put(needs, static_cast<std::uint32_t>(text(spec.version_needs[i].library)));
    put(needs, std::uint32_t{16}), put(needs, std::uint32_t{last ? 0U : 32U});
    put(needs, std::uint32_t{0}), put(needs, std::uint16_t{0}), put(needs, std::uint16_t{2});
    put(needs, static_cast<std::uint32_t>(text(spec.version_needs[i].version)));
    put(needs, std::uint32_t{0});
  }
  for (std::size_t i = 0; i < spec.version_defs.size(); ++i) {
    const bool last = i + 1 == spec.version_defs.size();
    put(defs, std::uint16_t{1}), put(defs, std::uint16_t{0}), put(defs, std::uint16_t{2}), put(defs, std::uint16_t{1});
    put(defs, std::uint32_t{0}), put(defs, std::uint32_t{20}), put(defs, std::uint32_t{last ? 0U : 28U});
    put(defs, static_cast<std::uint32_t>(text(spec.version_defs[i])));
    put(defs, std::uint32_t{0});
  }
  const std::size_t count = tags.size() + 3 + (needs.empty() ? 0 : 2) + (defs.empty() ? 0 : 2);
  const std::uint64_t strings_at = kDynamicAt + count * 16;
  const std::uint64_t needs_at = strings_at + strings.size(), defs_at = needs_at + needs.size();
  tags.emplace_back(5, strings_at);
  tags.emplace_back(10, strings.size());
  if (!needs.empty()) tags.emplace_back(0x6ffffffe, needs_at), tags.emplace_back(0x6fffffff, spec.version_needs.size());
  if (!defs.empty()) tags.emplace_back(0x6ffffffc, defs_at), tags.emplace_back(0x6ffffffd, spec.version_defs.size());
  tags.emplace_back(0, 0);

  const std::uint64_t total = defs_at + defs.size();
  std::string out(
      "\x7f"
      "ELF\x02\x01\x01",
      7);
  out.resize(16, '\0');
  put(out, std::uint16_t{3}), put(out, spec.machine), put(out, std::uint32_t{1});
  put(out, std::uint64_t{0}), put(out, std::uint64_t{64}), put(out, std::uint64_t{0}), put(out, std::uint32_t{0});
  put(out, std::uint16_t{64}), put(out, std::uint16_t{56}), put(out, std::uint16_t{2});
  out.resize(64, '\0');
  const auto segment = [&](std::uint32_t type, std::uint64_t offset, std::uint64_t size) {
    put(out, type), put(out, std::uint32_t{4});
    put(out, offset), put(out, offset), put(out, offset), put(out, size), put(out, size), put(out, std::uint64_t{8});
  };
  segment(1, 0, total);
  segment(2, kDynamicAt, count * 16);
  for (const auto& [tag, value] : tags) put(out, tag), put(out, value);
  return out + strings + needs + defs;
}

}  // namespace sdx::testing
