// Runs: arguments checked as ONNX Runtime checks them, with its messages.
#include <algorithm>
#include <thread>

#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"
#include "session/observe/ort_trace.h"
#include "session/open.h"

namespace sdx::dropin {
namespace {

[[noreturn]] void refuse(std::string message) { fail_ort(ORT_INVALID_ARGUMENT, std::move(message)); }

std::string type_text(DataType type) {
  switch (type) {
    case DataType::float32: return "float";
    case DataType::float64: return "double";
    case DataType::boolean: return "bool";
    default: return std::string(name(type));
  }
}

void check_extents(const ValueSpec& spec, const Shape& shape, const char* what) {
  if (!spec.has_shape || spec.shape.empty()) return;
  if (shape.size() != spec.shape.size()) {
    refuse(std::string("Invalid rank for ") + what + ": " + spec.name + " Got: " + std::to_string(shape.size()) +
           " Expected: " + std::to_string(spec.shape.size()) + " Please fix either the inputs/outputs or the model.");
  }
  std::string wrong;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (spec.shape[i] < 0 || spec.shape[i] == shape[i]) continue;
    wrong += " index: " + std::to_string(i) + " Got: " + std::to_string(shape[i]) +
             " Expected: " + std::to_string(spec.shape[i]) + "\n";
  }
  if (wrong.empty()) return;
  refuse(std::string("Got invalid dimensions for ") + what + ": " + spec.name + " for the following indices\n" + wrong +
         " Please fix either the inputs/outputs or the model.");
}

void check_tensor(const ValueSpec& spec, const Tensor& tensor, const char* what) {
  if (spec.dtype != DataType::undefined && tensor.dtype() != spec.dtype) {
    refuse(std::string("Unexpected ") + what + " data type. Actual: (tensor(" + type_text(tensor.dtype()) +
           ")) , expected: (tensor(" + type_text(spec.dtype) + "))");
  }
  check_extents(spec, tensor.shape(), what);
}

const ValueSpec* find(const std::vector<ValueSpec>& specs, const char* name) {
  for (const ValueSpec& spec : specs) {
    if (spec.name == name) return &spec;
  }
  return nullptr;
}

// The element types of sequences of tensors; the engine checks the rest.
void check_sequence(const ValueSpec& spec, const Value& value) {
  if (!value.is_sequence() || !spec.type.starts_with("sequence(")) return;
  const std::shared_ptr<const OrtTypeInfo> item = type_of_spec(spec).sequence.element;
  if (item == nullptr || item->type != ONNX_TYPE_TENSOR) return;
  const DataType expected = type_of_element(item->tensor.element), actual = value.sequence().element_type;
  if (expected == DataType::undefined || actual == DataType::undefined || expected == actual) return;
  refuse("Unexpected input data type. Actual: (seq(" + type_text(actual) + ")) , expected: (seq(" + type_text(expected) + "))");
}

void add_input(NamedValues& given, const OrtSession& session, const char* name, const OrtValue& value) {
  const ValueSpec* const spec = find(session.session.inputs(), name);
  if (spec == nullptr) refuse(std::string("Invalid input name: ") + name);
  Value held = engine_value(value);
  if (spec->is_tensor) {
    if (!held.is_tensor()) {
      refuse("input with name: '" + spec->name + "' expected to be of type: " + std::to_string(ONNX_TYPE_TENSOR) +
             " but received " + (held.is_sequence() ? "a tensor sequence" : "another kind of value"));
    }
    check_tensor(*spec, held.tensor(), "input");
    // For declared scalars, ONNX Runtime accepts any shape: programs pass one element as [1].
    const Tensor& tensor = held.tensor();
    if (spec->has_shape && spec->shape.empty() && tensor.rank() > 0 && tensor.size() == 1) held = tensor.reshaped({});
  } else {
    check_sequence(*spec, held);
  }
  given.add(spec->name, std::move(held));
}

// Given by name, with the parameters of active adapters that the program does not give itself.
NamedValues inputs_of(const OrtSession& session, const OrtRunOptions* options, const char* const* names,
                      const OrtValue* const* values, std::size_t count) {
  NamedValues given;
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr || *names[i] == '\0') refuse("input name cannot be empty");
    if (values[i] == nullptr) refuse(std::string("NULL input supplied for input ") + names[i]);
    add_input(given, session, names[i], *values[i]);
  }
  if (options == nullptr) return given;
  for (const OrtLoraAdapter* adapter : options->adapters) {
    for (const auto& [name, value] : adapter->parameters) {
      const bool wanted = find(session.session.inputs(), name.c_str()) != nullptr && given.find(name) == nullptr;
      if (wanted) add_input(given, session, name.c_str(), value);
    }
  }
  return given;
}

// Something for an input that nothing reads: extents with a name are those of the inputs that are given.
Tensor stand_in(const OrtSession& session, const NamedValues& given, const ValueSpec& spec) {
  Shape shape(spec.shape.begin(), spec.shape.end());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) continue;
    shape[i] = 1;
    if (spec.symbols[i].empty()) continue;
    for (const ValueSpec& other : session.session.inputs()) {
      const auto at = std::find(other.symbols.begin(), other.symbols.end(), spec.symbols[i]);
      const Value* value = at == other.symbols.end() ? nullptr : given.find(other.name);
      if (value != nullptr && value->is_tensor())
        shape[i] = value->tensor().dim(static_cast<std::size_t>(at - other.symbols.begin()));
    }
  }
  return {spec.dtype, std::move(shape)};
}

void complete(const OrtSession& session, NamedValues& given) {
  if (given.size() >= session.session.inputs().size()) return;
  for (const std::size_t i : session.inputs) {
    const ValueSpec& spec = session.session.inputs()[i];
    if (given.find(spec.name) != nullptr || spec.type.starts_with("optional(")) continue;
    const bool needless = session.unread.contains(spec.name) && spec.is_tensor && spec.dtype != DataType::string;
    if (!needless) refuse("Missing Input: " + spec.name);
    given.add(spec.name, stand_in(session, given, spec));
  }
}

// Whether results are written into the existing value. Strings, and values other than tensors, are replaced instead.
bool takes_result(const OrtValue* value) {
  return value != nullptr && value->value.is_tensor() && value->value.tensor().dtype() != DataType::string;
}

[[noreturn]] void fail_terminated() { fail_ort(ORT_FAIL, "Exiting due to terminate flag being set to true."); }

[[noreturn]] void fail_run(const Error& error) {
  if (error.code() == ErrorCode::cancelled) fail_terminated();
  if (error.code() == ErrorCode::invalid_model || error.code() == ErrorCode::runtime_failure) {
    fail_ort(ORT_FAIL, std::string("Non-zero status code returned while running the model. ") + error.what());
  }
  throw error;
}

struct Outputs {
  RunOptions engine;
  std::vector<std::size_t> order;  // place in `engine.outputs` of each that was asked for
};

Outputs outputs_of(const OrtSession& session, const char* const* names, std::size_t count, OrtValue* const* values) {
  if (count == 0) refuse("At least one output should be requested.");
  Outputs wanted;
  wanted.engine.outputs.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (names[i] == nullptr || *names[i] == '\0') refuse("output name cannot be empty");
    const ValueSpec* const spec = find(session.session.outputs(), names[i]);
    if (spec == nullptr) refuse(std::string(values[i] == nullptr ? "Invalid output name:" : "Invalid output name: ") + names[i]);
    wanted.engine.outputs.push_back(spec->name);
    if (!takes_result(values[i])) continue;
    check_tensor(*spec, values[i]->value.tensor(), "output");
    wanted.engine.bound.emplace_back(spec->name, values[i]->value.tensor());
  }
  return wanted;
}

bool declared_sparse(const OrtSession& session, const char* output) {
  return session.sparse_outputs.contains(std::string_view(output));
}

NamedValues run_engine(const OrtSession& session, const OrtRunOptions* options, const NamedValues& given,
                       const RunOptions& engine) {
  try {
    if (options == nullptr || !options->profile_prefix) return session.session.run(given, engine);
    const auto profiler = std::make_shared<plan::Profiler>();
    NamedValues results = session::run(session.session, given, engine, {profiler});
    session::write_ort_trace(profile_file(*options->profile_prefix), profiler->events(), std::nullopt);
    return results;
  } catch (const Error& error) {
    fail_run(error);
  }
}

}  // namespace

void run_session(OrtSession& session, const OrtRunOptions* options, const char* const* input_names, const OrtValue* const* inputs,
                 std::size_t input_count, const char* const* output_names, std::size_t output_count, OrtValue** outputs) {
  NamedValues given = inputs_of(session, options, input_names, inputs, input_count);
  complete(session, given);
  Outputs wanted = outputs_of(session, output_names, output_count, outputs);
  if (options != nullptr) {
    // Looked at here too: a model of few steps ends before the engine looks.
    if (options->terminate.cancelled()) fail_terminated();
    wanted.engine.cancel = options->terminate;
  }
  const NamedValues results = run_engine(session, options, given, wanted.engine);
  std::vector<std::unique_ptr<OrtValue>> made(output_count);  // all or none
  for (std::size_t i = 0; i < output_count; ++i) {
    if (outputs[i] != nullptr) continue;
    const Value& result = (results.begin() + static_cast<std::ptrdiff_t>(i))->value;
    made[i].reset(result.is_tensor() && declared_sparse(session, output_names[i]) ? make_sparse_value(result.tensor())
                                                                                  : make_value(result));
  }
  for (std::size_t i = 0; i < output_count; ++i) {
    if (made[i]) {
      outputs[i] = made[i].release();
    } else if (!takes_result(outputs[i])) {
      outputs[i]->value = (results.begin() + static_cast<std::ptrdiff_t>(i))->value;
      outputs[i]->type = onnx_type_of(outputs[i]->value);
    }
  }
}

namespace {

OrtStatus* run(OrtSession* session, const OrtRunOptions* options, const char* const* input_names, const OrtValue* const* inputs,
               std::size_t input_count, const char* const* output_names, std::size_t output_count, OrtValue** outputs) {
  return guarded([&] {
    OrtSession& s = require(session, "session");
    if (input_count > 0) require(input_names, "input_names"), require(inputs, "inputs");
    if (output_count > 0) require(output_names, "output_names"), require(outputs, "outputs");
    run_session(s, options, input_names, inputs, input_count, output_names, output_count, outputs);
  });
}

// Names and values must live until the callback, as with ONNX Runtime; the outputs are the callback's.
OrtStatus* run_async(OrtSession* session, const OrtRunOptions* options, const char* const* input_names,
                     const OrtValue* const* inputs, std::size_t input_count, const char* const* output_names,
                     std::size_t output_count, OrtValue** outputs, RunAsyncCallback callback, void* user_data) {
  return guarded([&] {
    const OrtSession& s = require(session, "session");
    require(outputs, "outputs");
    // With such a status, a program does not wait for the callback, and may end the session at once.
    if (s.options.own_threads && s.options.engine.threads == 1) {
      fail_ort(ORT_FAIL, "intra op thread pool must have at least one thread for RunAsync");
    }
    if (callback == nullptr) refuse("run_async_callback must not be NULL");
    std::thread([=] {
      OrtStatus* const status = run(session, options, input_names, inputs, input_count, output_names, output_count, outputs);
      callback(user_data, status == nullptr ? outputs : nullptr, status == nullptr ? output_count : 0, status);
    }).detach();
  });
}

}  // namespace

void fill_run(Table& table) {
  table.set(Slot::Run, &run);
  table.set(Slot::RunAsync, &run_async);
}

}  // namespace sdx::dropin
