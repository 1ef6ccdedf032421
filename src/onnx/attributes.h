#pragma once
// AttributeProto.

#include <string_view>
#include <vector>

#include "graph/attribute.h"
#include "tensor/pb.h"

namespace sdx {

// AttributeProto.AttributeType
enum class AttributeType : int {
  undefined = 0,
  f = 1,
  i = 2,
  s = 3,
  t = 4,
  g = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type = 13,
  types = 14,
};

// One AttributeProto, its parts still serialised. Views into the message.
struct AttributeMessage {
  std::string_view name;
  std::string_view reference;  // of a function body's attribute: the function's attribute that stands here
  AttributeType type = AttributeType::undefined;
  float f = 0;
  std::int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<std::int64_t> ints;
  std::vector<std::string_view> strings;
  // Tensor(s), sparse tensor(s), type(s) or graph(s), as `type` says.
  std::vector<std::string_view> messages;
};

// Throws Error(invalid_model): no name; a type that is unknown, or contradicts the fields that are set.
AttributeMessage scan_attribute(std::string_view message);

// The value of any attribute but a graph, a reference or a list of graphs.
AttributeValue attribute_value(const AttributeMessage& message, PbSource& source);

// The type that a value has when written (sparse tensors have become tensors).
AttributeType type_of(const AttributeValue& value);

}  // namespace sdx
