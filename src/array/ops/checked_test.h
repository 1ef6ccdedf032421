#pragma once
// Unit tests' checks of derivatives and batches, for any function of arrays.

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <sdx/array.hpp>

namespace sdx::array::checked {

using Arrays = std::vector<array>;
using Function = std::function<array(const Arrays&)>;

// Numbers in float64 that neither repeat nor lie on a line; between -1 and 1.
inline array numbers(const Shape& shape, double seed = 1) {
  Tensor t(Dtype::float64, shape);
  double i = seed;
  for (double& v : t.mutable_values<double>()) v = std::sin(1.7 * i + 0.3 * i * i), i += 1;
  return array(t);
}

inline Arrays numbers_of(const std::vector<Shape>& shapes) {
  Arrays out;
  for (std::size_t i = 0; i < shapes.size(); ++i) out.push_back(numbers(shapes[i], 1 + 7 * static_cast<double>(i)));
  return out;
}

inline array positions(Shape shape, std::initializer_list<std::int64_t> values) {
  return array(Tensor::of<std::int64_t>(std::move(shape), values));
}

inline std::vector<double> values(const array& a) {
  const array wide = astype(a, Dtype::float64);
  const auto data = wide.data<double>();
  return {data.begin(), data.end()};
}

inline void expect_close(const array& a, const array& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.shape(), b.shape()) << what;
  const auto x = values(a), y = values(b);
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(x[i], y[i], tolerance * (1 + std::fabs(y[i]))) << what << ", element " << i;
  }
}

// A number that depends on all of f's result, each element with another weight.
inline array weighed(const Function& f, const Arrays& args) {
  const array out = f(args);
  return sum(multiply(out, numbers(out.shape(), 3)));
}

// The gradients of all arguments, and once more of these, against differences.
inline void check_gradients(const std::string& name, const Function& f, const Arrays& args, bool second = true) {
  SCOPED_TRACE(name);
  std::vector<int> all;
  for (std::size_t i = 0; i < args.size(); ++i) all.push_back(static_cast<int>(i));
  const auto of = grad([&](const Arrays& a) { return Arrays{weighed(f, a)}; }, all);
  const Arrays gradients = of(args);
  constexpr double kStep = 1e-5;
  for (std::size_t i = 0; i < args.size(); ++i) {
    ASSERT_EQ(gradients[i].shape(), args[i].shape()) << name << ", argument " << i;
    const auto given = values(gradients[i]);
    for (std::size_t e = 0; e < given.size(); ++e) {
      double ends[2];
      for (const int side : {0, 1}) {
        Arrays moved = args;
        Tensor t = args[i].tensor().clone();
        t.mutable_values<double>()[e] += side == 0 ? -kStep : kStep;
        moved[i] = array(t);
        ends[side] = weighed(f, moved).item<double>();
      }
      const double expected = (ends[1] - ends[0]) / (2 * kStep);
      ASSERT_NEAR(given[e], expected, 1e-5 * (1 + std::fabs(expected))) << name << ", argument " << i << ", element " << e;
    }
  }
  if (!second) return;
  const Function once = [&](const Arrays& a) {
    const Arrays g = of(a);
    array all_of_them = reshape(g[0], {-1});
    for (std::size_t i = 1; i < g.size(); ++i) all_of_them = concatenate({all_of_them, reshape(g[i], {-1})});
    return all_of_them;
  };
  check_gradients(name + ", second derivative", once, args, false);
}

// vmap over the first axis of the batched arguments (and over their last) against one call for each element.
inline void check_batches(const std::string& name, const Function& f, const Arrays& args) {
  SCOPED_TRACE(name);
  constexpr int kBatch = 3;
  for (unsigned which = 1; which < (1U << args.size()); ++which) {
    for (const bool last : {false, true}) {
      Arrays given = args;
      BatchAxes axes(args.size());
      std::vector<Arrays> singles(kBatch, args);
      for (std::size_t i = 0; i < args.size(); ++i) {
        if ((which >> i & 1) == 0) continue;
        Arrays parts;
        for (int b = 0; b < kBatch; ++b) {
          const bool whole = args[i].dtype() == Dtype::int64;
          parts.push_back(whole ? flip(args[i], std::vector<int>{}) : add(args[i], array(0.1 * b, args[i].dtype())));
          singles[static_cast<std::size_t>(b)][i] = parts.back();
        }
        axes[i] = last ? -1 : 0;
        given[i] = stack(parts, last ? -1 : 0);
      }
      const array all = vmap([&](const Arrays& a) { return Arrays{f(a)}; }, axes)(given)[0];
      Arrays one_by_one;
      for (const Arrays& single : singles) one_by_one.push_back(f(single));
      expect_close(all, stack(one_by_one), 1e-9, name + ", batched arguments " + std::to_string(which));
    }
  }
}

struct Case {
  const char* name;
  std::vector<Shape> shapes;
  Function f;
};

inline void check_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    check_gradients(c.name, c.f, numbers_of(c.shapes));
    check_batches(c.name, c.f, numbers_of(c.shapes));
  }
}

}  // namespace sdx::array::checked
