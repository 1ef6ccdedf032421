#include <limits>

#include "array/ops/checked_test.h"

using namespace sdx::array;
using namespace sdx::array::checked;

TEST(ArrayMatrix, Derivatives) {
  check_all({
      {"matmul", {{2, 3}, {3, 4}}, [](const Arrays& a) { return matmul(a[0], a[1]); }},
      {"matmul of transposes", {{3, 2}, {4, 3}}, [](const Arrays& a) { return matmul(transpose(a[0]), transpose(a[1])); }},
      {"matmul of vectors", {{3}, {3}}, [](const Arrays& a) { return matmul(a[0], a[1]); }},
      {"matmul, broadcast", {{2, 1, 2, 3}, {2, 3, 2}}, [](const Arrays& a) { return matmul(a[0], a[1]); }},
      {"matmul, one on the right", {{2, 2, 3}, {3, 2}}, [](const Arrays& a) { return matmul(a[0], a[1]); }},
      {"matmul of a vector", {{3}, {2, 3, 2}}, [](const Arrays& a) { return matmul(a[0], a[1]); }},
      {"addmm", {{4}, {2, 3}, {3, 4}}, [](const Arrays& a) { return addmm(a[0], a[1], a[2], 0.5F, 2.0F); }},
  });
}

TEST(ArrayMatrix, SumsOfProducts) {
  check_all({
      {"inner", {{2, 3}, {4, 3}}, [](const Arrays& a) { return inner(a[0], a[1]); }},
      {"outer", {{2, 2}, {3}}, [](const Arrays& a) { return outer(a[0], a[1]); }},
      {"vecdot", {{2, 3}, {3}}, [](const Arrays& a) { return vecdot(a[0], a[1]); }},
      {"tensordot",
       {{2, 3, 2}, {3, 2, 2}},
       [](const Arrays& a) {
         return tensordot(a[0], a[1], {1, 0}, {0, 2});
       }},
      {"einsum", {{2, 3}, {3, 2}, {2, 2}}, [](const Arrays& a) { return einsum("ij,jk,kl->li", a); }},
      {"einsum with a batch", {{2, 3, 2}, {2, 2, 2}}, [](const Arrays& a) { return einsum("...ij,...jk->...ik", a); }},
      {"einsum of a diagonal", {{3, 3}, {3}}, [](const Arrays& a) { return einsum("ii,i", a); }},
      {"convolve", {{5}, {3}}, [](const Arrays& a) { return convolve(a[0], a[1], "same"); }},
  });
}

TEST(ArrayMatrix, EinsteinSums) {
  const array a = numbers({3, 4}), b = numbers({4, 5}, 2), c = numbers({3, 5}, 3);
  expect_close(einsum("ij,jk", {a, b}), matmul(a, b), 1e-12, "product");
  expect_close(einsum("ij->ji", {a}), transpose(a), 1e-12, "transpose");
  expect_close(einsum("ij->", {a}), sum(a), 1e-12, "sum");
  expect_close(einsum("ij,ij->i", {a, a}), sum(multiply(a, a), 1), 1e-12, "rows");
  expect_close(einsum("ij,jk,ik->", {a, b, c}), sum(multiply(matmul(a, b), c)), 1e-12, "three");
  expect_close(einsum("i...,i...->...", {a, a}), sum(multiply(a, a), 0), 1e-12, "ellipsis");
  expect_close(einsum("ij,kj->ikj", {a, numbers({2, 4}, 5)}), multiply(expand_dims(a, 1), numbers({2, 4}, 5)), 1e-12, "no sum");
  EXPECT_EQ(einsum_path("ij,jk,kl->il", {numbers({10, 20}), numbers({20, 3}), numbers({3, 50})}).first,
            (std::vector<std::vector<int>>{{0, 1}, {0, 1}}));
  EXPECT_THROW(einsum("ij,jk", {a, a}), sdx::Error);
  EXPECT_THROW(einsum("ij->ii", {a}), sdx::Error);
  EXPECT_THROW(einsum("i", {a}), sdx::Error);
}

TEST(ArrayMatrix, ConvolvesVectors) {
  const auto whole = [](const array& a) { return astype(a, Dtype::int32); };
  const array a({1.0F, 2.0F, 3.0F, 4.0F}), v({1.0F, 10.0F, 100.0F});
  using Numbers = std::vector<double>;
  for (const bool integers : {false, true}) {
    const array x = integers ? whole(a) : a, y = integers ? whole(v) : v;
    EXPECT_EQ(values(convolve(x, y)), (Numbers{1, 12, 123, 234, 340, 400}));
    EXPECT_EQ(values(convolve(x, y, "same")), (Numbers{12, 123, 234, 340}));
    EXPECT_EQ(values(convolve(y, x, "valid")), (Numbers{123, 234}));
  }
}

TEST(ArrayMatrix, BlocksAndSegments) {
  const array a = numbers({40, 50}), b = numbers({50, 33}, 2);
  const array left({1.0, 0.5, 0.0, 2.0}, {2, 2}), out({true, false, true, true}, {2, 2});
  const auto wide = [](const array& m, std::int64_t rows, std::int64_t columns) {
    return slice(repeat(repeat(m, 32, 0), 32, 1), {0, 0}, Shape{rows, columns});
  };
  const array expected = multiply(matmul(multiply(a, wide(left, 40, 50)), b), astype(wide(out, 40, 33), Dtype::float64));
  expect_close(block_masked_mm(a, b, 32, out, left), expected, 1e-12, "block_masked_mm");
  const array parts = segmented_mm(a, b, positions({2, 2}, {0, 4, 4, 50}));
  EXPECT_EQ(parts.shape(), (Shape{2, 40, 33}));
  expect_close(sum(parts, 0), matmul(a, b), 1e-12, "segmented_mm");
  EXPECT_THROW(block_masked_mm(a, b, 16), sdx::Error);
}

// Applied twice it is the identity where it is symmetric; always its rows are orthogonal.
TEST(ArrayMatrix, HadamardMatrices) {
  for (const std::int64_t n : {1, 2, 8, 12, 20, 28, 24, 128, 512}) {
    const array h = hadamard_transform(eye(static_cast<int>(n), {}, 0, Dtype::float64));
    expect_close(matmul(h, transpose(h)), eye(static_cast<int>(n), {}, 0, Dtype::float64), 1e-12, std::to_string(n));
  }
  EXPECT_EQ(values(hadamard_transform(array({1.0F, 2.0F, 3.0F, 4.0F}), 1.0F)), (std::vector<double>{10, -2, -4, 0}));
  EXPECT_THROW(hadamard_transform(numbers({6})), sdx::Error);
}

// A factor of 0 leaves its part out, whatever is in it.
TEST(ArrayMatrix, FactorsOfZero) {
  const array nan = full({2, 2}, array(std::numeric_limits<float>::quiet_NaN())), ones = sdx::array::ones({2, 2});
  EXPECT_TRUE(all(equal(addmm(nan, ones, ones, 1.0F, 0.0F), array(2.0F))).item<bool>());
  EXPECT_TRUE(all(equal(addmm(ones, nan, ones, 0.0F, 3.0F), array(3.0F))).item<bool>());
  EXPECT_TRUE(all(equal(addmm(nan, nan, ones, 0.0F, 0.0F), array(0.0F))).item<bool>());
  EXPECT_EQ(addmm(ones, ones, ones, 0.0F, 0.0F).shape(), (sdx::Shape{2, 2}));
  EXPECT_THROW(addmm(sdx::array::ones({3}), ones, ones, 1.0F, 0.0F), sdx::Error);
  const auto loss = [&](const Arrays& a) { return Arrays{sum(addmm(a[0], a[1], ones, 1.0F, 0.0F))}; };
  const Arrays g = grad(loss, {0, 1})({nan, ones});
  EXPECT_TRUE(all(equal(g[0], array(0.0F))).item<bool>());
  EXPECT_TRUE(all(equal(g[1], array(2.0F))).item<bool>());
}
