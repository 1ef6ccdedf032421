// Networks with and without blocked channels (pass block-channels).

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sdx/sdx.hpp>

#include "support/graph_text.h"
#include "support/session.h"

namespace sdx::session {
namespace {

// "constant NAME: float32[SHAPE] values" with small random values.
std::string weights(const std::string& name, const std::vector<int>& shape) {
  static std::mt19937 rng(5);
  std::string text = "constant " + name + ": float32[";
  int n = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? "," : "") + std::to_string(shape[i]);
    n *= shape[i];
  }
  text += "]";
  std::uniform_int_distribution<int> value(-99, 99);
  for (int i = 0; i < n; ++i) text += " " + std::to_string(static_cast<double>(value(rng)) / 256.0);
  return text + "\n";
}

Session open(const std::string& text, bool blocked) {
  SessionOptions options;
  options.providers = {"cpu"};
  if (!blocked) options.disabled_passes = {"block-channels"};
  return testing::open(text, options);
}

std::size_t count(const Session& s, std::string_view op) {
  std::size_t n = 0;
  for (const NodeReport& node : s.report().nodes) n += node.op == op ? 1 : 0;
  return n;
}

// Both ways give the same, and the blocked way has so many convolutions and reorders.
void compare(const std::string& text, const std::vector<Shape>& shapes, std::size_t convolutions, std::size_t reorders) {
  SCOPED_TRACE(text.substr(text.size() < 600 ? 0 : text.size() - 600));
  const Session a = open(text, true), b = open(text, false);
  EXPECT_EQ(count(a, "sdx.BlockedConv"), convolutions);
  EXPECT_EQ(count(a, "sdx.BlockChannels") + count(a, "sdx.UnblockChannels"), reorders);
  EXPECT_EQ(count(b, "sdx.BlockedConv"), 0U);
  for (const Shape& shape : shapes) {
    Tensor x(DataType::float32, shape);
    for (std::int64_t i = 0; i < x.size(); ++i)
      x.mutable_values<float>()[i] = static_cast<float>((i * 37 + i * i % 11) % 97) / 48.0F - 1.0F;
    const NamedValues got = a.run({{"x", x}}), want = b.run({{"x", x}});
    for (const auto& output : a.outputs()) {
      const Tensor &g = got.tensor(output.name), &w = want.tensor(output.name);
      ASSERT_EQ(g.shape(), w.shape());
      double largest = 1e-3;
      for (const float v : w.values<float>()) largest = std::max(largest, static_cast<double>(std::fabs(v)));
      for (std::int64_t i = 0; i < w.size(); ++i) ASSERT_NEAR(g.values<float>()[i], w.values<float>()[i], 2e-5 * largest) << i;
    }
  }
}

const std::string kStem = "input x: float32[n,3,h,w]\n" + weights("w0", {16, 3, 3, 3}) + weights("b0", {16}) +
                          "a = Conv(x, w0, b0) {pads=[1,1,1,1], strides=[2,2]}\n";

TEST(Layout, MobileBlockOfAnySize) {
  compare(kStem + weights("w1", {40, 16, 1, 1}) + weights("wd", {40, 1, 3, 3}) + weights("w2", {16, 40, 1, 1}) +
              weights("s1", {8, 40, 1, 1}) + weights("s2", {40, 8, 1, 1}) +
              "r = HardSwish(a)\n"
              "b = Conv(r, w1)\n"
              "c = Relu(b)\n"
              "d = Conv(c, wd) {pads=[1,1,1,1], group=40}\n"
              "g = GlobalAveragePool(d)\n"
              "g1 = Conv(g, s1)\ng2 = Relu(g1)\ng3 = Conv(g2, s2)\ng4 = HardSigmoid(g3)\n"
              "e = Mul(d, g4)\n"
              "f = Conv(e, w2)\n"
              "y = Add(r, f)\n"
              "m = GlobalAveragePool(y)\n"
              "z = Flatten(m)\n"
              "output y\noutput z\n",
          {{1, 3, 9, 12}, {2, 3, 16, 7}}, 4, 4);
}

TEST(Layout, PoolsConcatenationsAndScales) {
  compare(kStem + weights("w1", {32, 16, 3, 3}) + weights("w2", {24, 16, 1, 1}) + weights("w3", {20, 72, 1, 1}) +
              weights("k", {32, 1, 1}) + weights("p", {1, 32, 1, 1}) +
              "constant two: float32[] 2\n"
              "b = MaxPool(a) {kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]}\n"
              "c = Conv(b, w1) {pads=[1,1,1,1]}\n"
              "c1 = Mul(c, k)\nc2 = PRelu(c1, p)\nc4 = Div(c2, two)\nc3 = Sub(two, c4)\n"
              "d = AveragePool(b) {kernel_shape=[3,3], pads=[1,1,1,1], count_include_pad=1}\n"
              "e = Conv(b, w2)\n"
              "f = Concat(c3, d, e) {axis=1}\n"
              "y = Conv(f, w3)\n"
              "output y\noutput d\n",
          {{1, 3, 17, 23}, {3, 3, 8, 8}}, 4, 2);
}

TEST(Layout, ResidualsAndPlainNeighbours) {
  // Transpose needs the plain form, which also comes back by Add.
  compare(kStem + weights("w1", {16, 16, 3, 3}) +
              "b = Conv(a, w1) {pads=[1,1,1,1]}\n"
              "c = Add(b, a)\nd = Relu(c)\n"
              "t = Transpose(d) {perm=[0,1,3,2]}\n"
              "s = Softmax(t) {axis=1}\n"
              "u = Transpose(s) {perm=[0,1,3,2]}\n"
              "v = Add(u, d)\n"
              "y = Conv(v, w1)\n"
              "output y\noutput t\n",
          {{1, 3, 10, 10}}, 3, 3);
}

// As in AlexNet: normalised across channels, some of which lie beyond a block; groups.
TEST(Layout, ResponsesNormalisedBetween) {
  compare("input x: float32[n,3,h,w]\n" + weights("w0", {20, 3, 3, 3}) + weights("w1", {64, 20, 5, 5}) +
              weights("w2", {32, 32, 3, 3}) +
              "a = Conv(x, w0) {strides=[2,2]}\nr = Relu(a)\n"
              "b = LRN(r) {size=5, alpha=0.3, beta=0.75, bias=1.5}\n"
              "c = MaxPool(b) {kernel_shape=[3,3], strides=[2,2]}\n"
              "d = Conv(c, w1) {pads=[2,2,2,2]}\n"
              "e = LRN(d) {size=4, alpha=0.2, beta=0.5}\n"
              "y = Conv(e, w2) {pads=[1,1,1,1], group=2}\n"
              "output y\n",
          {{1, 3, 33, 27}, {2, 3, 11, 18}}, 3, 1);
}

TEST(Layout, NormalisationsBetween) {
  const std::string vectors = weights("s", {32}) + weights("bb", {32}) + weights("m", {32}) + "constant v: float32[32] 0.7\n";
  compare(kStem + weights("w1", {16, 16, 1, 1}) + weights("w2", {24, 32, 1, 1}) + weights("k", {32, 1, 1}) +
              weights("t", {1, 32, 1, 1}) + vectors +
              "b = Conv(a, w1)\n"
              "c = Concat(a, b) {axis=1}\n"
              "d = BatchNormalization(c, s, bb, m, v)\n"
              "e = Mul(d, k)\nf = Add(t, e)\ng = Relu(f)\n"
              "h1 = BatchNormalization(g, s, bb, m, v) {epsilon=0.1}\n"
              "y = Conv(h1, w2)\n"
              "output y\noutput h1\n",
          {{1, 3, 9, 12}, {2, 3, 16, 7}}, 5, 2);
}

// ShuffleNet's unit, whose groups of channels fill no blocks.
TEST(Layout, ShuffledChannels) {
  const std::string shapes = "constant five: int64[5] 0 4 10 HH WW\nconstant four: int64[4] 0 40 HH WW\n";
  const auto unit = [&](int h, int w, const std::string& after) {
    std::string text = shapes + weights("w1", {40, 4, 1, 1}) + weights("wd", {40, 1, 3, 3}) + weights("bd", {40}) +
                       weights("w2", {36, 10, 1, 1}) + weights("b2", {36}) +
                       "b = Conv(a, w1) {group=4}\nc = Relu(b)\n"
                       "d = Reshape(c, five)\ne = Transpose(d) {perm=[0,2,1,3,4]}\nf = Reshape(e, four)\n"
                       "g = Conv(f, wd, bd) {pads=[1,1,1,1], strides=[2,2], group=40}\n"
                       "k = Conv(g, w2, b2) {group=4}\n" +
                       after;
    for (const auto& [word, value] : {std::pair<std::string, int>{"HH", h}, {"WW", w}}) {
      for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word)) {
        text.replace(at, 2, std::to_string(value));
      }
    }
    return kStem + text;
  };
  const auto fixed = [](std::string text) { return text.replace(text.find("[n,3,h,w]"), 9, "[n,3,18,14]"); };
  compare(fixed(unit(9, 7, "y = Relu(k)\noutput y\n")), {{1, 3, 18, 14}, {2, 3, 18, 14}}, 4, 1);
  // Somebody else reads the shuffled channels.
  compare(fixed(unit(9, 7, "y = Relu(k)\noutput y\noutput f\n")), {{1, 3, 18, 14}}, 4, 3);
  // No convolution between.
  compare(fixed(kStem + weights("w1", {24, 4, 1, 1}) +
                "constant five: int64[5] 0 8 2 9 7\nconstant four: int64[4] 0 16 9 7\n"
                "d = Reshape(a, five)\ne = Transpose(d) {perm=[0,2,1,3,4]}\nf = Reshape(e, four)\n"
                "y = Conv(f, w1) {group=4}\noutput y\n"),
          {{2, 3, 18, 14}}, 2, 1);
}

TEST(Layout, SplitsAtBlocks) {
  compare(kStem + weights("w1", {48, 16, 1, 1}) + weights("w2", {32, 16, 3, 3}) +
              "constant sizes: int64[3] 16 16 16\nconstant odd: int64[2] 12 4\n"
              "b = Conv(a, w1)\n"
              "c, d, e = Split(b, sizes) {axis=1}\n"
              "f = Conv(d, w2) {pads=[1,1,1,1]}\n"
              "g, h1 = Split(c, odd) {axis=1}\n"
              "y = Concat(f, e) {axis=1}\n"
              "output y\noutput g\noutput h1\n",
          {{1, 3, 9, 12}, {2, 3, 16, 7}}, 3, 2);
}

TEST(Layout, OneConvolutionAlonePaysForTheWay) {
  const auto alone = [](const std::vector<int>& w, const std::string& attributes) {
    return "input x: float32[n,32,h,w]\n" + weights("w", w) + weights("b", {w[0]}) + "a = Conv(x, w, b) {" + attributes +
           "}\ny = Softmax(a) {axis=1}\noutput y\n";
  };
  compare(alone({32, 32, 5, 5}, "pads=[2,2,2,2]"), {{1, 32, 9, 9}, {2, 32, 12, 7}}, 1, 2);
  compare(alone({32, 32, 3, 3}, "pads=[2,2,2,2], dilations=[2,2]"), {{1, 32, 9, 9}, {2, 32, 13, 7}}, 1, 2);
  // Few products for each element that would be moved.
  compare(alone({32, 32, 1, 1}, "pads=[0,0,0,0]"), {{1, 32, 9, 9}}, 0, 0);
  compare(alone({16, 32, 1, 3}, "pads=[0,0,0,0]"), {{1, 32, 9, 9}}, 0, 0);
  compare(alone({32, 1, 3, 3}, "group=32, pads=[1,1,1,1]"), {{1, 32, 9, 9}}, 0, 0);
}

// As in ResNeXt: groups, several of which fill a block together, with zeros between their weights. As in PoolFormer: products by
// single pixels, which alone do not pay for the conversion, with Gelu between them or after one of them.
TEST(Layout, GeluBetween) {
  const std::string head = "opset 13\nopset com.microsoft 1\ninput x: float32[n,32,h,w]\n" + weights("w1", {64, 32, 1, 1}) +
                           weights("w2", {32, 64, 1, 1}) + "a = Conv(x, w1)\nb = com.microsoft.Gelu(a)\n";
  compare(head + "y = Conv(b, w2)\noutput y\n", {{1, 32, 5, 7}, {2, 32, 3, 3}}, 2, 2);
  compare(head + "y = Softmax(b) {axis=1}\noutput y\n", {{1, 32, 5, 7}}, 0, 0);
}

TEST(Layout, SmallGroupsTogether) {
  const auto between = [](int channels, int groups, const std::string& attributes) {
    const std::string c = std::to_string(channels);
    return kStem + weights("w1", {channels, 16, 1, 1}) + weights("w2", {channels, channels / groups, 3, 3}) +
           weights("b2", {channels}) + weights("w3", {16, channels, 1, 1}) +
           "b = Conv(a, w1)\nc = Relu(b)\n"
           "d = Conv(c, w2, b2) {pads=[1,1,1,1], group=" +
           std::to_string(groups) + attributes + "}\ne = Relu(d)\ny = Conv(e, w3)\noutput y\n";
  };
  compare(between(64, 16, ""), {{1, 3, 17, 23}, {2, 3, 9, 12}}, 4, 1);
  compare(between(64, 8, ", strides=[2,2]"), {{1, 3, 17, 23}, {2, 3, 9, 12}}, 4, 1);
  // Two and four groups of three fill no block.
  compare(between(48, 16, ""), {{1, 3, 17, 23}}, 2, 1);
}

TEST(Layout, NodesKeepTheirNames) {
  const Session s = open(kStem + weights("w1", {16, 16, 1, 1}) + "y = Conv(a, w1)\noutput y\n", true);
  std::vector<std::string> names;
  for (const NodeReport& node : s.report().nodes) {
    if (node.op == "sdx.BlockedConv") names.push_back(node.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a", "y"}));
  EXPECT_EQ(s.outputs()[0].name, "y");
}

}  // namespace
}  // namespace sdx::session
