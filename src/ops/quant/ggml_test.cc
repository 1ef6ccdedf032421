#include "ops/quant/ggml.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "support/ggml_blocks.h"
#include "support/single_op.h"

namespace sdx::ops {
namespace {

struct Rows {
  Tensor bytes;
  std::vector<double> values;
};

Rows rows_of(const GgmlFormat& f, std::int64_t rows, std::int64_t k) {
  test::GgmlBlocks blocks(3);
  Rows r{Tensor(DataType::uint8, {rows, f.row_bytes(k)}), {}};
  auto* to = static_cast<char*>(r.bytes.mutable_data());
  for (std::int64_t i = 0; i < rows * (k / f.block); ++i, to += f.bytes) {
    const test::GgmlBlock b = blocks.make(f);
    std::memcpy(to, b.bytes.data(), b.bytes.size());
    r.values.insert(r.values.end(), b.values.begin(), b.values.end());
  }
  return r;
}

TEST(GgmlOps, ProductsAndRowsOfATable) {
  for (const GgmlType type : test::kGgmlTypes) {
    const GgmlFormat& f = *find_ggml(static_cast<std::uint32_t>(type));
    const std::int64_t k = f.block == 1 ? 5 : f.block;
    const Rows w = rows_of(f, 3, k);
    Tensor a(DataType::float32, {2, 1, k});
    for (std::int64_t i = 0; i < 2 * k; ++i)
      a.mutable_values<float>()[static_cast<std::size_t>(i)] = static_cast<float>(i % 7) - 3.0F;
    const Tensor bias = Tensor::of<float>({3}, {1, 2, 3});
    const auto op = [&](const char* name) { return SingleOp(name, 1, "sdx").with("type", std::string(f.name)).with("K", k); };
    const Tensor y = op("GgmlMatMul").checked({a, w.bytes, bias})[0];
    ASSERT_EQ(y.shape(), (Shape{2, 1, 3}));
    for (std::int64_t i = 0; i < 2; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) {
        double sum = static_cast<double>(j + 1);
        for (std::int64_t t = 0; t < k; ++t) {
          sum += static_cast<double>(a.values<float>()[static_cast<std::size_t>(i * k + t)]) *
                 w.values[static_cast<std::size_t>(j * k + t)];
        }
        EXPECT_NEAR(static_cast<double>(y.values<float>()[static_cast<std::size_t>(i * 3 + j)]), sum, 1e-4 * (std::abs(sum) + 10))
            << f.name;
      }
    }
    const Tensor g = op("GgmlGather").checked({w.bytes, Tensor::of<std::int64_t>({1, 2}, {2, -3})})[0];
    ASSERT_EQ(g.shape(), (Shape{1, 2, k}));
    for (std::int64_t t = 0; t < 2 * k; ++t) {
      const double expected = w.values[static_cast<std::size_t>(t < k ? 2 * k + t : t - k)];
      EXPECT_NEAR(static_cast<double>(g.values<float>()[static_cast<std::size_t>(t)]), expected, 1e-4) << f.name;
    }
  }
}

TEST(GgmlOps, GroupsHaveRowsOfTheirOwn) {
  const GgmlFormat& f = *find_ggml("q8_0");
  const Rows w = rows_of(f, 6, 32);
  Tensor a(DataType::float32, {2, 96});
  for (std::int64_t i = 0; i < a.size(); ++i)
    a.mutable_values<float>()[static_cast<std::size_t>(i)] = static_cast<float>(i % 11) - 5.0F;
  const auto op = [&](std::int64_t groups) {
    return SingleOp("GgmlMatMul", 1, "sdx").with("type", std::string(f.name)).with("K", std::int64_t{32}).with("groups", groups);
  };
  const Tensor y = op(3).checked({a, w.bytes})[0];
  ASSERT_EQ(y.shape(), (Shape{2, 6}));
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 6; ++j) {
      double sum = 0.0;
      for (std::size_t t = 0; t < 32; ++t)
        sum += static_cast<double>(a.values<float>()[i * 96 + j / 2 * 32 + t]) * w.values[j * 32 + t];
      EXPECT_NEAR(static_cast<double>(y.values<float>()[i * 6 + j]), sum, 1e-4 * (std::abs(sum) + 10));
    }
  }
  for (const std::int64_t groups : {0, 1, 4}) EXPECT_THROW(op(groups).run({a, w.bytes}), Error);
}

struct Mixture {
  std::int64_t experts = 5, top = 2, k = 32, f = 64;
  bool normalize = true;
  float scale = 1.0F, alpha = 1.0F, beta = 0.0F, limit = 0.0F;  // 0: none
  bool sigmoid = false, chooses = false;                        // chooses: with a bias
  std::int64_t groups = 1, groups_used = 1;

  SingleOp op(const char* type) const {
    SingleOp o("GgmlExperts", 1, "sdx");
    o.with("experts", experts).with("top_k", top).with("K", k).with("F", f);
    for (const char* part : {"gate_type", "up_type", "down_type"}) o.with(part, std::string(type));
    o.with("normalize_routing_weights", std::int64_t{normalize ? 1 : 0}).with("routing_scale", scale);
    o.with("activation_alpha", alpha).with("activation_beta", beta);
    o.with("sigmoid", std::int64_t{sigmoid ? 1 : 0}).with("groups", groups).with("groups_used", groups_used);
    return limit > 0.0F ? o.with("swiglu_limit", limit) : o;
  }
};

float choice_bias(std::size_t expert) { return 0.4F * static_cast<float>(expert * 5 % 7) / 7.0F; }

// Weights of experts before they are divided by their sum, and experts in the order of the choice.
std::pair<std::vector<double>, std::vector<std::size_t>> chosen(const Mixture& m, std::span<const float> row) {
  std::vector<double> p, wanted;
  double all = 0.0;
  for (const float s : row)
    p.push_back(m.sigmoid ? 1.0 / (1.0 + std::exp(-static_cast<double>(s))) : std::exp(static_cast<double>(s)));
  for (const double v : p) all += v;
  for (std::size_t i = 0; i < p.size(); ++i)
    wanted.push_back((m.sigmoid ? p[i] : p[i] / all) + (m.chooses ? static_cast<double>(choice_bias(i)) : 0.0));
  const std::size_t size = p.size() / static_cast<std::size_t>(m.groups);
  std::vector<std::pair<double, std::size_t>> groups;  // the best ones first
  for (std::size_t g = 0; g < static_cast<std::size_t>(m.groups); ++g) {
    std::vector<double> of(wanted.begin() + static_cast<std::ptrdiff_t>(g * size),
                           wanted.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
    std::sort(of.rbegin(), of.rend());
    groups.emplace_back(-(m.sigmoid && size > 1 ? of[0] + of[1] : of[0]), g);
  }
  std::sort(groups.begin(), groups.end());
  for (std::size_t g = static_cast<std::size_t>(m.groups_used); g < groups.size(); ++g) {
    for (std::size_t i = 0; i < size; ++i) wanted[groups[g].second * size + i] = -1e9;
  }
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return wanted[a] > wanted[b]; });
  return {p, order};
}

// One expert after the other, in double; biases: float32[experts,rows] or undefined.
std::vector<double> answer(const Mixture& m, const Tensor& x, const Tensor& scores, const Rows* weights, const Tensor* biases) {
  const auto k = static_cast<std::size_t>(m.k), f = static_cast<std::size_t>(m.f), n = static_cast<std::size_t>(m.experts);
  std::vector<double> y(x.values<float>().size(), 0.0);
  for (std::size_t t = 0; t < y.size() / k; ++t) {
    const auto [p, order] = chosen(m, scores.values<float>().subspan(t * n, n));
    double sum = 0.0;
    for (std::size_t i = 0; i < (m.normalize ? static_cast<std::size_t>(m.top) : n); ++i) sum += p[order[i]];
    if (m.sigmoid && !m.normalize) sum = 1.0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(m.top); ++i) {
      const std::size_t e = order[i];
      const auto product = [&](int which, std::size_t j, std::size_t length, const auto& in) {
        const std::size_t rows = which == 2 ? k : f;
        double s = biases[which].defined() ? static_cast<double>(biases[which].values<float>()[e * rows + j]) : 0.0;
        for (std::size_t c = 0; c < length; ++c) s += in(c)*weights[which].values[(e * rows + j) * length + c];
        return s;
      };
      const auto at = [&](std::size_t c) { return static_cast<double>(x.values<float>()[t * k + c]); };
      std::vector<double> inner(f);
      for (std::size_t j = 0; j < f; ++j) {
        double gate = product(0, j, k, at), up = product(1, j, k, at);
        if (m.limit > 0.0F) {
          const auto limit = static_cast<double>(m.limit);
          gate = std::min(gate, limit), up = std::clamp(up, -limit, limit);
        }
        inner[j] = gate / (1.0 + std::exp(-static_cast<double>(m.alpha) * gate)) * (up + static_cast<double>(m.beta));
      }
      const double share = p[e] / sum * static_cast<double>(m.scale);
      for (std::size_t j = 0; j < k; ++j) y[t * k + j] += share * product(2, j, f, [&](std::size_t c) { return inner[c]; });
    }
  }
  return y;
}

Tensor steps(const Shape& shape, float size) {
  Tensor t(DataType::float32, shape);
  for (std::int64_t i = 0; i < t.size(); ++i)
    t.mutable_values<float>()[static_cast<std::size_t>(i)] = size * static_cast<float>(i * 37 % 23 - 11);
  return t;
}

void expect_mixture(const Mixture& m, const char* type, bool biased, bool apart) {
  const GgmlFormat& format = *find_ggml(type);
  const std::int64_t n = m.experts;
  const Rows weights[] = {rows_of(format, n * m.f, m.k), rows_of(format, n * m.f, m.k), rows_of(format, n * m.k, m.f)};
  const Tensor x = steps({2, 3, m.k}, 0.01F);
  Tensor scores = steps({2, 3, n}, 0.3F);
  scores.mutable_values<float>()[1] = scores.values<float>()[0];  // a tie
  const Tensor biases[] = {biased ? steps({n, m.f}, 0.1F) : Tensor(), biased ? steps({n, m.f}, 0.2F) : Tensor(),
                           biased ? steps({n, m.k}, 0.05F) : Tensor()};
  Tensor choice;
  if (m.chooses) choice = Tensor(DataType::float32, {n});
  for (std::size_t e = 0; m.chooses && e < static_cast<std::size_t>(n); ++e) choice.mutable_values<float>()[e] = choice_bias(e);
  std::vector<Tensor> inputs{x, scores, biases[0], biases[1], biases[2], choice};
  for (const Rows& w : weights) {
    const std::int64_t rows = w.bytes.dim(0) / n, bytes = w.bytes.dim(1);
    for (std::int64_t e = 0; e < (apart ? n : 1); ++e) {
      Tensor part(DataType::uint8, {apart ? rows : rows * n, bytes});
      std::memcpy(part.mutable_data(), static_cast<const char*>(w.bytes.data()) + e * rows * bytes, part.bytes());
      inputs.push_back(part);
    }
  }
  const Tensor y = m.op(type).checked(inputs)[0];
  ASSERT_EQ(y.shape(), x.shape());
  const std::vector<double> expected = answer(m, x, scores, weights, biases);
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(static_cast<double>(y.values<float>()[i]), expected[i], 1e-4 * (std::abs(expected[i]) + 1.0)) << i;
}

TEST(GgmlOps, ExpertsOfEachToken) {
  expect_mixture({}, "q8_0", false, false);
  expect_mixture({}, "q8_0", true, true);
  expect_mixture({.top = 5, .normalize = false, .scale = 2.5F}, "mxfp4", false, true);
  expect_mixture({.experts = 7, .top = 3, .normalize = false, .alpha = 1.702F, .beta = 1.0F, .limit = 0.5F}, "iq4_nl", true,
                 false);
}

TEST(GgmlOps, ExpertsByProbabilitiesOfTheirOwn) {
  expect_mixture({.sigmoid = true}, "q8_0", false, false);
  expect_mixture({.top = 3, .normalize = false, .scale = 2.5F, .sigmoid = true, .chooses = true}, "q8_0", false, true);
  expect_mixture({.top = 2, .chooses = true}, "q8_0", false, false);
  expect_mixture({.experts = 12, .top = 4, .scale = 1.5F, .sigmoid = true, .chooses = true, .groups = 4, .groups_used = 2},
                 "q8_0", false, false);
  expect_mixture({.experts = 12, .top = 3, .normalize = false, .groups = 3, .groups_used = 1}, "q8_0", false, false);
  expect_mixture({.experts = 6, .top = 3, .sigmoid = true, .groups = 6, .groups_used = 4}, "q8_0", false, false);
}

TEST(GgmlOps, ExpertsThatDoNotFit) {
  const Mixture m;
  const Rows wide = rows_of(*find_ggml("q8_0"), m.experts * m.f, m.k), narrow = rows_of(*find_ggml("q8_0"), m.experts * m.k, m.f);
  const Tensor x = steps({1, m.k}, 1.0F), scores = steps({1, m.experts}, 1.0F), none;
  EXPECT_NO_THROW(m.op("q8_0").run({x, scores, none, none, none, none, wide.bytes, wide.bytes, narrow.bytes}));
  const auto wrong = [&](const std::vector<Tensor>& inputs) { EXPECT_THROW(m.op("q8_0").run(inputs), Error); };
  wrong({x, scores, none, none, none, none, wide.bytes, narrow.bytes, wide.bytes});
  wrong({x, scores, none, none, none, none, wide.bytes, wide.bytes});
  wrong({x, steps({1, 4}, 1.0F), none, none, none, none, wide.bytes, wide.bytes, narrow.bytes});
  wrong({x, scores, steps({m.experts, 3}, 1.0F), none, none, none, wide.bytes, wide.bytes, narrow.bytes});
  wrong({x, scores, none, none, none, steps({m.experts + 1}, 1.0F), wide.bytes, wide.bytes, narrow.bytes});
  for (const Mixture& groups : {Mixture{.groups = 2}, Mixture{.groups = 5, .groups_used = 6}, Mixture{.top = 3, .groups = 5}})
    EXPECT_THROW(groups.op("q8_0").run({x, scores, none, none, none, none, wide.bytes, wide.bytes, narrow.bytes}), Error);
  const Mixture many{.top = 6};
  EXPECT_THROW(many.op("q8_0").run({x, scores, none, none, none, none, wide.bytes, wide.bytes, narrow.bytes}), Error);
}

TEST(GgmlOps, RefusesWhatDoesNotFit) {
  const Rows w = rows_of(*find_ggml("q4_0"), 2, 32);
  const Tensor a(DataType::float32, {1, 32});
  EXPECT_THROW(SingleOp("GgmlMatMul", 1, "sdx").with("type", std::string("iq9")).with("K", std::int64_t{32}).run({a, w.bytes}),
               Error);
  EXPECT_THROW(SingleOp("GgmlMatMul", 1, "sdx").with("type", std::string("q4_0")).with("K", std::int64_t{33}).run({a, w.bytes}),
               Error);
  EXPECT_THROW(SingleOp("GgmlMatMul", 1, "sdx").with("type", std::string("q4_0")).with("K", std::int64_t{64}).run({a, w.bytes}),
               Error);
  EXPECT_THROW(SingleOp("GgmlMatMul", 1, "sdx").with("type", std::string("q4_1")).with("K", std::int64_t{32}).run({a, w.bytes}),
               Error);
  EXPECT_THROW(SingleOp("GgmlGather", 1, "sdx")
                   .with("type", std::string("q4_0"))
                   .with("K", std::int64_t{32})
                   .run({w.bytes, Tensor::of<std::int64_t>({1}, {2})}),
               Error);
}

}  // namespace
}  // namespace sdx::ops
