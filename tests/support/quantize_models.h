#pragma once
// Models, data and comparisons for tests of quantising.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sdx/quantize.hpp>
#include <string>
#include <vector>

#include "onnx/writer.h"
#include "session/pipeline.h"
#include "support/graph_text.h"
#include "support/session.h"

namespace sdx::testing {

inline Tensor noise(Shape shape, unsigned seed) {
  Tensor t(DataType::float32, std::move(shape));
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  for (float& v : t.mutable_values<float>()) v = normal(random);
  return t;
}

// Constants called w… get random values: the text has only their shapes.
inline Model model_of(const char* text) {
  Model m = parse_model(text);
  unsigned seed = 1;
  for (ValueId v = 0; v < m.graph.values().size(); ++v) {
    ValueInfo& info = m.graph.value(v);
    if (info.constant && info.name.starts_with("w")) info.constant = noise(info.constant->shape(), ++seed);
  }
  session::prepare(m, {});
  return m;
}

inline Tensor answer(const Model& m, const NamedValues& inputs, std::size_t output = 0) {
  return testing::open(m).run(inputs)[output].value.tensor();
}

inline double difference(const Tensor& a, const Tensor& b) {
  double error = 0, size = 0;
  EXPECT_EQ(a.shape(), b.shape());
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double x = a.values<float>()[static_cast<std::size_t>(i)], y = b.values<float>()[static_cast<std::size_t>(i)];
    error += (x - y) * (x - y);
    size += x * x;
  }
  return std::sqrt(error / size);
}

inline std::vector<std::string> ops_of(const Model& m) {
  std::vector<std::string> out;
  for (const Node& n : m.graph.nodes()) out.push_back(n.op_type);
  return out;
}

class Batches : public CalibrationDataReader {
 public:
  explicit Batches(std::vector<NamedValues> all) : all_(std::move(all)) {}
  std::optional<NamedValues> get_next() override {
    if (at_ == all_.size()) return std::nullopt;
    return all_[at_++];
  }
  void rewind() override { at_ = 0; }

 private:
  std::vector<NamedValues> all_;
  std::size_t at_ = 0;
};

}  // namespace sdx::testing
