#pragma once
// Test cases in ONNX's layout: a folder with model.onnx and test_data_set_*/input_N.pb and output_N.pb; or a single X.onnx with
// X_output_N.pb beside it, whose input is 0, 1/n, 2/n, … (ONNX's "light" models).

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "conformance/compare.h"
#include "graph/graph.h"

namespace sdx::testing {

struct Outcome {
  enum class Kind { passed, failed, skipped } kind = Kind::passed;
  std::string reason;
};

// Runs the model, whose functions are expanded and whose types are inferred, on values for all of graph.inputs(); an empty Value
// stands for an input that is left out. model.path is the file. Returns the outputs in the graph's order.
using Executor = std::function<std::vector<Value>(const Model& model, std::vector<Value> inputs)>;

std::string case_name(const std::filesystem::path& path);
// Reads the model, inlines functions, infers types, runs every data set and compares. Never throws.
Outcome run_case(const std::filesystem::path& path, const Executor& execute, const Tolerance& tolerance = {});

}  // namespace sdx::testing
