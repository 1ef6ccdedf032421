// Operators that move elements, against plain index arithmetic: every element size, odd and empty extents.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "base/thread_pool.h"
#include "ops/tensor/movement.h"
#include "support/single_op.h"
#include "tensor/element.h"
#include "tensor/types.h"

namespace sdx::ops {
namespace {

using testing::make_node;
using testing::run_op;

const std::vector<DataType> kTypes = {DataType::uint8,   DataType::float16,    DataType::float32, DataType::int64,
                                      DataType::boolean, DataType::complex128, DataType::string,  DataType::int4};

// One element's bytes.
std::string bits(const Tensor& t, std::int64_t i) {
  if (t.dtype() == DataType::string) return static_cast<const std::string*>(t.data())[i];
  const int width = bit_width(t.dtype());
  if (width < 8) return std::string(1, static_cast<char>(get_packed(t.data(), width, i)));
  const auto size = static_cast<std::size_t>(width / 8);
  return std::string(static_cast<const char*>(t.data()) + static_cast<std::size_t>(i) * size, size);
}

Tensor filled(DataType dtype, const Shape& shape, std::uint64_t seed = 1) {
  Tensor t(dtype, shape);
  const auto next = [&] {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return seed >> 33;
  };
  if (dtype == DataType::string) {
    for (std::int64_t i = 0; i < t.size(); ++i) static_cast<std::string*>(t.mutable_data())[i] = std::to_string(next());
    return t;
  }
  auto* p = static_cast<std::uint8_t*>(t.mutable_data());
  for (std::size_t i = 0; i < t.bytes(); ++i) p[i] = static_cast<std::uint8_t>(dtype == DataType::boolean ? next() & 1 : next());
  return t;
}

Node node_of(std::string op, int version, std::size_t inputs, std::vector<std::pair<std::string, AttributeValue>> attributes = {},
             std::size_t outputs = 1) {
  Node n = make_node("", std::move(op), version, inputs, outputs);
  for (auto& a : attributes) n.attributes.set(std::move(a.first), std::move(a.second));
  return n;
}

// The source of element `at` of the output: an offset into the input, or -1 for an empty place.
using Source = std::function<std::int64_t(const Ints& at)>;

void expect_moved(const Tensor& in, const Tensor& out, const Shape& shape, const Source& source, const std::string& what) {
  ASSERT_EQ(out.shape(), shape) << what;
  ASSERT_EQ(out.dtype(), in.dtype()) << what;
  Tensor zero(in.dtype(), {1});
  fill_zero(zero);
  Ints at(shape.size(), 0);
  for (std::int64_t i = 0; i < out.size(); ++i) {
    std::int64_t rest = i;
    for (std::size_t d = shape.size(); d-- > 0;) {
      at[d] = rest % shape[d];
      rest /= shape[d];
    }
    const std::int64_t from = source(at);
    ASSERT_EQ(bits(out, i), from < 0 ? bits(zero, 0) : bits(in, from)) << what << " " << in.type_string() << " element " << i;
  }
}

std::int64_t offset(const Shape& shape, const Ints& at) {
  std::int64_t o = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) o = o * shape[d] + at[d];
  return o;
}

Tensor moved(const Node& n, const std::vector<Value>& inputs) { return run_op(n, inputs)[0].tensor(); }

Tensor ints(const Ints& values) { return from_ints(values); }

TEST(MovedElements, ExpandAndTile) {
  const std::vector<std::pair<Shape, Shape>> expands = {
      {{64, 1}, {64, 70}}, {{5, 1, 3}, {2, 5, 4, 3}},   {{}, {3, 50}}, {{0, 1}, {0, 4}}, {{1, 3, 1}, {2, 3, 129}},
      {{7}, {7}},          {{1, 2, 1, 9}, {3, 2, 5, 9}}};
  const std::vector<std::pair<Shape, Ints>> tiles = {
      {{3, 28}, {2, 3}}, {{5}, {0}}, {{2, 1, 3}, {3, 2, 1}}, {{2, 9, 17}, {1, 4, 2}}, {{40, 3}, {1, 1}}};
  for (const DataType t : kTypes) {
    for (const auto& [from, to] : expands) {
      const Tensor in = filled(t, from);
      const Shape from_shape = from;
      expect_moved(
          in, moved(node_of("Expand", 13, 2), {in, ints(to)}), to,
          [&](const Ints& at) {
            Ints a(at.end() - static_cast<std::ptrdiff_t>(from_shape.size()), at.end());
            for (std::size_t d = 0; d < a.size(); ++d) a[d] = from_shape[d] == 1 ? 0 : a[d];
            return offset(from_shape, a);
          },
          "Expand");
    }
    for (const auto& [from, repeats] : tiles) {
      const Tensor in = filled(t, from);
      const Shape from_shape = from;
      Shape shape = from;
      for (std::size_t d = 0; d < shape.size(); ++d) shape[d] *= repeats[d];
      expect_moved(
          in, moved(node_of("Tile", 13, 2), {in, ints(repeats)}), shape,
          [&](const Ints& at) {
            Ints a = at;
            for (std::size_t d = 0; d < a.size(); ++d) a[d] %= from_shape[d];
            return offset(from_shape, a);
          },
          "Tile");
    }
  }
}

TEST(MovedElements, SliceAndTranspose) {
  const Shape from = {3, 37, 41};
  for (const DataType t : kTypes) {
    const Tensor in = filled(t, from);
    for (const std::int64_t step : {1, 2, 3, -1, -2, -5}) {
      for (const std::size_t axis : {1U, 2U}) {
        Shape shape = from;
        const std::int64_t start = step > 0 ? 1 : from[axis] - 2, reach = from[axis] - 1;
        shape[axis] = (reach + std::abs(step) - 1) / std::abs(step);
        expect_moved(
            in,
            moved(node_of("Slice", 13, 5), {in, ints({start}), ints({step > 0 ? INT64_MAX : INT64_MIN}),
                                            ints({static_cast<std::int64_t>(axis)}), ints({step})}),
            shape,
            [&](const Ints& at) {
              Ints a = at;
              a[axis] = start + a[axis] * step;
              return offset(from, a);
            },
            "Slice");
      }
    }
    for (const Shape& shape : {Shape{67, 33}, Shape{3, 50}, Shape{50, 3}, Shape{2, 19}, Shape{19, 4}, Shape{0, 3}}) {
      const Tensor matrix = filled(t, shape);
      expect_moved(
          matrix, moved(node_of("Transpose", 13, 1), {matrix}), {shape[1], shape[0]},
          [&](const Ints& at) { return at[1] * shape[1] + at[0]; }, "Transpose");
    }
  }
}

TEST(MovedElements, BlocksOfSpaceAndDepth) {
  for (const DataType t : kTypes) {
    for (const std::int64_t b : {1, 2, 3, 4, 5}) {
      const std::int64_t n = 2, c = 3, h = 2, w = 9;
      const Shape deep = {n, c * b * b, h, w}, wide = {n, c, h * b, w * b};
      for (const bool dcr : {true, false}) {
        const auto deep_at = [&](std::int64_t item, std::int64_t channel, std::int64_t y, std::int64_t x) {
          const std::int64_t block = y % b * b + x % b;
          return Ints{item, dcr ? block * c + channel : channel * b * b + block, y / b, x / b};
        };
        const Tensor in = filled(t, deep);
        const std::string mode = dcr ? "DCR" : "CRD";
        const Tensor out = moved(node_of("DepthToSpace", 13, 1, {{"blocksize", b}, {"mode", mode}}), {in});
        expect_moved(
            in, out, wide, [&](const Ints& at) { return offset(deep, deep_at(at[0], at[1], at[2], at[3])); }, "DepthToSpace");
        const Tensor back = moved(node_of("SpaceToDepth", 13, 1, {{"blocksize", b}, {"mode", mode}}), {out});
        expect_moved(
            in, back, deep, [&](const Ints& at) { return offset(deep, at); }, "SpaceToDepth");
      }
    }
  }
}

std::int64_t padded(std::int64_t i, std::int64_t n, const std::string& mode) {
  if (i >= 0 && i < n) return i;
  if (mode == "constant") return -1;
  if (mode == "edge") return i < 0 ? 0 : n - 1;
  if (mode == "wrap") return (i % n + n) % n;
  for (; i < 0 || i >= n;) i = i < 0 ? -i : 2 * (n - 1) - i;
  return i;
}

TEST(MovedElements, PadInEveryMode) {
  for (const DataType t : kTypes) {
    for (const std::string mode : {"constant", "edge", "wrap", "reflect"}) {
      for (const auto& [from, pads] : std::vector<std::pair<Shape, Ints>>{{{2, 5, 29}, {0, 3, 1, 0, 2, 9}},
                                                                          {{2, 5, 29}, {1, -1, 40, 0, 7, -2}},
                                                                          {{3, 4, 5}, {0, 6, 0, 1, 1, 0}},
                                                                          {{30}, {20, 1}}}) {
        const Tensor in = filled(t, from);
        const Shape from_shape = from;
        const Ints p = pads;
        const std::size_t rank = from.size();
        Shape shape = from;
        for (std::size_t d = 0; d < rank; ++d) shape[d] += p[d] + p[d + rank];
        expect_moved(
            in, moved(node_of("Pad", 19, 2, {{"mode", mode}}), {in, ints(p)}), shape,
            [&](const Ints& at) {
              Ints a = at;
              for (std::size_t d = 0; d < rank; ++d) {
                const std::int64_t crop = std::max<std::int64_t>(0, -p[d]);
                const std::int64_t kept = from_shape[d] - crop - std::max<std::int64_t>(0, -p[d + rank]);
                a[d] = padded(at[d] - std::max<std::int64_t>(0, p[d]), kept, mode);
                if (a[d] < 0) return std::int64_t{-1};
                a[d] += crop;
              }
              return offset(from_shape, a);
            },
            "Pad " + mode);
      }
    }
  }
}

TEST(MovedElements, NearestResizing) {
  for (const DataType t : {DataType::uint8, DataType::float16, DataType::float32, DataType::int64}) {
    for (const auto& [y, x] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{14, 26}, {21, 39}, {7, 52}, {28, 13}, {10, 17}, {3, 6}}) {
      const Shape from = {1, 3, 7, 13}, shape = {1, 3, y, x};
      const Tensor in = filled(t, from);
      Node n = node_of("Resize", 13, 4,
                       {{"mode", std::string("nearest")},
                        {"coordinate_transformation_mode", std::string("asymmetric")},
                        {"nearest_mode", std::string("floor")}});
      expect_moved(
          in, moved(n, {in, Value(), Value(), ints(shape)}), shape,
          [&](const Ints& at) {
            return offset(from, {at[0], at[1], at[2] * 7 / y, at[3] * 13 / x});
          },
          "Resize");
    }
  }
}

// Rows that are planned in blocks, and more rows than are listed.
TEST(MovedElements, NearestResizingOfLongAxes) {
  const std::pair<Shape, Shape> shapes[] = {{{1, 2, 2, 60'000}, {1, 2, 4, 120'000}},
                                            {{1, 1, 1, 60'000}, {1, 1, 1, 180'000}},
                                            {{1, 2, 3, 40'000}, {1, 2, 3, 100'000}},
                                            {{1, 1, 9, 5}, {1, 1, 20'000, 7}}};
  for (const auto& [from, shape] : shapes) {
    const Tensor in = filled(DataType::uint16, from);
    Node n = node_of("Resize", 13, 4,
                     {{"mode", std::string("nearest")},
                      {"coordinate_transformation_mode", std::string("asymmetric")},
                      {"nearest_mode", std::string("floor")}});
    expect_moved(
        in, moved(n, {in, Value(), Value(), ints(shape)}), shape,
        [&, &from = from, &shape = shape](const Ints& at) {
          return offset(from, {at[0], at[1], at[2] * from[2] / shape[2], at[3] * from[3] / shape[3]});
        },
        "Resize");
  }
}

Tensor indices(DataType dtype, const Shape& shape, std::int64_t extent) {
  Tensor t(dtype, shape);
  for (std::int64_t i = 0; i < t.size(); ++i) set_element_int(t, i, (i * 7 + i / 3) % (2 * extent) - extent);
  return t;
}
std::int64_t index_at(const Tensor& t, std::int64_t i, std::int64_t extent) {
  const std::int64_t v = element_as_int(t, i);
  return v < 0 ? v + extent : v;
}

TEST(MovedElements, GatherElementsAlongEachAxis) {
  const Shape from = {4, 5, 19};
  for (const DataType t : kTypes) {
    const Tensor in = filled(t, from);
    for (const DataType it : {DataType::int32, DataType::int64}) {
      for (const Shape& shape : {Shape{4, 5, 19}, Shape{2, 5, 7}, Shape{4, 1, 19}, Shape{1, 0, 3}}) {
        for (const std::size_t axis : {0U, 1U, 2U}) {
          const Tensor at = indices(it, shape, from[axis]);
          Node n = node_of("GatherElements", 13, 2, {{"axis", static_cast<std::int64_t>(axis)}});
          expect_moved(
              in, moved(n, {in, at}), shape,
              [&](const Ints& p) {
                Ints a = p;
                a[axis] = index_at(at, offset(shape, p), from[axis]);
                return offset(from, a);
              },
              "GatherElements");
        }
      }
    }
  }
  const Tensor in = filled(DataType::float32, from);
  for (const std::int64_t bad : {19, -20}) {
    Tensor at = indices(DataType::int64, from, 19);
    set_element_int(at, at.size() - 1, bad);
    EXPECT_THROW(moved(node_of("GatherElements", 13, 2, {{"axis", std::int64_t{2}}}), {in, at}), Error);
  }
}

TEST(MovedElements, GatherNdWithBatches) {
  const Shape from = {2, 6, 5, 3};
  for (const DataType t : kTypes) {
    const Tensor in = filled(t, from);
    for (const std::int64_t depth : {1, 2, 3}) {
      const Shape index_shape = {2, 4, depth};
      Tensor at(DataType::int64, index_shape);
      for (std::int64_t i = 0; i < at.size(); ++i) set_element_int(at, i, (i * 5) % 6 - 3);
      Shape shape = {2, 4};
      shape.insert(shape.end(), from.begin() + 1 + depth, from.end());
      expect_moved(
          in, moved(node_of("GatherND", 13, 2, {{"batch_dims", std::int64_t{1}}}), {in, at}), shape,
          [&](const Ints& p) {
            Ints a = {p[0]};
            for (std::int64_t d = 0; d < depth; ++d) {
              a.push_back(index_at(at, (p[0] * 4 + p[1]) * depth + d, from[static_cast<std::size_t>(1 + d)]));
            }
            a.insert(a.end(), p.begin() + 2, p.end());
            return offset(from, a);
          },
          "GatherND");
    }
  }
}

TEST(MovedElements, ScatteredUpdatesOverwriteInOrder) {
  const Shape from = {4, 5, 11};
  for (const DataType t : kTypes) {
    const Tensor data = filled(t, from), updates = filled(t, {3, 5, 9}, 77);
    for (const std::size_t axis : {0U, 1U, 2U}) {
      const Tensor at = indices(DataType::int32, {3, 5, 9}, from[axis]);
      const Tensor out =
          moved(node_of("ScatterElements", 18, 3, {{"axis", static_cast<std::int64_t>(axis)}}), {data, at, updates});
      std::vector<std::string> expected;
      for (std::int64_t i = 0; i < data.size(); ++i) expected.push_back(bits(data, i));
      for (std::int64_t i = 0; i < at.size(); ++i) {
        Ints p = {i / 45, i / 9 % 5, i % 9};
        p[axis] = index_at(at, i, from[axis]);
        expected[static_cast<std::size_t>(offset(from, p))] = bits(updates, i);
      }
      for (std::int64_t i = 0; i < out.size(); ++i) ASSERT_EQ(bits(out, i), expected[static_cast<std::size_t>(i)]) << name(t);
    }
    const Tensor rows = filled(t, {3, 11}, 5);
    const Tensor out = moved(node_of("ScatterND", 18, 3), {data, Tensor::of<std::int64_t>({3, 2}, {1, -1, 0, 2, 1, 4}), rows});
    for (std::int64_t i = 0; i < out.size(); ++i) {
      const std::int64_t row = i / 11;  // (1, 4) is named twice: the last one counts
      const std::int64_t from_row = row == 9 ? 2 : (row == 2 ? 1 : -1);
      ASSERT_EQ(bits(out, i), from_row < 0 ? bits(data, i) : bits(rows, from_row * 11 + i % 11)) << name(t);
    }
  }
}

TEST(MovedElements, ScatteredReductions) {
  const auto run = [](const char* op, const std::string& how) {
    const Tensor data = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
    const bool nd = std::string(op) == "ScatterND";
    const Tensor at = nd ? Tensor::of<std::int64_t>({2, 1}, {1, -1}) : Tensor::of<std::int64_t>({2, 3}, {1, 1, 1, -1, -1, -1});
    return to_floats(moved(node_of(op, 18, 3, {{"reduction", how}}), {data, at, Tensor::of<float>({2, 3}, {2, 3, 4, 9, 1, 0})}));
  };
  for (const char* op : {"ScatterND", "ScatterElements"}) {
    EXPECT_EQ(run(op, "add"), (std::vector<float>{1, 2, 3, 15, 9, 10}));
    EXPECT_EQ(run(op, "mul"), (std::vector<float>{1, 2, 3, 72, 15, 0}));
    EXPECT_EQ(run(op, "min"), (std::vector<float>{1, 2, 3, 2, 1, 0}));
    EXPECT_EQ(run(op, "max"), (std::vector<float>{1, 2, 3, 9, 5, 6}));
  }
}

// Enough updates that threads share them; each place is updated several times.
TEST(MovedElements, ThreadsShareScatteredUpdates) {
  ThreadPool pool(3);
  const PoolScope scope(pool);
  const Shape from = {40, 50, 70}, updated = {60, 50, 70};
  for (const std::size_t axis : {0U, 1U, 2U}) {
    Shape shape = from;
    shape[axis] = updated[0];
    const auto numbers = [](std::int64_t n) {
      std::vector<float> v(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(i % 97);
      return v;
    };
    const Tensor data = Tensor::of<float>(from, numbers(140000)), at = indices(DataType::int32, shape, from[axis]);
    const Tensor updates = Tensor::of<float>(shape, numbers(at.size()));
    std::vector<float> expected = numbers(140000);
    for (std::int64_t i = 0; i < at.size(); ++i) {
      Ints p = {i / (shape[1] * shape[2]), i / shape[2] % shape[1], i % shape[2]};
      p[axis] = index_at(at, i, from[axis]);
      expected[static_cast<std::size_t>(offset(from, p))] += static_cast<float>(i % 97);
    }
    const Node elements =
        node_of("ScatterElements", 18, 3, {{"axis", static_cast<std::int64_t>(axis)}, {"reduction", std::string("add")}});
    EXPECT_EQ(to_floats(moved(elements, {data, at, updates})), expected) << axis;
  }
  const Tensor data = Tensor::of<float>({4, 30000}, std::vector<float>(120000, 1.0F));
  const Tensor updates = Tensor::of<float>({3, 30000}, std::vector<float>(90000, 2.0F));
  const Tensor out = moved(node_of("ScatterND", 18, 3, {{"reduction", std::string("add")}}),
                           {data, Tensor::of<std::int64_t>({3, 1}, {2, -1, 2}), updates});
  std::vector<float> expected(120000, 1.0F);
  std::fill(expected.begin() + 60000, expected.begin() + 90000, 5.0F);
  std::fill(expected.begin() + 90000, expected.end(), 3.0F);
  EXPECT_EQ(to_floats(out), expected);
}

TEST(MovedElements, CompressAndNonZero) {
  for (const DataType t : kTypes) {
    const Tensor in = filled(t, {6, 5, 7});
    const Tensor keep = filled(DataType::boolean, {5}, 3);
    Ints picked;
    for (std::int64_t i = 0; i < 5; ++i) {
      if (keep.values<bool>()[static_cast<std::size_t>(i)]) picked.push_back(i);
    }
    const auto n = static_cast<std::int64_t>(picked.size());
    expect_moved(
        in, moved(node_of("Compress", 11, 2, {{"axis", std::int64_t{1}}}), {in, keep}), {6, n, 7},
        [&](const Ints& at) {
          return offset({6, 5, 7}, {at[0], picked[static_cast<std::size_t>(at[1])], at[2]});
        },
        "Compress");
    expect_moved(
        in, moved(node_of("Compress", 11, 2), {in, keep}), {n},
        [&](const Ints& at) { return picked[static_cast<std::size_t>(at[0])]; }, "Compress");
  }
}

TEST(MovedElements, NonZeroTellsZerosByTheirBits) {
  const auto found = [](const Tensor& t) {
    const Tensor out = moved(node_of("NonZero", 13, 1), {t});
    const auto v = out.values<std::int64_t>();
    return Ints(v.begin(), v.end());
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(found(Tensor::of<float>({2, 3}, {0, -0.0F, nan, 1e-45F, 0, -1})), (Ints{0, 1, 1, 2, 0, 2}));
  EXPECT_EQ(found(Tensor::of<double>({3}, {-0.0, 5e-324, 0})), (Ints{1}));
  EXPECT_EQ(found(Tensor::of<std::int64_t>({3}, {INT64_MIN, 0, 1})), (Ints{0, 2}));
  EXPECT_EQ(found(Tensor::of<std::int8_t>({3}, {-128, 0, 1})), (Ints{0, 2}));
  EXPECT_EQ(found(Tensor::of<std::string>({1, 3}, {"", "a", ""})), (Ints{0, 1}));
  Tensor half(DataType::float16, {3});
  const std::uint16_t codes[] = {0x8000, 0x0001, 0x7E00};
  std::memcpy(half.mutable_data(), codes, sizeof codes);
  EXPECT_EQ(found(half), (Ints{1, 2}));
  EXPECT_EQ(moved(node_of("NonZero", 13, 1), {Tensor(DataType::float32, {0, 4})}).shape(), (Shape{2, 0}));
  EXPECT_EQ(moved(node_of("NonZero", 13, 1), {Tensor::scalar<float>(3)}).shape(), (Shape{0, 1}));
}

TEST(MovedElements, WhereBroadcastsEachOperand) {
  const std::vector<Shape> shapes = {{3, 37}, {1, 37}, {3, 1}, {1}, {}, {2, 3, 37}};
  for (const DataType t :
       {DataType::uint8, DataType::float16, DataType::float32, DataType::int64, DataType::complex128, DataType::string}) {
    for (const Shape& cs : shapes) {
      for (const Shape& xs : shapes) {
        for (const Shape& ys : shapes) {
          const Tensor c = filled(DataType::boolean, cs, 9), x = filled(t, xs), y = filled(t, ys, 4);
          const Tensor out = moved(node_of("Where", 16, 3), {c, x, y});
          const auto from = [&](const Tensor& operand, std::int64_t i) {
            Ints at = {i / (3 * 37), i / 37 % 3, i % 37};
            if (out.rank() == 2) at = {i / out.dim(1) % 3, i % out.dim(1)};
            if (out.rank() < 2) at = {i};
            Ints own(at.end() - static_cast<std::ptrdiff_t>(operand.rank()), at.end());
            for (std::size_t d = 0; d < own.size(); ++d) own[d] = operand.dim(d) == 1 ? 0 : own[d];
            return offset(operand.shape(), own);
          };
          for (std::int64_t i = 0; i < out.size(); ++i) {
            const bool first = c.values<bool>()[static_cast<std::size_t>(from(c, i))];
            ASSERT_EQ(bits(out, i), first ? bits(x, from(x, i)) : bits(y, from(y, i)))
                << c.type_string() << x.type_string() << y.type_string() << i;
          }
        }
      }
    }
  }
}

TEST(MovedElements, UniqueSortsValuesAndKeepsFirstPositions) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor in = Tensor::of<float>({2, 4}, {3, nan, 1, 3, -0.0F, 1, nan, 0});
  const auto run = [&](std::int64_t sorted) { return run_op(node_of("Unique", 11, 1, {{"sorted", sorted}}, 4), {in}); };
  const auto of = [](const Value& v) { return testing::elements<std::int64_t>(v); };
  auto out = run(1);
  EXPECT_EQ(of(out[1]), (Ints{4, 2, 0, 1}));
  EXPECT_EQ(of(out[2]), (Ints{2, 3, 1, 2, 0, 1, 3, 0}));
  EXPECT_EQ(of(out[3]), (Ints{2, 2, 2, 2}));
  out = run(0);
  EXPECT_EQ(of(out[1]), (Ints{0, 1, 2, 4}));
  EXPECT_EQ(out[0].tensor().values<float>()[0], 3);
}

template <class T>
double wide(T x) {
  return static_cast<double>(static_cast<ComputeType<T>>(x));
}

// Values of one type against a map from a value to where it occurs; rows this long are sorted digit by digit.
template <class T>
void check_unique(const std::vector<T>& values) {
  const auto n = static_cast<std::int64_t>(values.size());
  std::map<double, Ints> places;
  for (std::int64_t i = 0; i < n; ++i) places[wide(values[static_cast<std::size_t>(i)])].push_back(i);
  Ints first, inverse(values.size()), counts;
  for (const auto& [value, at] : places) {
    for (const std::int64_t i : at) inverse[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(first.size());
    first.push_back(at[0]);
    counts.push_back(static_cast<std::int64_t>(at.size()));
  }
  Tensor in(DataTypeOf<T>::value, Shape{n});
  std::copy(values.begin(), values.end(), static_cast<T*>(in.mutable_data()));
  const auto out = run_op(node_of("Unique", 11, 1, {}, 4), {in});
  const auto of = [](const Value& v) { return testing::elements<std::int64_t>(v); };
  EXPECT_EQ(of(out[1]), first) << in.type_string();
  EXPECT_EQ(of(out[2]), inverse) << in.type_string();
  EXPECT_EQ(of(out[3]), counts) << in.type_string();
  ASSERT_EQ(out[0].tensor().size(), static_cast<std::int64_t>(first.size()));
  const auto* unique = static_cast<const T*>(out[0].tensor().data());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_EQ(wide(unique[i]), wide(values[static_cast<std::size_t>(first[i])]));
}

template <class T>
void check_unique_numbers(double scale) {
  std::vector<T> values;
  std::uint64_t seed = 7;
  for (int i = 0; i < 500; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    const auto step = static_cast<double>(seed >> 33 & 127);
    values.push_back(static_cast<T>(static_cast<ComputeType<T>>((std::is_unsigned_v<T> ? step : step - 64) * scale)));
  }
  check_unique(values);
}

TEST(MovedElements, UniqueOfLongRows) {
  check_unique_numbers<std::int8_t>(1);
  check_unique_numbers<std::uint8_t>(1);
  check_unique_numbers<std::int16_t>(300);
  check_unique_numbers<std::uint32_t>(1 << 24);
  check_unique_numbers<std::int64_t>(1e13);
  check_unique_numbers<float>(0.37);
  check_unique_numbers<double>(-1e100);
  check_unique_numbers<Float16>(0.25);
}

TEST(MovedElements, UniqueOrdersIntegersBelowAByteByValue) {
  const auto codes = Tensor::of<std::uint8_t>({5}, {2, 1, 3, 1, 2});
  for (const DataType type : {DataType::int2, DataType::uint2, DataType::int4}) {
    Tensor in(type, Shape{5});
    narrow(codes, in);
    const auto out = run_op(node_of("Unique", 11, 1, {}, 4), {in});
    ASSERT_EQ(out[0].tensor().dtype(), type);
    // As int2, 2 is -2 and 3 is -1.
    const bool negative = type == DataType::int2;
    EXPECT_EQ(testing::elements<std::uint8_t>(Value(widened(out[0].tensor()))),
              (negative ? std::vector<std::uint8_t>{2, 3, 1} : std::vector<std::uint8_t>{1, 2, 3}));
    EXPECT_EQ(testing::elements<std::int64_t>(out[1]), (negative ? Ints{0, 2, 1} : Ints{1, 0, 2}));
    EXPECT_EQ(testing::elements<std::int64_t>(out[3]), (negative ? Ints{2, 1, 2} : Ints{2, 2, 1}));
  }
}

}  // namespace
}  // namespace sdx::ops
