#include "vision/page/zip.h"

#include <zlib.h>

#include "base/error.h"
#include "base/text/utf8.h"

namespace sdx::faces::page {
namespace {

constexpr std::uint32_t kMost = 0xffffffff;
constexpr std::uint16_t kVersion = 20;         // 2.0
constexpr std::uint16_t kUtf8 = 1 << 11;       // names are UTF-8
constexpr std::uint32_t kDate = (1 << 5) | 1;  // 1980-01-01: the same crops give the same file

void put(std::string& out, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

}  // namespace

std::string harmless_name(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    const bool bad = u < 0x20 || u == 0x7f || std::string_view("/\\:*?\"<>|").find(c) != std::string_view::npos;
    out.push_back(bad ? '_' : c);
  }
  out.resize(end_of_chars(out, 200));
  for (char& c : out) {
    if (c != '.') break;
    c = '_';
  }
  return out.empty() ? "picture" : out;
}

void ZipWriter::add(std::string_view name, std::string_view bytes) {
  std::string unique = harmless_name(name);
  const std::size_t dot = unique.rfind('.');
  const std::string stem = unique.substr(0, dot);
  const std::string ending = dot == std::string::npos ? "" : unique.substr(dot);
  for (int n = 2; !names_.insert(unique).second; ++n) unique = fmt::format("{}-{}{}", stem, n, ending);
  if (entries_.size() == 0xffff || bytes.size() > kMost - 1024 || out_.size() + bytes.size() > kMost - (1u << 26)) {
    fail(ErrorCode::out_of_memory, "a ZIP file holds at most 65535 files and 4 GiB");
  }
  Entry entry{unique, 0, static_cast<std::uint32_t>(bytes.size()), static_cast<std::uint32_t>(out_.size())};
  entry.crc = static_cast<std::uint32_t>(::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  put(out_, 0x04034b50, 4);
  put(out_, kVersion, 2);
  put(out_, kUtf8, 2);
  put(out_, 0, 2);  // stored
  put(out_, 0, 2);
  put(out_, kDate, 2);
  put(out_, entry.crc, 4);
  put(out_, entry.size, 4);
  put(out_, entry.size, 4);
  put(out_, static_cast<std::uint32_t>(unique.size()), 2);
  put(out_, 0, 2);
  out_ += unique;
  out_ += bytes;
  entries_.push_back(std::move(entry));
}

std::string ZipWriter::finish() {
  const auto start = static_cast<std::uint32_t>(out_.size());
  for (const Entry& e : entries_) {
    put(out_, 0x02014b50, 4);
    put(out_, kVersion, 2);
    put(out_, kVersion, 2);
    put(out_, kUtf8, 2);
    put(out_, 0, 2);
    put(out_, 0, 2);
    put(out_, kDate, 2);
    put(out_, e.crc, 4);
    put(out_, e.size, 4);
    put(out_, e.size, 4);
    put(out_, static_cast<std::uint32_t>(e.name.size()), 2);
    put(out_, 0, 4);  // extra field, comment
    put(out_, 0, 4);  // disk, internal attributes
    put(out_, 0, 4);  // external attributes
    put(out_, e.offset, 4);
    out_ += e.name;
  }
  const auto size = static_cast<std::uint32_t>(out_.size()) - start;
  const auto count = static_cast<std::uint32_t>(entries_.size());
  put(out_, 0x06054b50, 4);
  put(out_, 0, 4);
  put(out_, count, 2);
  put(out_, count, 2);
  put(out_, size, 4);
  put(out_, start, 4);
  put(out_, 0, 2);
  return std::move(out_);
}

}  // namespace sdx::faces::page
