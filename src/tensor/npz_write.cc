#include <zlib.h>

#include <cstring>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "tensor/npy.h"
#include "tensor/npz.h"

namespace sdx {
namespace {

constexpr std::uint64_t kMax32 = 0xFFFFFFFF;
constexpr std::size_t kMax16 = 0xFFFF;
constexpr std::size_t kAlign = 64;

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

struct Entry {
  std::string name;
  std::uint64_t method = 0;
  std::uint64_t crc = 0;
  std::uint64_t packed = 0;
  std::uint64_t unpacked = 0;
  std::uint64_t offset = 0;
};

std::string deflate_all(const std::string& data) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    fail(ErrorCode::out_of_memory, "zlib has no memory");
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(data.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) fail(ErrorCode::internal, "zlib could not compress {} bytes", data.size());
  return out;
}

void common_fields(std::string& out, const Entry& e, std::size_t extra) {
  put(out, 20, 2);      // version needed: 2.0, deflate
  put(out, 0x0800, 2);  // names are UTF-8
  put(out, e.method, 2);
  put(out, 0, 2);       // time
  put(out, 0x0021, 2);  // date: 1980-01-01, so that equal contents give equal files
  put(out, e.crc, 4);
  put(out, e.packed, 4);
  put(out, e.unpacked, 4);
  put(out, e.name.size(), 2);
  put(out, extra, 2);
}

void append_member(std::string& zip, Entry& e, const std::string& data) {
  e.offset = zip.size();
  // An extra field of a private kind pads the header so that the array itself (whose .npy header is a multiple of 64
  // bytes) is aligned.
  const std::size_t bare = zip.size() + 30 + e.name.size() + 4;
  const std::size_t padding = (kAlign - bare % kAlign) % kAlign;
  put(zip, 0x04034b50, 4);
  common_fields(zip, e, 4 + padding);
  zip += e.name;
  put(zip, 0x4453, 2);
  put(zip, padding, 2);
  zip.append(padding, '\0');
  zip += data;
}

}  // namespace

std::string to_npz(const NamedTensors& tensors, bool compress) {
  std::string zip;
  std::vector<Entry> entries;
  std::set<std::string> names;
  for (const auto& [name, tensor] : tensors) {
    Entry e;
    e.name = name + ".npy";
    if (!names.insert(e.name).second) fail(ErrorCode::invalid_argument, "two arrays of a .npz archive are called '{}'", name);
    if (e.name.size() > kMax16) fail(ErrorCode::invalid_argument, "an array's name has {} bytes, .npz allows 65531", name.size());
    std::string data = to_npy(tensor);
    e.unpacked = data.size();
    if (zip.size() + data.size() >= kMax32) {
      fail(ErrorCode::invalid_argument, "an .npz archive of 4 GiB or more is not written; write single .npy files instead");
    }
    e.crc = crc32(0, reinterpret_cast<const Bytef*>(data.data()), static_cast<uInt>(data.size()));
    if (compress) {
      data = deflate_all(data);
      e.method = 8;
    }
    e.packed = data.size();
    append_member(zip, e, data);
    entries.push_back(std::move(e));
  }
  if (entries.size() >= kMax16) fail(ErrorCode::invalid_argument, "an .npz archive of {} arrays is not written", entries.size());
  const std::uint64_t directory = zip.size();
  for (const Entry& e : entries) {
    put(zip, 0x02014b50, 4);
    put(zip, 20, 2);
    common_fields(zip, e, 0);
    put(zip, 0, 2 + 2 + 2);  // comment, disk, internal attributes
    put(zip, 0, 4);
    put(zip, e.offset, 4);
    zip += e.name;
  }
  const std::uint64_t size = zip.size() - directory;
  if (zip.size() >= kMax32) fail(ErrorCode::invalid_argument, "an .npz archive of 4 GiB or more is not written");
  put(zip, 0x06054b50, 4);
  put(zip, 0, 4);
  put(zip, entries.size(), 2);
  put(zip, entries.size(), 2);
  put(zip, size, 4);
  put(zip, directory, 4);
  put(zip, 0, 2);
  return zip;
}

void write_npz(const std::filesystem::path& path, const NamedTensors& tensors, bool compress) {
  write_file_atomically(path, to_npz(tensors, compress));
}

}  // namespace sdx
