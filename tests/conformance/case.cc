#include "conformance/case.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "onnx/functions.h"
#include "onnx/reader.h"
#include "ops/infer.h"
#include "passes/expand_gradients.h"
#include "tensor/pb.h"

namespace sdx::testing {
namespace {

namespace fs = std::filesystem;

PbKind kind_of(const Type& type) {
  switch (type.kind) {
    case Type::Kind::sequence: return PbKind::sequence;
    case Type::Kind::optional: return PbKind::optional;
    case Type::Kind::map: return PbKind::map;
    default: return PbKind::tensor;
  }
}

std::vector<fs::path> data_sets(const fs::path& folder) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_directory() && entry.path().filename().string().starts_with("test_data_set_")) out.push_back(entry.path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// <prefix>0.pb, <prefix>1.pb, …
std::vector<fs::path> numbered(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> out;
  for (int i = 0;; ++i) {
    const fs::path file = folder / (prefix + std::to_string(i) + ".pb");
    if (!fs::exists(file)) return out;
    out.push_back(file);
  }
}

// A tensor's data as of another type of the same size.
Value reinterpreted(const Tensor& t, DataType type) {
  Tensor out(type, t.shape());
  if (t.bytes() != 0) std::memcpy(out.mutable_data(), t.data(), t.bytes());
  return out;
}

// Before 1.13, ONNX stored the bfloat16 values of its test data as uint16.
Value read_value(const fs::path& file, const Type& declared) {
  Value value = read_value_pb(file, kind_of(declared));
  const bool old = declared.is_tensor() && declared.elem == DataType::bfloat16 && value.is_tensor() &&
                   value.tensor().dtype() == DataType::uint16;
  return old ? reinterpreted(value.tensor(), DataType::bfloat16) : value;
}

// Files are for the inputs in order; where there are fewer, inputs with a default go without.
std::vector<Value> read_inputs(const Graph& graph, const fs::path& folder) {
  const std::vector<fs::path> files = numbered(folder, "input_");
  const bool all = files.size() >= graph.inputs().size();
  std::vector<Value> inputs;
  std::size_t next = 0;
  for (const ValueId v : graph.inputs()) {
    const ValueInfo& info = graph.value(v);
    const bool given = next < files.size() && (all || !info.constant);
    inputs.push_back(given ? read_value(files[next++], info.declared) : Value());
  }
  return inputs;
}

std::vector<Value> ramp_inputs(const Graph& graph) {
  std::vector<Value> inputs;
  for (const ValueId v : graph.inputs()) {
    const Type& type = graph.value(v).declared;
    if (graph.value(v).constant) {
      inputs.emplace_back();
      continue;
    }
    Shape shape;
    for (const Dim& d : type.shape.value_or(SymShape{})) shape.push_back(d.is_const() ? d.value() : 1);
    Tensor t(DataType::float32, shape);
    for (std::int64_t i = 0; i < t.size(); ++i) {
      t.mutable_values<float>()[static_cast<std::size_t>(i)] =
          static_cast<float>(static_cast<double>(i) / static_cast<double>(t.size()));
    }
    inputs.emplace_back(std::move(t));
  }
  return inputs;
}

std::string check(const Model& model, std::vector<Value> inputs, const std::vector<fs::path>& expected, const Executor& execute,
                  const Tolerance& tolerance) {
  const Graph& graph = model.graph;
  const std::vector<Value> outputs = execute(model, std::move(inputs));
  if (expected.size() > outputs.size()) return fmt::format("{} outputs, expected {}", outputs.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Value want = read_value(expected[i], graph.value(graph.outputs()[i]).declared);
    const std::string d = difference(outputs[i], want, tolerance);
    if (!d.empty()) return fmt::format("output {} ('{}'): {}", i, graph.output_names()[i], d);
  }
  return "";
}

Outcome run_sets(const fs::path& path, const Executor& execute, const Tolerance& tolerance) {
  const bool single = fs::is_regular_file(path);
  const fs::path file = single ? path : path / "model.onnx";
  if (!fs::exists(file)) return {Outcome::Kind::skipped, "there is no " + file.string()};
  Model model = read_model(file);
  inline_functions(model);
  ops::infer_in_place(model.graph);
  expand_gradients(model.graph);
  model.graph.verify();
  if (single) {
    const auto expected = numbered(path.parent_path(), path.stem().string() + "_output_");
    if (expected.empty()) return {Outcome::Kind::skipped, "there are no expected outputs"};
    const std::string d = check(model, ramp_inputs(model.graph), expected, execute, tolerance);
    return {d.empty() ? Outcome::Kind::passed : Outcome::Kind::failed, d};
  }
  const auto sets = data_sets(path);
  if (sets.empty()) return {Outcome::Kind::skipped, "there is no test_data_set_*"};
  for (const fs::path& set : sets) {
    const std::string d = check(model, read_inputs(model.graph, set), numbered(set, "output_"), execute, tolerance);
    if (!d.empty()) return {Outcome::Kind::failed, set.filename().string() + ": " + d};
  }
  return {};
}

}  // namespace

std::string case_name(const fs::path& path) {
  if (fs::is_regular_file(path)) return path.stem().string();
  return path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
}

Outcome run_case(const fs::path& path, const Executor& execute, const Tolerance& tolerance) {
  try {
    return run_sets(path, execute, tolerance);
  } catch (const std::exception& e) {
    return {Outcome::Kind::failed, e.what()};
  }
}

}  // namespace sdx::testing
