#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "base/memory.h"
#include "tensor/pb.h"
#include "tensor/types.h"
#include "tensor/wire.h"

namespace sdx {
namespace {

static_assert(std::endian::native == std::endian::little, "raw_data is little-endian and is used in place");

constexpr std::size_t kViewUnaligned = std::size_t{64} << 10;
constexpr std::size_t kMaxRank = 64;  // NumPy's limit as well

using wire::bytes;
using wire::fixed32;
using wire::fixed64;
using wire::varint;

// One typed data field: how many elements there are, and where, when they all lie in one packed run.
struct TypedField {
  std::size_t count = 0;
  std::size_t runs = 0;
  std::string_view run;
  void packed(std::string_view data, std::size_t elements) {
    count += elements;
    ++runs;
    run = data;
  }
  void single() {
    ++count;
    runs += 2;
  }
};

// TensorProto, apart from the values of its typed data fields.
struct Message {
  std::string_view whole;
  std::string_view name;
  Shape dims;
  std::int64_t data_type = 0;
  bool has_raw = false;
  std::string_view raw;
  TypedField floats, ints, longs, doubles, unsigneds, strings;
  bool is_external = false;
  bool has_segment = false;
  std::vector<std::string_view> external;
};

void add_dims(std::string_view packed, Shape& dims) {
  const char* p = packed.data();
  const char* const end = p + packed.size();
  while (p != end && dims.size() <= kMaxRank) dims.push_back(static_cast<std::int64_t>(protozero::decode_varint(&p, end)));
}

// A packed field of elements of `size` bytes each, or of varints (0).
void add_packed(wire::Reader& r, TypedField& field, std::size_t size, const char* name) {
  const std::string_view d = wire::text(r);
  if (size != 0 && d.size() % size != 0) fail(ErrorCode::invalid_model, "{} ends inside an element", name);
  field.packed(d, size == 0 ? wire::count_varints(d) : d.size() / size);
}

void add_single(wire::Reader& r, TypedField& field) {
  field.single();
  r.skip();
}

Message scan(std::string_view whole) {
  Message m;
  m.whole = whole;
  wire::Reader r = wire::open(whole);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case varint(1):
        if (m.dims.size() <= kMaxRank)
          m.dims.push_back(r.get_int64());
        else
          r.skip();
        break;
      case bytes(1): add_dims(wire::text(r), m.dims); break;
      case varint(2): m.data_type = r.get_int32(); break;
      case bytes(3):
        m.has_segment = true;
        r.skip();
        break;
      case bytes(4): add_packed(r, m.floats, 4, "float_data"); break;
      case fixed32(4): add_single(r, m.floats); break;
      case bytes(5): add_packed(r, m.ints, 0, "int32_data"); break;
      case varint(5): add_single(r, m.ints); break;
      case bytes(6): add_single(r, m.strings); break;
      case bytes(7): add_packed(r, m.longs, 0, "int64_data"); break;
      case varint(7): add_single(r, m.longs); break;
      case bytes(8): m.name = wire::text(r); break;
      case bytes(9):
        m.raw = wire::text(r);
        m.has_raw = true;
        break;
      case bytes(10): add_packed(r, m.doubles, 8, "double_data"); break;
      case fixed64(10): add_single(r, m.doubles); break;
      case bytes(11): add_packed(r, m.unsigneds, 0, "uint64_data"); break;
      case varint(11): add_single(r, m.unsigneds); break;
      case bytes(13): m.external.push_back(wire::text(r)); break;
      case varint(14): m.is_external = r.get_enum() == 1; break;
      default: r.skip();
    }
  }
  return m;
}

bool is_float6(DataType t) { return t == DataType::float6e2m3 || t == DataType::float6e3m2; }

// Bytes of raw_data for `count` elements.
std::size_t raw_size(DataType type, std::int64_t count) {
  const auto n = static_cast<std::size_t>(count);
  return is_float6(type) ? (n * 6 + 7) / 8 : byte_size(type, count);
}

DataType checked_type(std::int64_t number) {
  if (number == 0) fail(ErrorCode::invalid_model, "the element type (data_type) is missing or UNDEFINED");
  if (number < 0 || number >= kDataTypeCount) {
    fail(ErrorCode::invalid_model, "unknown element type {}; known are 1 to {}", number, kDataTypeCount - 1);
  }
  return static_cast<DataType>(number);
}

std::int64_t checked_count(const Shape& shape) {
  if (shape.size() > kMaxRank) fail(ErrorCode::invalid_model, "the rank is above {}", kMaxRank);
  try {
    const std::int64_t count = element_count(shape);
    if (count <= INT64_MAX / 64) return count;  // 16 bytes an element cannot overflow then
  } catch (const Error& e) {
    throw Error(ErrorCode::invalid_model, e.message());
  }
  fail(ErrorCode::invalid_model, "shape {} has more elements than can be addressed", to_string(shape));
}

Tensor unpack_float6(std::string_view raw, DataType type, const Shape& shape) {
  Tensor out(type, shape);
  auto* to = static_cast<std::uint8_t*>(out.mutable_data());
  const auto* from = reinterpret_cast<const std::uint8_t*>(raw.data());
  for (std::int64_t i = 0; i < out.size(); ++i) {
    const std::int64_t bit = i * 6;
    const auto at = static_cast<std::size_t>(bit / 8);
    std::uint32_t word = from[at];
    if (at + 1 < raw.size()) word |= static_cast<std::uint32_t>(from[at + 1]) << 8;
    to[i] = static_cast<std::uint8_t>((word >> (bit % 8)) & 0x3FU);
  }
  return out;
}

// bool objects may hold nothing but 0 and 1.
bool has_odd_booleans(std::string_view raw) {
  unsigned char all = 0;
  for (const char c : raw) all = static_cast<unsigned char>(all | static_cast<unsigned char>(c));
  return all > 1;
}

Tensor from_raw(std::string_view raw, DataType type, const Shape& shape, const std::shared_ptr<const void>& owner) {
  if (is_float6(type)) return unpack_float6(raw, type, shape);
  const bool odd = type == DataType::boolean && has_odd_booleans(raw);
  if (owner != nullptr && !odd) {
    Tensor view = Tensor::view(raw.data(), type, shape, owner);
    if (raw.size() >= kViewUnaligned || (view.is_aligned() && !raw.empty())) return view;
  }
  Tensor out(type, shape);
  auto* to = static_cast<char*>(out.mutable_data());
  if (!raw.empty()) std::memcpy(to, raw.data(), raw.size());
  if (odd) {
    for (std::size_t i = 0; i < raw.size(); ++i) to[i] = to[i] != 0 ? 1 : 0;
  }
  return out;
}

std::uint64_t parse_number(std::string_view key, std::string_view text) {
  std::uint64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.empty()) {
    fail(ErrorCode::invalid_model, "external data: '{}' must be a decimal number of bytes, received '{}'", key, text);
  }
  return value;
}

ExternalReference external_reference(const std::vector<std::string_view>& entries) {
  ExternalReference out;
  bool located = false;
  for (const std::string_view entry : entries) {
    std::string_view key;
    std::string_view value;
    wire::Reader r = wire::open(entry);
    while (r.next()) {
      switch (r.tag_and_type()) {
        case bytes(1): key = wire::text(r); break;
        case bytes(2): value = wire::text(r); break;
        default: r.skip();
      }
    }
    if (key == "location") {
      if (located) fail(ErrorCode::invalid_model, "external data: 'location' is given twice");
      located = true;
      out.location = std::string(value);
    } else if (key == "offset") {
      out.offset = parse_number(key, value);
    } else if (key == "length") {
      out.length = parse_number(key, value);
    }
  }
  if (out.location.empty()) fail(ErrorCode::invalid_model, "external data: the location is missing or empty");
  return out;
}

Tensor from_external(const Message& m, DataType type, std::int64_t count, PbSource& source) {
  if (type == DataType::string) fail(ErrorCode::invalid_model, "strings cannot be external data");
  if (source.external == nullptr) {
    fail(ErrorCode::invalid_model,
         "it has external data, which cannot be resolved here; read the model from its file, or pass "
         "the folder that holds the data");
  }
  ExternalReference reference = external_reference(m.external);
  reference.tensor = std::string(m.name);
  const std::size_t need = raw_size(type, count);
  if (reference.length && *reference.length != need) {
    fail(ErrorCode::invalid_model, "external data: length is {} bytes, but {}{} takes {}", *reference.length, name(type),
         to_string(m.dims), need);
  }
  const OwnedBytes data = source.external->read(reference, need);
  return from_raw({reinterpret_cast<const char*>(data.data.data()), data.data.size()}, type, m.dims, data.owner);
}

// The typed field that holds elements of a type, and the number of field entries that it must have.
struct Layout {
  std::uint32_t field;
  std::size_t entries;
};

Layout layout(DataType type, std::int64_t count) {
  const auto n = static_cast<std::size_t>(count);
  switch (type) {
    case DataType::float32: return {4, n};
    case DataType::complex64: return {4, n * 2};
    case DataType::string: return {6, n};
    case DataType::int64: return {7, n};
    case DataType::float64: return {10, n};
    case DataType::complex128: return {10, n * 2};
    case DataType::uint32:
    case DataType::uint64: return {11, n};
    default: return {5, is_sub_byte(type) ? byte_size(type, count) : n};
  }
}

const TypedField& typed_field(const Message& m, std::uint32_t field) {
  switch (field) {
    case 4: return m.floats;
    case 5: return m.ints;
    case 6: return m.strings;
    case 7: return m.longs;
    case 10: return m.doubles;
    default: return m.unsigneds;
  }
}

// Writes field entries one after another, each cut to the element's size.
class Filler {
 public:
  explicit Filler(Tensor& out)
      : out_(out),
        to_(static_cast<char*>(out.mutable_data())),
        width_(out.dtype() == DataType::string ? 0 : width(out.dtype())) {}

  void number(std::uint64_t value) {
    if (out_.dtype() == DataType::boolean) value = value != 0 ? 1 : 0;
    if (is_float6(out_.dtype())) value &= 0x3F;
    std::memcpy(to_, &value, width_);
    to_ += width_;
  }
  void run(std::string_view data) {
    if (!data.empty()) std::memcpy(to_, data.data(), data.size());
    to_ += data.size();
  }
  void varints(std::string_view data) {
    const char* p = data.data();
    const char* const end = p + data.size();
    while (p != end) number(protozero::decode_varint(&p, end));
  }
  void string(std::string_view text) { static_cast<std::string*>(out_.mutable_data())[next_string_++] = std::string(text); }

 private:
  static std::size_t width(DataType t) {
    if (t == DataType::complex64) return 4;
    if (t == DataType::complex128) return 8;
    return is_sub_byte(t) ? 1 : static_cast<std::size_t>(bit_width(t) / 8);
  }
  Tensor& out_;
  char* to_;
  std::size_t width_;
  std::size_t next_string_ = 0;
};

// The second pass. scan() has counted the entries, so the buffer is never overrun.
void fill(const Message& m, std::uint32_t field, Tensor& out) {
  Filler filler(out);
  wire::Reader r = wire::open(m.whole);
  while (r.next()) {
    if (r.tag() != field) {
      r.skip();
      continue;
    }
    switch (r.tag_and_type()) {
      case fixed32(4): filler.number(r.get_fixed32()); break;
      case fixed64(10): filler.number(r.get_fixed64()); break;
      case bytes(4):
      case bytes(10): filler.run(wire::text(r)); break;
      case bytes(5):
      case bytes(7):
      case bytes(11): filler.varints(wire::text(r)); break;
      case varint(5):
      case varint(7):
      case varint(11): filler.number(r.get_uint64()); break;
      case bytes(6): filler.string(wire::text(r)); break;
      default: r.skip();
    }
  }
}

constexpr std::uint32_t kFields[] = {4, 5, 6, 7, 10, 11};

std::string_view field_name(std::uint32_t field) {
  switch (field) {
    case 4: return "float_data";
    case 5: return "int32_data";
    case 6: return "string_data";
    case 7: return "int64_data";
    case 10: return "double_data";
    default: return "uint64_data";
  }
}

Tensor from_typed(const Message& m, DataType type, std::int64_t count, const PbSource& source) {
  const Layout want = layout(type, count);
  const TypedField& have = typed_field(m, want.field);
  if (have.count != want.entries) {
    fail(ErrorCode::invalid_model, "{}{} needs {} entries in {}, received {}", name(type), to_string(m.dims), want.entries,
         field_name(want.field), have.count);
  }
  const bool fixed = want.field == 4 || want.field == 10;  // the packed form is the memory layout
  if (fixed && have.runs == 1) return from_raw(have.run, type, m.dims, source.owner);
  Tensor out(type, m.dims);
  fill(m, want.field, out);
  return out;
}

Tensor decode(const Message& m, PbSource& source) {
  const DataType type = checked_type(m.data_type);
  const std::int64_t count = checked_count(m.dims);
  if (m.has_segment) fail(ErrorCode::not_implemented, "tensors stored in segments are not supported");
  if (m.is_external) return from_external(m, type, count, source);
  for (const std::uint32_t field : kFields) {
    if (typed_field(m, field).count == 0 || (field == layout(type, count).field && m.raw.empty())) continue;
    fail(ErrorCode::invalid_model, "{} {} is not where {} elements are stored{}", field_name(field), "has data, which",
         name(type), m.raw.empty() ? "" : " beside raw_data");
  }
  if (!m.has_raw || (m.raw.empty() && count != 0 && typed_field(m, layout(type, count).field).count != 0)) {
    return from_typed(m, type, count, source);
  }
  if (type == DataType::string) fail(ErrorCode::invalid_model, "strings must be in string_data, not in raw_data");
  const std::size_t need = raw_size(type, count);
  if (m.raw.size() != need) {
    fail(ErrorCode::invalid_model, "raw_data has {} bytes, but {}{} takes {}", m.raw.size(), name(type), to_string(m.dims), need);
  }
  return from_raw(m.raw, type, m.dims, source.owner);
}

template <class F>
auto named(std::string_view tensor, F&& body) {
  try {
    return body();
  } catch (Error& e) {
    if (!tensor.empty()) e.add_context(fmt::format("in tensor '{}'", tensor));
    throw;
  }
}

// Row-major position of sparse element `i`. `indices` is [NNZ] (positions) or [NNZ, rank].
std::int64_t position(const Tensor& indices, std::int64_t i, const Shape& shape, std::int64_t count) {
  const auto values = indices.values<std::int64_t>();
  std::int64_t at = 0;
  if (indices.rank() == 1) {
    at = values[static_cast<std::size_t>(i)];
    if (at < 0 || at >= count) fail(ErrorCode::invalid_model, "sparse index {} is out of range for {}", at, to_string(shape));
    return at;
  }
  const auto rank = static_cast<std::int64_t>(shape.size());
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    const std::int64_t index = values[static_cast<std::size_t>(i * rank + axis)];
    const std::int64_t extent = shape[static_cast<std::size_t>(axis)];
    if (index < 0 || index >= extent) {
      fail(ErrorCode::invalid_model, "sparse index {} is out of range for axis {} of {}", index, axis, to_string(shape));
    }
    at = at * extent + index;
  }
  return at;
}

void copy_element(const Tensor& from, std::int64_t i, Tensor& to, std::int64_t j) {
  if (from.dtype() == DataType::string) {
    static_cast<std::string*>(to.mutable_data())[j] = static_cast<const std::string*>(from.data())[i];
  } else if (is_sub_byte(from.dtype())) {
    const int bits = bit_width(from.dtype());
    set_packed(to.mutable_data(), bits, j, get_packed(from.data(), bits, i));
  } else {
    const auto size = byte_size(from.dtype(), 1);
    std::memcpy(static_cast<char*>(to.mutable_data()) + static_cast<std::size_t>(j) * size,
                static_cast<const char*>(from.data()) + static_cast<std::size_t>(i) * size, size);
  }
}

// ONNX has them in int64; ONNX Runtime writes the smallest type that holds them.
Tensor wide_indices(const Tensor& indices) {
  const auto widen = [&]<class T>(T) {
    const Tensor narrow = indices.aligned();
    Tensor out(DataType::int64, indices.shape());
    std::copy(narrow.values<T>().begin(), narrow.values<T>().end(), out.mutable_values<std::int64_t>().begin());
    return out;
  };
  switch (indices.dtype()) {
    case DataType::int8: return widen(std::int8_t{});
    case DataType::int16: return widen(std::int16_t{});
    case DataType::int32: return widen(std::int32_t{});
    default: return indices.aligned();
  }
}

Tensor densify(const Tensor& values, const Tensor& stored_indices, const Shape& shape, PbSource& source) {
  const Tensor indices = wide_indices(stored_indices);
  const std::int64_t count = checked_count(shape);
  if (values.rank() != 1) fail(ErrorCode::invalid_model, "sparse values must have rank 1, received {}", values.type_string());
  const std::int64_t stored = values.size();
  const auto rank = static_cast<std::int64_t>(shape.size());
  const bool fits =
      indices.dtype() == DataType::int64 && (indices.shape() == Shape{stored} || indices.shape() == Shape{stored, rank});
  if (!fits) {
    fail(ErrorCode::invalid_model, "sparse indices must be int64[{}] or int64[{},{}], received {}", stored, stored, rank,
         indices.type_string());
  }
  const std::size_t size = byte_size(values.dtype(), count);
  if (size > source.dense_budget) {
    fail(ErrorCode::out_of_memory, "the sparse tensor {}{} would take {} bytes once dense; {} are left of the limit",
         name(values.dtype()), to_string(shape), size, source.dense_budget);
  }
  source.dense_budget -= size;
  Tensor out(values.dtype(), shape);
  if (values.dtype() != DataType::string && size != 0) std::memset(out.mutable_data(), 0, size);
  std::int64_t last = -1;
  for (std::int64_t i = 0; i < stored; ++i) {
    const std::int64_t at = position(indices, i, shape, count);
    if (at <= last) fail(ErrorCode::invalid_model, "sparse indices must ascend without repetition (at entry {})", i);
    last = at;
    copy_element(values, i, out, at);
  }
  return out;
}

}  // namespace

NamedTensor decode_tensor(std::string_view message, PbSource& source) {
  const Message m = scan(message);
  return named(m.name, [&] { return NamedTensor{std::string(m.name), decode(m, source)}; });
}

NamedTensor decode_sparse_tensor(std::string_view message, PbSource& source) {
  std::string_view values;
  std::string_view indices;
  Shape dims;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1): values = wire::text(r); break;
      case bytes(2): indices = wire::text(r); break;
      case varint(3):
        if (dims.size() <= kMaxRank)
          dims.push_back(r.get_int64());
        else
          r.skip();
        break;
      case bytes(3): add_dims(wire::text(r), dims); break;
      default: r.skip();
    }
  }
  NamedTensor stored = decode_tensor(values, source);
  return named(stored.name, [&] {
    const NamedTensor at = decode_tensor(indices, source);
    return NamedTensor{stored.name, densify(stored.tensor, at.tensor, dims, source)};
  });
}

}  // namespace sdx
