#pragma once
// Whether two backends compute the same from a model, and if not, which node is the first to differ.
// In libsdx_benchmark: link sardonyx::benchmark.
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
  // Two. The first is what is expected. Each is a provider chain, and behind it, each after a '+', what is special about it:
  // "no-optimize", "threads=2", "disable=PASS", and environment variables by name: "cpu+SDX_CPU_KERNEL=reference".
  std::vector<std::string> backends;
  SessionOptions session;  // of both; `providers` is replaced, `strict` is set unless allow_fallback
  bool allow_fallback = false;
  std::function<void(SessionOptions&)> resolve;  // as in BenchOptions; may be empty
  // Values by input name; the rest is made up, as in BenchOptions.
  NamedValues inputs;
  std::vector<std::pair<std::string, Shape>> shapes;
  std::uint64_t seed = 0;
  // Allowed: |difference| <= atol + rtol * |expected|. Neither: what the precision of each output's type loses (docs/cli.md,
  // sdx verify).
  std::optional<double> atol, rtol;
  bool bisect = true;                                     // look for the first node that differs, where an output does
  std::function<void(const std::string& what)> progress;  // may be empty
};

// One value on both sides.
struct ValueDifference {
  std::string name, type;      // type: of the first backend's value
  bool pass = true;            // within what is allowed
  double max_abs = 0;          // largest |difference|; infinite where a NaN or infinity is on one side only
  double max_rel = 0;          // the same over the largest finite magnitude of the first backend's tensor
  std::int64_t differing = 0;  // elements that are further apart than allowed
  std::string tolerance;       // which rule: "float32", "exact", "--atol, --rtol"
  std::string why;             // the worst element, or types that do not match; empty on a pass
};

// Who computed a node: "cpu: conv_nchwc"; empty where optimising has folded the node or merged it with others.
struct NodeDifference {
  std::string name, op;
  std::string kernel_a, kernel_b;
  std::vector<ValueDifference> inputs;   // that are neither constants nor the model's own inputs
  std::vector<ValueDifference> outputs;  //
  // The node alone, both sides given the first one's values: does it differ by itself, or does it enlarge what comes in? Empty
  // where it cannot be cut out (it has subgraphs).
  std::vector<ValueDifference> alone;
  std::string alone_error;  // why there is none
};

struct OutputsComparison {
  std::string model;
  std::string backend_a, backend_b;
  std::string providers_a, providers_b;  // what ran
  std::vector<ValueDifference> outputs;
  std::optional<NodeDifference> first;  // the first node that differs, in order of execution
  std::int64_t nodes = 0;               // that lead to the first output that differs
  int probes = 0;                       // how often both sides were run
  std::vector<std::string> notes;
  bool pass() const noexcept;  // every output
};

// Throws Error(invalid_argument) for backends and tolerances that make no sense.
SDX_API void check_backends(const CompareOptions& options);

// Each side runs in a process of its own, forked from this one, which needs to have a single thread. Where it has others, both
// run here; then variables of the environment cannot be set. Throws Error: invalid_argument (options, inputs), and what opening
// and running the model throw, with the backend's name in front.
SDX_API OutputsComparison compare_outputs(const CompareOptions& options);

SDX_API std::string to_text(const OutputsComparison& comparison);
// {"model", "backends", "providers", "pass", "outputs", "first_node", "nodes", "probes", "notes"}: see docs/cli.md.
SDX_API std::string to_json(const OutputsComparison& comparison);

}  // namespace sdx
