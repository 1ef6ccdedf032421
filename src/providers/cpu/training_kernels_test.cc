// The fast kernels of training graphs against the operators' references.

#include <gtest/gtest.h>

#include "support/compare_kernels.h"

namespace sdx::cpu {
namespace {

using test::compare;
using test::KernelCase;

TEST(TrainingKernels, Convolutions) {
  const KernelCase cases[] = {
      {"conv-dynamic-f32",
       "input x: float32[2,3,7,9]\ninput w: float32[4,3,3,3]\ninput b: float32[4]\n"
       "y = Conv(x, w, b) {pads=[1,1,1,1]}\noutput y\n"},
      {"conv-dynamic-f32", "input x: float32[2,4,9]\ninput w: float32[6,2,3]\ny = Conv(x, w) {group=2, strides=[2]}\noutput y\n"},
      {"conv-dynamic-f32", "input x: float32[1,2,4,5,4]\ninput w: float32[3,2,2,2,2]\ny = Conv(x, w)\noutput y\n"},
      {"conv-transpose-dynamic-f32",
       "input x: float32[2,4,5,4]\ninput w: float32[4,3,3,3]\n"
       "y = ConvTranspose(x, w) {strides=[2,2], pads=[1,1,1,1]}\noutput y\n"},
      {"conv-grad-f32",
       "input g: float32[2,4,7,9]\ninput x: float32[2,3,7,9]\ninput w: float32[4,3,3,3]\n"
       "dx, dw, db = com.microsoft.ConvGrad(g, x, w) {pads=[1,1,1,1]}\noutput dx\noutput dw\noutput db\n"},
      {"conv-grad-f32",
       "input g: float32[2,6,4]\ninput x: float32[2,4,9]\ninput w: float32[6,2,3]\n"
       "dx, dw = com.microsoft.ConvGrad(g, x, w) {group=2, strides=[2]}\noutput dx\noutput dw\n"},
      {"conv-grad-f32",
       "input g: float32[2,4,4,4]\ninput x: float32[2,4,8,8]\ninput w: float32[4,1,3,3]\n"
       "dx, dw = com.microsoft.ConvGrad(g, x, w) {group=4, strides=[2,2], auto_pad=\"SAME_UPPER\"}\n"
       "output dx\noutput dw\n"},
  };
  for (const KernelCase& c : cases) compare(c);
}

TEST(TrainingKernels, GradientsOfActivations) {
  compare({"binary-f32", "input g: float32[2,19]\ninput x: float32[2,19]\ndx = com.microsoft.ReluGrad(g, x)\noutput dx\n"});
}

TEST(TrainingKernels, BatchNormalisation) {
  const std::string channels = "input s: float32[5]\ninput b: float32[5]\ninput m: float32[5]\ninput v: float32[5]\n";
  const std::string images = "input x: float32[3,5,4,7]\n" + channels, rows = "input x: float32[9,5]\n" + channels;
  const std::string internal =
      "y, rm, rv, m1, i1 = com.microsoft.BatchNormInternal(x, s, b, m, v) {momentum=0.75}\n"
      "output y\noutput rm\noutput rv\noutput m1\noutput i1\n";
  const std::string usual =
      "y, rm, rv = BatchNormalization(x, s, b, m, v) {training_mode=1, epsilon=0.25}\noutput y\noutput rm\noutput rv\n";
  const std::string gradient =
      "input g: float32[3,5,4,7]\ninput x: float32[3,5,4,7]\n" + channels.substr(0, channels.find("input v")) +
      "dx, ds, db = com.microsoft.BatchNormalizationGrad(g, x, s, b, m)\noutput dx\noutput ds\noutput db\n";
  for (const std::string& graph : {images + internal, rows + internal, images + usual})
    compare({"batch-norm-training-f32", graph.c_str()});
  compare({"batch-norm-grad-f32", gradient.c_str()});
}

TEST(TrainingKernels, MaxPoolGradient) {
  compare({"max-pool-grad-f32",
           "input g: float32[1,2,2,2]\nconstant at: int64[1,2,2,2] 0 5 5 -1 12 23 13 13\n"
           "dx = MaxPoolGrad(g, at) {input_shape=[1,2,4,3]}\noutput dx\n"});
}

}  // namespace
}  // namespace sdx::cpu
