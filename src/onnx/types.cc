#include "onnx/types.h"

#include <protozero/pbf_writer.hpp>

#include "base/error.h"
#include "tensor/wire.h"

namespace sdx {
namespace {

using wire::bytes;
using wire::varint;

constexpr int kMaxDepth = 16;
constexpr std::size_t kMaxRank = 64;

DataType read_elem(std::int64_t number) {
  if (number == 0) return DataType::undefined;
  if (number < 0 || number >= kDataTypeCount) {
    fail(ErrorCode::invalid_model, "unknown element type {}; known are 1 to {}", number, kDataTypeCount - 1);
  }
  return static_cast<DataType>(number);
}

Dim read_dim(std::string_view message) {
  Dim out;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case varint(1): {
        const std::int64_t value = r.get_int64();
        out = value >= 0 ? Dim(value) : Dim::unknown();  // -1 is how old exporters say "any"
        break;
      }
      case bytes(2): {
        const std::string_view symbol = wire::text(r);
        out = symbol.empty() ? Dim::unknown() : Dim::symbol(std::string(symbol));
        break;
      }
      default: r.skip();
    }
  }
  return out;
}

SymShape read_shape(std::string_view message) {
  SymShape out;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    if (r.tag_and_type() != bytes(1)) {
      r.skip();
      continue;
    }
    if (out.size() == kMaxRank) fail(ErrorCode::invalid_model, "a declared shape has a rank above {}", kMaxRank);
    out.push_back(read_dim(wire::text(r)));
  }
  return out;
}

Type read_at(std::string_view message, int depth);

Type read_tensor(std::string_view message, Type::Kind kind) {
  Type out;
  out.kind = kind;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case varint(1): out.elem = read_elem(r.get_int32()); break;
      case bytes(2): out.shape = read_shape(wire::text(r)); break;
      default: r.skip();
    }
  }
  return out;
}

// Sequence and Optional: one element type.
Type read_element(std::string_view message, int depth) {
  Type out;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    if (r.tag_and_type() == bytes(1)) {
      out = read_at(wire::text(r), depth);
    } else {
      r.skip();
    }
  }
  return out;
}

Type read_map(std::string_view message, int depth) {
  DataType key = DataType::undefined;
  Type value;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case varint(1): key = read_elem(r.get_int32()); break;
      case bytes(2): value = read_at(wire::text(r), depth); break;
      default: r.skip();
    }
  }
  return Type::map(key, std::move(value));
}

Type read_at(std::string_view message, int depth) {
  if (depth > kMaxDepth) fail(ErrorCode::invalid_model, "a type is nested more than {} deep", kMaxDepth);
  Type out;
  wire::Reader r = wire::open(message);
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1): out = read_tensor(wire::text(r), Type::Kind::tensor); break;
      case bytes(4): out = Type::sequence(read_element(wire::text(r), depth + 1)); break;
      case bytes(5): out = read_map(wire::text(r), depth + 1); break;
      case bytes(8): out = read_tensor(wire::text(r), Type::Kind::sparse_tensor); break;
      case bytes(9): out = Type::optional(read_element(wire::text(r), depth + 1)); break;
      default: r.skip();  // Opaque (7) stays unknown
    }
  }
  return out;
}

// Built inside out: protozero's nested writers drop empty messages, but an empty Dimension is an unknown extent, and an empty
// shape is a scalar's.
std::string write_tensor(const Type& type) {
  std::string out;
  protozero::pbf_writer w(out);
  w.add_int32(1, static_cast<std::int32_t>(type.elem));
  if (!type.shape) return out;
  std::string shape;
  protozero::pbf_writer dims(shape);
  for (const Dim& d : *type.shape) {
    std::string extent;
    protozero::pbf_writer dim(extent);
    if (d.is_const()) {
      dim.add_int64(1, d.value());
    } else if (d.is_symbolic()) {
      dim.add_string(2, d.str());
    }
    dims.add_message(1, extent);
  }
  w.add_message(2, shape);
  return out;
}

}  // namespace

Type read_type(std::string_view message) { return read_at(message, 0); }

std::string write_type(const Type& type) {
  std::string out;
  protozero::pbf_writer w(out);
  const auto element = [&](std::uint32_t kind, std::uint32_t field) {
    std::string inner;
    protozero::pbf_writer v(inner);
    if (type.kind == Type::Kind::map) v.add_int32(1, static_cast<std::int32_t>(type.elem));
    if (type.inner) v.add_message(field, write_type(*type.inner));
    w.add_message(kind, inner);
  };
  switch (type.kind) {
    case Type::Kind::unknown: break;
    case Type::Kind::tensor: w.add_message(1, write_tensor(type)); break;
    case Type::Kind::sparse_tensor: w.add_message(8, write_tensor(type)); break;
    case Type::Kind::sequence: element(4, 1); break;
    case Type::Kind::optional: element(9, 1); break;
    case Type::Kind::map: element(5, 2); break;
  }
  return out;
}

}  // namespace sdx
