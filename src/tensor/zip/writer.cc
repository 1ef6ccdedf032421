#include "tensor/zip/writer.h"

#include <zlib.h>

#include "base/error.h"

namespace sdx {
namespace {

constexpr std::uint64_t kLocalHead = 0x04034b50, kDirectoryHead = 0x02014b50, kEnd = 0x06054b50;
constexpr std::uint64_t kVersion = 20;            // 2.0: deflate
constexpr std::uint64_t kUtf8 = 1 << 11;          // of names
constexpr std::uint64_t kDate = (1 << 5) | 1;     // 1980-01-01
constexpr std::uint64_t kPaddingField = 0x4453;   // a private kind
constexpr std::uint64_t kLocalHeadBytes = 30;     // without name and extra field
constexpr std::uint64_t kMostBytes = 0xFFFFFFFF;  // more needs ZIP64
constexpr std::uint32_t kMostMembers = 0xFFFE;

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
}

std::string deflated(std::string_view data) {
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

}  // namespace

bool ZipWriter::fits(std::size_t bytes) const {
  constexpr std::uint64_t kHeads = 1 << 18;  // of this member, with a name as long as can be, and the end
  return members_ < kMostMembers && bytes < kMostBytes && out_.size() + directory_.size() + bytes + kHeads < kMostBytes;
}

void ZipWriter::add(std::string_view name, std::string_view bytes, bool compress, std::size_t align) {
  const std::string packed = compress ? deflated(bytes) : std::string();
  const std::string_view content = compress ? packed : bytes;
  std::string fields;  // what both heads have
  put(fields, kVersion, 2);
  put(fields, kUtf8, 2);
  put(fields, compress ? Z_DEFLATED : 0, 2);
  put(fields, 0, 2);  // time
  put(fields, kDate, 2);
  put(fields, ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()), 4);
  put(fields, content.size(), 4);
  put(fields, bytes.size(), 4);
  put(fields, name.size(), 2);

  put(directory_, kDirectoryHead, 4);
  put(directory_, kVersion, 2);
  directory_ += fields;
  put(directory_, 0, 2 + 2 + 2 + 2);  // extra field, comment, disk, internal attributes
  put(directory_, 0, 4);              // external attributes
  put(directory_, out_.size(), 4);
  directory_ += name;
  ++members_;

  const std::size_t bare = out_.size() + kLocalHeadBytes + name.size() + (align > 1 ? 4 : 0);
  const std::size_t padding = (align - bare % align) % align;
  put(out_, kLocalHead, 4);
  out_ += fields;
  put(out_, align > 1 ? 4 + padding : 0, 2);
  out_ += name;
  if (align > 1) {
    put(out_, kPaddingField, 2);
    put(out_, padding, 2);
    out_.append(padding, '\0');
  }
  out_ += content;
}

std::string ZipWriter::finish() {
  const std::size_t start = out_.size();
  out_ += directory_;
  put(out_, kEnd, 4);
  put(out_, 0, 4);
  put(out_, members_, 2);
  put(out_, members_, 2);
  put(out_, directory_.size(), 4);
  put(out_, start, 4);
  put(out_, 0, 2);
  return std::move(out_);
}

}  // namespace sdx
