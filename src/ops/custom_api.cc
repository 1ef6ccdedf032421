#include "ops/custom_api.h"

#include <algorithm>
#include <new>

#include "base/error.h"
#include "base/thread_pool.h"

namespace sdx::ops {
namespace {

// The message of the last failure on this thread: functions of the C interface return a number, which cannot carry a message
// through a library's code.
thread_local std::string t_message;

sdx_status set_failure(sdx_status status, const char* message) noexcept {
  try {
    t_message = message != nullptr ? message : "";
  } catch (...) {
    t_message.clear();
  }
  return status == SDX_OK ? SDX_INTERNAL : status;
}

// Runs `fn`; nothing that it throws reaches the library.
template <class F>
sdx_status guarded(F&& fn) noexcept {
  try {
    fn();
    return SDX_OK;
  } catch (const Error& e) {
    return set_failure(static_cast<sdx_status>(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return set_failure(SDX_OUT_OF_MEMORY, "the machine ran out of memory");
  } catch (const std::exception& e) {
    return set_failure(SDX_RUNTIME_FAILURE, e.what());
  } catch (...) {
    return set_failure(SDX_RUNTIME_FAILURE, "an exception of unknown type");
  }
}

template <class T>
T& require(T* pointer, const char* what) {
  if (pointer == nullptr) fail(ErrorCode::invalid_argument, "{} must not be NULL", what);
  return *pointer;
}

DataType dtype_of(sdx_dtype dtype) {
  if (dtype <= 0 || dtype >= kDataTypeCount) fail(ErrorCode::invalid_argument, "{} is not an element type", dtype);
  return static_cast<DataType>(dtype);
}

// --- registration ------------------------------------------------------------------------------------------------------

Formal formal_of(const sdx_op_formal& f, const char* what, std::size_t index, bool last) {
  Formal out;
  out.name = f.name != nullptr ? f.name : fmt::format("{}{}", what, index);
  if (f.type_variable != nullptr) out.type_var = f.type_variable;
  out.types = f.types == 0 ? types::any_tensor : f.types & types::any_tensor;
  if (out.types == 0 || (f.types & ~types::any_tensor) != 0) {
    fail(ErrorCode::invalid_argument, "{} {} ('{}') permits types that do not exist ({:#x})", what, index, out.name, f.types);
  }
  if (f.arity < SDX_OP_REQUIRED || f.arity > SDX_OP_VARIADIC) {
    fail(ErrorCode::invalid_argument, "{} {} ('{}') has arity {}", what, index, out.name, f.arity);
  }
  if (f.arity == SDX_OP_VARIADIC && !last) {
    fail(ErrorCode::invalid_argument, "{} {} ('{}') is variadic; only the last may be", what, index, out.name);
  }
  out.arity = static_cast<Arity>(f.arity);
  return out;
}

constexpr std::size_t kMaxFormals = 1024;

template <class T>
void check_list(const T* list, std::size_t count, const char* what) {
  if (count > kMaxFormals) fail(ErrorCode::invalid_argument, "{} {}; at most {} are possible", count, what, kMaxFormals);
  if (count != 0) require(list, what);
}

AttrDef attribute_of(const sdx_op_attribute& a) {
  static constexpr AttrKind kinds[] = {AttrKind::i,    AttrKind::f,      AttrKind::s,      AttrKind::t,
                                       AttrKind::ints, AttrKind::floats, AttrKind::strings};
  if (a.kind < 0 || a.kind > SDX_OP_STRINGS) fail(ErrorCode::invalid_argument, "an attribute has kind {}", a.kind);
  return {&require(a.name, "an attribute's name"), kinds[a.kind], a.required != 0};
}

OpDef definition_of(const sdx_op_definition& d) {
  OpDef def(d.domain != nullptr ? d.domain : "", d.name != nullptr ? d.name : "", std::max<std::int32_t>(d.since_version, 1));
  if (def.domain == "ai.onnx") def.domain.clear();
  if (def.name.empty()) fail(ErrorCode::invalid_argument, "an operator has no name");
  if (d.run == nullptr) fail(ErrorCode::invalid_argument, "operator '{}' has no run function", def.name);
  if (d.output_count == 0) fail(ErrorCode::invalid_argument, "operator '{}' has no outputs", def.name);
  check_list(d.inputs, d.input_count, "inputs");
  check_list(d.outputs, d.output_count, "outputs");
  check_list(d.attributes, d.attribute_count, "attributes");
  for (std::size_t i = 0; i < d.input_count; ++i) {
    def.inputs.push_back(formal_of(d.inputs[i], "input", i, i + 1 == d.input_count));
  }
  for (std::size_t i = 0; i < d.output_count; ++i) {
    def.outputs.push_back(formal_of(d.outputs[i], "output", i, i + 1 == d.output_count));
  }
  for (std::size_t i = 0; i < d.attribute_count; ++i) def.attributes.push_back(attribute_of(d.attributes[i]));
  def.deterministic = (d.flags & SDX_OP_NOT_DETERMINISTIC) == 0;
  return def;
}

sdx_status add_operator(sdx_op_registry* registry, const sdx_op_definition* definition) {
  return guarded([&] {
    auto& state = *reinterpret_cast<RegistryState*>(&require(registry, "registry"));
    const sdx_op_definition& d = require(definition, "definition");
    if (d.abi == 0 || d.abi > SDX_OP_ABI) {
      fail(ErrorCode::not_implemented,
           "the library was built for version {} of the custom-operator interface; this build has versions 1 to {}", d.abi,
           SDX_OP_ABI);
    }
    if (d.size < sizeof(sdx_op_definition)) {
      fail(ErrorCode::invalid_argument, "the definition says that it has {} bytes; version {} of the interface has {}", d.size,
           d.abi, sizeof(sdx_op_definition));
    }
    state.defs.push_back(definition_of(d));
    state.functions.push_back(d);
  });
}

// --- attributes --------------------------------------------------------------------------------------------------------

AttributesState& state_of(const sdx_op_attributes* a) {
  return *reinterpret_cast<AttributesState*>(const_cast<sdx_op_attributes*>(&require(a, "attributes")));
}

// Null when the node lacks it. Throws Error(invalid_model) when it is of another kind.
template <class T>
const T* attribute(const sdx_op_attributes* attributes, const char* name) {
  const AttributeValue* value = state_of(attributes).node.attributes.find(&require(name, "name"));
  if (value == nullptr) return nullptr;
  const T* held = std::get_if<T>(value);
  if (held == nullptr) fail(ErrorCode::invalid_model, "attribute '{}' has the wrong type ({})", name, kind_name(*value));
  return held;
}

int has_attribute(const sdx_op_attributes* attributes, const char* name) {
  return attributes != nullptr && name != nullptr && state_of(attributes).node.attributes.has(name) ? 1 : 0;
}

sdx_status attribute_int(const sdx_op_attributes* attributes, const char* name, int64_t* value) {
  return guarded([&] {
    if (const auto* v = attribute<std::int64_t>(attributes, name)) require(value, "value") = *v;
  });
}

sdx_status attribute_float(const sdx_op_attributes* attributes, const char* name, float* value) {
  return guarded([&] {
    const Attributes& all = state_of(attributes).node.attributes;
    if (all.has(require(&name, "name"))) require(value, "value") = all.get_float(name);
  });
}

sdx_status attribute_string(const sdx_op_attributes* attributes, const char* name, const char** value, size_t* length) {
  return guarded([&] {
    const auto* v = attribute<std::string>(attributes, name);
    if (v == nullptr) return;
    require(value, "value") = v->c_str();
    if (length != nullptr) *length = v->size();
  });
}

sdx_status attribute_tensor(const sdx_op_attributes* attributes, const char* name, const sdx_op_tensor** value) {
  return guarded([&] {
    const auto* v = attribute<Tensor>(attributes, name);
    if (v == nullptr) return;
    const Tensor& held = v->is_aligned() ? *v : state_of(attributes).aligned.emplace_back(v->aligned());
    require(value, "value") = opaque<const sdx_op_tensor>(held);
  });
}

template <class T>
sdx_status attribute_list(const sdx_op_attributes* attributes, const char* name, const T** values, size_t* count) {
  return guarded([&] {
    const auto* v = attribute<std::vector<T>>(attributes, name);
    if (v == nullptr) return;
    require(values, "values") = v->data();
    require(count, "count") = v->size();
  });
}

sdx_status attribute_strings_count(const sdx_op_attributes* attributes, const char* name, size_t* count) {
  return guarded([&] {
    if (const auto* v = attribute<std::vector<std::string>>(attributes, name)) require(count, "count") = v->size();
  });
}

const char* attribute_strings_at(const sdx_op_attributes* attributes, const char* name, size_t index) {
  const char* text = nullptr;
  guarded([&] {
    const auto* v = attribute<std::vector<std::string>>(attributes, name);
    if (v != nullptr && index < v->size()) text = (*v)[index].c_str();
  });
  return text;
}

int32_t opset_version(const sdx_op_attributes* attributes) {
  return attributes != nullptr ? state_of(attributes).node.version : 0;
}

// --- tensors -----------------------------------------------------------------------------------------------------------

const Tensor& tensor_of(const sdx_op_tensor* t) {
  static const Tensor nothing;
  return t != nullptr ? *reinterpret_cast<const Tensor*>(t) : nothing;
}

sdx_dtype tensor_dtype(const sdx_op_tensor* t) { return static_cast<sdx_dtype>(tensor_of(t).dtype()); }
size_t tensor_rank(const sdx_op_tensor* t) { return tensor_of(t).rank(); }
const int64_t* tensor_shape(const sdx_op_tensor* t) { return tensor_of(t).shape().data(); }
int64_t tensor_count(const sdx_op_tensor* t) { return tensor_of(t).size(); }
size_t tensor_bytes(const sdx_op_tensor* t) { return tensor_of(t).bytes(); }
const void* tensor_data(const sdx_op_tensor* t) {
  return tensor_of(t).dtype() == DataType::string ? nullptr : tensor_of(t).data();
}
void* tensor_mutable_data(sdx_op_tensor* t) {
  if (!tensor_of(t).writable() || tensor_of(t).dtype() == DataType::string) return nullptr;
  return reinterpret_cast<Tensor*>(t)->mutable_data();
}

const char* tensor_string(const sdx_op_tensor* t, int64_t index, size_t* length) {
  const Tensor& tensor = tensor_of(t);
  if (tensor.dtype() != DataType::string || index < 0 || index >= tensor.size()) return nullptr;
  const std::string& text = static_cast<const std::string*>(tensor.data())[index];
  if (length != nullptr) *length = text.size();
  return text.c_str();
}

sdx_status tensor_set_string(sdx_op_tensor* t, int64_t index, const char* text, size_t length) {
  return guarded([&] {
    const Tensor& tensor = tensor_of(t);
    if (tensor.dtype() != DataType::string)
      fail(ErrorCode::invalid_argument, "the tensor is {}, not strings", tensor.type_string());
    if (index < 0 || index >= tensor.size()) {
      fail(ErrorCode::invalid_argument, "there is no element {} in {}", index, tensor.type_string());
    }
    if (length != 0) require(text, "text");
    auto strings = reinterpret_cast<Tensor*>(t)->mutable_values<std::string>();
    strings[static_cast<std::size_t>(index)] = length == 0 ? std::string() : std::string(text, length);
  });
}

// --- runs --------------------------------------------------------------------------------------------------------------

CallState& state_of(const sdx_op_call* c) { return *reinterpret_cast<CallState*>(const_cast<sdx_op_call*>(&require(c, "call"))); }

size_t input_count(const sdx_op_call* call) { return call != nullptr ? state_of(call).context.num_inputs() : 0; }

const sdx_op_tensor* input(const sdx_op_call* call, size_t index) {
  if (call == nullptr) return nullptr;
  const OpContext& c = state_of(call).context;
  if (!c.has_input(index) || !c.input_value(index).is_tensor()) return nullptr;
  return opaque<const sdx_op_tensor>(c.input_value(index).tensor());
}

size_t output_count(const sdx_op_call* call) { return call != nullptr ? state_of(call).context.num_outputs() : 0; }

int wants_output(const sdx_op_call* call, size_t index) {
  return call != nullptr && state_of(call).context.wants_output(index) ? 1 : 0;
}

Shape shape_of(const int64_t* shape, size_t rank) {
  if (rank > kMaxFormals) fail(ErrorCode::invalid_argument, "rank {} is too large", rank);
  if (rank != 0) require(shape, "shape");
  Shape out(shape, shape + rank);
  element_count(out);
  return out;
}

sdx_status output(sdx_op_call* call, size_t index, sdx_dtype dtype, const int64_t* shape, size_t rank, sdx_op_tensor** tensor) {
  return guarded([&] {
    require(tensor, "tensor") = nullptr;
    CallState& state = state_of(call);
    const std::size_t formal = std::min(index, state.def.outputs.size() - 1);
    if (formal != index && state.def.outputs.back().arity != Arity::variadic) {
      fail(ErrorCode::invalid_argument, "there is no output {}; the operator has {}", index, state.def.outputs.size());
    }
    const DataType type = dtype_of(dtype);
    if ((state.def.outputs[formal].types & bit(type)) == 0) {
      fail(ErrorCode::invalid_argument, "output {} ('{}') cannot be {}", index, state.def.outputs[formal].name, name(type));
    }
    *tensor = opaque<sdx_op_tensor>(state.context.output(index, type, shape_of(shape, rank)));
    if (index < state.made.size()) state.made[index] = true;
  });
}

sdx_status run_parallel(sdx_op_call* call, int64_t count, int64_t grain, sdx_op_range body, void* argument) {
  return guarded([&] {
    require(call, "call");
    if (body == nullptr) fail(ErrorCode::invalid_argument, "body must not be NULL");
    parallel_for(std::max<int64_t>(count, 0), std::max<int64_t>(grain, 1),
                 [&](std::int64_t begin, std::int64_t end) { body(begin, end, argument); });
  });
}

sdx_status check_stop(const sdx_op_call* call) {
  return guarded([&] { state_of(call).context.stop().check(); });
}

// --- inference ---------------------------------------------------------------------------------------------------------

InferenceState& state_of(const sdx_op_inference* i) {
  return *reinterpret_cast<InferenceState*>(const_cast<sdx_op_inference*>(&require(i, "inference")));
}

const sdx_op_attributes* infer_attributes(const sdx_op_inference* i) {
  return i != nullptr ? opaque<const sdx_op_attributes>(state_of(i).attributes) : nullptr;
}
size_t infer_input_count(const sdx_op_inference* i) { return i != nullptr ? state_of(i).context.num_inputs() : 0; }
size_t infer_output_count(const sdx_op_inference* i) { return i != nullptr ? state_of(i).context.num_outputs() : 0; }
int infer_has_input(const sdx_op_inference* i, size_t index) {
  return i != nullptr && state_of(i).context.has_input(index) ? 1 : 0;
}
sdx_dtype infer_input_dtype(const sdx_op_inference* i, size_t index) {
  return i != nullptr ? static_cast<sdx_dtype>(state_of(i).context.dtype(index)) : 0;
}
int64_t infer_input_rank(const sdx_op_inference* i, size_t index) {
  const SymShape* s = i != nullptr ? state_of(i).context.shape(index) : nullptr;
  return s != nullptr ? static_cast<int64_t>(s->size()) : -1;
}
int64_t infer_input_extent(const sdx_op_inference* i, size_t index, size_t axis) {
  const SymShape* s = i != nullptr ? state_of(i).context.shape(index) : nullptr;
  return s != nullptr && axis < s->size() && (*s)[axis].is_const() ? (*s)[axis].value() : -1;
}
const sdx_op_tensor* infer_input_value(const sdx_op_inference* i, size_t index) {
  const Tensor* t = i != nullptr ? state_of(i).context.value(index) : nullptr;
  return t != nullptr ? opaque<const sdx_op_tensor>(*t) : nullptr;
}

Type& inferred(sdx_op_inference* i, size_t index) {
  std::vector<Type>& outputs = state_of(i).context.outputs;
  if (index >= outputs.size()) fail(ErrorCode::invalid_argument, "the node has no output {}", index);
  return outputs[index];
}

sdx_status infer_output(sdx_op_inference* i, size_t index, sdx_dtype dtype, const int64_t* shape, int64_t rank) {
  return guarded([&] {
    Type type = Type::tensor(dtype == 0 ? inferred(i, index).elem : dtype_of(dtype));
    if (rank > 0) require(shape, "shape");
    if (rank > static_cast<int64_t>(kMaxFormals)) fail(ErrorCode::invalid_argument, "rank {} is too large", rank);
    if (rank >= 0) type.shape.emplace();
    for (int64_t axis = 0; axis < rank; ++axis) {
      if (shape[axis] < -1) fail(ErrorCode::invalid_argument, "extent {} of output {} cannot be {}", axis, index, shape[axis]);
      type.shape->push_back(shape[axis] < 0 ? Dim::unknown() : Dim(shape[axis]));
    }
    inferred(i, index) = std::move(type);
  });
}

sdx_status infer_output_like(sdx_op_inference* i, size_t index, size_t input, sdx_dtype dtype) {
  return guarded([&] {
    Type type = state_of(i).context.type(input);
    if (!type.is_tensor()) type = Type::tensor(DataType::undefined);
    if (dtype != 0) type.elem = dtype_of(dtype);
    inferred(i, index) = std::move(type);
  });
}

sdx_status infer_extent_like(sdx_op_inference* i, size_t index, size_t axis, size_t input, size_t input_axis) {
  return guarded([&] {
    Type& type = inferred(i, index);
    if (!type.shape || axis >= type.shape->size()) {
      fail(ErrorCode::invalid_argument, "output {} has no axis {}: set its rank first", index, axis);
    }
    const SymShape* s = state_of(i).context.shape(input);
    (*type.shape)[axis] = s != nullptr && input_axis < s->size() ? (*s)[input_axis] : Dim::unknown();
  });
}

// --- gradients ---------------------------------------------------------------------------------------------------------

GradientState& state_of(const sdx_op_gradient* g) {
  return *reinterpret_cast<GradientState*>(const_cast<sdx_op_gradient*>(&require(g, "gradient")));
}

const sdx_op_attributes* gradient_attributes(const sdx_op_gradient* g) {
  return g != nullptr ? opaque<const sdx_op_attributes>(state_of(g).attributes) : nullptr;
}

const char* name_at(const std::vector<std::string>& names, size_t index) {
  return index < names.size() && !names[index].empty() ? names[index].c_str() : nullptr;
}

const char* gradient_input(const sdx_op_gradient* g, size_t index) {
  return g != nullptr ? name_at(state_of(g).names.inputs, index) : nullptr;
}
const char* gradient_output(const sdx_op_gradient* g, size_t index) {
  return g != nullptr ? name_at(state_of(g).names.outputs, index) : nullptr;
}
const char* gradient_of_output(const sdx_op_gradient* g, size_t index) {
  return g != nullptr ? name_at(state_of(g).names.of_outputs, index) : nullptr;
}

std::vector<std::string> names_of(const char* const* names, size_t count) {
  check_list(names, count, "names");
  std::vector<std::string> out;
  for (size_t i = 0; i < count; ++i) out.emplace_back(names[i] != nullptr ? names[i] : "");
  return out;
}

sdx_status gradient_node(sdx_op_gradient* g, const char* domain, const char* op, int32_t version, const char* const* inputs,
                         size_t inputs_n, const char* const* outputs, size_t outputs_n) {
  return guarded([&] {
    GradientNode node;
    node.domain = domain != nullptr ? domain : "";
    node.op_type = &require(op, "op");
    node.version = version;
    node.inputs = names_of(inputs, inputs_n);
    node.outputs = names_of(outputs, outputs_n);
    state_of(g).result.nodes.push_back(std::move(node));
  });
}

template <class Make>
sdx_status gradient_set(sdx_op_gradient* g, const char* name, Make&& make) {
  return guarded([&] {
    GradientState& state = state_of(g);
    if (state.result.nodes.empty())
      fail(ErrorCode::invalid_argument, "there is no node yet that could have attribute '{}'", name);
    state.result.nodes.back().attributes.set(&require(name, "name"), make());
  });
}

sdx_status gradient_set_int(sdx_op_gradient* g, const char* name, int64_t value) {
  return gradient_set(g, name, [&] { return AttributeValue(value); });
}
sdx_status gradient_set_float(sdx_op_gradient* g, const char* name, float value) {
  return gradient_set(g, name, [&] { return AttributeValue(value); });
}
sdx_status gradient_set_string(sdx_op_gradient* g, const char* name, const char* value) {
  return gradient_set(g, name, [&] { return AttributeValue(std::string(&require(value, "value"))); });
}
sdx_status gradient_set_ints(sdx_op_gradient* g, const char* name, const int64_t* values, size_t count) {
  return gradient_set(g, name, [&] {
    if (count != 0) require(values, "values");
    return AttributeValue(std::vector<std::int64_t>(values, values + count));
  });
}
sdx_status gradient_set_floats(sdx_op_gradient* g, const char* name, const float* values, size_t count) {
  return gradient_set(g, name, [&] {
    if (count != 0) require(values, "values");
    return AttributeValue(std::vector<float>(values, values + count));
  });
}

sdx_status gradient_of_input(sdx_op_gradient* g, size_t index, const char* name) {
  return guarded([&] {
    GradientState& state = state_of(g);
    if (index >= state.result.of_inputs.size()) fail(ErrorCode::invalid_argument, "the node has no input {}", index);
    state.result.of_inputs[index] = &require(name, "name");
  });
}

}  // namespace

const sdx_op_api& custom_api() {
  static const sdx_op_api api = [] {
    sdx_op_api a{};
    a.abi = SDX_OP_ABI;
    a.size = sizeof(sdx_op_api);
    a.fail = set_failure;
    a.add_operator = add_operator;
    a.has_attribute = has_attribute;
    a.attribute_int = attribute_int;
    a.attribute_float = attribute_float;
    a.attribute_string = attribute_string;
    a.attribute_tensor = attribute_tensor;
    a.attribute_ints = attribute_list<std::int64_t>;
    a.attribute_floats = attribute_list<float>;
    a.attribute_strings_count = attribute_strings_count;
    a.attribute_strings_at = attribute_strings_at;
    a.opset_version = opset_version;
    a.tensor_dtype = tensor_dtype;
    a.tensor_rank = tensor_rank;
    a.tensor_shape = tensor_shape;
    a.tensor_count = tensor_count;
    a.tensor_bytes = tensor_bytes;
    a.tensor_data = tensor_data;
    a.tensor_mutable_data = tensor_mutable_data;
    a.tensor_string = tensor_string;
    a.tensor_set_string = tensor_set_string;
    a.input_count = input_count;
    a.input = input;
    a.output_count = output_count;
    a.wants_output = wants_output;
    a.output = output;
    a.parallel_for = run_parallel;
    a.check_stop = check_stop;
    a.infer_attributes = infer_attributes;
    a.infer_input_count = infer_input_count;
    a.infer_output_count = infer_output_count;
    a.infer_has_input = infer_has_input;
    a.infer_input_dtype = infer_input_dtype;
    a.infer_input_rank = infer_input_rank;
    a.infer_input_extent = infer_input_extent;
    a.infer_input_value = infer_input_value;
    a.infer_output = infer_output;
    a.infer_output_like = infer_output_like;
    a.infer_extent_like = infer_extent_like;
    a.gradient_attributes = gradient_attributes;
    a.gradient_input = gradient_input;
    a.gradient_output = gradient_output;
    a.gradient_of_output = gradient_of_output;
    a.gradient_node = gradient_node;
    a.gradient_set_int = gradient_set_int;
    a.gradient_set_float = gradient_set_float;
    a.gradient_set_string = gradient_set_string;
    a.gradient_set_ints = gradient_set_ints;
    a.gradient_set_floats = gradient_set_floats;
    a.gradient_of_input = gradient_of_input;
    return a;
  }();
  return api;
}

std::string take_custom_message() { return std::exchange(t_message, {}); }

}  // namespace sdx::ops
