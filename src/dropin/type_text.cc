// Types from our spelling of them, from declarations and from values.
#include <charconv>

#include "dropin/objects.h"
#include "dropin/status.h"

namespace sdx::dropin {

ElementType element_of(DataType type) {
  switch (type) {
    case DataType::uint2: return ELEMENT_UINT2;
    case DataType::int2: return ELEMENT_INT2;
    case DataType::float8e8m0: return ELEMENT_FLOAT8E8M0;
    case DataType::float6e2m3:
    case DataType::float6e3m2: return ELEMENT_UNDEFINED;  // ONNX Runtime has no number for them
    default: return static_cast<ElementType>(type);
  }
}

DataType type_of_element(ElementType element) {
  switch (element) {
    case ELEMENT_UINT2: return DataType::uint2;
    case ELEMENT_INT2: return DataType::int2;
    case ELEMENT_FLOAT8E8M0: return DataType::float8e8m0;
    default: break;
  }
  const auto number = static_cast<std::int32_t>(element);
  return number > 0 && number < ELEMENT_UINT2 ? static_cast<DataType>(number) : DataType::undefined;
}

namespace {

// "batch,3,?" of "float32[batch,3,?]". Commas inside brackets belong to an expression.
void parse_extents(std::string_view text, OrtTensorTypeAndShapeInfo& info) {
  info.has_shape = true;
  while (!text.empty()) {
    std::size_t end = 0;
    for (int depth = 0; end < text.size() && (depth > 0 || text[end] != ','); ++end) {
      if (text[end] == '(') ++depth;
      if (text[end] == ')') --depth;
    }
    const std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    std::int64_t extent = -1;
    const auto [rest, error] = std::from_chars(item.data(), item.data() + item.size(), extent);
    const bool number = error == std::errc() && rest == item.data() + item.size();
    info.shape.push_back(number ? extent : -1);
    info.symbols.push_back(number || item == "?" ? std::string() : std::string(item));
  }
}

OrtTensorTypeAndShapeInfo parse_tensor(std::string_view text) {
  OrtTensorTypeAndShapeInfo info;
  const std::size_t bracket = text.find('[');
  info.element = element_of(parse_data_type(text.substr(0, bracket)));
  if (bracket == std::string_view::npos || !text.ends_with(']')) return info;
  parse_extents(text.substr(bracket + 1, text.size() - bracket - 2), info);
  return info;
}

std::shared_ptr<const OrtTypeInfo> inner(std::string_view text) {
  return std::make_shared<const OrtTypeInfo>(type_of_text(text));
}

OrtTensorTypeAndShapeInfo info_of(DataType type, const Shape& shape) {
  return {element_of(type), true, shape, std::vector<std::string>(shape.size())};
}

OrtTypeInfo type_of(const Value& value) {
  OrtTypeInfo info;
  info.type = onnx_type_of(value);
  if (value.is_tensor()) {
    info.tensor = info_of(value.tensor().dtype(), value.tensor().shape());
  } else if (value.is_map()) {
    info.map.key = element_of(value.map().keys.dtype());
    OrtTypeInfo values;
    values.type = ONNX_TYPE_TENSOR;
    values.tensor = info_of(value.map().values.dtype(), {});
    info.map.value = std::make_shared<const OrtTypeInfo>(std::move(values));
  } else if (value.is_sequence()) {
    const Sequence& sequence = value.sequence();
    OrtTypeInfo element;
    if (sequence.element_type != DataType::undefined) {  // extents differ from item to item
      element.type = ONNX_TYPE_TENSOR;
      element.tensor.element = element_of(sequence.element_type);
    } else if (!sequence.items.empty()) {
      element = type_of(sequence.items.front());
    }
    info.sequence.element = std::make_shared<const OrtTypeInfo>(std::move(element));
  }
  return info;
}

}  // namespace

OrtTypeInfo type_of_text(std::string_view text) {
  OrtTypeInfo info;
  const auto take = [&](std::string_view word) {
    if (!text.starts_with(word) || !text.ends_with(')')) return false;
    text = text.substr(word.size(), text.size() - word.size() - 1);
    return true;
  };
  if (take("sequence(")) {
    info.type = ONNX_TYPE_SEQUENCE;
    info.sequence.element = inner(text);
  } else if (take("optional(")) {
    info.type = ONNX_TYPE_OPTIONAL;
    info.optional.element = inner(text);
  } else if (take("map(")) {
    info.type = ONNX_TYPE_MAP;
    const std::size_t comma = text.find(", ");
    info.map.key = element_of(parse_data_type(text.substr(0, comma)));
    info.map.value = inner(comma == std::string_view::npos ? "" : text.substr(comma + 2));
  } else if (take("sparse_tensor(")) {
    info.type = ONNX_TYPE_SPARSETENSOR;
    info.tensor = parse_tensor(text);
  } else if (text != "unknown" && !text.empty()) {
    info.type = ONNX_TYPE_TENSOR;
    info.tensor = parse_tensor(text);
  }
  return info;
}

OrtTypeInfo type_of_spec(const ValueSpec& spec) {
  if (!spec.is_tensor) return type_of_text(spec.type);
  OrtTypeInfo info;
  info.type = ONNX_TYPE_TENSOR;
  info.tensor = {element_of(spec.dtype), spec.has_shape, spec.shape, spec.symbols};
  return info;
}

OnnxType onnx_type_of(const Value& value) {
  if (value.is_tensor()) return ONNX_TYPE_TENSOR;
  if (value.is_sequence()) return ONNX_TYPE_SEQUENCE;
  if (value.is_map()) return ONNX_TYPE_MAP;
  return ONNX_TYPE_UNKNOWN;
}

OrtTypeInfo type_of_value(const OrtValue& value) {
  if (value.sparse) {
    OrtTypeInfo info;
    info.type = ONNX_TYPE_SPARSETENSOR;
    info.tensor = info_of(value.sparse->dtype, value.sparse->dense_shape);
    return info;
  }
  return type_of(value.value);
}

}  // namespace sdx::dropin
