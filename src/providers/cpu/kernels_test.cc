// Kernels against the operators' reference kernels on shapes that fill no tile: 8-bit ones equal to the last bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/memory.h"
#include "base/thread_pool.h"
#include "ops/op.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/recurrent_rows.h"
#include "support/single_op.h"
#include "tensor/types.h"

namespace sdx::cpu {
namespace {

struct Services : ops::RunServices {
  std::vector<Value> run_subgraph(const Node&, std::size_t, std::vector<Value>) override {
    fail(ErrorCode::internal, "a single operator has no subgraphs");
  }
  const StopCondition& stop() const override { return condition; }
  std::uint64_t next_seed() override { return 1; }
  StopCondition condition;
};

// A different value at each place; `seed` keeps operands apart.
std::uint32_t noise(std::uint32_t i, std::uint32_t seed) {
  std::uint32_t v = (i + 1) * 2654435761U + seed * 40503U;
  v ^= v >> 15;
  v *= 2246822519U;
  return v ^ (v >> 13);
}

Tensor bytes(DataType type, const Shape& shape, std::uint32_t seed) {
  Tensor t(type, shape);
  auto* p = static_cast<std::uint8_t*>(t.mutable_data());
  for (std::int64_t i = 0; i < t.size(); ++i) p[i] = static_cast<std::uint8_t>(noise(static_cast<std::uint32_t>(i), seed));
  return t;
}

Tensor floats(const Shape& shape, std::uint32_t seed, float low, float high) {
  Tensor t(DataType::float32, shape);
  auto* p = static_cast<float*>(t.mutable_data());
  for (std::int64_t i = 0; i < t.size(); ++i) {
    p[i] = low + (high - low) * static_cast<float>(noise(static_cast<std::uint32_t>(i), seed) % 10007) / 10006.0F;
  }
  return t;
}

Tensor ints(const Shape& shape, std::uint32_t seed) {
  Tensor t(DataType::int32, shape);
  auto* p = static_cast<std::int32_t*>(t.mutable_data());
  for (std::int64_t i = 0; i < t.size(); ++i) {
    p[i] = static_cast<std::int32_t>(noise(static_cast<std::uint32_t>(i), seed) % 2001) - 1000;
  }
  return t;
}

struct Problem {
  std::string op;
  int version = 10;
  std::string domain;
  Attributes attributes;
  std::vector<Tensor> inputs;  // undefined: left out
  std::vector<bool> constant;
  std::size_t outputs = 1;
  int runs = 1;  // of which the last one counts
};

// tolerance: of each value's magnitude, and `absolute` besides.
void expect_equal(const Problem& p, float tolerance = 0, float absolute = 0) {
  SCOPED_TRACE(p.op + " " + to_string(p.inputs[0].shape()) + " " + p.inputs[0].type_string());
  ops::SingleOp single(p.op, p.version, p.domain);
  Graph graph;
  Node node;
  node.op_type = p.op;
  node.version = p.version;
  node.domain = p.domain;
  node.attributes = p.attributes;
  std::vector<Value> values(p.inputs.begin(), p.inputs.end());
  std::vector<const Value*> inputs;
  std::vector<const Type*> input_types;
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    const Tensor& t = p.inputs[i];
    if (!t.defined()) {
      node.inputs.push_back(kNoValue);
    } else if (p.constant[i]) {
      node.inputs.push_back(graph.add_constant("", t));
    } else {
      node.inputs.push_back(graph.add_input("", Type::tensor(t.dtype(), to_sym(t.shape()))));
    }
    inputs.push_back(t.defined() ? &values[i] : nullptr);
  }
  Services services;
  std::vector<Value> expected(p.outputs), received;
  std::vector<Value*> expected_ptr, received_ptr;
  for (Value& v : expected) expected_ptr.push_back(&v);
  Node plain = node;
  plain.outputs.assign(p.outputs, 0);
  ops::OpContext reference(plain, inputs, expected_ptr, services);
  ops::find(plain)->run(reference);
  for (const Value& v : expected) {
    const Tensor& t = v.tensor();
    node.outputs.push_back(graph.add_value("", Type::tensor(t.dtype(), to_sym(t.shape()))));
    received.emplace_back(Tensor(t.dtype(), t.shape()));
    std::memset(received.back().tensor().mutable_data(), 0xFF, t.bytes());  // NaN in floats: all has to be written
  }
  for (Value& v : received) received_ptr.push_back(&v);
  const NodeId id = graph.add_node(node);
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    input_types.push_back(p.inputs[i].defined() ? &graph.value(graph.node(id).inputs[i]).type : nullptr);
  }
  std::vector<const Type*> output_types;
  for (const ValueId v : graph.node(id).outputs) output_types.push_back(&graph.value(v).type);

  const auto entries = kernel_table().find(p.domain, p.op);
  ASSERT_FALSE(entries.empty());
  LowerContext lower(graph, id);
  std::unique_ptr<Kernel> kernel;
  for (std::size_t i = 0; i < entries.size() && kernel == nullptr; ++i) kernel = entries[i]->make(lower);
  ASSERT_NE(kernel, nullptr) << lower.reason();
  ResolveContext resolve{input_types, output_types};
  const std::unique_ptr<KernelState> state = kernel->resolve(resolve);
  const std::shared_ptr<void> workspace = allocate(resolve.workspace_bytes + 64);
  // Packed constants must not be needed any more.
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!kernel->uses_input(i)) inputs[i] = nullptr;
  }
  for (int run = 0; run < p.runs; ++run)
    kernel->run(KernelContext{inputs, received_ptr, state.get(), workspace.get(), &services});
  for (std::size_t o = 0; o < p.outputs; ++o) {
    const Tensor &want = expected[o].tensor(), &got = received[o].tensor();
    if (want.dtype() == DataType::float32) {
      for (std::int64_t i = 0; i < want.size(); ++i) {
        const float a = static_cast<const float*>(want.data())[i], b = static_cast<const float*>(got.data())[i];
        ASSERT_LE(std::abs(a - b), tolerance * std::abs(a) + absolute)
            << "output " << o << " at " << i << ": " << a << " and " << b;
      }
    } else {
      for (std::size_t i = 0; i < want.bytes(); ++i) {
        ASSERT_EQ(static_cast<const std::uint8_t*>(want.data())[i], static_cast<const std::uint8_t*>(got.data())[i]) << i;
      }
    }
  }
}

constexpr DataType kBytes[] = {DataType::int8, DataType::uint8};

Tensor scalar(float v) { return Tensor::scalar(v); }

TEST(CpuQuantised, ToAndFromEightBits) {
  for (const DataType type : kBytes) {
    for (const Shape& shape : {Shape{3, 5, 7}, Shape{2, 3, 1, 1}, Shape{1, 3, 131}}) {
      for (const bool axis : {false, true}) {
        Attributes attrs;
        attrs.set("axis", std::int64_t{1});
        const Shape scales = axis ? Shape{shape[1]} : Shape{};
        const Tensor scale = floats(scales, 3, 0.004F, 0.03F), zero = bytes(type, scales, 4);
        expect_equal({"QuantizeLinear", 13, "", attrs, {floats(shape, 1, -3, 3), scale, zero}, {false, true, true}});
        expect_equal({"DequantizeLinear", 13, "", attrs, {bytes(type, shape, 2), scale, zero}, {false, true, true}});
      }
    }
    // The last axis: a scale for each element of a run.
    Attributes last;
    last.set("axis", std::int64_t{-1});
    expect_equal({"QuantizeLinear",
                  13,
                  "",
                  last,
                  {floats({5, 7}, 1, -3, 3), floats({7}, 3, 0.004F, 0.03F), bytes(type, {7}, 4)},
                  {false, false, false}});
    expect_equal({"DequantizeLinear",
                  13,
                  "",
                  last,
                  {bytes(type, {5, 7}, 1), floats({7}, 3, 0.004F, 0.03F), bytes(type, {7}, 4)},
                  {false, false, false}});
  }
  // Quotients that lie in the middle go to the even neighbour.
  expect_equal(
      {"QuantizeLinear", 13, "", {}, {Tensor::of<float>({5}, {0.5F, 1.5F, 2.5F, -0.5F, 1e30F}), scalar(1.0F)}, {false, true}});
  expect_equal({"DynamicQuantizeLinear", 11, "", {}, {floats({3, 11}, 5, -1, 4)}, {false}, 3});
}

TEST(CpuQuantised, Convolutions) {
  struct Case {
    Shape x, w;
    std::int64_t group, stride, pad;
  };
  const Case cases[] = {{{2, 3, 7, 9}, {5, 3, 3, 3}, 1, 1, 1},
                        {{1, 6, 9, 5}, {6, 1, 3, 3}, 6, 2, 1},
                        {{1, 17, 5, 5}, {13, 17, 1, 1}, 1, 1, 0},
                        {{1, 4, 6, 11}, {6, 2, 2, 5}, 2, 1, 2},
                        {{2, 3, 19}, {7, 3, 4}, 1, 3, 0}};
  for (const Case& k : cases) {
    for (const DataType x_type : kBytes) {
      for (const DataType w_type : kBytes) {
        Attributes attrs;
        attrs.set("group", k.group);
        const std::size_t spatial = k.x.size() - 2;
        attrs.set("strides", std::vector<std::int64_t>(spatial, k.stride));
        attrs.set("pads", std::vector<std::int64_t>(2 * spatial, k.pad));
        const Tensor x = bytes(x_type, k.x, 1), w = bytes(w_type, k.w, 2), xz = bytes(x_type, {}, 3);
        const Tensor wz = bytes(w_type, {k.w[0]}, 4);
        expect_equal({"ConvInteger", 10, "", attrs, {x, w, xz, wz}, {false, true, false, true}});
        const Tensor ws = floats({k.w[0]}, 5, 0.001F, 0.01F);
        expect_equal({"QLinearConv",
                      10,
                      "",
                      attrs,
                      {x, scalar(0.02F), xz, w, ws, wz, scalar(0.35F), bytes(x_type, {}, 6), ints({k.w[0]}, 7)},
                      {false, true, true, true, true, true, true, true, true}});
        attrs.set("channels_last", std::int64_t{1});
        Shape last = k.x;
        std::rotate(last.begin() + 1, last.begin() + 2, last.end());
        expect_equal({"QLinearConv",
                      1,
                      "com.microsoft",
                      attrs,
                      {bytes(x_type, last, 1), scalar(0.02F), xz, w, ws, wz, scalar(0.35F), bytes(x_type, {}, 6), Tensor()},
                      {false, true, true, true, true, true, true, true, false}});
      }
    }
  }
}

TEST(CpuQuantised, BytesWithChannelsLast) {
  for (const DataType type : kBytes) {
    const Tensor x = bytes(type, {2, 7, 5, 19}, 1), zero = bytes(type, {}, 3), other = bytes(type, {}, 4);
    const std::vector<bool> unary{false, true, true, true, true};
    Attributes last;
    last.set("channels_last", std::int64_t{1});
    expect_equal({"QLinearGlobalAveragePool", 1, "com.microsoft", last, {x, scalar(0.02F), zero, scalar(0.01F), other}, unary});
    for (const float alpha : {0.0F, 0.1F, 1.0F}) {
      Attributes attrs;
      attrs.set("alpha", alpha);
      expect_equal({"QLinearLeakyRelu", 1, "com.microsoft", attrs, {x, scalar(0.02F), zero, scalar(0.03F), other}, unary});
    }
    expect_equal({"QLinearSigmoid", 1, "com.microsoft", {}, {x, scalar(0.02F), zero, scalar(0.004F), other}, unary});
    expect_equal({"QLinearAdd",
                  1,
                  "com.microsoft",
                  {},
                  {x, scalar(0.02F), zero, bytes(type, {2, 7, 5, 19}, 5), scalar(0.03F), other, scalar(0.05F), zero},
                  {false, true, true, false, true, true, true, true}});
    Attributes pool;
    pool.set("kernel_shape", std::vector<std::int64_t>{3, 2});
    pool.set("strides", std::vector<std::int64_t>{2, 1});
    pool.set("pads", std::vector<std::int64_t>{1, 1, 1, 0});
    const auto expect_pools = [&] {
      expect_equal({"NhwcMaxPool", 1, "com.microsoft", pool, {x}, {false}});
      Attributes average = pool;
      average.set("channels_last", std::int64_t{1});
      for (const std::int64_t count_padding : {0, 1}) {
        average.set("count_include_pad", count_padding);
        expect_equal({"QLinearAveragePool", 1, "com.microsoft", average, {x, scalar(0.02F), zero, scalar(0.03F), other}, unary});
      }
    };
    expect_pools();
    pool.set("kernel_shape", std::vector<std::int64_t>{10, 3});  // beyond the padded image's end
    pool.set("ceil_mode", std::int64_t{1});
    expect_pools();
  }
}

TEST(CpuQuantised, TablesAndConcatenation) {
  for (const DataType type : kBytes) {
    const Tensor x = bytes(type, {2, 7, 5, 19}, 1), zero = bytes(type, {}, 3), other = bytes(type, {}, 4);
    for (const DataType to : kBytes) expect_equal({"ByteTable", 1, "sdx", {}, {x, bytes(to, {256}, 7)}, {false, true}});
    for (const std::int64_t axis : {0, 1, 3}) {  // whole tensors, blocks, and a few bytes at a time
      Attributes attrs;
      attrs.set("axis", axis);
      Shape part = x.shape();
      part[static_cast<std::size_t>(axis)] = 3;
      const Tensor y = bytes(type, part, 5);
      // The first part is quantised as the result is, the second is not.
      expect_equal({"QLinearConcat",
                    1,
                    "com.microsoft",
                    attrs,
                    {scalar(0.05F), zero, x, scalar(0.05F), zero, y, scalar(0.03F), other},
                    {true, true, false, true, true, false, true, true}});
    }
  }
}

TEST(CpuQuantised, Gemm) {
  for (const DataType type : kBytes) {
    for (const bool trans : {false, true}) {
      for (const bool quantised : {false, true}) {
        Attributes attrs;
        attrs.set("transB", std::int64_t{trans ? 1 : 0});
        attrs.set("alpha", 0.5F);
        const Tensor b = bytes(type, trans ? Shape{35, 21} : Shape{21, 35}, 2);
        expect_equal(
            {"QGemm",
             1,
             "com.microsoft",
             attrs,
             {bytes(type, {3, 21}, 1), scalar(0.02F), bytes(type, {}, 3), b, floats({35}, 5, 0.001F, 0.01F), bytes(type, {35}, 4),
              ints({35}, 7), quantised ? scalar(0.3F) : Tensor(), quantised ? bytes(type, {}, 6) : Tensor()},
             {false, true, true, true, true, true, true, quantised, quantised}});
      }
    }
  }
}

TEST(CpuQuantised, MatrixProducts) {
  struct Case {
    Shape a;
    std::int64_t k, n;
  };
  for (const Case& s : {Case{{1, 5}, 5, 3}, Case{{2, 3, 17}, 17, 33}, Case{{13, 64}, 64, 70}, Case{{9}, 9, 11}}) {
    for (const DataType a_type : kBytes) {
      for (const DataType b_type : kBytes) {
        const Tensor a = bytes(a_type, s.a, 1), b = bytes(b_type, {s.k, s.n}, 2), az = bytes(a_type, {}, 3);
        const Tensor bz = bytes(b_type, {s.n}, 4), bs = floats({s.n}, 5, 0.001F, 0.01F), bias = floats({s.n}, 8, -1, 1);
        expect_equal({"MatMulInteger", 10, "", {}, {a, b, az, bz}, {false, true, false, true}});
        expect_equal({"QLinearMatMul",
                      10,
                      "",
                      {},
                      {a, scalar(0.02F), az, b, bs, bz, scalar(0.3F), bytes(a_type, {}, 6)},
                      {false, true, true, true, true, true, true, true}});
        // In float the bias may be added in one rounding.
        expect_equal({"MatMulIntegerToFloat",
                      1,
                      "com.microsoft",
                      {},
                      {a, b, scalar(0.02F), bs, az, bz, Tensor()},
                      {false, true, false, true, false, true, false}});
        expect_equal({"MatMulIntegerToFloat",
                      1,
                      "com.microsoft",
                      {},
                      {a, b, scalar(0.02F), bs, az, bz, bias},
                      {false, true, false, true, false, true, true}},
                     1e-4F);
        expect_equal(
            {"DynamicQuantizeMatMul", 1, "com.microsoft", {}, {floats(s.a, 9, -2, 3), b, bs, bz}, {false, true, true, true}});
      }
    }
  }
}

TEST(CpuQuantised, Experts) {
  // Few rows for each expert, and so many that their results are computed in parts.
  for (const std::int64_t tokens : {1, 7, 90, 400}) {
    for (const bool apart : {false, true}) {
      constexpr std::int64_t experts = 6, k = 64, f = 96;
      Attributes attrs;
      for (const auto& [name, value] :
           {std::pair<const char*, std::int64_t>("experts", experts), {"top_k", 3}, {"K", k}, {"F", f}})
        attrs.set(name, value);
      for (const char* name : {"gate_type", "up_type", "down_type"}) attrs.set(name, std::string(name[0] == 'd' ? "f32" : "f16"));
      attrs.set("activation_alpha", 1.5F);
      attrs.set("activation_beta", 0.5F);
      attrs.set("swiglu_limit", 1.0F);
      attrs.set("sigmoid", std::int64_t{apart ? 1 : 0});
      Problem p{"GgmlExperts",
                1,
                "sdx",
                attrs,
                {floats({tokens, k}, 1, -1, 1), floats({tokens, experts}, 2, -2, 2), floats({experts, f}, 3, -1, 1),
                 floats({experts, f}, 4, -1, 1), floats({experts, k}, 5, -1, 1), floats({experts}, 6, 0, 1)},
                {false, false, true, true, true, true}};
      for (std::uint32_t which = 0; which < 3; ++which) {
        const std::int64_t rows = which == 2 ? k : f, columns = which == 2 ? f : k;
        for (std::uint32_t e = 0; e < (apart ? experts : 1); ++e) {
          const std::int64_t n = apart ? rows : experts * rows;
          const Tensor values = floats({n, columns}, 10 + which * 16 + e, -0.2F, 0.2F);
          Tensor stored(DataType::uint8, {n, columns * (which == 2 ? 4 : 2)});
          for (std::int64_t i = 0; i < values.size(); ++i) {
            const Float16 half(values.values<float>()[static_cast<std::size_t>(i)]);
            if (which < 2) std::memcpy(static_cast<char*>(stored.mutable_data()) + 2 * i, &half.bits, 2);
          }
          if (which == 2) std::memcpy(stored.mutable_data(), values.data(), values.bytes());
          p.inputs.push_back(stored);
          p.constant.push_back(true);
        }
      }
      expect_equal(p, 1e-4F, 1e-5F);
    }
  }
}

TEST(CpuQuantised, WeightsInBlocks) {
  for (const std::int64_t bits : {4, 8}) {
    for (const std::int64_t rows : {1, 13}) {
      constexpr std::int64_t k = 70, n = 37, block = 32, blocks = 3;
      Attributes attrs;
      attrs.set("K", k);
      attrs.set("N", n);
      attrs.set("bits", bits);
      attrs.set("block_size", block);
      const Tensor a = floats({rows, k}, 1, 0.1F, 1), b = bytes(DataType::uint8, {n, blocks, block * bits / 8}, 2);
      const Tensor scales = floats({n, blocks}, 3, 0.01F, 0.02F), zero = Tensor(DataType::uint8, {n, (blocks * bits + 7) / 8});
      std::memset(const_cast<void*>(zero.data()), 0, zero.bytes());  // all terms positive: sums differ by rounding alone
      expect_equal({"MatMulNBits",
                    1,
                    "com.microsoft",
                    attrs,
                    {a, b, scales, zero, Tensor(), floats({n}, 5, 0, 1)},
                    {false, true, true, true, true, true}},
                   1e-5F);
      if (bits == 4) {  // without zero points; the first run packs, a second one finds that done
        Tensor upper = b.clone();
        for (std::size_t i = 0; i < upper.bytes(); ++i) static_cast<std::uint8_t*>(upper.mutable_data())[i] |= 0x88;
        for (const int runs : {1, 2})
          expect_equal({"MatMulNBits", 1, "com.microsoft", attrs, {a, upper, scales}, {false, true, true}, 1, runs}, 1e-5F);
      }
      Tensor groups(DataType::int32, {k});  // every third row is in the same block: 24, 23 and 23 of 32 places
      for (std::int64_t i = 0; i < k; ++i)
        static_cast<std::int32_t*>(groups.mutable_data())[i] = static_cast<std::int32_t>(i % blocks);
      expect_equal({"MatMulNBits",
                    1,
                    "com.microsoft",
                    attrs,
                    {a, b, scales, zero, groups, floats({n}, 5, 0, 1)},
                    {false, true, true, true, true, true}},
                   1e-5F);
    }
  }
}

// Three sequences of at most four steps: of different lengths, none of which is the longest possible; all equal; none with any
// step.
std::vector<Tensor> some_lengths() {
  std::vector<Tensor> out;
  for (const auto& lengths : {std::array{2, 0, 3}, std::array{3, 3, 3}, std::array{4, 1, 4}, std::array{0, 0, 0}}) {
    Tensor t(DataType::int32, {3});
    std::copy(lengths.begin(), lengths.end(), static_cast<std::int32_t*>(t.mutable_data()));
    out.push_back(std::move(t));
  }
  return out;
}

// With one thread, and with as many as compute two directions at the same time, or as would share them.
template <class F>
void with_threads(F&& check) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    check();
  }
}

TEST(CpuRecurrent, Lstm) {
  with_threads([] {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      const std::int64_t d = direction[0] == 'b' ? 2 : 1, hidden = 7, input = 5, seq = 4, batch = 3;
      Attributes attrs;
      attrs.set("hidden_size", hidden);
      attrs.set("direction", std::string(direction));
      const Tensor x = floats({seq, batch, input}, 1, 0.1F, 1), w = floats({d, 4 * hidden, input}, 2, 0, 0.3F);
      const Tensor r = floats({d, 4 * hidden, hidden}, 3, 0, 0.3F), b = floats({d, 8 * hidden}, 4, 0, 0.2F);
      const Tensor h = floats({d, batch, hidden}, 5, 0, 1), c = floats({d, batch, hidden}, 6, 0, 1);
      const Tensor p = floats({d, 3 * hidden}, 7, 0, 0.2F);
      expect_equal(
          {"LSTM", 14, "", attrs, {x, w, r, b, Tensor(), h, c, p}, {false, true, true, true, true, false, false, true}, 3},
          2e-5F);
      expect_equal({"LSTM", 14, "", attrs, {x, w, r}, {false, true, true}, 3}, 2e-5F);
      for (const Tensor& lengths : some_lengths()) {
        expect_equal(
            {"LSTM", 14, "", attrs, {x, w, r, b, lengths, h, c, p}, {false, true, true, true, false, false, false, true}, 3},
            2e-5F);
      }
    }
  });
}

TEST(CpuRecurrent, Gru) {
  with_threads([] {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (const std::int64_t linear_before_reset : {0, 1}) {
        const std::int64_t d = direction[0] == 'b' ? 2 : 1, hidden = 9, input = 5, seq = 4, batch = 3;
        Attributes attrs;
        attrs.set("hidden_size", hidden);
        attrs.set("direction", std::string(direction));
        attrs.set("linear_before_reset", linear_before_reset);
        const Tensor x = floats({seq, batch, input}, 1, 0.1F, 1), w = floats({d, 3 * hidden, input}, 2, 0, 0.3F);
        const Tensor r = floats({d, 3 * hidden, hidden}, 3, 0, 0.3F), b = floats({d, 6 * hidden}, 4, 0, 0.2F);
        const Tensor h = floats({d, batch, hidden}, 5, 0, 1);
        expect_equal({"GRU", 14, "", attrs, {x, w, r, b, Tensor(), h}, {false, true, true, true, true, false}, 2}, 2e-5F);
        expect_equal({"GRU", 14, "", attrs, {x, w, r}, {false, true, true}, 2}, 2e-5F);
        for (const Tensor& lengths : some_lengths()) {
          expect_equal({"GRU", 14, "", attrs, {x, w, r, b, lengths, h}, {false, true, true, true, false, false}, 2}, 2e-5F);
        }
      }
    }
  });
}

TEST(CpuRecurrent, Rnn) {
  with_threads([] {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (const char* activation : {"Tanh", "Relu"}) {
        const std::int64_t d = direction[0] == 'b' ? 2 : 1, hidden = 9, input = 5, seq = 4, batch = 3;
        Attributes attrs;
        attrs.set("hidden_size", hidden);
        attrs.set("direction", std::string(direction));
        attrs.set("activations", std::vector<std::string>(static_cast<std::size_t>(d), activation));
        const Tensor x = floats({seq, batch, input}, 1, 0.1F, 1), w = floats({d, hidden, input}, 2, 0, 0.3F);
        const Tensor r = floats({d, hidden, hidden}, 3, 0, 0.3F), b = floats({d, 2 * hidden}, 4, 0, 0.2F);
        const Tensor h = floats({d, batch, hidden}, 5, 0, 1);
        expect_equal({"RNN", 14, "", attrs, {x, w, r, b, Tensor(), h}, {false, true, true, true, true, false}, 2}, 2e-5F);
        expect_equal({"RNN", 14, "", attrs, {x, w, r}, {false, true, true}, 2}, 2e-5F);
        for (const Tensor& lengths : some_lengths()) {
          expect_equal({"RNN", 14, "", attrs, {x, w, r, b, lengths, h}, {false, true, true, true, true, false}, 2}, 2e-5F);
        }
      }
    }
  });
}

// The reference keeps the hidden state in float, the kernel 15 bits of it.
TEST(CpuRecurrent, DynamicQuantizeLstm) {
  with_threads([] {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (const DataType type : kBytes) {
        for (const bool per_column : {false, true}) {
          const std::int64_t d = direction[0] == 'b' ? 2 : 1, hidden = 37, input = 5, seq = 4;
          const Shape scales = per_column ? Shape{d, 4 * hidden} : Shape{d};
          Attributes attrs;
          attrs.set("hidden_size", hidden);
          attrs.set("direction", std::string(direction));
          const Tensor w = bytes(type, {d, input, 4 * hidden}, 2), r = bytes(type, {d, hidden, 4 * hidden}, 3);
          const Tensor b = floats({d, 8 * hidden}, 4, 0, 0.2F), p = floats({d, 3 * hidden}, 7, 0, 0.2F);
          const Tensor ws = floats(scales, 8, 0.001F, 0.002F), wz = bytes(type, scales, 9);
          const Tensor rs = floats(scales, 10, 0.0001F, 0.0002F), rz = bytes(type, scales, 11);
          for (const std::int64_t batch : {1, 3}) {
            const Tensor x = floats({seq, batch, input}, 1, -1, 1), h = floats({d, batch, hidden}, 5, -2, 2);
            const Tensor c = floats({d, batch, hidden}, 6, 0.5F, 1);
            const std::vector<bool> constant{false, true, true, true, false, false, false, true, true, true, true, true};
            const auto problem = [&](const Tensor& lengths) {
              return Problem{
                  "DynamicQuantizeLSTM", 1, "com.microsoft", attrs, {x, w, r, b, lengths, h, c, p, ws, wz, rs, rz}, constant, 3};
            };
            expect_equal(problem(Tensor()), 1e-5F, 2e-6F);
            if (batch != 3) continue;
            for (const Tensor& lengths : some_lengths()) expect_equal(problem(lengths), 1e-5F, 2e-6F);
          }
        }
      }
    }
  });
}

TEST(CpuRecurrent, LengthsBeyondTheSequencesAreRefused) {
  for (const std::int32_t wrong : {-1, 5}) {
    std::string message;
    std::int64_t memory[6];
    const std::int32_t lengths[] = {4, wrong, 0};
    try {
      const Sequences q(4, 3, lengths, memory);
    } catch (const Error& e) {
      message = e.what();
    }
    EXPECT_NE(message.find("permitted: 0 to 4"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace sdx::cpu
