// Models that ONNX Runtime saved with channels in blocks.

#include <gtest/gtest.h>

#include <cmath>

#include <sdx/session.hpp>

#include "base/error.h"
#include "onnx/writer.h"
#include "support/graph_text.h"

namespace sdx {
namespace {

constexpr const char* kDomain = "com.microsoft.nchwc";

float weight(std::int64_t i) { return std::sin(static_cast<float>(i) * 0.7F); }

// Weights as ai.onnx has them; those of channels beyond `outputs` and `inputs`, which fill a block, are zero.
Tensor plain(const Shape& shape, std::int64_t outputs, std::int64_t inputs) {
  Tensor t(DataType::float32, shape);
  const auto to = t.mutable_values<float>();
  for (std::size_t i = 0; i < to.size(); ++i) {
    const std::int64_t points = shape[2] * shape[3], at = static_cast<std::int64_t>(i) / points;
    to[i] = at / shape[1] < outputs && at % shape[1] < inputs ? weight(static_cast<std::int64_t>(i)) : 0.0F;
  }
  return t;
}

// Element by element, by the place that the blocked order gives it.
Tensor blocked(const Tensor& from, std::int64_t block, bool inputs_too) {
  const Shape& s = from.shape();
  Tensor t(DataType::float32, s);
  const auto to = t.mutable_values<float>();
  const std::int64_t inner = inputs_too ? block : 1, points = s[2] * s[3];
  for (std::int64_t o = 0; o < s[0]; ++o) {
    for (std::int64_t i = 0; i < s[1]; ++i) {
      for (std::int64_t p = 0; p < points; ++p) {
        const std::int64_t outer = (o / block) * (s[1] / inner) + i / inner;
        const std::int64_t at = ((outer * points + p) * inner + i % inner) * block + o % block;
        to[static_cast<std::size_t>(at)] = from.values<float>()[static_cast<std::size_t>((o * s[1] + i) * points + p)];
      }
    }
  }
  return t;
}

struct Sizes {
  std::int64_t block, filled;  // of 12 channels
};

// With tensors in place of the constants of that name.
std::string bytes_of(const std::string& text, const std::vector<std::pair<std::string, Tensor>>& constants, bool in_blocks) {
  Model model = testing::parse_model(text);
  Graph& g = model.graph;
  for (const auto& [name, tensor] : constants) g.value(*g.find(name)).constant = tensor;
  if (in_blocks) model.opsets[kDomain] = 1;
  return write_model(model);
}

NamedValues run(const std::string& bytes, const Tensor& x) {
  SessionOptions options;
  options.cache = false;
  return Session::from_bytes(std::as_bytes(std::span(bytes)), options).run({{"x", x}});
}

class BlockedSizes : public ::testing::TestWithParam<Sizes> {};

// Four input channels, which are read as they are, then 12 in blocks, by depth, pooled, scaled by channel, and put back.
TEST_P(BlockedSizes, ComputeWhatPlainOnesDo) {
  const auto [block, filled] = GetParam();
  const std::string c = std::to_string(filled), b = std::to_string(block);
  const Tensor first = plain({filled, 4, 3, 3}, 12, 4), depth = plain({filled, 1, 3, 3}, 12, 1),
               point = plain({filled, filled, 1, 1}, 12, 12);
  const std::string head = "opset 13\nopset com.microsoft 1\ninput x: float32[1,4,8,8]\n";
  const std::string weights = "constant w: float32[" + c + ",4,3,3] 0\nconstant d: float32[" + c +
                              ",1,3,3] 0\nconstant p: float32[" + c + "," + c + ",1,1] 0\n";
  const std::string in_blocks = head + "opset " + kDomain + " 1\n" + weights + "constant split: int64[5] 0 -1 0 0 " + b +
                                "\nconstant join: int64[4] 0 -1 0 0\n"
                                "a = com.microsoft.nchwc.Conv(x, w) {pads=[1, 1, 1, 1], activation=\"Relu\"}\n"
                                "e = com.microsoft.nchwc.Conv(a, d) {group=" +
                                c +
                                ", pads=[1, 1, 1, 1]}\n"
                                "f = com.microsoft.nchwc.Conv(e, p, _, a)\n"
                                "s = Reshape(f, split)\n"
                                "g = com.microsoft.nchwc.GlobalAveragePool(f)\n"
                                "r = Reshape(g, split)\n"
                                "t = Mul(s, r)\n"
                                "u = Reshape(t, join)\n"
                                "m = com.microsoft.nchwc.MaxPool(u) {kernel_shape=[2, 2], strides=[2, 2]}\n"
                                "v = com.microsoft.nchwc.Upsample(m) {scales=[1, 1, 2, 2]}\n"
                                "y = com.microsoft.nchwc.ReorderOutput(v) {channels=12}\n"
                                "z = com.microsoft.nchwc.ReorderOutput(m) {channels=12, channels_last=1}\n"
                                "i = com.microsoft.nchwc.ReorderInput(y)\n"
                                "o = com.microsoft.nchwc.ReorderOutput(i) {channels=12}\n"
                                "output y\noutput z\noutput o\n";
  const std::string without =
      head + weights +
      "constant none: float32[0]\nconstant up: float32[4] 1 1 2 2\nconstant from: int64[1] 0\nconstant to: int64[1] 12\nconstant "
      "axis: int64[1] 1\n"
      "a0 = Conv(x, w) {pads=[1, 1, 1, 1]}\na = Relu(a0)\n"
      "e = Conv(a, d) {group=" +
      c +
      ", pads=[1, 1, 1, 1]}\n"
      "f0 = Conv(e, p)\nf = Add(f0, a)\ng = GlobalAveragePool(f)\nu = Mul(f, g)\n"
      "m = MaxPool(u) {kernel_shape=[2, 2], strides=[2, 2]}\n"
      "v = Resize(m, none, up) {mode=\"nearest\", nearest_mode=\"floor\", coordinate_transformation_mode=\"asymmetric\"}\n"
      "y = Slice(v, from, to, axis)\n"
      "z0 = Slice(m, from, to, axis)\nz = Transpose(z0) {perm=[0, 2, 3, 1]}\n"
      "o = Identity(y)\n"
      "output y\noutput z\noutput o\n";
  Tensor x(DataType::float32, {1, 4, 8, 8});
  for (std::size_t i = 0; i < 256; ++i) x.mutable_values<float>()[i] = weight(static_cast<std::int64_t>(3 * i));
  const NamedValues expected = run(bytes_of(without, {{"w", first}, {"d", depth}, {"p", point}}, false), x);
  const NamedValues found =
      run(bytes_of(in_blocks,
                   {{"w", blocked(first, block, false)}, {"d", blocked(depth, block, false)}, {"p", blocked(point, block, true)}},
                   true),
          x);
  for (const char* name : {"y", "z", "o"}) {
    const Tensor& a = expected.tensor(name);
    const Tensor& b2 = found.tensor(name);
    ASSERT_EQ(a.shape(), b2.shape()) << name;
    for (std::size_t i = 0; i < a.values<float>().size(); ++i) {
      ASSERT_NEAR(a.values<float>()[i], b2.values<float>()[i], 1e-4F) << name << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(BlockedChannels, BlockedSizes, ::testing::Values(Sizes{16, 16}, Sizes{8, 16}, Sizes{8, 24}));

TEST(BlockedChannels, SizesThatFitNoBlockAreAnError) {
  const std::string text = std::string("opset 13\nopset ") + kDomain +
                           " 1\ninput x: float32[1,4,8,8]\n"
                           "constant w: float32[12,4,1,1] 1\n"
                           "a = com.microsoft.nchwc.Conv(x, w)\n"
                           "y = com.microsoft.nchwc.ReorderOutput(a) {channels=12}\noutput y\n";
  const std::string bytes = bytes_of(text, {}, true);
  EXPECT_THROW(Session::from_bytes(std::as_bytes(std::span(bytes)), {}), Error);
}

TEST(BlockedChannels, WeightsMustBeConstant) {
  const std::string text = std::string("opset 13\nopset ") + kDomain +
                           " 1\ninput x: float32[1,4,8,8]\ninput w: float32[16,4,1,1]\n"
                           "a = com.microsoft.nchwc.Conv(x, w)\n"
                           "y = com.microsoft.nchwc.ReorderOutput(a) {channels=12}\noutput y\n";
  const std::string bytes = bytes_of(text, {}, true);
  EXPECT_THROW(Session::from_bytes(std::as_bytes(std::span(bytes)), {}), Error);
}

}  // namespace
}  // namespace sdx
