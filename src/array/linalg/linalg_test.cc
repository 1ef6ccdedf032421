#include <sdx/array/linalg.hpp>

#include <cmath>
#include <complex>
#include <functional>

#include <gtest/gtest.h>

#include <sdx/array.hpp>

namespace mx = sdx::array;
namespace la = sdx::array::linalg;
using mx::array;
using mx::Dtype;
using Arrays = std::vector<array>;

namespace {

bool is_complex(Dtype t) { return t == Dtype::complex64 || t == Dtype::complex128; }

std::vector<double> parts(const array& a) {
  const array wide = mx::astype(a, is_complex(a.dtype()) ? Dtype::complex128 : Dtype::float64);
  const auto* values = static_cast<const double*>(wide.tensor().data());
  return {values, values + a.size() * (is_complex(a.dtype()) ? 2 : 1)};
}

// Numbers without a pattern, in any type.
array numbers(const sdx::Shape& shape, Dtype type, std::uint32_t seed = 1) {
  sdx::Tensor t(is_complex(type) ? Dtype::complex128 : Dtype::float64, shape);
  auto* values = static_cast<double*>(t.mutable_data());
  for (std::size_t i = 0; i < t.bytes() / sizeof(double); ++i) {
    seed = seed * 1664525 + 1013904223;
    values[i] = static_cast<double>(seed >> 8) / (1 << 23) - 1;
  }
  return mx::astype(array(std::move(t)), type);
}

array adjoint(const array& a) {
  const array turned = mx::swapaxes(a, -1, -2);
  return is_complex(a.dtype()) ? mx::conjugate(turned) : turned;
}

// Hermitian, all eigenvalues at least 1.
array positive(const sdx::Shape& shape, Dtype type) {
  const array a = numbers(shape, type);
  return mx::add(mx::matmul(a, adjoint(a)), mx::eye(static_cast<int>(shape.back()), std::nullopt, 0, type));
}

void near(const array& got, const array& expected, double tolerance) {
  ASSERT_EQ(got.shape(), expected.shape());
  const auto a = parts(got), b = parts(expected);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << "number " << i;
}

class Types : public ::testing::TestWithParam<Dtype> {
 protected:
  Dtype type() const { return GetParam(); }
  double tolerance() const { return type() == Dtype::float32 || type() == Dtype::complex64 ? 2e-4 : 1e-10; }
  array eye(int n) const { return mx::eye(n, std::nullopt, 0, type()); }
};

}  // namespace

TEST_P(Types, Factors) {
  const array a = numbers({2, 4, 4}, type()), p = positive({2, 4, 4}, type());
  const array l = la::cholesky(p);
  near(mx::matmul(l, adjoint(l)), p, tolerance());
  near(la::cholesky(p, true), adjoint(l), tolerance());
  near(mx::matmul(la::cholesky_inv(l), p), mx::broadcast_to(eye(4), {2, 4, 4}), tolerance());
  near(mx::matmul(la::inv(a), a), mx::broadcast_to(eye(4), {2, 4, 4}), tolerance());
  const array upper = mx::triu(a);
  near(mx::matmul(la::tri_inv(upper, true), upper), mx::broadcast_to(eye(4), {2, 4, 4}), tolerance());
  const array b = numbers({4, 3}, type(), 7);
  near(mx::matmul(a, la::solve(a, b)), mx::broadcast_to(b, {2, 4, 3}), tolerance());
  const array v = numbers({4}, type(), 9);
  near(la::matmul(mx::tril(a), mx::expand_dims(la::solve_triangular(mx::tril(a), v), -1)),
       mx::broadcast_to(mx::expand_dims(v, -1), {2, 4, 1}), tolerance());
  for (const auto& shape : {sdx::Shape{4, 3}, sdx::Shape{3, 4}, sdx::Shape{3, 3}}) {
    const array m = numbers(shape, type());
    const auto [q, r] = la::qr(m);
    near(mx::matmul(q, r), m, tolerance());
    near(mx::matmul(adjoint(q), q), eye(3), tolerance());
    const auto [rows, lower, up] = la::lu(m);
    near(mx::take(mx::matmul(lower, up), rows, 0), m, tolerance());
    const auto [u, s, vh] = la::svd(m);
    EXPECT_EQ(u.shape(), (sdx::Shape{shape[0], shape[0]}));
    EXPECT_EQ(vh.shape(), (sdx::Shape{shape[1], shape[1]}));
    const array thin = mx::slice(u, {0, 0}, {shape[0], 3}), across = mx::slice(vh, {0, 0}, {3, shape[1]});
    near(mx::matmul(mx::multiply(thin, mx::astype(s, type())), across), m, tolerance());
    near(la::svdvals(m), s, tolerance());
    near(mx::matmul(mx::matmul(m, la::pinv(m)), m), m, tolerance());
    EXPECT_EQ(la::matrix_rank(m).item<int>(), 3);
  }
}

TEST_P(Types, Eigenvalues) {
  const array a = numbers({3, 4, 4}, type()), h = positive({3, 4, 4}, type());
  const auto [w, v] = la::eigh(h);
  near(mx::matmul(h, v), mx::multiply(v, mx::astype(mx::expand_dims(w, -2), type())), tolerance() * 10);
  near(la::eigvalsh(h, "U"), w, tolerance() * 10);
  near(la::eigvalsh(mx::tril(h)), w, tolerance() * 10);
  const auto [z, x] = la::eig(a);
  near(mx::matmul(mx::astype(a, x.dtype()), x), mx::multiply(x, mx::expand_dims(z, -2)), tolerance() * 10);
  near(mx::sum(la::eigvals(a), -1), mx::astype(la::trace(a), z.dtype()), tolerance() * 10);
}

TEST_P(Types, Determinants) {
  const array a = numbers({5, 3, 3}, type());
  const auto [sign, logarithm] = la::slogdet(a);
  near(mx::multiply(sign, mx::astype(mx::exp(logarithm), type())), la::det(a), tolerance());
  near(la::det(mx::matmul(a, a)), mx::square(la::det(a)), tolerance());
  EXPECT_EQ(parts(la::det(mx::zeros({2, 2}, type())))[0], 0);
  near(la::matrix_power(a, 5), mx::matmul(mx::matmul(mx::matmul(mx::matmul(a, a), a), a), a), tolerance() * 10);
  near(la::matrix_power(a, -1), la::inv(a), tolerance());
  near(la::matrix_power(a, 0), mx::broadcast_to(eye(3), {5, 3, 3}), tolerance());
}

INSTANTIATE_TEST_SUITE_P(ArrayLinalg, Types,
                         ::testing::Values(Dtype::float32, Dtype::float64, Dtype::complex64, Dtype::complex128));

namespace {

// A real number of all results, with weights that keep nothing from cancelling.
array weighed(const Arrays& results) {
  array total(0.0, Dtype::float64);
  for (std::size_t i = 0; i < results.size(); ++i) {
    const array& r = results[i];
    if (!sdx::is_floating(r.dtype()) && !is_complex(r.dtype())) continue;
    const array weighted = mx::multiply(r, numbers(r.shape(), r.dtype(), 77 + static_cast<std::uint32_t>(i)));
    total = mx::add(total, mx::sum(is_complex(r.dtype()) ? mx::real(weighted) : weighted));
  }
  return total;
}

struct Derivative {
  const char* name;
  std::function<Arrays(const array&)> fun;
  array at;
};

// Along some direction, by differences in the middle.
void check(const Derivative& d) {
  SCOPED_TRACE(std::string(d.name) + (is_complex(d.at.dtype()) ? ", complex" : ""));
  const mx::ArrayFunction f = [&](const array& x) { return weighed(d.fun(x)); };
  const array direction = numbers(d.at.shape(), d.at.dtype(), 5);
  const double h = 1e-6;
  const array step = mx::multiply(direction, array(h, d.at.dtype()));
  const double difference = (f(mx::add(d.at, step)).item<double>() - f(mx::subtract(d.at, step)).item<double>()) / (2 * h);
  const array g = mx::grad(f)(d.at);
  const auto a = parts(g), b = parts(direction);
  ASSERT_EQ(a.size(), b.size());
  double product = 0;
  for (std::size_t i = 0; i < a.size(); ++i) product += a[i] * b[i];
  EXPECT_NEAR(product, difference, 1e-5 * (1 + std::abs(difference)));
  EXPECT_NEAR(mx::jvp(f, d.at, direction).second.item<double>(), difference, 1e-5 * (1 + std::abs(difference)));
}

array hermitian(const array& a) { return mx::add(a, adjoint(a)); }

}  // namespace

TEST(ArrayLinalg, DerivativesAreDifferences) {
  for (const Dtype t : {Dtype::float64, Dtype::complex128}) {
    const array a = mx::add(numbers({2, 3, 3}, t), mx::multiply(array(2.0, t), mx::eye(3, std::nullopt, 0, t))),
                p = positive({2, 3, 3}, t);
    const array b = numbers({3, 2}, t, 3), tall = numbers({4, 3}, t, 4);
    const Derivative all[] = {
        {"cholesky", [](const array& x) { return Arrays{la::cholesky(hermitian(x))}; }, p},
        {"cholesky_inv", [](const array& x) { return Arrays{la::cholesky_inv(mx::tril(x))}; }, p},
        {"inv", [](const array& x) { return Arrays{la::inv(x)}; }, a},
        {"tri_inv", [](const array& x) { return Arrays{la::tri_inv(x, true)}; }, a},
        {"solve a", [&](const array& x) { return Arrays{la::solve(x, b)}; }, a},
        {"solve b", [&](const array& x) { return Arrays{la::solve(a, x)}; }, b},
        {"solve_triangular a", [&](const array& x) { return Arrays{la::solve_triangular(x, b)}; }, a},
        {"solve_triangular b", [&](const array& x) { return Arrays{la::solve_triangular(a, x, true)}; }, b},
        {"det", [](const array& x) { return Arrays{la::det(x)}; }, a},
        {"slogdet",
         [](const array& x) {
           return Arrays{la::slogdet(x).first, la::slogdet(x).second};
         },
         a},
        {"qr",
         [](const array& x) {
           const auto [q, r] = la::qr(x);
           return Arrays{q, r};
         },
         tall},
        {"lu",
         [](const array& x) {
           const auto [rows, l, u] = la::lu(x);
           return Arrays{l, u};
         },
         a},
        {"eigvalsh", [](const array& x) { return Arrays{la::eigvalsh(hermitian(x))}; }, p},
        {"svdvals", [](const array& x) { return Arrays{la::svdvals(x)}; }, tall},
        {"norm",
         [](const array& x) {
           return Arrays{la::norm(x, 3.0, std::vector<int>{-1}), la::norm(x, "nuc")};
         },
         tall},
    };
    for (const Derivative& d : all) check(d);
  }
  const array p = positive({3, 3}, Dtype::float64), tall = numbers({4, 3}, Dtype::float64, 4);
  check({"eigh",
         [](const array& x) {
           const auto [w, v] = la::eigh(hermitian(x));
           return Arrays{w, mx::square(v)};
         },
         p});
  check({"svd",
         [](const array& x) {
           const auto [u, s, vh] = la::svd(x);
           return Arrays{mx::square(mx::slice(u, {0, 0}, {4, 3})), s, mx::square(vh)};
         },
         tall});
  check({"svd, wide",
         [](const array& x) {
           const auto [u, s, vh] = la::svd(mx::swapaxes(x, 0, 1));
           return Arrays{mx::square(u), s, mx::square(mx::slice(vh, {0, 0}, {3, 4}))};
         },
         tall});
  check({"eigvals", [](const array& x) { return Arrays{mx::sum(mx::square(mx::abs(la::eigvals(x))))}; },
         numbers({3, 3}, Dtype::float64, 8)});
}

TEST(ArrayLinalg, Norms) {
  const array v({3.0F, -4.0F}, {2}), m({1.0F, -2.0F, 3.0F, 4.0F, 5.0F, -6.0F}, {2, 3});
  EXPECT_FLOAT_EQ(la::norm(v).item<float>(), 5);
  EXPECT_FLOAT_EQ(la::norm(v, 1.0).item<float>(), 7);
  EXPECT_FLOAT_EQ(la::norm(v, INFINITY).item<float>(), 4);
  EXPECT_FLOAT_EQ(la::norm(v, 0.0).item<float>(), 2);
  EXPECT_FLOAT_EQ(la::norm(m, 1.0).item<float>(), 9);
  EXPECT_FLOAT_EQ(la::norm(m, INFINITY).item<float>(), 15);
  EXPECT_FLOAT_EQ(la::norm(m, -INFINITY).item<float>(), 6);
  EXPECT_FLOAT_EQ(la::norm(m, "fro").item<float>(), std::sqrt(91.0F));
  EXPECT_NEAR(la::norm(m, 2.0).item<float>(), la::svdvals(m).data<float>()[0], 1e-5);
  EXPECT_EQ(la::norm(m, "nuc", std::vector<int>{0, 1}, true).shape(), (sdx::Shape{1, 1}));
  EXPECT_THROW(la::norm(m, 3.0), sdx::Error);
  EXPECT_THROW(la::norm(v, "fro"), sdx::Error);
  EXPECT_THROW(la::norm(mx::zeros({2, 2, 2}), 2.0), sdx::Error);
}

// As NumPy: square factors of a matrix without elements are identities.
TEST(ArrayLinalg, MatricesWithoutElements) {
  const auto [u, values, vh] = la::svd(mx::zeros({2, 3, 0}));
  near(u, mx::broadcast_to(mx::eye(3), {2, 3, 3}), 0);
  EXPECT_EQ(values.shape(), (sdx::Shape{2, 0}));
  EXPECT_EQ(vh.shape(), (sdx::Shape{2, 0, 0}));
  near(std::get<2>(la::svd(mx::zeros({0, 1}, Dtype::complex64))), mx::ones({1, 1}, Dtype::complex64), 0);
  EXPECT_EQ(la::pinv(mx::zeros({4, 0, 3})).shape(), (sdx::Shape{4, 3, 0}));
  EXPECT_EQ(la::pinv(mx::zeros({0, 0})).shape(), (sdx::Shape{0, 0}));
  near(la::matrix_rank(mx::zeros({2, 0, 3})), mx::zeros({2}), 0);
  const auto [order, lower, upper] = la::lu(mx::zeros({3, 0}));
  near(order, mx::arange(3), 0);
  EXPECT_EQ(upper.shape(), (sdx::Shape{0, 0}));
  EXPECT_EQ(la::qr(mx::zeros({3, 0})).first.shape(), (sdx::Shape{3, 0}));
}

TEST(ArrayLinalg, CrossProducts) {
  const array x({1.0F, 2.0F, 3.0F}), y({4.0F, 5.0F, 6.0F}), flat({7.0F, 8.0F});
  near(la::cross(x, y), array({-3.0F, 6.0F, -3.0F}), 0);
  near(la::cross(x, flat), array({-24.0F, 21.0F, -6.0F}), 0);
  near(la::cross(flat, x), array({24.0F, -21.0F, 6.0F}), 0);
  EXPECT_EQ(la::cross(flat, flat).item<float>(), 0);
  EXPECT_EQ(la::cross(mx::zeros({3, 5}), mx::zeros({3, 5}), 0).shape(), (sdx::Shape{3, 5}));
  EXPECT_THROW(la::cross(x, array({1.0F})), sdx::Error);
}

TEST(ArrayLinalg, Batches) {
  const array a = numbers({4, 3, 5, 3}, Dtype::float64), b = numbers({3, 2}, Dtype::float64, 2);
  const auto f = [](const Arrays& x) { return Arrays{la::solve(x[0], x[1])}; };
  const array got = mx::vmap(mx::vmap(f, {0, std::nullopt}), {2, std::nullopt})({a, b})[0];
  EXPECT_EQ(got.shape(), (sdx::Shape{5, 4, 3, 2}));
  near(got, la::solve(mx::moveaxis(a, 2, 0), b), 1e-12);
}

TEST(ArrayLinalg, MistakesAreNamed) {
  EXPECT_THROW(la::inv(mx::zeros({2, 3})), sdx::Error);
  EXPECT_THROW(la::inv(mx::zeros({2})), sdx::Error);
  EXPECT_THROW(la::inv(mx::zeros({2, 2}, Dtype::float16)), sdx::Error);
  EXPECT_THROW(la::solve(mx::zeros({2, 2}), mx::zeros({3, 1})), sdx::Error);
  EXPECT_THROW(la::eigh(mx::zeros({2, 2}), "M"), sdx::Error);
  EXPECT_THROW(la::inv(mx::zeros({2, 2})).eval(), sdx::Error);
  EXPECT_THROW(la::cholesky(array({1.0F, 2.0F, 2.0F, 1.0F}, {2, 2})).eval(), sdx::Error);
  EXPECT_THROW(la::svdvals(array(sdx::Tensor::of<float>({1, 1}, {NAN}))).eval(), sdx::Error);
}
