// Type and shape information as programs ask for it.
#include <algorithm>

#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {
namespace {

// A part of a type: NULL where the type is of another kind.
template <auto part, class T, OnnxType... kinds>
OrtStatus* cast(const OrtTypeInfo* info, const T** out) {
  return guarded([&] {
    const OrtTypeInfo& type = require(info, "type_info");
    require(out, "out") = ((type.type == kinds) || ...) ? &(type.*part) : nullptr;
  });
}

OrtStatus* get_onnx_type(const OrtTypeInfo* info, OnnxType* out) {
  return guarded([&] { require(out, "out") = require(info, "type_info").type; });
}
OrtStatus* get_denotation(const OrtTypeInfo* info, const char** denotation, std::size_t* length) {
  return guarded([&] {
    const OrtTypeInfo& type = require(info, "type_info");
    require(denotation, "denotation") = type.denotation.c_str();
    require(length, "len") = type.denotation.size();
  });
}

OrtTypeInfo* copy(const std::shared_ptr<const OrtTypeInfo>& info) { return info ? new OrtTypeInfo(*info) : new OrtTypeInfo(); }

OrtStatus* get_map_key(const OrtMapTypeInfo* info, ElementType* out) {
  return guarded([&] { require(out, "out") = require(info, "map_type_info").key; });
}
OrtStatus* get_map_value(const OrtMapTypeInfo* info, OrtTypeInfo** out) {
  return guarded([&] {
    require(out, "type_info");
    *out = copy(require(info, "map_type_info").value);
  });
}
OrtStatus* get_sequence_element(const OrtSequenceTypeInfo* info, OrtTypeInfo** out) {
  return guarded([&] {
    require(out, "type_info");
    *out = copy(require(info, "sequence_type_info").element);
  });
}
OrtStatus* get_optional_element(const OrtOptionalTypeInfo* info, OrtTypeInfo** out) {
  return guarded([&] {
    require(out, "out");
    *out = copy(require(info, "optional_type_info").element);
  });
}

OrtStatus* create(OrtTensorTypeAndShapeInfo** out) {
  return guarded([&] {
    require(out, "out");
    *out = new OrtTensorTypeAndShapeInfo();
  });
}
OrtStatus* set_element(OrtTensorTypeAndShapeInfo* info, ElementType type) {
  return guarded([&] { require(info, "info").element = type; });
}
OrtStatus* set_dimensions(OrtTensorTypeAndShapeInfo* info, const std::int64_t* extents, std::size_t count) {
  return guarded([&] {
    OrtTensorTypeAndShapeInfo& to = require(info, "info");
    if (count > 0) require(extents, "dim_values");
    if (std::any_of(extents, extents + count, [](std::int64_t e) { return e < -1; })) {
      fail_ort(ORT_INVALID_ARGUMENT, "dim_values must be -1 (symbolic dimension) or larger.");
    }
    to.has_shape = true;
    to.shape.assign(extents, extents + count);
    to.symbols.assign(count, "");
  });
}
OrtStatus* set_symbols(OrtTensorTypeAndShapeInfo* info, const char** names, std::size_t count) {
  return guarded([&] {
    OrtTensorTypeAndShapeInfo& to = require(info, "info");
    if (count > 0) require(names, "dim_params");
    to.symbols.resize(std::max(count, to.shape.size()));
    for (std::size_t i = 0; i < count; ++i) to.symbols[i] = names[i] == nullptr ? "" : names[i];
  });
}
OrtStatus* get_element(const OrtTensorTypeAndShapeInfo* info, ElementType* out) {
  return guarded([&] { require(out, "out") = require(info, "info").element; });
}
OrtStatus* get_rank(const OrtTensorTypeAndShapeInfo* info, std::size_t* out) {
  return guarded([&] { require(out, "out") = require(info, "info").shape.size(); });
}
OrtStatus* get_extents(const OrtTensorTypeAndShapeInfo* info, std::int64_t* out, std::size_t count) {
  return guarded([&] {
    const Shape& shape = require(info, "info").shape;
    if (count > 0) require(out, "dim_values");
    std::copy_n(shape.begin(), std::min(count, shape.size()), out);
  });
}
OrtStatus* get_symbols(const OrtTensorTypeAndShapeInfo* info, const char** out, std::size_t count) {
  return guarded([&] {
    const std::vector<std::string>& symbols = require(info, "info").symbols;
    if (count > 0) require(out, "dim_params");
    for (std::size_t i = 0; i < std::min(count, symbols.size()); ++i) out[i] = symbols[i].c_str();
  });
}
OrtStatus* get_count(const OrtTensorTypeAndShapeInfo* info, std::size_t* out) {
  return guarded([&] {
    const Shape& shape = require(info, "info").shape;
    const bool open = std::any_of(shape.begin(), shape.end(), [](std::int64_t e) { return e < 0; });
    require(out, "out") = open ? static_cast<std::size_t>(-1) : static_cast<std::size_t>(element_count(shape));
  });
}
bool has_shape(const OrtTensorTypeAndShapeInfo* info) { return info != nullptr && info->has_shape; }

OrtStatus* tensor_info(const OrtValue* value, OrtTensorTypeAndShapeInfo** out) {
  return guarded([&] {
    const OrtValue& v = require(value, "value");
    if (!v.sparse && !v.value.is_tensor()) {
      fail_ort(v.value.empty() ? ORT_INVALID_ARGUMENT : ORT_RUNTIME_EXCEPTION,
               v.value.empty() ? "the ort_value must contain a constructed tensor or sparse tensor" : "Argument is not a tensor");
    }
    require(out, "out");
    *out = new OrtTensorTypeAndShapeInfo(type_of_value(v).tensor);
  });
}
OrtStatus* type_info(const OrtValue* value, OrtTypeInfo** out) {
  return guarded([&] {
    const OrtValue& v = require(value, "value");
    require(out, "out");
    *out = !v.sparse && v.value.empty() ? nullptr : new OrtTypeInfo(type_of_value(v));
  });
}
OrtStatus* value_type(const OrtValue* value, OnnxType* out) {
  return guarded([&] {
    const OrtValue& v = require(value, "value");
    require(out, "out") = v.sparse ? ONNX_TYPE_SPARSETENSOR : onnx_type_of(v.value);
  });
}
OrtStatus* shape_reference(const OrtValue* value, ElementType* element, const std::int64_t** extents, std::size_t* count) {
  return guarded([&] {
    const OrtValue& v = require(value, "value");
    const auto* const sparse = v.sparse.get();
    const Shape& shape = sparse != nullptr ? sparse->dense_shape : tensor_of(value).shape();
    require(element, "elem_type") = element_of(sparse != nullptr ? sparse->dtype : tensor_of(value).dtype());
    require(count, "shape_data_count") = shape.size();
    require(extents, "shape_data") = shape.empty() ? nullptr : shape.data();
  });
}

template <class T>
void release(T* object) {
  delete object;
}
// Parts of another type: programs get them by casts, and need not release them.
template <class T>
void release_part(T*) {}

}  // namespace

void fill_types(Table& table) {
  table.set(Slot::CastTypeInfoToTensorInfo,
            &cast<&OrtTypeInfo::tensor, OrtTensorTypeAndShapeInfo, ONNX_TYPE_TENSOR, ONNX_TYPE_SPARSETENSOR>);
  table.set(Slot::CastTypeInfoToMapTypeInfo, &cast<&OrtTypeInfo::map, OrtMapTypeInfo, ONNX_TYPE_MAP>);
  table.set(Slot::CastTypeInfoToSequenceTypeInfo, &cast<&OrtTypeInfo::sequence, OrtSequenceTypeInfo, ONNX_TYPE_SEQUENCE>);
  table.set(Slot::CastTypeInfoToOptionalTypeInfo, &cast<&OrtTypeInfo::optional, OrtOptionalTypeInfo, ONNX_TYPE_OPTIONAL>);
  table.set(Slot::GetOnnxTypeFromTypeInfo, &get_onnx_type);
  table.set(Slot::GetDenotationFromTypeInfo, &get_denotation);
  table.set(Slot::GetMapKeyType, &get_map_key);
  table.set(Slot::GetMapValueType, &get_map_value);
  table.set(Slot::GetSequenceElementType, &get_sequence_element);
  table.set(Slot::GetOptionalContainedTypeInfo, &get_optional_element);
  table.set(Slot::CreateTensorTypeAndShapeInfo, &create);
  table.set(Slot::SetTensorElementType, &set_element);
  table.set(Slot::SetDimensions, &set_dimensions);
  table.set(Slot::SetSymbolicDimensions, &set_symbols);
  table.set(Slot::GetTensorElementType, &get_element);
  table.set(Slot::GetDimensionsCount, &get_rank);
  table.set(Slot::GetDimensions, &get_extents);
  table.set(Slot::GetSymbolicDimensions, &get_symbols);
  table.set(Slot::GetTensorShapeElementCount, &get_count);
  table.set(Slot::TensorTypeAndShape_HasShape, &has_shape);
  table.set(Slot::GetTensorTypeAndShape, &tensor_info);
  table.set(Slot::GetTypeInfo, &type_info);
  table.set(Slot::GetValueType, &value_type);
  table.set(Slot::GetTensorElementTypeAndShapeDataReference, &shape_reference);
  table.set(Slot::ReleaseTypeInfo, &release<OrtTypeInfo>);
  table.set(Slot::ReleaseTensorTypeAndShapeInfo, &release<OrtTensorTypeAndShapeInfo>);
  table.set(Slot::ReleaseMapTypeInfo, &release_part<OrtMapTypeInfo>);
  table.set(Slot::ReleaseSequenceTypeInfo, &release_part<OrtSequenceTypeInfo>);
}

}  // namespace sdx::dropin
