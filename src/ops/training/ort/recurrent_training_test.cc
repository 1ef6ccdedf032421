#include <gtest/gtest.h>

#include <random>
#include <string>

#include "support/single_op.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

Tensor drawn(const Shape& shape, std::mt19937& random) {
  Tensor t(DataType::float64, shape);
  std::uniform_real_distribution<double> distribution(-1, 1);
  for (double& v : t.mutable_values<double>()) v = distribution(random);
  return t;
}

// 3 steps, 2 texts, 2 inputs, 3 hidden units. X W R B _ H0, and C0 of LSTM; then weights of the outputs Y, Y_h, Y_c.
struct Problem {
  bool lstm = false;
  std::int64_t late = 0;
  std::vector<Tensor> inputs, weights;

  Problem(bool is_lstm, std::int64_t linear_before_reset) : lstm(is_lstm), late(linear_before_reset) {
    std::mt19937 random(5);
    const std::int64_t gates = lstm ? 4 : 3;
    const Shape state{1, 2, 3};
    for (const Shape& s : {Shape{3, 2, 2}, Shape{1, gates * 3, 2}, Shape{1, gates * 3, 3}, Shape{1, 2 * gates * 3}}) {
      inputs.push_back(drawn(s, random));
    }
    inputs.emplace_back();
    inputs.push_back(drawn(state, random));
    if (lstm) inputs.push_back(drawn(state, random));
    for (const Shape& s : {Shape{3, 1, 2, 3}, state, state}) weights.push_back(drawn(s, random));
  }

  SingleOp op(const char* kind, const char* domain = "com.microsoft") const {
    SingleOp o(kind, *domain == '\0' ? 14 : 1, domain);
    o.with("hidden_size", std::int64_t{3});
    if (!lstm) o.with("linear_before_reset", late);
    return o;
  }

  // The outputs of the operator of ai.onnx, weighted and summed up.
  double target(const std::vector<Tensor>& at) const {
    const auto out = op(lstm ? "LSTM" : "GRU", "").run_all(at, lstm ? 3 : 2);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::int64_t e = 0; e < out[i].size(); ++e) sum += element_as_double(out[i], e) * element_as_double(weights[i], e);
    }
    return sum;
  }

  std::vector<Tensor> gradients() const {
    const auto out = op(lstm ? "LSTMTraining" : "GRUTraining").checked(inputs, lstm ? 5 : 3);
    std::vector<Tensor> in(inputs);
    if (lstm) in.erase(in.begin() + 3);
    in.push_back(out[0]);
    if (lstm) in.push_back(out[3]);
    in.push_back(out[lstm ? 4 : 2]);
    in.push_back(weights[0]);
    in.push_back(weights[1]);
    if (lstm) in.push_back(weights[2]);
    return op(lstm ? "LSTMGrad" : "GRUGrad").checked(in, lstm ? 6 : 5);
  }

  void check() const {
    const std::vector<Tensor> received = gradients();
    const std::size_t of[] = {0, 1, 2, 3, 5, 6};
    for (std::size_t i = 0; i < received.size(); ++i) {
      ASSERT_EQ(received[i].shape(), inputs[of[i]].shape());
      for (std::int64_t e = 0; e < received[i].size(); ++e) {
        double sides[2];
        for (const int side : {0, 1}) {
          std::vector<Tensor> moved(inputs);
          moved[of[i]] = inputs[of[i]].clone();
          set_element(moved[of[i]], e, element_as_double(inputs[of[i]], e) + (side == 0 ? -1e-5 : 1e-5));
          sides[side] = target(moved);
        }
        EXPECT_NEAR(element_as_double(received[i], e), (sides[1] - sides[0]) / 2e-5, 1e-8)
            << "input " << of[i] << " element " << e;
      }
    }
  }
};

TEST(RecurrentTraining, LstmGradIsTheGradientOfLstm) { Problem(true, 0).check(); }
TEST(RecurrentTraining, GruGradIsTheGradientOfGru) { Problem(false, 0).check(); }
TEST(RecurrentTraining, AlsoWhereTheResetGateComesAfterTheProduct) { Problem(false, 1).check(); }

TEST(RecurrentTraining, RefusesWhatItsGradientLacks) {
  const Problem p(true, 0);
  SingleOp op = p.op("LSTMTraining");
  op.with("direction", std::string("reverse"));
  EXPECT_THROW(op.run_all(p.inputs, 5), Error);
}

}  // namespace
}  // namespace sdx::ops
