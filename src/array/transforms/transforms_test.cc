#include <sdx/array/transforms.hpp>

#include <stdexcept>

#include <gtest/gtest.h>

#include <sdx/array.hpp>

namespace mx = sdx::array;
using mx::array;
using Arrays = std::vector<array>;

namespace {

std::vector<float> floats(const array& a) {
  const auto values = a.data<float>();
  return {values.begin(), values.end()};
}

array cube(const array& x) { return mx::multiply(x, mx::multiply(x, x)); }
array range(int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(static_cast<float>(i + 1));
  return array(sdx::Tensor::of<float>({count}, std::span<const float>(values)));
}

}  // namespace

TEST(ArrayTransforms, GradientsOfAnyOrder) {
  const auto first = mx::grad(cube);
  const auto second = mx::grad(first);
  const auto third = mx::grad(second);
  EXPECT_EQ(first(array(2.0F)).item<float>(), 12);
  EXPECT_EQ(second(array(2.0F)).item<float>(), 12);
  EXPECT_EQ(third(array(2.0F)).item<float>(), 6);
}

TEST(ArrayTransforms, GradientsBroadcastAndAccumulate) {
  const auto f = [](const Arrays& a) { return Arrays{mx::sum(mx::multiply(mx::add(a[0], a[1]), a[0]))}; };
  const array x({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2}), y({10.0F, 20.0F}, {2});
  const Arrays g = mx::grad(f, {0, -1})({x, y});
  EXPECT_EQ(floats(g[0]), (std::vector<float>{12, 24, 16, 28}));
  EXPECT_EQ(floats(g[1]), (std::vector<float>{4, 6}));
}

TEST(ArrayTransforms, ValueAndFurtherResults) {
  const auto f = [](const Arrays& a) { return Arrays{mx::sum(cube(a[0])), mx::add(a[0], a[1])}; };
  const auto [values, gradients] = mx::value_and_grad(f)({array(2.0F), array(5.0F)});
  EXPECT_EQ(values[0].item<float>(), 8);
  EXPECT_EQ(values[1].item<float>(), 7);
  ASSERT_EQ(gradients.size(), 1U);
  EXPECT_EQ(gradients[0].item<float>(), 12);
}

TEST(ArrayTransforms, RefusesWhatIsNoScalarAndWrongNumbers) {
  const auto same = [](const Arrays& a) { return a; };
  EXPECT_THROW(mx::grad(same)({range(3)}), sdx::Error);
  EXPECT_THROW(mx::grad(same, {1})({array(1.0F)}), sdx::Error);
  EXPECT_THROW(mx::grad(same, {0, 0})({array(1.0F)}), sdx::Error);
  EXPECT_THROW(mx::vjp(same, {range(3)}, {range(2)}), sdx::Error);
  EXPECT_THROW(mx::jvp(same, {range(3)}, {}), sdx::Error);
}

TEST(ArrayTransforms, ForwardDerivative) {
  const auto f = [](const Arrays& a) { return Arrays{mx::sum(cube(a[0])), mx::multiply(a[0], a[1]), a[1]}; };
  const auto [values, tangents] = mx::jvp(f, {range(2), array(3.0F)}, {range(2), array(10.0F)});
  EXPECT_EQ(values[0].item<float>(), 9);
  EXPECT_EQ(tangents[0].item<float>(), 3 * 1 + 12 * 2);
  EXPECT_EQ(floats(tangents[1]), (std::vector<float>{3 + 10, 6 + 20}));
  EXPECT_EQ(tangents[2].item<float>(), 10);
}

TEST(ArrayTransforms, ForwardOverBackward) {
  const auto gradient = mx::grad(mx::ArrayFunction([](const array& x) { return mx::sum(cube(x)); }));
  const auto [value, product] = mx::jvp(gradient, range(3), array({1.0F, 0.0F, 2.0F}));
  EXPECT_EQ(floats(value), (std::vector<float>{3, 12, 27}));
  EXPECT_EQ(floats(product), (std::vector<float>{6, 0, 36}));
}

TEST(ArrayTransforms, ControlFlowMayReadNumbers) {
  const auto f = [](const array& x) { return x.item<float>() > 0 ? cube(x) : mx::multiply(x, array(2.0F)); };
  EXPECT_EQ(mx::grad(mx::ArrayFunction(f))(array(1.0F)).item<float>(), 3);
  EXPECT_EQ(mx::grad(mx::ArrayFunction(f))(array(-1.0F)).item<float>(), 2);
}

TEST(ArrayTransforms, LongTapesNeedNoStack) {
  const auto f = [](const array& x) {
    array y = x;
    for (int i = 0; i < 100'000; ++i) y = mx::add(y, x);
    return y;
  };
  EXPECT_EQ(mx::grad(mx::ArrayFunction(f))(array(1.0F)).item<float>(), 100'001);
}

TEST(ArrayTransforms, StoppedGradients) {
  const auto f = [](const array& x) { return mx::multiply(x, mx::stop_gradient(cube(x))); };
  EXPECT_EQ(mx::grad(mx::ArrayFunction(f))(array(2.0F)).item<float>(), 8);
  EXPECT_EQ(mx::jvp(f, array(2.0F), array(1.0F)).second.item<float>(), 8);
}

TEST(ArrayTransforms, ExceptionsPassThrough) {
  const auto bad = [](const array& x) -> array {
    array y = cube(x);
    throw std::runtime_error("mine");
    return y;
  };
  EXPECT_THROW(mx::grad(mx::ArrayFunction(bad))(array(1.0F)), std::runtime_error);
  EXPECT_THROW(mx::vmap(mx::ArrayFunction(bad))(range(2)), std::runtime_error);
  EXPECT_THROW(mx::compile([&](const Arrays& a) { return Arrays{bad(a[0])}; })({array(1.0F)}), std::runtime_error);
  EXPECT_EQ(mx::grad(mx::ArrayFunction(cube))(array(1.0F)).item<float>(), 3);
}

TEST(ArrayTransforms, Batches) {
  const auto f = [](const Arrays& a) { return Arrays{mx::add(a[0], mx::sum(a[1])), mx::multiply(a[0], a[2])}; };
  const array x({1.0F, 2.0F, 3.0F, 4.0F, 5.0F, 6.0F}, {3, 2});
  const auto out = mx::vmap(f, {1, 0, std::nullopt}, {0, -1})({x, array({1.0F, 1.0F, 2.0F, 2.0F}, {2, 2}), array(10.0F)});
  EXPECT_EQ(out[0].shape(), (sdx::Shape{2, 3}));
  EXPECT_EQ(floats(out[0]), (std::vector<float>{3, 5, 7, 6, 8, 10}));
  EXPECT_EQ(out[1].shape(), (sdx::Shape{3, 2}));
  EXPECT_EQ(floats(out[1]), (std::vector<float>{10, 20, 30, 40, 50, 60}));
  EXPECT_THROW(mx::vmap(f, {0, 0, 0})({x, x, array(1.0F)}), sdx::Error);
  EXPECT_THROW(mx::vmap(f, {0})({x, x, x}), sdx::Error);
}

TEST(ArrayTransforms, BatchesOfGradientsAndGradientsOfBatches) {
  const auto loss = [](const array& x) { return mx::sum(cube(x)); };
  const array x({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2});
  EXPECT_EQ(floats(mx::vmap(mx::grad(mx::ArrayFunction(loss)))(x)), (std::vector<float>{3, 12, 27, 48}));
  const auto total = [&](const array& a) { return mx::sum(mx::vmap(mx::ArrayFunction(loss))(a)); };
  EXPECT_EQ(floats(mx::grad(mx::ArrayFunction(total))(x)), (std::vector<float>{3, 12, 27, 48}));
  const auto nested = mx::vmap(mx::vmap(mx::ArrayFunction(cube)), 1, 1);
  EXPECT_EQ(floats(nested(x)), (std::vector<float>{1, 8, 27, 64}));
}

TEST(ArrayTransforms, BatchesGiveNoNumbers) {
  const auto reads = [](const array& x) { return x.item<float>() > 0 ? x : cube(x); };
  EXPECT_THROW(mx::vmap(mx::ArrayFunction(reads))(range(2)), sdx::Error);
}

TEST(ArrayTransforms, CustomRules) {
  mx::CustomRules rules;
  rules.vjp = [](const Arrays& p, const Arrays& c, const Arrays& out) {
    EXPECT_EQ(out[0].item<float>(), 8);
    return Arrays{mx::multiply(mx::multiply(p[0], c[0]), array(100.0F))};
  };
  rules.jvp = [](const Arrays&, const Arrays& t) { return Arrays{mx::multiply(t[0], array(7.0F))}; };
  const auto f = mx::custom_function([](const Arrays& a) { return Arrays{cube(a[0])}; }, rules);
  EXPECT_EQ(f({array(2.0F)})[0].item<float>(), 8);
  EXPECT_EQ(mx::grad(f)({array(2.0F)})[0].item<float>(), 200);
  EXPECT_EQ(mx::jvp(f, {array(2.0F)}, {array(1.0F)}).second[0].item<float>(), 7);
}

TEST(ArrayTransforms, CustomRulesInBatches) {
  mx::CustomRules rules;
  rules.vjp = [](const Arrays& p, const Arrays& c, const Arrays&) {
    return Arrays{mx::multiply(p[1], c[0]), mx::multiply(mx::sum(p[0]), c[0])};
  };
  const auto f = mx::custom_function([](const Arrays& a) { return Arrays{mx::multiply(a[0], a[1])}; }, rules);
  const auto total = [&](const Arrays& a) { return Arrays{mx::sum(mx::vmap(f, {0, std::nullopt})(a)[0])}; };
  const Arrays g = mx::grad(total, {0, 1})({range(3), array(5.0F)});
  EXPECT_EQ(floats(g[0]), (std::vector<float>{5, 5, 5}));
  EXPECT_EQ(g[1].item<float>(), 6);
}

TEST(ArrayTransforms, CheckpointsComputeAgain) {
  int calls = 0;
  const auto inner = [&](const Arrays& a) {
    ++calls;
    return Arrays{mx::sum(cube(mx::multiply(a[0], a[1])))};
  };
  const Arrays g = mx::grad(mx::checkpoint(inner), {0, 1})({range(2), array(2.0F)});
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(floats(g[0]), (std::vector<float>{24, 96}));
  EXPECT_EQ(g[1].item<float>(), 3 * 4 * (1 + 8));
}

// Operations that a stream's thread computes stay known to the transformation that made them.
TEST(ArrayTransforms, GradientsThroughStreams) {
  const mx::Stream s = mx::new_stream({});
  const auto f = [&](const array& x) {
    const array square = mx::multiply(x, x, s);
    mx::async_eval(Arrays{square});
    mx::synchronize(s);
    return mx::sum(mx::multiply(square, x));
  };
  EXPECT_EQ(floats(mx::grad(f)(range(3))), (std::vector<float>{3, 12, 27}));
}

// What a function holds goes with it, and may compute arrays when it does.
TEST(ArrayTransforms, FunctionsAreLetGoOf) {
  struct Held {
    array last = mx::add(array(1.0F), array(2.0F));
    ~Held() { last.eval(); }
  };
  std::weak_ptr<Held> left;
  Arrays made;
  {
    const auto held = std::make_shared<Held>();
    left = held;
    const mx::ArraysFunction f = mx::checkpoint([held](const Arrays& x) { return Arrays{mx::sum(cube(x[0]))}; });
    const auto [values, gradients] = mx::value_and_grad(f)({range(2)});
    made = {values[0], gradients[0]};
  }
  EXPECT_FALSE(left.expired());
  EXPECT_EQ(floats(made[0]), (std::vector<float>{9}));
  EXPECT_EQ(floats(made[1]), (std::vector<float>{3, 12}));
  EXPECT_TRUE(left.expired());
}

TEST(ArrayTransforms, CompiledFunctionsAreTracedOnceForEachShape) {
  int calls = 0;
  const array weights = mx::add(range(2), array(1.0F));
  const auto f = mx::compile([&](const Arrays& a) {
    ++calls;
    return Arrays{mx::add(mx::multiply(a[0], weights), array(1.0F)), a[0], a[0], range(2)};
  });
  for (int i = 0; i < 3; ++i) {
    const Arrays out = f({range(2)});
    EXPECT_EQ(floats(out[0]), (std::vector<float>{3, 7}));
    EXPECT_EQ(floats(out[1]), (std::vector<float>{1, 2}));
    EXPECT_EQ(floats(out[2]), (std::vector<float>{1, 2}));
    EXPECT_EQ(floats(out[3]), (std::vector<float>{1, 2}));
  }
  EXPECT_EQ(calls, 1);
  f({array(1.0F)});
  const std::uint64_t other[] = {7};
  f({array(1.0F)}, other);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(f.traces(), 3U);
}

TEST(ArrayTransforms, CompiledFunctionsHaveDerivativesAndBatches) {
  const auto f = mx::compile([](const Arrays& a) { return Arrays{mx::sum(cube(a[0]))}; });
  EXPECT_EQ(floats(mx::grad(mx::ArraysFunction(f))({range(2)})[0]), (std::vector<float>{3, 12}));
  EXPECT_EQ(mx::jvp(mx::ArraysFunction(f), {range(2)}, {range(2)}).second[0].item<float>(), 27);
  const array x({1.0F, 2.0F, 3.0F, 4.0F}, {2, 2});
  EXPECT_EQ(floats(mx::vmap(mx::ArraysFunction(f))({x})[0]), (std::vector<float>{9, 91}));
  const auto outer = mx::compile(mx::grad(mx::ArraysFunction(f)));
  EXPECT_EQ(floats(outer({range(2)})[0]), (std::vector<float>{3, 12}));
  EXPECT_EQ(floats(outer({range(2)})[0]), (std::vector<float>{3, 12}));
  EXPECT_EQ(outer.traces(), 1U);
}

TEST(ArrayTransforms, CompiledFunctionsChangeState) {
  Arrays state{array(1.0F)};
  const mx::Capture capture{[&] { return state; }, [&](const Arrays& now) { state = now; }};
  const auto step = mx::compile(
      [&](const Arrays& a) {
        state[0] = mx::add(state[0], a[0]);
        return Arrays{mx::multiply(state[0], array(10.0F))};
      },
      {capture, capture, false});
  EXPECT_EQ(step({array(2.0F)})[0].item<float>(), 30);
  EXPECT_EQ(step({array(4.0F)})[0].item<float>(), 70);
  EXPECT_EQ(state[0].item<float>(), 7);
  EXPECT_EQ(step.traces(), 1U);
}

TEST(ArrayTransforms, CompilingCanBeDisabled) {
  int calls = 0;
  const auto f = mx::compile([&](const Arrays& a) {
    ++calls;
    return a;
  });
  mx::disable_compile();
  f({array(1.0F)});
  f({array(1.0F)});
  mx::enable_compile();
  EXPECT_EQ(calls, 2);
}
