#include "serve/inference/infer_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/json_text.h"
#include "serve/inference/json_numbers.h"
#include "serve/models/datatypes.h"

namespace sdx::serve {
namespace {

using nlohmann::json;

constexpr std::size_t kMostTensors = 4096;  // of one request
constexpr std::size_t kMostExtents = 64;

std::string text_member(const json& object, const char* key, std::string_view where, bool needed) {
  const auto at = object.find(key);
  if (at != object.end() && at->is_string()) return at->get<std::string>();
  if (at == object.end() && !needed) return {};
  fail(ErrorCode::invalid_argument, "{}: \"{}\" must be a string", where, key);
}

Shape shape_member(const json& object, std::string_view where) {
  const auto at = object.find("shape");
  if (at == object.end() || !at->is_array() || at->size() > kMostExtents) {
    fail(ErrorCode::invalid_argument, "{}: \"shape\" must be an array of at most {} extents", where, kMostExtents);
  }
  Shape shape;
  for (const json& extent : *at) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > (std::uint64_t{1} << 62)) {
      fail(ErrorCode::invalid_argument, "{}: extents must be integers of at least 0", where);
    }
    shape.push_back(extent.get<std::int64_t>());
  }
  return shape;
}

// Members of "parameters"; null where there are none.
const json* parameter(const json& object, const char* key, std::string_view where) {
  const auto all = object.find("parameters");
  if (all == object.end() || all->is_null()) return nullptr;
  if (!all->is_object()) fail(ErrorCode::invalid_argument, "{}: \"parameters\" must be an object", where);
  const auto at = all->find(key);
  return at == all->end() ? nullptr : &*at;
}

bool flag(const json& object, const char* key, std::string_view where, bool otherwise) {
  const json* value = parameter(object, key, where);
  if (value == nullptr) return otherwise;
  if (!value->is_boolean()) fail(ErrorCode::invalid_argument, "{}: \"{}\" must be true or false", where, key);
  return value->get<bool>();
}

std::optional<std::uint64_t> whole_number(const json& object, const char* key, std::string_view where) {
  const json* value = parameter(object, key, where);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_unsigned()) fail(ErrorCode::invalid_argument, "{}: \"{}\" must be an integer of at least 0", where, key);
  return value->get<std::uint64_t>();
}

void refuse_shared_memory(const json& object, std::string_view where) {
  if (parameter(object, "shared_memory_region", where) == nullptr) return;
  fail(ErrorCode::not_implemented, "{}: shared memory is not supported: send the data itself", where);
}

// Clients write null for absent members.
void drop_nulls(json& object) {
  if (!object.is_object()) return;
  for (auto at = object.begin(); at != object.end();) at = at->is_null() ? object.erase(at) : std::next(at);
}

void drop_nulls_of_request(json& document) {
  drop_nulls(document);
  for (const char* list : {"inputs", "outputs"}) {
    const auto values = document.find(list);
    if (values == document.end() || !values->is_array()) continue;
    for (json& value : *values) {
      drop_nulls(value);
      if (value.is_object() && value.contains("parameters")) drop_nulls(value["parameters"]);
    }
  }
  if (document.contains("parameters")) drop_nulls(document["parameters"]);
}

class RequestReader {
 public:
  RequestReader(std::string_view json_text, std::string_view binary, const std::shared_ptr<const void>& owner)
      : skeleton_(set_values_aside(json_text, "inputs", "data")), binary_(binary), owner_(owner) {
    document_ = json::parse(skeleton_.text, nullptr, false);
    if (!document_.is_object()) fail(ErrorCode::invalid_argument, "the request is not a JSON object");
    drop_nulls_of_request(document_);
  }

  InferRequest read() {
    InferRequest out;
    out.id = text_member(document_, "id", "the request", false);
    for (const json& input : list("inputs", true)) read_input(input, out);
    if (!binary_.empty()) fail(ErrorCode::invalid_argument, "{} bytes follow the last binary input", binary_.size());
    out.binary_outputs = flag(document_, "binary_data_output", "the request", false);
    for (const json& output : list("outputs", false)) read_output(output, out);
    if (const auto timeout = whole_number(document_, "timeout", "the request"); timeout && *timeout > 0) {
      out.run.timeout =
          std::chrono::milliseconds(static_cast<std::int64_t>(std::min<std::uint64_t>(*timeout / 1000 + 1, 1U << 31)));
    }
    return out;
  }

 private:
  const json& list(const char* key, bool needed) {
    static const json none = json::array();
    const auto at = document_.find(key);
    if (at == document_.end() && !needed) return none;
    if (at == document_.end() || !at->is_array() || at->size() > kMostTensors) {
      fail(ErrorCode::invalid_argument, "the request: \"{}\" must be an array of at most {} objects", key, kMostTensors);
    }
    return *at;
  }

  void read_input(const json& input, InferRequest& out) {
    if (!input.is_object()) fail(ErrorCode::invalid_argument, "\"inputs\" holds objects");
    std::string name = text_member(input, "name", "an input", true);
    const std::string where = "input '" + name + "'";
    if (out.inputs.find(name) != nullptr) fail(ErrorCode::invalid_argument, "{} is given twice", where);
    refuse_shared_memory(input, where);
    const std::string type_name = text_member(input, "datatype", where, true);
    const DataType type = parse_protocol_type(type_name);
    if (type == DataType::undefined) fail(ErrorCode::invalid_argument, "{}: there is no datatype '{}'", where, type_name);
    Shape shape = shape_member(input, where);
    const auto bytes = whole_number(input, "binary_data_size", where);
    const auto data = input.find("data");
    if (bytes.has_value() == (data != input.end())) {
      fail(ErrorCode::invalid_argument, "{} needs one of \"data\" and the parameter \"binary_data_size\"", where);
    }
    if (bytes) {
      if (*bytes > binary_.size()) {
        fail(ErrorCode::invalid_argument, "{}: {} bytes of binary data are announced, {} are left", where, *bytes,
             binary_.size());
      }
      out.inputs.add(std::move(name), tensor_of_bytes(binary_.substr(0, *bytes), type, std::move(shape), owner_, where));
      binary_.remove_prefix(*bytes);
      return;
    }
    // The number that stands for the array. Anything else comes from a name with escapes, which no client writes.
    if (!data->is_number_unsigned() || data->get<std::uint64_t>() >= skeleton_.values.size()) {
      fail(ErrorCode::invalid_argument, "{}: \"data\" cannot be read", where);
    }
    out.inputs.add(std::move(name), read_values(skeleton_.values[data->get<std::size_t>()], type, std::move(shape), where));
  }

  void read_output(const json& output, InferRequest& out) {
    if (!output.is_object()) fail(ErrorCode::invalid_argument, "\"outputs\" holds objects");
    RequestedOutput asked;
    asked.name = text_member(output, "name", "an output", true);
    const std::string where = "output '" + asked.name + "'";
    const bool twice = std::any_of(out.outputs.begin(), out.outputs.end(), [&](const auto& o) { return o.name == asked.name; });
    if (twice) fail(ErrorCode::invalid_argument, "{} is given twice", where);
    refuse_shared_memory(output, where);
    asked.binary = flag(output, "binary_data", where, out.binary_outputs);
    asked.classes = static_cast<std::int64_t>(
        std::min<std::uint64_t>(whole_number(output, "classification", where).value_or(0), std::uint64_t{1} << 32));
    out.outputs.push_back(std::move(asked));
  }

  Skeleton skeleton_;
  json document_;
  std::string_view binary_;
  const std::shared_ptr<const void>& owner_;
};

void append_shape(std::string& to, const Shape& shape) {
  to += '[';
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) to += ',';
    to += std::to_string(shape[i]);
  }
  to += ']';
}

}  // namespace

InferRequest parse_infer_request(std::string_view body, std::optional<std::size_t> header_length,
                                 const std::shared_ptr<const void>& owner) {
  const std::size_t length = header_length.value_or(body.size());
  if (length > body.size()) {
    fail(ErrorCode::invalid_argument, "Inference-Header-Content-Length is {}, the body has {} bytes", length, body.size());
  }
  return RequestReader(body.substr(0, length), body.substr(length), owner).read();
}

void add_raw_input(InferRequest& request, const LoadedModel& model, std::string_view body,
                   const std::shared_ptr<const void>& owner) {
  if (!model.tensors || model.tensors->inputs.size() != 1 || !model.tensors->inputs[0].has_shape) {
    fail(ErrorCode::invalid_argument, "a body without JSON needs a model with one input of known rank; '{}' does not have that",
         model.name);
  }
  const ValueSpec& spec = model.tensors->inputs[0];
  if (protocol_name(spec.dtype).empty()) fail(ErrorCode::invalid_argument, "the protocol has no type for {}", spec.type);
  Shape shape = spec.shape;
  if (model.tensors->has_batch) shape[0] = 1;
  std::int64_t known = 1, open = 0;
  for (const std::int64_t extent : shape) extent < 0 ? ++open : known *= std::max<std::int64_t>(1, extent);
  const std::int64_t bytes = known * std::max(1, bit_width(spec.dtype) / 8);
  if (open > 1 || (open == 1 && spec.dtype == DataType::string)) {
    fail(ErrorCode::invalid_argument, "a body without JSON: the extents of {} do not follow from the number of bytes", spec.type);
  }
  for (std::int64_t& extent : shape) {
    if (extent < 0) extent = static_cast<std::int64_t>(body.size()) / bytes;
  }
  request.inputs.add(spec.name, tensor_of_bytes(body, spec.dtype, std::move(shape), owner, "the body"));
  request.binary_outputs = true;
}

Response infer_response(const InferRequest& request, const InferResult& result) {
  std::string head = "{";
  if (!request.id.empty()) {
    head += "\"id\":";
    append_json_string(head, request.id);
    head += ',';
  }
  head += "\"model_name\":";
  append_json_string(head, result.model->name);
  head += ",\"model_version\":\"" + result.model->version + "\",\"outputs\":[";
  bool any_binary = false;
  for (std::size_t i = 0; i < result.outputs.size(); ++i) {
    const auto& [asked, tensor] = result.outputs[i];
    const bool binary = request.outputs.empty() ? request.binary_outputs : asked.binary;
    if (i > 0) head += ',';
    head += "{\"name\":";
    append_json_string(head, asked.name);
    head += ",\"datatype\":\"" + std::string(protocol_name(tensor.dtype())) + "\",\"shape\":";
    append_shape(head, tensor.shape());
    if (binary) {
      any_binary = true;
      head += ",\"parameters\":{\"binary_data_size\":" + std::to_string(bytes_of(tensor)) + "}}";
    } else {
      head += ",\"data\":";
      append_values(head, tensor, "output '" + asked.name + "'");
      head += '}';
    }
  }
  head += "]}";
  Response response;
  if (!any_binary) {
    response.headers.emplace_back("Content-Type", "application/json");
    response.body = std::move(head);
    return response;
  }
  response.headers.emplace_back("Content-Type", "application/octet-stream");
  response.headers.emplace_back("Inference-Header-Content-Length", std::to_string(head.size()));
  response.body = std::move(head);
  for (const auto& [asked, tensor] : result.outputs) {
    if (request.outputs.empty() ? request.binary_outputs : asked.binary) append_bytes(response.body, tensor);
  }
  return response;
}

}  // namespace sdx::serve
