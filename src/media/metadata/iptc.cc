#include "media/metadata/iptc.h"

#include <cstddef>

namespace sdx::media {
namespace {

constexpr std::string_view kResource{"8BIM\x04\x04", 6};  // resource 0x0404

std::size_t number(std::string_view bytes, std::size_t at, std::size_t width) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < width; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

}  // namespace

std::string iptc_of(std::string_view segment) {
  if (!segment.starts_with(kPhotoshop)) return "";
  std::string_view left = segment.substr(kPhotoshop.size());
  while (left.size() >= 12 && left.starts_with("8BIM")) {
    const std::size_t name = (number(left, 6, 1) + 2) / 2 * 2;  // its length, and padding to an even number
    if (left.size() < 6 + name + 4) return "";
    const std::size_t size = number(left, 6 + name, 4), data = 6 + name + 4;
    if (size > left.size() - data) return "";
    if (left.starts_with(kResource)) return std::string(left.substr(data, size));
    const std::size_t whole = data + size + size % 2;
    if (whole > left.size()) return "";
    left.remove_prefix(whole);
  }
  return "";
}

std::string iptc_segment(std::string_view iptc) {
  std::string out(kPhotoshop);
  out += kResource;
  out += std::string(2, '\0');
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(iptc.size() >> shift);
  out += iptc;
  if (iptc.size() % 2 != 0) out += '\0';
  return out;
}

}  // namespace sdx::media
