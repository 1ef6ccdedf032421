#include "onnx/attributes.h"

#include <bit>
#include <cstring>

#include "base/error.h"
#include "onnx/types.h"
#include "tensor/wire.h"

namespace sdx {
namespace {

using wire::bytes;
using wire::fixed32;
using wire::varint;

// The kinds of content that were seen, one bit for each AttributeType.
using Seen = std::uint32_t;

constexpr Seen bit(AttributeType t) { return Seen{1} << static_cast<int>(t); }

constexpr std::string_view kNames[] = {"UNDEFINED",      "FLOAT",      "INT",        "STRING",  "TENSOR", "GRAPH",
                                       "FLOATS",         "INTS",       "STRINGS",    "TENSORS", "GRAPHS", "SPARSE_TENSOR",
                                       "SPARSE_TENSORS", "TYPE_PROTO", "TYPE_PROTOS"};

void add_floats(std::string_view packed, std::vector<float>& out) {
  if (packed.size() % 4 != 0) fail(ErrorCode::invalid_model, "'floats' ends inside an element");
  const std::size_t old = out.size();
  out.resize(old + packed.size() / 4);
  if (!packed.empty()) std::memcpy(out.data() + old, packed.data(), packed.size());
}

void add_ints(std::string_view packed, std::vector<std::int64_t>& out) {
  out.reserve(out.size() + wire::count_varints(packed));
  const char* p = packed.data();
  const char* const end = p + packed.size();
  while (p != end) out.push_back(static_cast<std::int64_t>(protozero::decode_varint(&p, end)));
}

bool needs_message(AttributeType t) {
  return t == AttributeType::t || t == AttributeType::g || t == AttributeType::sparse_tensor || t == AttributeType::type;
}

// The type field decides; files older than IR version 2 have none. Writers of the proto3 flavour leave out fields that hold zero,
// so a declared number or string may be absent.
void settle_type(AttributeMessage& m, std::int64_t declared, Seen seen) {
  if (declared < 0 || declared > static_cast<int>(AttributeType::types)) {
    fail(ErrorCode::invalid_model, "unknown attribute type {}", declared);
  }
  m.type = static_cast<AttributeType>(declared);
  if (m.type == AttributeType::undefined) {
    if (!m.reference.empty()) return;
    if (std::popcount(seen) != 1) {
      fail(ErrorCode::invalid_model, "the attribute has no type and {} values", seen == 0 ? "no" : "several");
    }
    m.type = static_cast<AttributeType>(std::countr_zero(seen));
  }
  if ((seen & ~bit(m.type)) != 0) {
    const auto other = static_cast<std::size_t>(std::countr_zero(seen & ~bit(m.type)));
    fail(ErrorCode::invalid_model, "the attribute is declared as {} but contains {}", kNames[static_cast<std::size_t>(m.type)],
         kNames[other]);
  }
  if (needs_message(m.type) && m.reference.empty() && m.messages.size() != 1) {
    fail(ErrorCode::invalid_model, "the attribute of type {} must hold one value, received {}",
         kNames[static_cast<std::size_t>(m.type)], m.messages.size());
  }
}

AttributeMessage scan(std::string_view message) {
  AttributeMessage m;
  std::int64_t declared = 0;
  Seen seen = 0;
  const auto mark = [&](AttributeType t) { seen |= bit(t); };
  wire::Reader r = wire::open(message);
  const auto add_message = [&](AttributeType t) {
    m.messages.push_back(wire::text(r));
    mark(t);
  };
  while (r.next()) {
    switch (r.tag_and_type()) {
      case bytes(1): m.name = wire::text(r); break;
      case fixed32(2):
        m.f = r.get_float();
        mark(AttributeType::f);
        break;
      case varint(3):
        m.i = r.get_int64();
        mark(AttributeType::i);
        break;
      case bytes(4):
        m.s = wire::text(r);
        mark(AttributeType::s);
        break;
      case bytes(5): add_message(AttributeType::t); break;
      case bytes(6): add_message(AttributeType::g); break;
      case fixed32(7):
        m.floats.push_back(r.get_float());
        mark(AttributeType::floats);
        break;
      case bytes(7):
        add_floats(wire::text(r), m.floats);
        mark(AttributeType::floats);
        break;
      case varint(8):
        m.ints.push_back(r.get_int64());
        mark(AttributeType::ints);
        break;
      case bytes(8):
        add_ints(wire::text(r), m.ints);
        mark(AttributeType::ints);
        break;
      case bytes(9):
        m.strings.push_back(wire::text(r));
        mark(AttributeType::strings);
        break;
      case bytes(10): add_message(AttributeType::tensors); break;
      case bytes(11): add_message(AttributeType::graphs); break;
      case bytes(14): add_message(AttributeType::type); break;
      case bytes(15): add_message(AttributeType::types); break;
      case varint(20): declared = r.get_int32(); break;
      case bytes(21): m.reference = wire::text(r); break;
      case bytes(22): add_message(AttributeType::sparse_tensor); break;
      case bytes(23): add_message(AttributeType::sparse_tensors); break;
      default: r.skip();
    }
  }
  if (m.name.empty()) fail(ErrorCode::invalid_model, "an attribute has no name");
  try {
    settle_type(m, declared, seen);
  } catch (Error& e) {
    e.add_context(fmt::format("in attribute '{}'", m.name));
    throw;
  }
  return m;
}

AttributeValue convert(const AttributeMessage& m, PbSource& source) {
  switch (m.type) {
    case AttributeType::f: return m.f;
    case AttributeType::i: return m.i;
    case AttributeType::s: return std::string(m.s);
    case AttributeType::t: return decode_tensor(m.messages[0], source).tensor;
    case AttributeType::sparse_tensor: return decode_sparse_tensor(m.messages[0], source).tensor;
    case AttributeType::floats: return m.floats;
    case AttributeType::ints: return m.ints;
    case AttributeType::strings: return std::vector<std::string>(m.strings.begin(), m.strings.end());
    case AttributeType::type: return read_type(m.messages[0]);
    case AttributeType::tensors:
    case AttributeType::sparse_tensors: {
      std::vector<Tensor> out;
      for (const std::string_view t : m.messages) {
        out.push_back((m.type == AttributeType::tensors ? decode_tensor(t, source) : decode_sparse_tensor(t, source)).tensor);
      }
      return out;
    }
    case AttributeType::types: {
      std::vector<Type> out;
      for (const std::string_view t : m.messages) out.push_back(read_type(t));
      return out;
    }
    case AttributeType::graphs: fail(ErrorCode::not_implemented, "lists of graphs are not supported; no ONNX operator uses them");
    case AttributeType::g:
    case AttributeType::undefined: break;
  }
  fail(ErrorCode::invalid_model, "the attribute has no value");
}

}  // namespace

AttributeMessage scan_attribute(std::string_view message) { return scan(message); }

AttributeValue attribute_value(const AttributeMessage& message, PbSource& source) {
  try {
    return convert(message, source);
  } catch (Error& e) {
    e.add_context(fmt::format("in attribute '{}'", message.name));
    throw;
  }
}

AttributeType type_of(const AttributeValue& value) {
  constexpr AttributeType kTypes[] = {AttributeType::i,    AttributeType::f,      AttributeType::s,       AttributeType::t,
                                      AttributeType::ints, AttributeType::floats, AttributeType::strings, AttributeType::tensors,
                                      AttributeType::type, AttributeType::types};
  return kTypes[value.index()];
}

}  // namespace sdx
