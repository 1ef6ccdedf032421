#include "base/system/elf.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "base/system/mapped_file.h"

namespace sdx {
namespace {

// Numbers of the format; the names are those of the System V ABI.
constexpr std::uint32_t kPtLoad = 1, kPtDynamic = 2;
constexpr std::int64_t kDtNeeded = 1, kDtStrTab = 5, kDtStrSize = 10, kDtSoname = 14, kDtRpath = 15, kDtRunpath = 29;
constexpr std::int64_t kDtVerDef = 0x6ffffffc, kDtVerDefCount = 0x6ffffffd, kDtVerNeed = 0x6ffffffe, kDtVerNeedCount = 0x6fffffff;
constexpr std::uint16_t kEtDyn = 3;
// Real libraries have some ten program headers and some hundred dynamic entries.
constexpr std::size_t kMaxEntries = 4096;
constexpr std::size_t kMaxName = 4096;

struct Segment {
  std::uint32_t type = 0;
  std::uint64_t offset = 0, address = 0, file_size = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> file) : file_(file) {}

  ElfInfo read();

 private:
  [[noreturn]] static void bad(const char* what) { fail(ErrorCode::invalid_model, "not a usable shared library: {}", what); }

  template <class T>
  T at(std::uint64_t offset) const {
    static_assert(std::is_unsigned_v<T>);
    if (offset > file_.size() || file_.size() - offset < sizeof(T)) bad("it is cut short");
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof(T));
    return value;
  }
  // A field whose width is that of the file's class.
  std::uint64_t word(std::uint64_t offset) const { return wide_ ? at<std::uint64_t>(offset) : at<std::uint32_t>(offset); }

  void read_header(ElfInfo& info);
  void read_dynamic(const Segment& dynamic, ElfInfo& info);
  void read_version_needs(std::uint64_t address, std::uint64_t count, ElfInfo& info) const;
  void read_version_defs(std::uint64_t address, std::uint64_t count, ElfInfo& info) const;
  std::uint64_t file_offset(std::uint64_t address) const;
  std::string text(std::uint64_t index) const;

  std::span<const std::byte> file_;
  bool wide_ = false;
  std::vector<Segment> segments_;
  std::uint64_t strings_ = 0, strings_size_ = 0;
};

std::vector<std::string> split_path(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find(':', start), text.size());
    if (end > start) parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

void Reader::read_header(ElfInfo& info) {
  if (file_.size() < 52 || std::memcmp(file_.data(),
                                       "\x7f"
                                       "ELF",
                                       4) != 0) {
    bad("it does not begin like an ELF file");
  }
  const auto kind = std::to_integer<int>(file_[4]);
  if (kind != 1 && kind != 2) bad("it is neither a 32-bit nor a 64-bit file");
  wide_ = kind == 2;
  info.bits = wide_ ? 64 : 32;
  constexpr int kOwnOrder = 1;  // little-endian: all machines that this code is built for
  if (std::to_integer<int>(file_[5]) != kOwnOrder) bad("it is of another byte order");
  info.shared = at<std::uint16_t>(16) == kEtDyn;
  info.machine = at<std::uint16_t>(18);
  const std::uint64_t table = word(wide_ ? 32 : 28);
  const std::uint64_t entry = at<std::uint16_t>(wide_ ? 54 : 42);
  const std::uint64_t count = at<std::uint16_t>(wide_ ? 56 : 44);
  if (count != 0 && entry < (wide_ ? 56U : 32U)) bad("its program headers are too small");
  if (table > file_.size() || count * entry > file_.size() - table) bad("its program headers are outside the file");
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t p = table + i * entry;
    Segment s;
    s.type = at<std::uint32_t>(p);
    s.offset = word(p + (wide_ ? 8 : 4));
    s.address = word(p + (wide_ ? 16 : 8));
    s.file_size = word(p + (wide_ ? 32 : 16));
    // The loader maps such a segment nevertheless, and reading it beyond the file's end kills the process.
    if (s.type == kPtLoad && (s.offset > file_.size() || s.file_size > file_.size() - s.offset)) {
      bad("it is cut short, as by a download that was broken off");
    }
    segments_.push_back(s);
  }
}

std::uint64_t Reader::file_offset(std::uint64_t address) const {
  for (const Segment& s : segments_) {
    if (s.type == kPtLoad && address >= s.address && address - s.address < s.file_size) {
      const std::uint64_t offset = s.offset + (address - s.address);
      if (offset < s.offset || offset >= file_.size()) break;
      return offset;
    }
  }
  bad("an address of its dynamic section is in no segment");
}

std::string Reader::text(std::uint64_t index) const {
  if (index >= strings_size_) bad("a name is outside its string table");
  const auto* begin = reinterpret_cast<const char*>(file_.data() + strings_ + index);
  const std::size_t room = static_cast<std::size_t>(strings_size_ - index);
  const void* end = std::memchr(begin, 0, room);
  if (end == nullptr) bad("a name in its string table has no end");
  const std::string_view name(begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin));
  if (name.size() > kMaxName) bad("a name in its string table is longer than any path");
  return std::string(name);
}

void Reader::read_dynamic(const Segment& dynamic, ElfInfo& info) {
  const std::uint64_t entry = wide_ ? 16 : 8;
  if (dynamic.offset > file_.size() || dynamic.file_size > file_.size() - dynamic.offset) {
    bad("its dynamic section is outside the file");
  }
  struct Tag {
    std::int64_t tag;
    std::uint64_t value;
  };
  std::vector<Tag> tags;
  for (std::uint64_t i = 0; i < dynamic.file_size / entry && i < kMaxEntries; ++i) {
    const std::uint64_t p = dynamic.offset + i * entry;
    const auto tag = static_cast<std::int64_t>(wide_ ? at<std::uint64_t>(p) : at<std::uint32_t>(p));
    if (tag == 0) break;
    tags.push_back({tag, word(p + entry / 2)});
  }
  const auto find = [&](std::int64_t wanted) -> std::optional<std::uint64_t> {
    for (const Tag& t : tags) {
      if (t.tag == wanted) return t.value;
    }
    return std::nullopt;
  };
  const auto table = find(kDtStrTab);
  if (!table) return;  // a statically linked program: it needs nothing
  strings_ = file_offset(*table);
  strings_size_ = std::min<std::uint64_t>(find(kDtStrSize).value_or(0), file_.size() - strings_);
  for (const Tag& t : tags) {
    if (t.tag == kDtNeeded) info.needed.push_back(text(t.value));
    if (t.tag == kDtSoname) info.soname = text(t.value);
    if (t.tag == kDtRpath) info.rpath = split_path(text(t.value));
    if (t.tag == kDtRunpath) info.runpath = split_path(text(t.value));
  }
  if (const auto needs = find(kDtVerNeed)) read_version_needs(*needs, find(kDtVerNeedCount).value_or(0), info);
  if (const auto defs = find(kDtVerDef)) read_version_defs(*defs, find(kDtVerDefCount).value_or(0), info);
}

// Verneed: version, count, file, aux, next; Vernaux: hash, flags, other, name, next. The links are offsets forward.
void Reader::read_version_needs(std::uint64_t address, std::uint64_t count, ElfInfo& info) const {
  std::uint64_t p = file_offset(address);
  for (std::uint64_t i = 0; i < count && info.version_needs.size() < kMaxEntries; ++i) {
    const std::string library = text(at<std::uint32_t>(p + 4));
    const std::uint16_t names = at<std::uint16_t>(p + 2);
    std::uint64_t aux = p + at<std::uint32_t>(p + 8);
    for (std::uint16_t k = 0; k < names && info.version_needs.size() < kMaxEntries; ++k) {
      info.version_needs.push_back({library, text(at<std::uint32_t>(aux + 8))});
      const std::uint32_t next = at<std::uint32_t>(aux + 12);
      if (next == 0) break;
      aux += next;
    }
    const std::uint32_t next = at<std::uint32_t>(p + 12);
    if (next == 0) break;
    p += next;
  }
}

// Verdef: version, flags, ndx, count, hash (4), aux (4), next (4); its first Verdaux names the version: name, next.
void Reader::read_version_defs(std::uint64_t address, std::uint64_t count, ElfInfo& info) const {
  std::uint64_t p = file_offset(address);
  for (std::uint64_t i = 0; i < count && i < kMaxEntries; ++i) {
    const std::uint64_t aux = p + at<std::uint32_t>(p + 12);
    info.version_defs.push_back(text(at<std::uint32_t>(aux)));
    const std::uint32_t next = at<std::uint32_t>(p + 16);
    if (next == 0) break;
    p += next;
  }
}

ElfInfo Reader::read() {
  ElfInfo info;
  read_header(info);
  for (const Segment& s : segments_) {
    if (s.type == kPtDynamic) {
      read_dynamic(s, info);
      break;
    }
  }
  return info;
}

}  // namespace

ElfInfo read_elf(std::span<const std::byte> file) { return Reader(file).read(); }

ElfInfo read_elf(const std::filesystem::path& path) { return read_elf(MappedFile::open(path, 0)->bytes()); }

std::string elf_machine_name(std::uint16_t machine) {
  switch (machine) {
    case 3: return "x86 (32-bit)";
    case 21: return "PowerPC64";
    case 40: return "ARM (32-bit)";
    case 62: return "x86-64";
    case 183: return "AArch64";
    case 243: return "RISC-V";
    case 258: return "LoongArch";
    default: return "machine " + std::to_string(machine);
  }
}

std::uint16_t own_elf_machine() noexcept {
#if defined(__x86_64__)
  return 62;
#elif defined(__aarch64__)
  return 183;
#elif defined(__riscv)
  return 243;
#else
  return 0;
#endif
}

std::vector<LoaderCacheEntry> read_loader_cache(std::span<const std::byte> file) {
  // Header: magic and version (20 bytes), number of entries, bytes of strings, flags and reserved (20). Entry: flags, soname,
  // path (offsets from the file's start), OS version, hardware capabilities (8): 24 bytes. An old-format cache may stand before
  // it; distributions stopped writing that with glibc 2.32.
  constexpr std::string_view kMagic = "glibc-ld.so.cache1.1";
  constexpr std::size_t kHeader = 48, kEntry = 24;
  std::vector<LoaderCacheEntry> entries;
  if (file.size() < kHeader || std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) return entries;
  const auto number = [&](std::size_t offset) {
    std::uint32_t value = 0;
    std::memcpy(&value, file.data() + offset, sizeof value);
    return value;
  };
  const auto text = [&](std::size_t offset) -> std::string {
    if (offset >= file.size()) return "";
    const auto* begin = reinterpret_cast<const char*>(file.data() + offset);
    const void* end = std::memchr(begin, 0, std::min(file.size() - offset, kMaxName));
    return end == nullptr ? "" : std::string(begin, static_cast<const char*>(end));
  };
  // The second byte of the flags is the architecture: 3 x86-64, 10 AArch64 (hard float); others are taken as they come.
#if defined(__x86_64__)
  constexpr std::uint32_t kOwn = 3;
#elif defined(__aarch64__)
  constexpr std::uint32_t kOwn = 10;
#else
  constexpr std::uint32_t kOwn = 0;
#endif
  const std::size_t count = std::min<std::size_t>(number(20), (file.size() - kHeader) / kEntry);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t p = kHeader + i * kEntry;
    const std::uint32_t architecture = (number(p) >> 8) & 0xff;
    if (kOwn != 0 && architecture != kOwn) continue;
    LoaderCacheEntry entry{text(number(p + 4)), text(number(p + 8))};
    if (!entry.soname.empty() && !entry.path.empty()) entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace sdx
