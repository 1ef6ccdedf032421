#include "array/ops/checked_test.h"

using namespace sdx::array;
using namespace sdx::array::checked;

namespace {

array single(const array& a) { return astype(a, Dtype::float32); }

array softmaxed(const array& q, const array& k, const array& v, double scale, const array& mask) {
  const array scores = add(multiply(matmul(q, swapaxes(k, -1, -2)), array(scale, Dtype::float64)), mask);
  return matmul(softmax(scores, -1), v);
}

}  // namespace

TEST(ArrayFast, Derivatives) {
  check_all({
      {"layer_norm", {{2, 5}, {5}, {5}}, [](const Arrays& a) { return fast::layer_norm(a[0], a[1], a[2], 1e-3F); }},
      {"layer_norm, bias alone",
       {{2, 5}, {5}},
       [](const Arrays& a) { return fast::layer_norm(a[0], std::nullopt, a[1], 1e-3F); }},
      {"rms_norm", {{2, 2, 5}, {5}}, [](const Arrays& a) { return fast::rms_norm(a[0], a[1], 1e-3F); }},
      {"rope", {{2, 3, 6}}, [](const Arrays& a) { return fast::rope(a[0], 4, false, 100.0F, 0.5F, 3); }},
      {"rope, traditional",
       {{2, 3, 4}},
       [](const Arrays& a) {
         return fast::rope(a[0], 4, true, 100.0F, 1.0F, positions({2}, {0, 5}));
       }},
      {"attention",
       {{1, 2, 3, 2}, {1, 1, 4, 2}, {1, 1, 4, 3}, {3, 4}},
       [](const Arrays& a) { return fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.7F, a[3]); }},
      {"attention, causal, with sinks",
       {{1, 2, 3, 2}, {1, 2, 4, 2}, {1, 2, 4, 3}, {2}},
       [](const Arrays& a) { return fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.7F, "causal", a[3]); }},
      {"cross_entropy",
       {{2, 4}},
       [](const Arrays& a) {
         return fast::cross_entropy(a[0], positions({2}, {3, 0}));
       }},
  });
}

// Kernels for float32 against single operations in float64.
TEST(ArrayFast, KernelsAgreeWithDefinitions) {
  const array x = numbers({3, 8}), w = numbers({8}, 4), b = numbers({8}, 9);
  const auto eps = array(1e-5, Dtype::float64);
  const array centred = subtract(x, mean(x, -1, true));
  const array expected = add(multiply(multiply(centred, rsqrt(add(mean(square(centred), -1, true), eps))), w), b);
  expect_close(fast::layer_norm(single(x), single(w), single(b), 1e-5F), expected, 1e-5, "layer_norm");
  const array rms = multiply(multiply(x, rsqrt(add(mean(square(x), -1, true), eps))), w);
  expect_close(fast::rms_norm(single(x), single(w), 1e-5F), rms, 1e-5, "rms_norm");
  EXPECT_EQ(fast::rms_norm(astype(x, Dtype::float16), std::nullopt, 1e-5F).dtype(), Dtype::float16);
}

TEST(ArrayFast, Attention) {
  const array q = numbers({2, 4, 3, 8}), k = numbers({2, 2, 5, 8}, 2), v = numbers({2, 2, 5, 8}, 3);
  const array all_k = repeat(k, 2, 1), all_v = repeat(v, 2, 1);
  const auto run = [&](const fast::Mask& mask) {
    return fast::scaled_dot_product_attention(single(q), single(k), single(v), 0.3F, mask);
  };
  const array none(0.0, Dtype::float64), never(-1e30, Dtype::float64);
  expect_close(run({}), softmaxed(q, all_k, all_v, 0.3, none), 1e-5, "no mask");
  const array causal = greater_equal(add(expand_dims(arange(0, 3, 1, Dtype::int64), 1), array(2)), arange(0, 5, 1, Dtype::int64));
  expect_close(run("causal"), softmaxed(q, all_k, all_v, 0.3, where(causal, none, never)), 1e-5, "causal");
  const array seen({true, false, true, true, true}, {5});
  expect_close(run(seen), softmaxed(q, all_k, all_v, 0.3, where(seen, none, never)), 1e-5, "bool");
  const array added = numbers({2, 1, 3, 5}, 8);
  expect_close(run(single(added)), softmaxed(q, all_k, all_v, 0.3, added), 1e-5, "added");
  EXPECT_THROW(run("diagonal"), sdx::Error);
  EXPECT_THROW(run(array({true, false}, {2})), sdx::Error);
}

// The kernel's derivative and batches, which float64 does without.
TEST(ArrayFast, AttentionOfSinglePrecision) {
  const Arrays args{numbers({1, 2, 3, 4}), numbers({1, 2, 3, 4}, 2), numbers({1, 2, 3, 4}, 3), numbers({2, 3, 3}, 4)};
  Arrays singles;
  for (const array& a : args) singles.push_back(single(a));
  const Function f = [](const Arrays& a) { return fast::scaled_dot_product_attention(a[0], a[1], a[2], 0.5F, a[3]); };
  const auto loss = [&](const Arrays& a) { return Arrays{sum(square(f(a)))}; };
  const Arrays wide = grad(loss, {0, 1, 2, 3})(args), narrow = grad(loss, {0, 1, 2, 3})(singles);
  for (std::size_t i = 0; i < wide.size(); ++i) expect_close(narrow[i], wide[i], 1e-4, "gradient " + std::to_string(i));
  Arrays many;
  for (const array& a : singles) many.push_back(stack({a, multiply(a, array(0.5F)), a}));
  const array all = vmap([&](const Arrays& a) { return Arrays{f(a)}; })(many)[0];
  expect_close(take(all, 2, 0), f(args), 1e-5, "batch");
}
