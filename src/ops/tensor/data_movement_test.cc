// Cases that the ONNX conformance data leave out: hostile values, sub-byte types, symbolic shapes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <string>

#include "ops/context.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "ops/tensor/axes.h"
#include "ops/tensor/movement.h"
#include "support/sanitizers.h"
#include "support/single_op.h"
#include "tensor/element.h"
#include "tensor/types.h"

namespace sdx::ops {
namespace {

struct Call {
  Node node;
  std::vector<Value> inputs;

  Call(std::string op, int version, std::vector<Value> in) : inputs(std::move(in)) {
    node.op_type = std::move(op);
    node.version = version;
    node.outputs = {0};
    for (ValueId i = 0; i < inputs.size(); ++i) node.inputs.push_back(i);
  }
  Call& with(std::string attribute, AttributeValue value) {
    node.attributes.set(std::move(attribute), std::move(value));
    return *this;
  }
  Value value() const { return testing::run_op(node, inputs)[0]; }
  Tensor run() const { return value().tensor(); }
};

Tensor iota(Shape shape) {
  Tensor t(DataType::float32, std::move(shape));
  auto v = t.mutable_values<float>();
  std::iota(v.begin(), v.end(), 0.0F);
  return t;
}

Tensor ints(std::vector<std::int64_t> values) { return from_ints(values); }

TEST(DataMovement, TransposeAgreesWithIndexArithmetic) {
  const Tensor in = iota({3, 37, 5, 41});
  const Tensor out = Call("Transpose", 13, {in}).with("perm", std::vector<std::int64_t>{0, 3, 1, 2}).run();
  ASSERT_EQ(out.shape(), (Shape{3, 41, 37, 5}));
  const auto v = out.values<float>();
  std::size_t at = 0;
  for (int n = 0; n < 3; ++n) {
    for (int w = 0; w < 41; ++w) {
      for (int c = 0; c < 37; ++c) {
        for (int h = 0; h < 5; ++h) ASSERT_EQ(v[at++], static_cast<float>(((n * 37 + c) * 5 + h) * 41 + w));
      }
    }
  }
}

TEST(DataMovement, PackedTypesKeepTheirCodes) {
  Tensor in(DataType::int4, {3, 3});
  for (int i = 0; i < 9; ++i) set_element_int(in, i, i - 4);
  const Tensor out = Call("Transpose", 21, {in}).run();
  for (int i = 0; i < 9; ++i) EXPECT_EQ(element_as_int(out, i), (i % 3) * 3 + i / 3 - 4);
  const Tensor padded = Call("Pad", 21, {in, ints({0, 1, 0, 0})}).run();
  EXPECT_EQ(padded.shape(), (Shape{3, 4}));
  EXPECT_EQ(element_as_int(padded, 4), 0);
  EXPECT_EQ(element_as_int(padded, 5), -1);
}

TEST(DataMovement, SliceTakesExtremePositions) {
  const Tensor in = iota({5});
  const auto slice = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    return to_floats(Call("Slice", 13, {in, ints({start}), ints({end}), ints({0}), ints({step})}).run());
  };
  EXPECT_EQ(slice(INT64_MIN, INT64_MAX, 1), (std::vector<float>{0, 1, 2, 3, 4}));
  EXPECT_EQ(slice(INT64_MAX, INT64_MIN, -1), (std::vector<float>{4, 3, 2, 1, 0}));
  EXPECT_EQ(slice(0, 5, INT64_MAX), (std::vector<float>{0}));
  EXPECT_EQ(slice(4, INT64_MIN, INT64_MIN), (std::vector<float>{4}));
  EXPECT_EQ(slice(3, 1, 1), (std::vector<float>{}));
  EXPECT_THROW(slice(0, 1, 0), Error);
}

TEST(DataMovement, PadsReflectMoreThanOnceAndCrop) {
  const Tensor in = iota({3});
  const auto pad = [&](std::int64_t begin, std::int64_t end, const char* mode) {
    return to_floats(Call("Pad", 19, {in, ints({begin, end})}).with("mode", std::string(mode)).run());
  };
  EXPECT_EQ(pad(5, 0, "reflect"), (std::vector<float>{1, 0, 1, 2, 1, 0, 1, 2}));
  EXPECT_EQ(pad(0, 4, "wrap"), (std::vector<float>{0, 1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(pad(-1, 2, "edge"), (std::vector<float>{1, 2, 2, 2}));
  EXPECT_EQ(pad(-2, 1, "constant"), (std::vector<float>{2, 0}));
  EXPECT_THROW(pad(-4, 0, "constant"), Error);
  EXPECT_EQ(pad(INT64_MIN, INT64_MAX, "constant"), (std::vector<float>{0, 0}));
  EXPECT_THROW(pad(INT64_MAX, 1, "constant"), Error);
}

// The source of an element of a padded axis, by the words of the specification: positions are reflected or wrapped step by step.
std::int64_t padded_source(std::int64_t position, std::int64_t first, std::int64_t inside, const std::string& mode) {
  while (position < 0 || position >= inside) {
    if (mode == "constant") return -1;
    if (mode == "edge" || inside == 1) {
      position = std::clamp<std::int64_t>(position, 0, inside - 1);
    } else if (mode == "wrap") {
      position += position < 0 ? inside : -inside;
    } else {
      position = position < 0 ? -position : 2 * (inside - 1) - position;
    }
  }
  return first + position;
}

void check_pad(const Tensor& in, const Ints& pads, const std::string& mode) {
  const Tensor out = Call("Pad", 19, {in, ints(pads), Tensor::of<float>({}, {-7})}).with("mode", mode).run();
  const std::vector<float> values = to_floats(in), padded = to_floats(out);
  const Ints from = strides_of(in.shape()), to = strides_of(out.shape());
  for (std::int64_t i = 0; i < out.size(); ++i) {
    std::int64_t source = 0;
    for (std::size_t d = 0; d < in.rank() && source >= 0; ++d) {
      const std::int64_t begin = pads[d], end = pads[d + in.rank()];
      const std::int64_t first = std::max<std::int64_t>(0, -begin), inside = in.dim(d) - first - std::max<std::int64_t>(0, -end);
      const std::int64_t at = padded_source(i / to[d] % out.dim(d) - std::max<std::int64_t>(0, begin), first, inside, mode);
      source = at < 0 ? -1 : source + at * from[d];
    }
    ASSERT_EQ(padded[static_cast<std::size_t>(i)], source < 0 ? -7 : values[static_cast<std::size_t>(source)])
        << mode << ' ' << to_string(in.shape()) << ' ' << to_string(pads) << " at " << i;
  }
}

TEST(DataMovement, PadsOfEveryModeAndShape) {
  std::mt19937 random(7);
  const auto below = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n)); };
  for (int turn = 0; turn < 120; ++turn) {
    Shape shape(static_cast<std::size_t>(1 + below(3)));
    Ints pads(2 * shape.size());
    for (std::size_t d = 0; d < shape.size(); ++d) {
      shape[d] = 1 + below(turn % 2 == 0 ? 5 : 40);
      std::int64_t left = shape[d] - 1;  // that may be cropped
      for (std::int64_t* pad : {&pads[d], &pads[d + shape.size()]}) {
        if (below(3) == 0) continue;
        *pad = below(4) == 0 ? -below(left + 1) : below(turn % 5 == 0 ? 60 : 4);
        left += std::min<std::int64_t>(*pad, 0);
      }
    }
    for (const char* mode : {"constant", "edge", "reflect", "wrap"}) check_pad(iota(shape), pads, mode);
  }
}

// One row is cut where threads share it.
TEST(DataMovement, PadsOfOneLongAxis) {
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    check_pad(iota({200'000}), {70'000, -30'000}, mode);
    check_pad(iota({3}), {500, 501}, mode);
  }
}

std::size_t peak_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return static_cast<std::size_t>(std::stoull(line.substr(6))) << 10;
  }
  return 0;
}

// The result takes 32 MB; a list of where each element comes from would take 256 MB.
TEST(DataMovement, PadKeepsNothingForEachElement) {
  if (sdx::testing::kAddressSanitizer) GTEST_SKIP() << "freed memory is kept for a while";
  if (!(std::ofstream("/proc/self/clear_refs") << "5" << std::flush)) GTEST_SKIP() << "the peak of memory cannot be reset";
  constexpr std::int64_t kBytes = std::int64_t{32} << 20;
  const std::size_t before = peak_memory();
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    const Tensor in(DataType::uint8, {kBytes});
    EXPECT_EQ(Call("Pad", 19, {in, ints({1000, -1000})}).with("mode", std::string(mode)).run().size(), kBytes);
  }
  EXPECT_LT(peak_memory() - before, 4 * kBytes);
}

TEST(DataMovement, IndicesOutOfRangeAreRefused) {
  const Tensor in = iota({2, 3});
  EXPECT_THROW(Call("Gather", 13, {in, ints({2})}).run(), Error);
  EXPECT_THROW(Call("Gather", 13, {in, ints({INT64_MIN})}).run(), Error);
  EXPECT_THROW(Call("GatherND", 13, {in, Tensor::of<std::int64_t>({1, 2}, {0, 3})}).run(), Error);
  EXPECT_THROW(Call("GatherElements", 13, {in, Tensor::of<std::int64_t>({3, 1}, {0, 0, 0})}).with("axis", std::int64_t{1}).run(),
               Error);
  EXPECT_THROW(Call("ScatterND", 18, {in, Tensor::of<std::int64_t>({1, 1}, {5}), iota({1, 3})}).run(), Error);
  EXPECT_EQ(to_floats(Call("Gather", 13, {in, ints({-1})}).run()), (std::vector<float>{3, 4, 5}));
}

TEST(DataMovement, ReshapeAndTileRefuseWhatDoesNotFit) {
  const Tensor in = iota({2, 3});
  EXPECT_EQ(Call("Reshape", 14, {in, ints({0, -1, 1})}).run().shape(), (Shape{2, 3, 1}));
  EXPECT_THROW(Call("Reshape", 14, {in, ints({4, -1})}).run(), Error);
  EXPECT_THROW(Call("Reshape", 14, {in, ints({-1, -1})}).run(), Error);
  EXPECT_THROW(Call("Reshape", 14, {in, ints({0, 0, 0})}).run(), Error);
  EXPECT_EQ(Call("Reshape", 14, {Tensor(DataType::float32, {0, 3}), ints({0, -1})}).run().shape(), (Shape{0, 3}));
  EXPECT_THROW(Call("Tile", 13, {in, ints({INT64_MAX, 2})}).run(), Error);
  EXPECT_THROW(Call("Expand", 13, {in, ints({-1, 3})}).run(), Error);
}

TEST(DataMovement, ResizeOpset10RoundsUpWhenShrinking) {
  const Tensor in = Tensor::of<float>({1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor scales = Tensor::of<float>({4}, {1, 1, 0.6F, 0.6F});
  EXPECT_EQ(to_floats(Call("Resize", 10, {in, scales}).run()), (std::vector<float>{1, 3}));
  EXPECT_THROW(Call("Resize", 10, {in, Tensor::of<float>({4}, {1, 1, 1e30F, 1e30F})}).run(), Error);
  EXPECT_THROW(Call("Resize", 10, {in, Tensor::of<float>({4}, {1, 1, -1, 1})}).run(), Error);
}

TEST(DataMovement, RegularExpressionsDoNotExplode) {
  const Tensor text = Tensor::of<std::string>({2}, {std::string(2000, 'a') + "c", std::string(30, 'a') + "b"});
  const Tensor out = Call("RegexFullMatch", 20, {text}).with("pattern", std::string("(a+)+b")).run();
  EXPECT_FALSE(out.values<bool>()[0]);
  EXPECT_TRUE(out.values<bool>()[1]);
  EXPECT_THROW(Call("RegexFullMatch", 20, {text}).with("pattern", std::string("(")).run(), Error);
}

TEST(DataMovement, SequencesKeepTheirItems) {
  const Value empty = Call("SequenceEmpty", 11, {}).value();
  const Value one = Call("SequenceInsert", 11, {empty, Value(iota({2}))}).value();
  const Value two = Call("SequenceInsert", 11, {one, Value(iota({3})), Value(Tensor::scalar<std::int64_t>(0))}).value();
  EXPECT_EQ(Call("SequenceAt", 11, {two, Value(Tensor::scalar<std::int64_t>(-1))}).run().shape(), (Shape{2}));
  EXPECT_EQ(Call("SequenceErase", 11, {two}).value().sequence().items.size(), 1U);
  EXPECT_THROW(Call("SequenceAt", 11, {two, Value(Tensor::scalar<std::int64_t>(2))}).run(), Error);
  EXPECT_THROW(Call("SequenceErase", 11, {empty}).run(), Error);
}

// Shape -> Gather -> Unsqueeze -> Concat -> Reshape, as exporters write "flatten all but the batch".
TEST(DataMovement, ShapesStaySymbolicThroughShapeArithmetic) {
  Graph g;
  const ValueId x = g.add_input("x", Type::tensor(DataType::float32, {Dim::symbol("batch"), Dim::symbol("seq"), Dim(8)}));
  const auto add = [&](std::string op, std::vector<ValueId> in, const char* out) {
    Node n;
    n.op_type = std::move(op);
    n.version = 17;
    n.inputs = std::move(in);
    n.outputs = {g.add_value(out)};
    const ValueId id = n.outputs[0];
    g.add_node(std::move(n));
    return id;
  };
  const ValueId zero = g.add_constant("zero", ints({0}));
  const ValueId index = g.add_constant("index", Tensor::scalar<std::int64_t>(0));
  const ValueId rest = g.add_constant("rest", ints({-1, 4}));
  const ValueId shape = add("Shape", {x}, "shape");
  const ValueId batch = add("Gather", {shape, index}, "batch");
  const ValueId first = add("Unsqueeze", {batch, zero}, "first");
  const ValueId target = add("Concat", {first, rest}, "target");
  g.node(3).attributes.set("axis", std::int64_t{0});
  const ValueId y = add("Reshape", {x, target}, "y");
  const InferResult r = infer(g, {g.value(x).declared});
  EXPECT_EQ(r.types[y].str(), "float32[batch,2*seq,4]");
}

Tensor number(float v) {
  Tensor t(DataType::float32, {1});
  t.mutable_values<float>()[0] = v;
  return t;
}

// Many boxes, equal scores, NaN, -0: against picking one after the other from a stably sorted list.
TEST(NonMaxSuppression, ManyBoxes) {
  for (const std::int64_t n : {1, 40, 3000}) {
    for (const bool limited : {false, true}) {
      Tensor boxes(DataType::float32, {1, n, 4}), scores(DataType::float32, {1, 2, n});
      auto b = boxes.mutable_values<float>();
      auto s = scores.mutable_values<float>();
      const auto noise = [](std::int64_t i) { return static_cast<float>(i * 7919 % 1009) / 1009.0F; };
      for (std::int64_t i = 0; i < n * 4; ++i) b[static_cast<std::size_t>(i)] = noise(i * 31 + i % 3) * 4;
      for (std::int64_t i = 0; i < 2 * n; ++i) {
        float& v = s[static_cast<std::size_t>(i)];
        v = i < n ? std::round(noise(i) * 20 - 5) / 8 : noise(i);
        if (i % 50 == 7) v = std::numeric_limits<float>::quiet_NaN();
        if (i % 50 == 9) v = -0.0F;
      }
      const std::int64_t most = limited ? 20 : n;
      const float threshold = -0.25F;
      std::vector<Value> in = {boxes, scores, ints({most}), number(0.4F)};
      if (limited) in.emplace_back(number(threshold));
      std::vector<std::int64_t> want;
      for (std::int64_t k = 0; k < 2; ++k) {
        std::vector<std::int64_t> order, kept;
        const float* score = s.data() + k * n;
        for (std::int64_t i = 0; i < n; ++i) {
          if (!limited || score[i] > threshold) order.push_back(i);
        }
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t x, std::int64_t y) {
          return score[x] > score[y] || (score[x] == score[x] && score[y] != score[y]);
        });
        const auto edge = [&](std::int64_t i, int axis, bool high) {
          const float x = b[static_cast<std::size_t>(i * 4 + axis)], y = b[static_cast<std::size_t>(i * 4 + axis + 2)];
          return high ? std::max(x, y) : std::min(x, y);
        };
        const auto side = [&](std::int64_t i, std::int64_t j, int axis) {
          return std::min(edge(i, axis, true), edge(j, axis, true)) - std::max(edge(i, axis, false), edge(j, axis, false));
        };
        for (const std::int64_t i : order) {
          if (static_cast<std::int64_t>(kept.size()) >= most) break;
          const bool hit = std::any_of(kept.begin(), kept.end(), [&](std::int64_t j) {
            const float common = side(i, j, 0) * side(i, j, 1);
            return side(i, j, 0) > 0 && side(i, j, 1) > 0 &&
                   common / (side(i, i, 0) * side(i, i, 1) + side(j, j, 0) * side(j, j, 1) - common) > 0.4F;
          });
          if (!hit) kept.push_back(i);
        }
        for (const std::int64_t i : kept) want.insert(want.end(), {0, k, i});
      }
      const Tensor got = Call("NonMaxSuppression", 11, in).run();
      const auto rows = got.values<std::int64_t>();
      EXPECT_EQ(std::vector<std::int64_t>(rows.begin(), rows.end()), want) << n << " boxes";
    }
  }
}

}  // namespace
}  // namespace sdx::ops
