// Training graphs that ONNX Runtime 1.19 made, run as plain models: the loss and the gradients of the first batch must be those
// that it recorded. Needs SDX_TEST_MODELS.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sdx/session.hpp>

#include "onnx/reader.h"
#include "onnx/writer.h"
#include "tensor/element.h"
#include "tensor/json.h"
#include "tensor/npz.h"

namespace sdx::session {
namespace {

namespace fs = std::filesystem;

fs::path training_folder() {
  const char* models = std::getenv("SDX_TEST_MODELS");
  return models == nullptr ? fs::path() : fs::path(models) / "training";
}

nlohmann::json expected(const fs::path& folder) {
  std::ifstream in(folder / "expected.json");
  return parse_json(std::string(std::istreambuf_iterator<char>(in), {}), "expected.json");
}

const Tensor* find(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [key, tensor] : tensors) {
    if (key == name) return &tensor;
  }
  return nullptr;
}

// Batch 0 of [batches, …].
Tensor first_batch(const Tensor& all) {
  const Tensor aligned = all.clone();
  Tensor one(all.dtype(), Shape(all.shape().begin() + 1, all.shape().end()));
  std::memcpy(one.mutable_data(), aligned.data(), one.bytes());
  return one;
}

// The training graph with the gradients as outputs "grad.NAME", and values for its inputs.
struct Case {
  std::string bytes;
  NamedValues inputs;
  std::vector<std::string> gradients;
};

Case load(const fs::path& folder, const nlohmann::json& facts) {
  Case c;
  Model training = read_model(folder / "training_model.onnx");
  const Model forward = read_model(folder / "model.onnx");
  const NamedTensors batches = read_npz(folder / "batches.npz");
  Graph& g = training.graph;
  for (NodeId id = 0; id < g.nodes().size(); ++id) {
    const Node& n = g.node(id);
    if (n.op_type != "InPlaceAccumulatorV2") continue;
    const std::string buffer = g.value(n.inputs[0]).name;
    c.gradients.push_back(buffer.substr(0, buffer.find("_grad.accumulation.buffer")));
    g.add_output(n.inputs[1], "grad." + c.gradients.back());
  }
  for (const ValueId v : g.inputs()) {
    const ValueInfo& info = g.value(v);
    const auto parameter = forward.graph.find(info.name);
    if (facts["inputs"].contains(info.name)) {
      c.inputs.add(info.name, first_batch(*find(batches, facts["inputs"][info.name].get<std::string>())));
    } else if (parameter && forward.graph.value(*parameter).constant) {
      c.inputs.add(info.name, forward.graph.value(*parameter).constant->clone());
    } else {
      Tensor t(info.type.elem, to_shape(*info.type.shape));
      std::memset(t.mutable_data(), info.name == "lazy_reset_grad" ? 1 : 0, t.bytes());
      c.inputs.add(info.name, std::move(t));
    }
  }
  c.bytes = write_model(training);
  return c;
}

void check(const fs::path& folder, bool optimize) {
  SCOPED_TRACE(folder.filename().string() + (optimize ? "" : " without passes"));
  const nlohmann::json facts = expected(folder);
  const Case c = load(folder, facts);
  SessionOptions options;
  options.optimize = optimize;
  const Session session = Session::from_bytes(std::as_bytes(std::span(c.bytes)), options);
  const NamedValues results = session.run(c.inputs);
  const double loss = element_as_double(results[0].value.tensor(), 0);
  const double recorded = facts["train_loss"][0].get<double>();
  EXPECT_NEAR(loss, recorded, 1e-5 * std::fabs(recorded));  // recorded with rounding of up to 1e-6
  const NamedTensors gradients = read_npz(folder / "first_gradients.npz");
  EXPECT_EQ(gradients.size(), c.gradients.size());
  for (const auto& [name, unaligned] : gradients) {
    const Tensor expected_gradient = unaligned.clone();
    const Tensor& g = results.tensor("grad." + name);
    ASSERT_EQ(g.shape(), expected_gradient.shape()) << name;
    double largest = 0, difference = 0;
    for (std::int64_t i = 0; i < g.size(); ++i) {
      const double e = element_as_double(expected_gradient, i);
      largest = std::max(largest, std::fabs(e));
      difference = std::max(difference, std::fabs(e - element_as_double(g, i)));
    }
    EXPECT_LE(difference, 1e-5 * largest + 1e-7) << name;
  }
}

TEST(TrainingGraphs, GiveTheRecordedLossAndGradients) {
  const fs::path root = training_folder();
  if (!fs::is_directory(root)) GTEST_SKIP() << "no model files (SDX_TEST_MODELS)";
  int cases = 0;
  for (const auto& entry : fs::directory_iterator(root)) {
    if (!fs::exists(entry.path() / "first_gradients.npz") || !fs::exists(entry.path() / "training_model.onnx")) continue;
    ++cases;
    for (const bool optimize : {true, false}) check(entry.path(), optimize);
  }
  EXPECT_GE(cases, 13);
}

}  // namespace
}  // namespace sdx::session
