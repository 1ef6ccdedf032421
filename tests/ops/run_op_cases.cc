// Runs operator cases: sdx_op_tests FILE...
//
// A file holds cases, each a model (see support/graph_text.h) whose inputs have values, and after "--" what comes out:
//
//   == BiasGelu                           the name
//   input x: float32[2] = 1 2
//   input b: float32[2] = 0 1
//   y = com.microsoft.BiasGelu(x, b)
//   output y
//   --
//   within 1e-4 1e-5                      relative and absolute tolerance; ONNX's own where left out
//   constant y: float32[2] 0.8413447 2.9959502
//
// or "fails TEXT": part of the message of the error that opening or running the model must give. Each model runs on the reference
// kernels with inputs of declared and then of unknown extents, in a session, and in sessions with further readers of its outputs
// (conformance/readers.h).

#include <fmt/format.h>

#include <cstdio>
#include <sdx/session.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "conformance/compare.h"
#include "conformance/interpreter.h"
#include "conformance/readers.h"
#include "onnx/writer.h"
#include "ops/infer.h"
#include "support/graph_text.h"
#include "support/session.h"
#include "support/text_cases.h"

namespace {

using sdx::Graph;
using sdx::Model;
using sdx::Value;
using sdx::ValueId;
using sdx::ValueInfo;

struct Case {
  std::string name, model, expected, error;
  sdx::testing::Tolerance tolerance;
};

sdx::testing::Tolerance tolerance_of(const std::vector<std::string>& lines) {
  sdx::testing::Tolerance out;
  for (const std::string& line : lines) {
    if (std::sscanf(line.c_str(), "%lf %lf", &out.rtol, &out.atol) != 2) {
      sdx::fail(sdx::ErrorCode::invalid_argument, "not understood: within {}", line);
    }
  }
  return out;
}

std::vector<Case> read_cases(const std::string& file) {
  std::vector<Case> cases;
  for (sdx::testing::TextCase& c : sdx::testing::read_text_cases(file)) {
    const auto tolerance = tolerance_of(sdx::testing::take_lines(c.expected, "within "));
    const std::vector<std::string> errors = sdx::testing::take_lines(c.expected, "fails ");
    cases.push_back({c.name, sdx::testing::text_of(c.given), sdx::testing::text_of(c.expected),
                     errors.empty() ? "" : errors.back(), tolerance});
  }
  return cases;
}

// Takes the values away from the graph's inputs, so that nothing can be computed beforehand.
std::vector<Value> take_inputs(Graph& graph) {
  std::vector<Value> inputs;
  for (const ValueId v : graph.inputs()) {
    ValueInfo& info = graph.value(v);
    if (!info.constant) sdx::fail(sdx::ErrorCode::invalid_argument, "input '{}' has no value", info.name);
    inputs.emplace_back(*info.constant);
    info.constant.reset();
  }
  return inputs;
}

std::vector<Value> run_interpreter(Graph graph, const std::vector<Value>& inputs, bool unknown_extents) {
  for (const ValueId v : graph.inputs()) {
    ValueInfo& info = graph.value(v);
    if (unknown_extents) info.declared.shape = sdx::SymShape(info.declared.shape.value_or(sdx::SymShape{}).size());
    info.type = info.declared;
  }
  sdx::ops::infer_in_place(graph);
  return sdx::testing::interpret(graph, inputs);
}

// Twice, because a second run finds what the first one left.
sdx::NamedValues run_twice(const Model& model, const sdx::NamedValues& inputs) {
  const sdx::Session session = sdx::testing::open(model);
  session.run(inputs);
  return session.run(inputs);
}

std::vector<Value> run_session(const Model& model, const std::vector<Value>& inputs) {
  sdx::NamedValues named;
  for (std::size_t i = 0; i < inputs.size(); ++i) named.add(model.graph.value(model.graph.inputs()[i]).name, inputs[i]);
  const sdx::NamedValues outputs = run_twice(model, named);
  std::vector<Value> out;
  for (const std::string& name : model.graph.output_names()) out.push_back(outputs.at(name));
  return out;
}

std::vector<Value> run_readers(Model model, const std::vector<Value>& inputs, sdx::testing::Readers readers) {
  sdx::ops::infer_in_place(model.graph);
  return sdx::testing::run_with_readers(std::move(model), inputs, readers, run_twice);
}

std::string compare(const Case& c, const Graph& graph, const std::vector<Value>& outputs) {
  const Graph expected = sdx::testing::parse_model(c.expected).graph;
  std::string message;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto id = expected.find(graph.output_names()[i]);
    if (!id) return fmt::format("the case says nothing of output '{}'", graph.output_names()[i]);
    const std::string d = sdx::testing::difference(outputs[i], Value(*expected.value(*id).constant), c.tolerance);
    if (!d.empty()) return fmt::format("output '{}': {}", graph.output_names()[i], d);
  }
  return "";
}

// "" when the case passes that way.
template <class Run>
std::string outcome(const Case& c, const Graph& graph, Run&& run) {
  try {
    const std::vector<Value> outputs = run();
    return c.error.empty() ? compare(c, graph, outputs) : "ran, but an error was expected";
  } catch (const sdx::Error& e) {
    const bool wanted = !c.error.empty() && std::string_view(e.what()).find(c.error) != std::string_view::npos;
    return wanted ? "" : fmt::format("error: {}", e.what());
  }
}

std::string run_case(const Case& c) try {
  Model model = sdx::testing::parse_model(c.model);
  const std::vector<Value> inputs = take_inputs(model.graph);
  const Graph& graph = model.graph;
  std::string all;
  const auto add = [&](const char* way, const std::string& text) {
    if (!text.empty()) all += fmt::format("  {}: {}\n", way, text);
  };
  add("reference", outcome(c, graph, [&] { return run_interpreter(graph, inputs, false); }));
  add("reference, unknown extents", outcome(c, graph, [&] { return run_interpreter(graph, inputs, true); }));
  add("session", outcome(c, graph, [&] { return run_session(model, inputs); }));
  using sdx::testing::Readers;
  add("readers", outcome(c, graph, [&] { return run_readers(model, inputs, Readers::kept); }));
  add("readers alone", outcome(c, graph, [&] { return run_readers(model, inputs, Readers::alone); }));
  return all;
} catch (const std::exception& e) {
  return fmt::format("  {}\n", e.what());
}

int run_file(const std::string& file, bool /*flag*/) {
  int failures = 0;
  const std::vector<Case> cases = read_cases(file);
  for (const Case& c : cases) {
    const std::string text = run_case(c);
    if (text.empty()) continue;
    ++failures;
    fmt::print("FAIL {}: {}\n{}", file, c.name, text);
  }
  fmt::print("{}: {} cases, {} failures\n", file, cases.size(), failures);
  return cases.empty() ? 1 : failures;
}

}  // namespace

int main(int argc, char** argv) { return sdx::testing::run_files(argc, argv, "", run_file); }
