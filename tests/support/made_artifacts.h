#pragma once
// For tests: artifacts of a model that is written as text, and what their training model computes.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <sdx/session.hpp>
#include <sdx/train/artifacts.hpp>
#include <sdx/train/checkpoint.hpp>
#include <string>

#include "base/system/process.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "support/graph_text.h"
#include "support/session.h"

namespace sdx::train::test {

class MadeArtifacts {
 public:
  explicit MadeArtifacts(const std::string& text, const ArtifactOptions& options = {}) : folder_(fresh_folder()) {
    const std::string bytes = testing::model_bytes(text);
    files = generate_artifacts(std::as_bytes(std::span(bytes)), folder_, options);
    training = read_model(files.training_model);
    eval = read_model(files.eval_model);
    state = CheckpointState::load(files.checkpoint);
  }
  ~MadeArtifacts() { std::filesystem::remove_all(folder_); }
  MadeArtifacts(const MadeArtifacts&) = delete;
  MadeArtifacts& operator=(const MadeArtifacts&) = delete;

  static std::filesystem::path fresh_folder() {
    static int count = 0;
    return std::filesystem::temp_directory_path() /
           ("sdx_artifacts_" + std::to_string(process_id()) + "_" + std::to_string(count++));
  }

  // Outputs of the training model, and gradients as "<p>_grad".
  std::map<std::string, Tensor> step(const NamedValues& inputs) const {
    Model m = training;
    std::vector<std::string> gradients;
    for (const Node& n : m.graph.nodes()) {
      if (n.op_type == "InPlaceAccumulatorV2") gradients.push_back(m.graph.value(n.inputs[1]).name);
    }
    for (const std::string& g : gradients) m.graph.add_output(*m.graph.find(g));
    return run(m, inputs);
  }
  std::map<std::string, Tensor> evaluate(const NamedValues& inputs) const { return run(eval, inputs); }
  float loss(const NamedValues& inputs) const { return step(inputs).begin()->second.values<float>()[0]; }

  // The gradients agree with differences of the loss, along one direction for each parameter.
  void expect_gradients(const NamedValues& inputs, float step_size = 1e-2F, float tolerance = 2e-2F) {
    const auto at = step(inputs);
    const std::string loss_name = training.graph.output_names()[0];
    for (Parameter& p : state.parameters) {
      if (!p.requires_grad) continue;
      const Tensor gradient = at.at(p.name + "_grad");
      const Tensor kept = p.value.clone();
      double expected = 0;
      std::array<double, 2> losses{};
      for (int side = 0; side < 2; ++side) {
        p.value = kept.clone();
        const auto values = p.value.mutable_values<float>();
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += (side == 0 ? step_size : -step_size) * direction(i);
        losses[static_cast<std::size_t>(side)] = static_cast<double>(step(inputs).at(loss_name).values<float>()[0]);
      }
      p.value = kept;
      for (std::size_t i = 0; i < gradient.values<float>().size(); ++i) {
        expected += static_cast<double>(gradient.values<float>()[i]) * static_cast<double>(direction(i));
      }
      const double found = (losses[0] - losses[1]) / (2 * static_cast<double>(step_size));
      EXPECT_NEAR(found, expected, static_cast<double>(tolerance) * (std::abs(expected) + 0.1)) << p.name;
    }
  }

  static float direction(std::size_t i) { return (i % 3 == 0 ? 1.0F : i % 3 == 1 ? -0.6F : 0.3F); }

  ArtifactFiles files;
  Model training, eval;
  CheckpointState state;

 private:
  std::map<std::string, Tensor> run(const Model& m, const NamedValues& inputs) const {
    const Session s = testing::open(m);
    NamedValues feeds;
    for (const ValueSpec& spec : s.inputs()) feeds.add(spec.name, value_for(spec, inputs));
    std::map<std::string, Tensor> out;
    for (const NamedValue& v : s.run(feeds)) out[v.name] = v.value.tensor();
    return out;
  }

  Value value_for(const ValueSpec& spec, const NamedValues& inputs) const {
    if (const Parameter* p = state.find(spec.name)) return p->value;
    if (spec.name == "lazy_reset_grad") {
      Tensor on(DataType::boolean, {1});
      on.mutable_values<bool>()[0] = true;
      return on;
    }
    if (spec.name.ends_with(".buffer")) {
      const Parameter& p = state.at(spec.name.substr(0, spec.name.size() - std::string("_grad.accumulation.buffer").size()));
      Tensor zeros(DataType::float32, p.value.shape());
      for (float& f : zeros.mutable_values<float>()) f = 0;
      return zeros;
    }
    return inputs.at(spec.name);
  }

  std::filesystem::path folder_;
};

inline Tensor numbers(const Shape& shape, float from = -1.1F) {
  Tensor t(DataType::float32, shape);
  float next = from;
  for (float& f : t.mutable_values<float>()) {
    f = next;
    next = next > 1.2F ? next - 2.33F : next + 0.37F;
  }
  return t;
}

inline Tensor labels(const std::vector<std::int64_t>& values) {
  Tensor t(DataType::int64, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.mutable_values<std::int64_t>().begin());
  return t;
}

}  // namespace sdx::train::test
