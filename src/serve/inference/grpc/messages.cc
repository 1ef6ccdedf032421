#include "messages.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "serve/models/datatypes.h"

namespace sdx::serve {
namespace {

using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;

constexpr int kMostTensors = 4096;

std::uint64_t whole_number(const Parameters& parameters, const char* key) {
  const auto at = parameters.find(key);
  if (at == parameters.end()) return 0;
  const inference::InferParameter& p = at->second;
  if (p.parameter_choice_case() == inference::InferParameter::kUint64Param) return p.uint64_param();
  if (p.parameter_choice_case() != inference::InferParameter::kInt64Param || p.int64_param() < 0) {
    fail(ErrorCode::invalid_argument, "parameter '{}' must be an integer of at least 0", key);
  }
  return static_cast<std::uint64_t>(p.int64_param());
}

void refuse_shared_memory(const Parameters& parameters, const std::string& where) {
  if (!parameters.contains("shared_memory_region")) return;
  fail(ErrorCode::not_implemented, "{}: shared memory is not supported: send the data itself", where);
}

template <class T, class List>
Tensor narrowed(const List& list, DataType type, const std::string& where) {
  Tensor out(type, {static_cast<std::int64_t>(list.size())});
  auto values = out.mutable_values<T>();
  for (int i = 0; i < list.size(); ++i) {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      if (list[i] < std::numeric_limits<T>::min() || list[i] > std::numeric_limits<T>::max()) {
        fail(ErrorCode::invalid_argument, "{}: {} does not fit {}", where, list[i], name(type));
      }
    }
    values[static_cast<std::size_t>(i)] = static_cast<T>(list[i]);
  }
  return out;
}

Tensor strings(const google::protobuf::RepeatedPtrField<std::string>& list) {
  Tensor out(DataType::string, {list.size()});
  std::copy(list.begin(), list.end(), out.mutable_values<std::string>().begin());
  return out;
}

Tensor typed_values(const inference::InferTensorContents& c, DataType type, const std::string& where) {
  switch (type) {
    case DataType::boolean: return narrowed<bool>(c.bool_contents(), type, where);
    case DataType::int8: return narrowed<std::int8_t>(c.int_contents(), type, where);
    case DataType::int16: return narrowed<std::int16_t>(c.int_contents(), type, where);
    case DataType::int32: return narrowed<std::int32_t>(c.int_contents(), type, where);
    case DataType::int64: return narrowed<std::int64_t>(c.int64_contents(), type, where);
    case DataType::uint8: return narrowed<std::uint8_t>(c.uint_contents(), type, where);
    case DataType::uint16: return narrowed<std::uint16_t>(c.uint_contents(), type, where);
    case DataType::uint32: return narrowed<std::uint32_t>(c.uint_contents(), type, where);
    case DataType::uint64: return narrowed<std::uint64_t>(c.uint64_contents(), type, where);
    case DataType::float32: return narrowed<float>(c.fp32_contents(), type, where);
    case DataType::float64: return narrowed<double>(c.fp64_contents(), type, where);
    case DataType::string: return strings(c.bytes_contents());
    default: fail(ErrorCode::invalid_argument, "{}: {} can be sent only in raw_input_contents", where, name(type));
  }
}

Tensor tensor_of(const inference::ModelInferRequest::InferInputTensor& input, const std::string* raw, const std::string& where) {
  const DataType type = parse_protocol_type(input.datatype());
  if (type == DataType::undefined) fail(ErrorCode::invalid_argument, "{}: there is no datatype '{}'", where, input.datatype());
  Shape shape(input.shape().begin(), input.shape().end());
  if (shape.size() > 64) fail(ErrorCode::invalid_argument, "{}: a shape has at most 64 extents", where);
  element_count(shape);  // or throws
  if (raw != nullptr) {
    if (input.has_contents()) fail(ErrorCode::invalid_argument, "{}: contents and raw_input_contents exclude each other", where);
    if (type == DataType::string) return tensor_of_bytes(*raw, type, std::move(shape), nullptr, where);
    // The message outlives the run.
    return tensor_of_bytes(*raw, type, std::move(shape), std::shared_ptr<const void>(std::shared_ptr<void>(), raw->data()),
                           where);
  }
  Tensor values = typed_values(input.contents(), type, where);
  if (values.size() != element_count(shape)) {
    fail(ErrorCode::invalid_argument, "{}: the shape {} has {} elements, contents has {}", where, to_string(shape),
         element_count(shape), values.size());
  }
  return values.reshaped(std::move(shape));
}

}  // namespace

InferRequest request_of(const inference::ModelInferRequest& message) {
  InferRequest out;
  out.model = message.model_name();
  out.version = message.model_version();
  out.id = message.id();
  if (message.inputs_size() > kMostTensors || message.outputs_size() > kMostTensors) {
    fail(ErrorCode::invalid_argument, "at most {} inputs and outputs", kMostTensors);
  }
  const bool raw = message.raw_input_contents_size() > 0;
  if (raw && message.raw_input_contents_size() != message.inputs_size()) {
    fail(ErrorCode::invalid_argument, "{} inputs, but {} raw_input_contents", message.inputs_size(),
         message.raw_input_contents_size());
  }
  for (int i = 0; i < message.inputs_size(); ++i) {
    const auto& input = message.inputs(i);
    const std::string where = "input '" + input.name() + "'";
    if (out.inputs.find(input.name()) != nullptr) fail(ErrorCode::invalid_argument, "{} is given twice", where);
    refuse_shared_memory(input.parameters(), where);
    out.inputs.add(input.name(), tensor_of(input, raw ? &message.raw_input_contents(i) : nullptr, where));
  }
  for (const auto& output : message.outputs()) {
    const bool twice =
        std::any_of(out.outputs.begin(), out.outputs.end(), [&](const RequestedOutput& o) { return o.name == output.name(); });
    if (twice) fail(ErrorCode::invalid_argument, "output '{}' is given twice", output.name());
    refuse_shared_memory(output.parameters(), "output '" + output.name() + "'");
    const std::uint64_t classes = std::min<std::uint64_t>(whole_number(output.parameters(), "classification"), 1ULL << 32);
    out.outputs.push_back({output.name(), true, static_cast<std::int64_t>(classes)});
  }
  if (const std::uint64_t timeout = whole_number(message.parameters(), "timeout"); timeout > 0) {
    out.run.timeout =
        std::chrono::milliseconds(static_cast<std::int64_t>(std::min<std::uint64_t>(timeout / 1000 + 1, 1ULL << 31)));
  }
  return out;
}

void add_text(inference::ModelInferResponse& message, const std::string& name, const std::string& text) {
  auto* output = message.add_outputs();
  output->set_name(name);
  output->set_datatype("BYTES");
  output->add_shape(1);
  Tensor value(DataType::string, {1});
  value.mutable_values<std::string>()[0] = text;
  append_bytes(*message.add_raw_output_contents(), value);
}

void fill_response(inference::ModelInferResponse& message, const std::string& id, const InferResult& result) {
  message.set_model_name(result.model->name);
  message.set_model_version(result.model->version);
  message.set_id(id);
  for (const InferOutput& output : result.outputs) {
    auto* tensor = message.add_outputs();
    tensor->set_name(output.asked.name);
    tensor->set_datatype(std::string(protocol_name(output.tensor.dtype())));
    for (const std::int64_t extent : output.tensor.shape()) tensor->add_shape(extent);
    append_bytes(*message.add_raw_output_contents(), output.tensor);
  }
}

}  // namespace sdx::serve
