#include "kernels/cpu/optimizer/update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;

constexpr UpdateKind kKinds[] = {
    UpdateKind::adam,    UpdateKind::sgd, UpdateKind::momentum, UpdateKind::rmsprop, UpdateKind::rmsprop_momentum,
    UpdateKind::adagrad, UpdateKind::lion};

UpdateRule rule_of(UpdateKind kind) {
  UpdateRule r;
  r.kind = kind;
  r.rate = 0.1F;
  r.beta1 = 0.9F;
  r.beta2 = 0.7F;
  r.epsilon = 1e-3F;
  r.l2 = 0.01F;
  r.before = 0.99F;
  r.after = 0.98F;
  r.root = 1.5F;
  r.fresh = 0.8F;
  r.scale = 0.5F;
  return r;
}

// update.h's formulas in double.
void plain(const UpdateRule& r, double& w, double g, double& m, double& v) {
  const double b1 = double{r.beta1}, b2 = double{r.beta2}, e = double{r.epsilon}, rate = double{r.rate};
  g = g * double{r.scale} + double{r.l2} * w;
  double change = 0;
  switch (r.kind) {
    case UpdateKind::adam:
      m = b1 * m + (1 - b1) * g;
      v = b2 * v + (1 - b2) * g * g;
      change = rate * m / (std::sqrt(v) * double{r.root} + e);
      break;
    case UpdateKind::sgd: change = rate * g; break;
    case UpdateKind::momentum:
      m = b1 * m + double{r.fresh} * g;
      change = rate * (r.nesterov ? g + b1 * m : m);
      break;
    case UpdateKind::rmsprop:
      m = b2 * m + (1 - b2) * g * g;
      change = rate * g / (std::sqrt(m) + e);
      break;
    case UpdateKind::rmsprop_momentum:
      m = b2 * m + (1 - b2) * g * g;
      v = b1 * v + g / (std::sqrt(m) + e);
      change = rate * v;
      break;
    case UpdateKind::adagrad:
      m += g * g;
      change = rate * g / (std::sqrt(m) + e);
      break;
    case UpdateKind::lion: {
      const double c = b1 * m + (1 - b1) * g;
      change = rate * ((c > 0) - (c < 0));
      m = b2 * m + (1 - b2) * g;
      break;
    }
  }
  w = (w * double{r.before} - change) * double{r.after};
}

struct Problem {
  Problem(std::int64_t n, unsigned seed)
      : w(n, 1, random_floats(n, seed)),
        g(n, 2, random_floats(n, seed + 1)),
        m(n, 3, random_floats(n, seed + 2, 0.1F, 1)),
        v(n, 0, random_floats(n, seed + 3, 0.1F, 1)) {}
  UpdateSlice slice() { return {w.data(), g.data(), m.data(), v.data(), w.size()}; }
  Guarded<float> w, g, m, v;
};

void expect_plain(const UpdateRule& rule) {
  for_each_isa([&] {
    std::vector<std::unique_ptr<Problem>> got, before;
    std::vector<UpdateSlice> slices;
    unsigned seed = 1;
    for (const std::int64_t n : {1, 0, 15, 16, 17, 4095, 9000}) {
      got.push_back(std::make_unique<Problem>(n, seed));
      before.push_back(std::make_unique<Problem>(n, seed++));
      slices.push_back(got.back()->slice());
    }
    update_f32(rule, slices);
    for (std::size_t p = 0; p < got.size(); ++p) {
      for (std::int64_t i = 0; i < got[p]->w.size(); ++i) {
        double w = double{before[p]->w[i]}, m = double{before[p]->m[i]}, v = double{before[p]->v[i]};
        plain(rule, w, double{before[p]->g[i]}, m, v);
        // Some roundings of numbers about 1, and a division by roots of 0.1 and more.
        ASSERT_NEAR(got[p]->w[i], w, 2e-6) << "parameter " << p << ", element " << i;
        ASSERT_NEAR(got[p]->m[i], m, 1e-6);
        ASSERT_NEAR(got[p]->v[i], v, 1e-5);
        ASSERT_EQ(got[p]->g[i], rule.clear ? 0 : before[p]->g[i]);
      }
    }
  });
}

TEST(Update, FollowsTheFormulas) {
  for (const UpdateKind kind : kKinds) {
    SCOPED_TRACE(static_cast<int>(kind));
    expect_plain(rule_of(kind));
  }
  UpdateRule nesterov = rule_of(UpdateKind::momentum);
  nesterov.nesterov = true;
  nesterov.clear = true;
  expect_plain(nesterov);
}

TEST(Update, NanStaysNan) {
  for_each_isa([] {
    for (const UpdateKind kind : kKinds) {
      float w = 1, g = NAN, m = 0.5F, v = 0.5F;
      const UpdateSlice s{&w, &g, &m, &v, 1};
      update_f32(rule_of(kind), {&s, 1});
      EXPECT_TRUE(std::isnan(w)) << static_cast<int>(kind);
    }
  });
}

TEST(Update, ZeroAndHugeGradientsAreNoSpecialCases) {
  for_each_isa([] {
    for (const UpdateKind kind : {UpdateKind::adam, UpdateKind::rmsprop, UpdateKind::rmsprop_momentum, UpdateKind::adagrad}) {
      for (const float g : {0.0F, 1e-30F, 1e15F, -1e25F}) {
        UpdateRule rule = rule_of(kind);
        rule.l2 = 0;
        float w = 1, gradient = g, m = 0, v = 0;
        const UpdateSlice s{&w, &gradient, &m, &v, 1};
        update_f32(rule, {&s, 1});
        EXPECT_TRUE(std::isfinite(w)) << static_cast<int>(kind) << ", gradient " << g;
        if (g == 0) {
          EXPECT_FLOAT_EQ(w, rule.before * rule.after);
        }
      }
    }
  });
}

TEST(Update, AddsUpGradients) {
  for_each_isa([] {
    for (const std::int64_t n : {0, 1, 33, 5000}) {
      const auto a = random_floats(n, 1), b = random_floats(n, 2);
      Guarded<float> to(n, 1, a), from(n, 2, b);
      accumulate_f32(from.data(), to.data(), n);
      for (std::int64_t i = 0; i < n; ++i) {
        ASSERT_EQ(to[i], a[static_cast<std::size_t>(i)] + b[static_cast<std::size_t>(i)]);
      }
    }
  });
}

TEST(Update, SumsSquares) {
  for_each_isa([] {
    const auto a = random_floats(10'000, 1), b = random_floats(7, 2);
    double want = 0;
    for (const auto* list : {&a, &b}) {
      for (const float x : *list) want += double{x} * double{x};
    }
    const FloatSpan spans[] = {{a.data(), 10'000}, {nullptr, 0}, {b.data(), 7}};
    EXPECT_NEAR(sum_of_squares_f32(spans), want, want * 1e-6);
  });
}

}  // namespace
}  // namespace sdx::cpu
