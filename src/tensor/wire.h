#pragma once
// Protocol-buffer fields by number and wire type. A field that arrives with another wire type than its own counts as
// unknown and is skipped, as Google's parsers do (Protocol Buffers encoding guide, "unknown fields"); protozero itself would
// decode it wrongly.

#include <cstdint>
#include <protozero/pbf_reader.hpp>
#include <string_view>

namespace sdx::wire {

using Reader = protozero::pbf_reader;

constexpr std::uint32_t varint(std::uint32_t field) { return protozero::tag_and_type(field, protozero::pbf_wire_type::varint); }
constexpr std::uint32_t fixed64(std::uint32_t field) { return protozero::tag_and_type(field, protozero::pbf_wire_type::fixed64); }
constexpr std::uint32_t bytes(std::uint32_t field) {
  return protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited);
}
constexpr std::uint32_t fixed32(std::uint32_t field) { return protozero::tag_and_type(field, protozero::pbf_wire_type::fixed32); }

inline std::string_view text(Reader& reader) {
  const protozero::data_view v = reader.get_view();
  return {v.data(), v.size()};
}

inline Reader open(std::string_view message) { return Reader(message.data(), message.size()); }

// Varints in a packed field: each ends with a byte whose top bit is clear.
inline std::size_t count_varints(std::string_view packed) {
  std::size_t n = 0;
  for (const char c : packed) n += (static_cast<unsigned char>(c) & 0x80U) == 0 ? 1 : 0;
  return n;
}

// Describes an error of a message without the parser's own words.
inline const char* damage(const protozero::exception& e) {
  return dynamic_cast<const protozero::end_of_buffer_exception*>(&e) != nullptr ? "it ends too early"
                                                                                : "its bytes are not in the format";
}

}  // namespace sdx::wire
