#include "array/ops/checked_test.h"

using namespace sdx::array;
using namespace sdx::array::checked;

namespace {

// Eighths that every format scales in its own way.
array eighths() {
  sdx::Tensor t(Dtype::float32, {2, 32});
  const auto values = t.mutable_values<float>();
  for (std::size_t i = 0; i < 32; ++i) {
    values[i] = (static_cast<float>(i * 37 % 64) - 20) / 8;
    values[i + 32] = values[i] * -0.37F;
  }
  return array(t);
}

struct Expected {
  std::string mode;
  int bits;
  std::vector<std::uint32_t> codes;
  std::vector<double> scales, biases;
};

array as_single(const array& a) { return astype(a, Dtype::float32); }

}  // namespace

// As MLX 0.32.4 on a CPU.
TEST(ArrayQuantize, PacksAsMlx) {
  const std::vector<Expected> all{
      {"affine", 1, {0xA95AB52Au, 0x56A54AD5u}, {7.875, 2.913749933242798}, {-2.5, -1.9887499809265137}},
      {"affine",
       2,
       {0x7499E267u, 0x26789D22u, 0x7499E267u, 0x26789D22u},
       {-2.6875, 0.9943749904632568},
       {5.375, -1.9887499809265137}},
      {"affine",
       3,
       {0xB3F0D59Fu, 0x310D5D8Au, 0x1567E1ABu, 0xB3F0D59Fu, 0x310D5D8Au, 0x1567E1ABu},
       {-1.0750000476837158, 0.39774999022483826},
       {5.375, -1.9887499809265137}},
      {"affine",
       4,
       {0xE81A4C6Fu, 0x5D7193C5u, 0xA4D6092Bu, 0x1A3C6E82u, 0xE81A4C6Fu, 0x5D7193C5u, 0xA4D6092Bu, 0x1A3C6E82u},
       {-0.5375000238418579, 0.19887499511241913},
       {5.375, -1.9887499809265137}},
      {"affine",
       5,
       {0x075469BFu, 0x1A1B0BECu, 0x48B7571Eu, 0x23AA34D0u, 0x150F967Au, 0x075469BFu, 0x1A1B0BECu, 0x48B7571Eu, 0x23AA34D0u,
        0x150F967Au},
       {-0.255952388048172, 0.09470237791538239},
       {5.375, -1.9887499809265137}},
      {"affine",
       6,
       {0xAB4356BFu, 0xDC97F211u, 0x539783A0u, 0x9B0252AFu, 0xD887B11Du, 0x1293B363u, 0xAB4356BFu, 0xDC97F211u, 0x539783A0u,
        0x9B0252AFu, 0xD887B11Du, 0x1293B363u},
       {-0.125, 0.04625000059604645},
       {5.375, -1.9887499809265137}},
      {"affine",
       8,
       {0x41D669FFu, 0xF38618AEu, 0xA235CA5Du, 0x51E7790Cu, 0x009628BEu, 0xB245DB6Du, 0x61F78A1Cu, 0x10A639CEu, 0x41D669FFu,
        0xF38618AEu, 0xA235CA5Du, 0x51E7790Cu, 0x009628BEu, 0xB245DB6Du, 0x61F78A1Cu, 0x10A639CEu},
       {-0.030890803784132004, 0.01142959762364626},
       {5.375, -1.9887499809265137}},
      {"mxfp4",
       4,
       {0xC2605A4Cu, 0x5B3616A4u, 0x05B47169u, 0x606A4C26u, 0x3AD0C2B4u, 0xC3AE9D1Cu, 0x0C2BE9D1u, 0xE0D1C3ADu},
       {127, 126},
       {}},
      {"mxfp8",
       8,
       {0x76EA70F2u, 0xF06A7900u, 0x5C77E672u, 0x74EE6D7Au, 0x7B6478E0u, 0xD075EB70u, 0x72F16979u, 0x7A5876E8u, 0xF267ED6Fu,
        0x6DE7F680u, 0xD9F362EFu, 0xF16AEAF7u, 0xF8E1F45Cu, 0x4CF268ECu, 0xEE6DE5F5u, 0xF6D4F364u},
       {121, 120},
       {}},
      {"nvfp4",
       4,
       {0xD3706B5Du, 0x6C4716A5u, 0x06B47269u, 0x716A5D37u, 0x5BF0E3D5u, 0xD4CF9E2Du, 0x0D3CFAE1u, 0xF9E2D4AEu},
       {53, 54, 42, 43},
       {}},
  };
  for (const Expected& e : all) {
    SCOPED_TRACE(e.mode + ", bits " + std::to_string(e.bits));
    const bool affine = e.mode == "affine";
    const auto parts = quantize(eighths(), affine ? std::optional<int>(32) : std::nullopt, e.bits, e.mode);
    const auto codes = parts[0].data<std::uint32_t>();
    EXPECT_EQ(std::vector<std::uint32_t>(codes.begin(), codes.end()), e.codes);
    EXPECT_EQ(values(parts[1]), e.scales);
    if (affine) {
      EXPECT_EQ(values(parts[2]), e.biases);
    }
  }
}

TEST(ArrayQuantize, ComesBackNearby) {
  const array w = as_single(numbers({6, 128}));
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    const auto q = quantize(w, 64, bits);
    expect_close(dequantize(q[0], q[1], q[2], 64, bits), w, 1.01 / ((1 << bits) - 1), std::to_string(bits));
  }
  const auto q = quantize(w, {}, {}, "nvfp4", array(1.0F));
  expect_close(dequantize(q[0], q[1], {}, {}, {}, "nvfp4", array(1.0F), Dtype::float32), w, 0.2, "nvfp4");
}

TEST(ArrayQuantize, Products) {
  const array x = as_single(numbers({2, 3, 64}, 2)), w = as_single(numbers({32, 64}));
  for (const std::string mode : {"affine", "mxfp4", "mxfp8", "nvfp4"}) {
    const auto q = quantize(w, {}, {}, mode);
    const auto biases = q.size() > 2 ? std::optional(q[2]) : std::nullopt;
    const array flat = dequantize(q[0], q[1], biases, {}, {}, mode, {}, Dtype::float32);
    expect_close(quantized_matmul(x, q[0], q[1], biases, true, {}, {}, mode), matmul(x, transpose(flat)), 1e-5, mode);
    const array y = as_single(numbers({5, 32}, 3));
    expect_close(quantized_matmul(y, q[0], q[1], biases, false, {}, {}, mode), matmul(y, flat), 1e-5, mode + ", not transposed");
  }
}

TEST(ArrayQuantize, GathersMatrices) {
  const array x = as_single(numbers({3, 2, 64}, 2)), w = as_single(numbers({4, 8, 64}));
  const auto q = quantize(w);
  const array left = positions({2, 1}, {2, 0}), right = positions({3}, {3, 1, 1});
  const array flat = swapaxes(dequantize(q[0], q[1], q[2]), -1, -2);
  const array expected = matmul(take(x, broadcast_to(left, {2, 3}), 0), take(flat, broadcast_to(right, {2, 3}), 0));
  expect_close(gather_qmm(x, q[0], q[1], q[2], left, right), expected, 1e-5, "gather_qmm");
  expect_close(gather_mm(x, flat, left, right), expected, 1e-5, "gather_mm");
  EXPECT_THROW(gather_qmm(x, q[0], q[1], q[2], left, positions({1}, {4})).eval(), sdx::Error);
  EXPECT_THROW(quantized_matmul(x, q[0], q[1]), sdx::Error);
}

TEST(ArrayQuantize, Derivatives) {
  const array x = as_single(numbers({3, 32}, 2));
  const auto q = quantize(as_single(numbers({4, 32})), 32);
  const auto by_kernel = [&](const Arrays& a) { return Arrays{sum(square(quantized_matmul(a[0], q[0], a[1], a[2], true, 32)))}; };
  const auto by_parts = [&](const Arrays& a) {
    return Arrays{sum(square(matmul(a[0], transpose(dequantize(q[0], a[1], a[2], 32)))))};
  };
  const Arrays args{x, q[1], q[2]};
  const Arrays one = grad(by_kernel, {0, 1, 2})(args), other = grad(by_parts, {0, 1, 2})(args);
  for (std::size_t i = 0; i < 3; ++i) expect_close(one[i], other[i], 1e-4, "argument " + std::to_string(i));
  // A scale's derivative is the codes' sum, which differences see as well.
  const auto of_scales = [&](const array& s) { return sum(dequantize(q[0], s, q[2], 32)); };
  const array g = grad(of_scales)(q[1]);
  EXPECT_NEAR(sum(g).item<float>(), subtract(of_scales(add(q[1], array(1.0F))), of_scales(q[1])).item<float>(), 0.05);
}

TEST(ArrayQuantize, ProductsOfTwoQuantized) {
  const array x = as_single(numbers({3, 64}, 2)), w = as_single(numbers({5, 64}));
  for (const std::string mode : {"mxfp8", "nvfp4"}) {
    const auto q = quantize(w, {}, {}, mode), r = quantize(x, {}, {}, mode);
    const auto back = [&](const Arrays& a) { return dequantize(a[0], a[1], {}, {}, {}, mode, {}, Dtype::float32); };
    const array expected = matmul(back(r), transpose(back(q)));
    expect_close(qqmm(x, q[0], q[1], {}, {}, mode), expected, 1e-5, mode);
    expect_close(qqmm(x, w, {}, {}, {}, mode), expected, 1e-5, mode + ", not yet quantized");
  }
}
