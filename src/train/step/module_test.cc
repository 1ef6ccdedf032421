#include <gtest/gtest.h>

#include <cmath>
#include <sdx/session.hpp>

#include "support/errors.h"
#include "support/training_models.h"

namespace sdx::train {

test::Reference test::reference(const CheckpointState& state, const std::vector<Tensor>& batch) {
  const auto w1 = state.parameters[0].value.values<float>(), b1 = state.parameters[1].value.values<float>(),
             w2 = state.parameters[2].value.values<float>(), b2 = state.parameters[3].value.values<float>(),
             x = batch[0].values<float>();
  const auto labels = batch[1].values<std::int64_t>();
  Reference r;
  r.gradients = {std::vector<double>(35), std::vector<double>(7), std::vector<double>(21), std::vector<double>(3)};
  const std::size_t n = labels.size();
  for (std::size_t s = 0; s < n; ++s) {
    double a[7], scores[3], sum = 0;
    for (std::size_t j = 0; j < 7; ++j) {
      double h = double{b1[j]};
      for (std::size_t k = 0; k < 5; ++k) h += double{w1[j * 5 + k]} * double{x[s * 5 + k]};
      a[j] = std::tanh(h);
    }
    for (std::size_t c = 0; c < 3; ++c) {
      scores[c] = double{b2[c]};
      for (std::size_t j = 0; j < 7; ++j) scores[c] += double{w2[c * 7 + j]} * a[j];
      sum += std::exp(scores[c]);
    }
    const auto label = static_cast<std::size_t>(labels[s]);
    r.loss += (std::log(sum) - scores[label]) / static_cast<double>(n);
    for (std::size_t c = 0; c < 3; ++c) {
      const double d = (std::exp(scores[c]) / sum - (c == label ? 1 : 0)) / static_cast<double>(n);
      r.gradients[3][c] += d;
      for (std::size_t j = 0; j < 7; ++j) {
        r.gradients[2][c * 7 + j] += d * a[j];
        const double back = d * double{w2[c * 7 + j]} * (1 - a[j] * a[j]);
        r.gradients[1][j] += back;
        for (std::size_t k = 0; k < 5; ++k) r.gradients[0][j * 5 + k] += back * double{x[s * 5 + k]};
      }
    }
  }
  return r;
}

namespace {

constexpr const char* kNames[] = {"w1", "b1", "w2", "b2"};

void expect_gradients(const Module& module, const test::Reference& want, double times = 1) {
  for (std::size_t p = 0; p < 4; ++p) {
    const Tensor got = module.gradient(kNames[p]);
    ASSERT_TRUE(got.defined());
    for (std::size_t i = 0; i < want.gradients[p].size(); ++i) {
      ASSERT_NEAR(got.values<float>()[i], times * want.gradients[p][i], 2e-6) << kNames[p] << "[" << i << "]";
    }
  }
}

TEST(Module, ComputesTheLossAndItsGradients) {
  CheckpointState state = test::state();
  Module module(test::training_model(), state, test::eval_model());
  EXPECT_EQ(module.input_names(), (std::vector<std::string>{"x", "labels"}));
  EXPECT_EQ(module.output_names(), (std::vector<std::string>{"loss"}));
  EXPECT_FALSE(module.gradient("w1").defined());
  // Another size of the last batch, and the first once more.
  for (const std::int64_t n : {8, 3, 8, 1}) {
    const auto batch = test::batch(n, static_cast<unsigned>(n));
    const auto want = test::reference(state, batch);
    module.lazy_reset_grad();
    const auto out = module.train_step(batch);
    ASSERT_EQ(out.size(), 1U);
    EXPECT_TRUE(out[0].shape().empty());
    EXPECT_NEAR(out[0].values<float>()[0], want.loss, 1e-5);
    EXPECT_NEAR(module.eval_step(batch)[0].values<float>()[0], want.loss, 1e-5);
    expect_gradients(module, want);
  }
}

TEST(Module, AddsUpGradientsUntilTheyAreReset) {
  CheckpointState state = test::state();
  Module module(test::training_model(), state);
  const auto batch = test::batch(6, 3);
  const auto want = test::reference(state, batch);
  for (int round = 0; round < 3; ++round) {
    for (int times = 1; times <= 3; ++times) {
      EXPECT_NEAR(module.train_step(batch)[0].values<float>()[0], want.loss, 1e-5);
      expect_gradients(module, want, times);
    }
    module.lazy_reset_grad();
  }
}

TEST(Module, TrainsWhatHasABufferAndLeavesTheRest) {
  CheckpointState state = test::state();
  state.at("w1").requires_grad = state.at("b1").requires_grad = false;
  Module module(test::training_model({"w2", "b2"}), state);
  Optimizer optimizer(OptimizerOptions{}, module);
  const CheckpointState before = state.clone();
  module.train_step(test::batch(4, 1));
  EXPECT_THROW(module.gradient("w1"), Error);
  optimizer.step();
  EXPECT_EQ(state.at("w1").value.values<float>()[0], before.at("w1").value.values<float>()[0]);
  EXPECT_NE(state.at("w2").value.values<float>()[0], before.at("w2").value.values<float>()[0]);
}

TEST(Module, SaysWhatIsWrongWithInputsAndChangesNothing) {
  CheckpointState state = test::state();
  Module module(test::training_model(), state);
  const auto good = test::batch(4, 1);
  module.train_step(good);
  const auto want = test::reference(state, good);
  const auto message = [&](const std::vector<Tensor>& inputs) {
    try {
      module.train_step(inputs);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  EXPECT_NE(message({good[0]}).find("takes 2 inputs"), std::string::npos);
  EXPECT_NE(message({good[1], good[1]}).find("input 'x' must be float32[N,5]"), std::string::npos);
  EXPECT_NE(message({good[0], test::batch(3, 1)[1]}).find("extent 'N' is 4"), std::string::npos)
      << message({good[0], test::batch(3, 1)[1]});
  EXPECT_NE(message({good[0], Tensor::of<std::int64_t>({4}, {0, 1, 2, 3})}).find("label 3 is out of range"), std::string::npos);
  expect_gradients(module, want);
  module.lazy_reset_grad();
  module.train_step(good);
  expect_gradients(module, want);
}

TEST(Module, RefusesStatesThatDoNotFit) {
  const auto message = [&](CheckpointState state) {
    try {
      Module module(test::training_model(), state);
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("nothing");
  };
  CheckpointState lacks = test::state();
  lacks.parameters.erase(lacks.parameters.begin() + 1);
  EXPECT_NE(message(lacks).find("no parameter 'b1'"), std::string::npos) << message(lacks);
  CheckpointState other = test::state();
  other.at("w2").value = Tensor::of<float>({2}, {1, 2});
  EXPECT_NE(message(other).find("parameter 'w2' is float32[3,7]"), std::string::npos) << message(other);
}

TEST(Module, TrainsANominalCheckpointOnceItHasValues) {
  const CheckpointState full = test::state();
  CheckpointState state;
  for (const Parameter& p : full.parameters) {
    state.parameters.push_back({p.name, Tensor::view(nullptr, DataType::float32, p.value.shape()), p.name != "b1"});
  }
  state.nominal = true;
  Module module(test::training_model(), state);
  const auto batch = test::batch(4, 1);
  EXPECT_THROW(module.train_step(batch), Error);
  EXPECT_THROW(state.from_buffer(full.to_buffer(false)), Error);  // without the one that is not trained
  EXPECT_TRUE(state.nominal);
  state.from_buffer(full.to_buffer(false), false);
  EXPECT_FALSE(state.nominal);
  EXPECT_NEAR(module.train_step(batch)[0].values<float>()[0], test::reference(full, batch).loss, 1e-5);
}

TEST(Module, ExportsWhatOutputsNeed) {
  CheckpointState state = test::state();
  Module module(test::training_model(), state, test::eval_model());
  const auto path = std::filesystem::path(::testing::TempDir()) / "sdx_train_step" / "exported.onnx";
  const std::string outputs[] = {"scores"};
  module.export_model_for_inferencing(path, outputs);
  const Session session = Session::open(path);
  ASSERT_EQ(session.inputs().size(), 1U);
  EXPECT_EQ(session.inputs()[0].name, "x");
  EXPECT_EQ(session.outputs()[0].name, "scores");
  const std::string near[] = {"score"};
  testing::expect_error([&] { module.export_model_for_inferencing(path, near); }, {"did you mean 'scores'"});
}

}  // namespace
}  // namespace sdx::train
