#pragma once
// Checks whether two backends compute the same results from a model and, if not, finds the first node that differs. In
// libsdx_benchmark: link sardonyx::benchmark.
//
//   sdx::CompareOptions options;
//   options.model = "model.onnx";
//   options.backends = {"cpu", "ort:cpu"};
//   const sdx::OutputsComparison c = sdx::compare_outputs(options);
//   std::puts(sdx::to_text(c).c_str());

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sdx/session.hpp>

namespace sdx {

struct CompareOptions {
  std::filesystem::path model;
  // Exactly two; the first gives the expected values. Each is a provider chain, optionally followed by modifiers, each after a
  // '+': "no-optimize", "threads=2", "disable=PASS", and environment variables by name: "cpu+SDX_CPU_KERNEL=reference".
  std::vector<std::string> backends;
  SessionOptions session;  // of both; `providers` is replaced, `strict` is set unless allow_fallback
  bool allow_fallback = false;
  std::function<void(SessionOptions&)> resolve;  // as in BenchOptions; may be empty
  // Values by input name; missing ones are generated as in BenchOptions.
  NamedValues inputs;
  std::vector<std::pair<std::string, Shape>> shapes;
  std::uint64_t seed = 0;
  // Tolerance: |difference| <= atol + rtol * |expected|. If neither is set, it follows from the precision of each output's type
  // (docs/cli.md, sdx verify).
  std::optional<double> atol, rtol;
  bool bisect = true;                                     // if an output differs, look for the first node that does
  std::function<void(const std::string& what)> progress;  // may be empty
};

// One value compared between the two sides.
struct ValueDifference {
  std::string name, type;      // type: of the first backend's value
  bool pass = true;            // within tolerance
  double max_abs = 0;          // largest |difference|; infinite if a NaN or infinity is on one side only
  double max_rel = 0;          // max_abs relative to the largest finite magnitude in the first backend's tensor
  std::int64_t differing = 0;  // elements outside the tolerance
  std::string tolerance;       // the rule applied: "float32", "exact", "--atol, --rtol"
  std::string why;             // the worst element, or the mismatched types; empty on a pass
};

// One node compared. kernel_a and kernel_b say who computed it: "cpu: conv_nchwc"; empty if optimisation folded the node or
// merged it with others.
struct NodeDifference {
  std::string name, op;
  std::string kernel_a, kernel_b;
  std::vector<ValueDifference> inputs;   // those that are neither constants nor inputs of the model
  std::vector<ValueDifference> outputs;  //
  // The node run alone, with the first side's values on both sides: shows whether it differs by itself or amplifies differences
  // in its inputs. Empty if the node cannot be isolated (it has subgraphs).
  std::vector<ValueDifference> alone;
  std::string alone_error;  // why `alone` is empty
};

struct OutputsComparison {
  std::string model;
  std::string backend_a, backend_b;
  std::string providers_a, providers_b;  // what ran
  std::vector<ValueDifference> outputs;
  std::optional<NodeDifference> first;  // the first node that differs, in order of execution
  std::int64_t nodes = 0;               // nodes that lead to the first differing output
  int probes = 0;                       // number of times both sides were run
  std::vector<std::string> notes;
  bool pass() const noexcept;  // every output
};

// Throws Error(invalid_argument) for invalid backends or tolerances.
SDX_API void check_backends(const CompareOptions& options);

// Runs each side in a process of its own, forked from this one, which must be single-threaded. If it is not, both sides run in
// this process, and environment variables cannot be set. Throws Error: invalid_argument (options, inputs), and whatever opening
// and running the model throw, prefixed with the backend's name.
SDX_API OutputsComparison compare_outputs(const CompareOptions& options);

SDX_API std::string to_text(const OutputsComparison& comparison, int width = 0);  // columns; 0: as many as it takes
// {"model", "backends", "providers", "pass", "outputs", "first_node", "nodes", "probes", "notes"}: see docs/cli.md.
SDX_API std::string to_json(const OutputsComparison& comparison);

}  // namespace sdx
