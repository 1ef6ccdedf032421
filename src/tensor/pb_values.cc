#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <vector>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "tensor/pb.h"
#include "tensor/types.h"
#include "tensor/wire.h"

namespace sdx {
namespace {

using wire::bytes;
using wire::varint;

constexpr int kMaxDepth = 16;

// SequenceProto.DataType and OptionalProto.DataType
enum : std::int32_t { kTensor = 1, kSparse = 2, kSequence = 3, kMap = 4, kOptional = 5 };

Value decode_at(std::string_view message, PbKind kind, PbSource& source, int depth);

DataType element_type(const Value& v) {
  if (v.is_tensor()) return v.tensor().dtype();
  return v.is_sequence() ? v.sequence().element_type : DataType::undefined;
}

Value decode_sequence(std::string_view message, PbSource& source, int depth) {
  Sequence out;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(3): out.items.emplace_back(decode_tensor(wire::text(r), source).tensor); break;
      case bytes(4): out.items.emplace_back(decode_sparse_tensor(wire::text(r), source).tensor); break;
      case bytes(5): out.items.push_back(decode_at(wire::text(r), PbKind::sequence, source, depth + 1)); break;
      case bytes(6): out.items.push_back(decode_at(wire::text(r), PbKind::map, source, depth + 1)); break;
      case bytes(7): out.items.push_back(decode_at(wire::text(r), PbKind::optional, source, depth + 1)); break;
      default: r.skip();
    }
  }
  for (const Value& v : out.items) {
    if (out.element_type == DataType::undefined) out.element_type = element_type(v);
  }
  return out;
}

Value decode_optional(std::string_view message, PbSource& source, int depth) {
  Value out;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(3): out = decode_tensor(wire::text(r), source).tensor; break;
      case bytes(4): out = decode_sparse_tensor(wire::text(r), source).tensor; break;
      case bytes(5): out = decode_at(wire::text(r), PbKind::sequence, source, depth + 1); break;
      case bytes(6): out = decode_at(wire::text(r), PbKind::map, source, depth + 1); break;
      case bytes(7): out = decode_at(wire::text(r), PbKind::optional, source, depth + 1); break;
      default: r.skip();
    }
  }
  return out;
}

// One tensor of all the map's values, which must be alike and hold one element each.
Tensor join_values(const Sequence& values) {
  if (values.items.empty()) return {};
  const auto count = static_cast<std::int64_t>(values.items.size());
  Tensor out(values.items[0].tensor().dtype(), {count});
  for (std::int64_t i = 0; i < count; ++i) {
    const Value& item = values.items[static_cast<std::size_t>(i)];
    if (!item.is_tensor() || item.tensor().size() != 1 || item.tensor().dtype() != out.dtype() || is_sub_byte(out.dtype())) {
      fail(ErrorCode::not_implemented, "the values of a map must be numbers or strings of one type, received {}",
           item.type_string());
    }
    const Tensor& t = item.tensor();
    if (out.dtype() == DataType::string) {
      out.mutable_values<std::string>()[static_cast<std::size_t>(i)] = t.values<std::string>()[0];
    } else {
      const std::size_t size = byte_size(out.dtype(), 1);
      std::memcpy(static_cast<char*>(out.mutable_data()) + static_cast<std::size_t>(i) * size, t.data(), size);
    }
  }
  return out;
}

Value decode_map(std::string_view message, PbSource& source, int depth) {
  std::int32_t key_type = 0;
  std::vector<std::int64_t> ints;
  std::vector<std::string> strings;
  Value values;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case varint(2): key_type = r.get_int32(); break;
      case varint(3): ints.push_back(r.get_int64()); break;
      case bytes(3): {
        const std::string_view packed = wire::text(r);
        const char* p = packed.data();
        while (p != packed.data() + packed.size()) {
          ints.push_back(static_cast<std::int64_t>(protozero::decode_varint(&p, packed.data() + packed.size())));
        }
        break;
      }
      case bytes(4): strings.emplace_back(wire::text(r)); break;
      case bytes(5): values = decode_at(wire::text(r), PbKind::sequence, source, depth + 1); break;
      default: r.skip();
    }
  }
  Map out;
  const bool by_name = key_type == static_cast<std::int32_t>(DataType::string) || !strings.empty();
  const auto count = static_cast<std::int64_t>(by_name ? strings.size() : ints.size());
  out.keys = by_name ? Tensor::of<std::string>({count}, std::span<const std::string>(strings))
                     : Tensor::of<std::int64_t>({count}, std::span<const std::int64_t>(ints));
  if (values.is_sequence()) out.values = join_values(values.sequence());
  if (out.values.size() != count) {
    fail(ErrorCode::invalid_model, "the map has {} keys but {} values", count, out.values.size());
  }
  return out;
}

Value decode_at(std::string_view message, PbKind kind, PbSource& source, int depth) {
  if (depth > kMaxDepth) fail(ErrorCode::invalid_model, "values are nested more than {} deep", kMaxDepth);
  switch (kind) {
    case PbKind::tensor: return decode_tensor(message, source).tensor;
    case PbKind::sequence: return decode_sequence(message, source, depth);
    case PbKind::optional: return decode_optional(message, source, depth);
    case PbKind::map: return decode_map(message, source, depth);
  }
  return {};
}

// --- encoding ----------------------------------------------------------------------------------------------------------

PbKind kind_of(const Value& v) {
  if (v.is_sequence()) return PbKind::sequence;
  return v.is_map() ? PbKind::map : PbKind::tensor;
}

// Field number of an element in SequenceProto and OptionalProto, which is also the number of its type plus two.
std::int32_t type_number(const Value& v) {
  if (v.is_sequence()) return kSequence;
  if (v.is_map()) return kMap;
  return v.is_tensor() ? kTensor : kOptional;
}

void add_item(protozero::pbf_writer& w, const Value& item) {
  const std::int32_t number = type_number(item);
  const PbKind kind = number == kOptional ? PbKind::optional : kind_of(item);
  w.add_message(static_cast<std::uint32_t>(number + 2), encode_value(item, kind, ""));
}

// One element as a scalar tensor.
Tensor element(const Tensor& t, std::int64_t i) {
  Tensor out(t.dtype(), {});
  if (t.dtype() == DataType::string) {
    out.mutable_values<std::string>()[0] = t.values<std::string>()[static_cast<std::size_t>(i)];
  } else {
    const std::size_t size = byte_size(t.dtype(), 1);
    std::memcpy(out.mutable_data(), static_cast<const char*>(t.data()) + static_cast<std::size_t>(i) * size, size);
  }
  return out;
}

void encode_map(const Map& map, protozero::pbf_writer& w) {
  w.add_int32(2, static_cast<std::int32_t>(map.keys.dtype()));
  if (map.keys.dtype() == DataType::string) {
    for (const std::string& key : map.keys.values<std::string>()) w.add_bytes(4, key);
  } else {
    for (const std::int64_t key : map.keys.values<std::int64_t>()) w.add_int64(3, key);
  }
  Sequence values;
  for (std::int64_t i = 0; i < map.values.size(); ++i) values.items.emplace_back(element(map.values, i));
  w.add_message(5, encode_value(values, PbKind::sequence, ""));
}

template <class T>
void add_int32_data(std::span<const T> values, protozero::pbf_writer& w) {
  w.add_packed_int32(5, values.begin(), values.end());
}

// False: the type has no field, or shares one that readers seldom know.
bool add_typed(const Tensor& tensor, protozero::pbf_writer& w) {
  const Tensor t = tensor.aligned();
  const auto words = [&] { return std::span(static_cast<const std::uint16_t*>(t.data()), static_cast<std::size_t>(t.size())); };
  switch (t.dtype()) {
    case DataType::float32: w.add_packed_float(4, t.values<float>().begin(), t.values<float>().end()); return true;
    case DataType::int32: add_int32_data(t.values<std::int32_t>(), w); return true;
    case DataType::int16: add_int32_data(t.values<std::int16_t>(), w); return true;
    case DataType::uint16: add_int32_data(t.values<std::uint16_t>(), w); return true;
    case DataType::int8: add_int32_data(t.values<std::int8_t>(), w); return true;
    case DataType::uint8: add_int32_data(t.values<std::uint8_t>(), w); return true;
    case DataType::float16: add_int32_data(words(), w); return true;
    // Two numbers to an element.
    case DataType::int4:
    case DataType::uint4:
      add_int32_data(std::span(static_cast<const std::uint8_t*>(t.data()), static_cast<std::size_t>((t.size() + 1) / 2)), w);
      return true;
    default: return false;
  }
}

}  // namespace

Value decode_value(std::string_view message, PbKind kind, PbSource& source) { return decode_at(message, kind, source, 0); }

Value read_value_pb(const std::filesystem::path& path, PbKind kind) {
  try {
    const auto file = MappedFile::open(path);
    PbSource source;
    source.owner = file;
    const auto data = file->bytes();
    try {
      return decode_value({reinterpret_cast<const char*>(data.data()), data.size()}, kind, source);
    } catch (const protozero::exception& e) {
      fail(ErrorCode::invalid_model, "this is not a serialised ONNX value, or it is damaged ({})", wire::damage(e));
    }
  } catch (Error& e) {
    e.add_context(fmt::format("in '{}'", path.string()));
    throw;
  }
}

OwnedBytes raw_bytes(const Tensor& t) {
  SDX_ASSERT(t.dtype() != DataType::string);
  if (t.dtype() != DataType::float6e2m3 && t.dtype() != DataType::float6e3m2) {
    return {{static_cast<const std::byte*>(t.data()), t.bytes()}, t.owner()};
  }
  auto packed = std::make_shared<std::vector<std::byte>>((static_cast<std::size_t>(t.size()) * 6 + 7) / 8);
  const auto* from = static_cast<const std::uint8_t*>(t.data());
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const auto bit = static_cast<std::size_t>(i) * 6;
    const unsigned word = (from[i] & 0x3FU) << (bit % 8);
    (*packed)[bit / 8] |= static_cast<std::byte>(word & 0xFFU);
    if (word > 0xFF) (*packed)[bit / 8 + 1] |= static_cast<std::byte>(word >> 8);
  }
  return {*packed, packed};
}

std::string encode_tensor(const Tensor& tensor, std::string_view name, bool typed) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_packed_int64(1, tensor.shape().begin(), tensor.shape().end());
  w.add_int32(2, static_cast<std::int32_t>(tensor.dtype()));
  if (tensor.dtype() == DataType::string) {
    for (const std::string& s : tensor.values<std::string>()) w.add_bytes(6, s);
  } else if (!typed || !add_typed(tensor, w)) {
    const OwnedBytes raw = raw_bytes(tensor);
    w.add_bytes(9, reinterpret_cast<const char*>(raw.data.data()), raw.data.size());
  }
  if (!name.empty()) w.add_string(8, name.data(), name.size());
  return out;
}

std::string encode_value(const Value& value, PbKind kind, std::string_view name) {
  if (kind == PbKind::tensor) return encode_tensor(value.tensor(), name);
  std::string out;
  protozero::pbf_writer w(out);
  if (!name.empty()) w.add_string(1, name.data(), name.size());
  if (kind == PbKind::map) {
    encode_map(value.map(), w);
  } else if (kind == PbKind::sequence) {
    const Sequence& s = value.sequence();
    w.add_int32(2, s.items.empty() ? kTensor : type_number(s.items[0]));
    for (const Value& item : s.items) add_item(w, item);
  } else if (!value.empty()) {
    w.add_int32(2, type_number(value));
    add_item(w, value);
  }
  return out;
}

}  // namespace sdx
