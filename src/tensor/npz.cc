// Zip archives as PKWARE's APPNOTE 6.3.10 describes them, as far as NumPy and common zip programs write them.

#include "tensor/npz.h"

#include <zlib.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/memory.h"
#include "base/system/mapped_file.h"
#include "tensor/npy.h"

namespace sdx {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50;
constexpr std::uint32_t kCentral = 0x02014b50;
constexpr std::uint32_t kEnd = 0x06054b50;
constexpr std::uint32_t kEnd64 = 0x06064b50;
constexpr std::uint32_t kLocator64 = 0x07064b50;
constexpr std::size_t kEndSize = 22;
constexpr std::size_t kCentralSize = 46;
constexpr std::size_t kLocalSize = 30;
constexpr std::uint64_t kDeflateRatio = 1032;  // zlib's documented maximum is 1032:1

[[noreturn]] void malformed(const std::string& why) { fail(ErrorCode::invalid_argument, "not a usable .npz archive: {}", why); }

// Little-endian fields, checked against the end of the archive.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t get(std::uint64_t at, std::size_t width) const {
    const auto field = slice(at, width);
    std::uint64_t value = 0;
    for (std::size_t i = width; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(field[i]);
    return value;
  }
  std::uint64_t u16(std::uint64_t at) const { return get(at, 2); }
  std::uint64_t u32(std::uint64_t at) const { return get(at, 4); }
  std::uint64_t u64(std::uint64_t at) const { return get(at, 8); }
  std::span<const std::byte> slice(std::uint64_t at, std::uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) malformed("it ends too early");
    return bytes_.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(size));
  }
  std::string text(std::uint64_t at, std::uint64_t size) const {
    const auto s = slice(at, size);
    return {reinterpret_cast<const char*>(s.data()), s.size()};
  }
  std::uint64_t size() const { return bytes_.size(); }

 private:
  std::span<const std::byte> bytes_;
};

struct Directory {
  std::uint64_t offset = 0;
  std::uint64_t members = 0;
};

Directory find_directory(const Bytes& zip) {
  if (zip.size() < kEndSize) malformed("it is shorter than an empty archive");
  const std::uint64_t last = zip.size() - kEndSize;
  const std::uint64_t first = last > 0xFFFF ? last - 0xFFFF : 0;  // the archive's comment has at most 65535 bytes
  std::uint64_t at = last;
  while (zip.u32(at) != kEnd || at + kEndSize + zip.u16(at + 20) > zip.size()) {
    if (at == first) malformed("it has no end-of-directory record");
    --at;
  }
  Directory d{zip.u32(at + 16), zip.u16(at + 10)};
  const bool wants_64 = d.offset == 0xFFFFFFFF || d.members == 0xFFFF || zip.u32(at + 12) == 0xFFFFFFFF;
  if (wants_64 && at >= 20 && zip.u32(at - 20) == kLocator64) {
    const std::uint64_t end64 = zip.u64(at - 20 + 8);
    if (end64 > zip.size() || zip.u32(end64) != kEnd64) malformed("its zip64 directory is missing");
    d.members = zip.u64(end64 + 32);
    d.offset = zip.u64(end64 + 48);
  }
  return d;
}

struct Member {
  std::string name;
  std::uint64_t method = 0;
  std::uint64_t crc = 0;
  std::uint64_t packed = 0;
  std::uint64_t unpacked = 0;
  std::uint64_t header = 0;
};

// The zip64 extra field holds 8 bytes for each of these fields that is 0xFFFFFFFF, in this order.
void read_zip64(const Bytes& zip, std::uint64_t at, std::uint64_t size, Member& m) {
  const std::uint64_t end = at + size;
  while (end - at >= 4) {
    const std::uint64_t id = zip.u16(at);
    const std::uint64_t length = zip.u16(at + 2);
    at += 4;
    if (length > end - at) return;
    if (id == 1) {
      std::uint64_t field = at;
      for (std::uint64_t* value : {&m.unpacked, &m.packed, &m.header}) {
        if (*value != 0xFFFFFFFF) continue;
        if (field + 8 > at + length) malformed("the sizes of member '" + m.name + "' are missing");
        *value = zip.u64(field);
        field += 8;
      }
      return;
    }
    at += length;
  }
}

std::vector<Member> read_directory(const Bytes& zip, const NpzLimits& limits) {
  const Directory directory = find_directory(zip);
  if (directory.members > limits.members) {
    malformed("it has " + std::to_string(directory.members) + " members, more than " + std::to_string(limits.members));
  }
  std::vector<Member> members;
  std::uint64_t at = directory.offset;
  std::uint64_t packed = 0;
  for (std::uint64_t i = 0; i < directory.members; ++i) {
    if (zip.u32(at) != kCentral) malformed("its directory is damaged");
    Member m;
    const std::uint64_t name_size = zip.u16(at + 28);
    const std::uint64_t extra_size = zip.u16(at + 30);
    m.name = zip.text(at + kCentralSize, name_size);
    m.method = zip.u16(at + 10);
    m.crc = zip.u32(at + 16);
    m.packed = zip.u32(at + 20);
    m.unpacked = zip.u32(at + 24);
    m.header = zip.u32(at + 42);
    if ((zip.u16(at + 8) & 1) != 0) malformed("member '" + m.name + "' is encrypted");
    zip.slice(at + kCentralSize + name_size, extra_size);
    read_zip64(zip, at + kCentralSize + name_size, extra_size, m);
    at += kCentralSize + name_size + extra_size + zip.u16(at + 32);
    // Members that share their bytes ("overlap bombs") add up to more than the file.
    if (m.packed > zip.size() || (packed += m.packed) > zip.size()) malformed("its members overlap");
    members.push_back(std::move(m));
  }
  return members;
}

// crc32() takes an unsigned int's worth of bytes at a time.
std::uint32_t checksum(std::span<const std::byte> data) {
  uLong crc = crc32(0, nullptr, 0);
  while (!data.empty()) {
    const std::size_t part = std::min<std::size_t>(data.size(), 1u << 30);
    crc = crc32(crc, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(part));
    data = data.subspan(part);
  }
  return static_cast<std::uint32_t>(crc);
}

// Raw deflate (no zlib header) of exactly `size` bytes.
std::shared_ptr<const void> inflate_member(std::span<const std::byte> packed, std::size_t size, const std::string& name) {
  std::shared_ptr<void> out = allocate(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) fail(ErrorCode::out_of_memory, "zlib has no memory");
  struct End {
    z_stream* stream;
    ~End() { inflateEnd(stream); }
  } end{&stream};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.next_out = static_cast<Bytef*>(out.get());
  std::size_t in_left = packed.size();
  std::size_t out_left = size;
  int status = Z_OK;
  while (status == Z_OK) {
    const auto in_part = static_cast<uInt>(std::min<std::size_t>(in_left, 1u << 30));
    const auto out_part = static_cast<uInt>(std::min<std::size_t>(out_left, 1u << 30));
    stream.avail_in = in_part;
    stream.avail_out = out_part;
    status = inflate(&stream, Z_NO_FLUSH);
    in_left -= in_part - stream.avail_in;
    out_left -= out_part - stream.avail_out;
    if (status == Z_OK && stream.avail_in == in_part && stream.avail_out == out_part) break;
  }
  if (status != Z_STREAM_END || out_left != 0) malformed("the compressed data of member '" + name + "' are damaged");
  return out;
}

Tensor read_member(const Bytes& zip, const Member& m, const std::shared_ptr<const void>& owner, std::uint64_t& budget) {
  if (m.header > zip.size() || zip.u32(m.header) != kLocal) malformed("member '" + m.name + "' has no header");
  const std::uint64_t start = m.header + kLocalSize + zip.u16(m.header + 26) + zip.u16(m.header + 28);
  const std::span<const std::byte> packed = zip.slice(start, m.packed);
  std::span<const std::byte> data = packed;
  std::shared_ptr<const void> keeper = owner;
  if (m.method == 8) {
    if (m.unpacked / kDeflateRatio > m.packed + 1) malformed("member '" + m.name + "' claims more than deflate can pack");
    if (m.unpacked > budget) {
      fail(ErrorCode::out_of_memory, "the .npz archive unpacks to more than the limit ({} bytes left for member '{}' of {})",
           budget, m.name, m.unpacked);
    }
    budget -= m.unpacked;
    keeper = inflate_member(packed, static_cast<std::size_t>(m.unpacked), m.name);
    data = {static_cast<const std::byte*>(keeper.get()), static_cast<std::size_t>(m.unpacked)};
  } else if (m.method != 0) {
    malformed("member '" + m.name + "' uses compression method " + std::to_string(m.method) + "; stored and deflate are read");
  } else if (m.packed != m.unpacked) {
    malformed("the sizes of member '" + m.name + "' disagree");
  }
  if (checksum(data) != m.crc) malformed("the checksum of member '" + m.name + "' is wrong: the file is damaged");
  return parse_npy(data, keeper);
}

}  // namespace

NamedTensors parse_npz(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner, const NpzLimits& limits) {
  const Bytes zip(bytes);
  NamedTensors out;
  std::set<std::string> names;
  std::uint64_t budget = limits.unpacked_bytes;
  for (const Member& m : read_directory(zip, limits)) {
    if (!m.name.ends_with(".npy")) continue;
    std::string name = m.name.substr(0, m.name.size() - 4);
    if (!names.insert(name).second) malformed("it holds '" + name + "' twice");
    try {
      out.emplace_back(std::move(name), read_member(zip, m, owner, budget));
    } catch (Error& e) {
      e.add_context("in member '" + m.name + "'");
      throw;
    }
  }
  return out;
}

NamedTensors read_npz(const std::filesystem::path& path, const NpzLimits& limits) {
  const auto file = MappedFile::open(path);
  try {
    return parse_npz(file->bytes(), file, limits);
  } catch (Error& e) {
    e.add_context("in file '" + path.string() + "'");
    throw;
  }
}

}  // namespace sdx
