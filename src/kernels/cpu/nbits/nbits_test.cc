#include "kernels/cpu/nbits/nbits.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/system/amx.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;

enum class Zeros { none, packed, floats, whole_floats };

struct Case {
  std::int64_t m, n, k, block;
};

// Weights of one case, as the operator stores them, and as doubles.
struct Weights {
  Weights(const Case& c, int bit_count, Zeros zeros) : bits(bit_count) {
    blocks = (c.k + c.block - 1) / c.block;
    const std::int64_t column = blocks * c.block * bits / 8, zero_row = (blocks * bits + 7) / 8;
    codes = test::random_ints<std::uint8_t>(c.n * column + 1, 1);  // one byte off any alignment
    packed_zeros = test::random_ints<std::uint8_t>(c.n * zero_row, 2);
    scales = random_floats(c.n * blocks, 3, 0.01F, 0.1F);
    float_zeros = random_floats(c.n * blocks, 4, 0, 15);
    if (zeros == Zeros::whole_floats) {
      for (float& z : float_zeros) z = std::floor(z);
    }
    source.k = c.k, source.n = c.n, source.bits = bits, source.block = c.block;
    source.b = codes.data() + 1, source.scales = scales.data();
    if (zeros == Zeros::packed) source.zero_points = packed_zeros.data();
    if (zeros == Zeros::floats || zeros == Zeros::whole_floats) source.zero_points_f32 = float_zeros.data();
    values.resize(static_cast<std::size_t>(c.n * c.k));
    for (std::int64_t j = 0; j < c.n; ++j) {
      for (std::int64_t k = 0; k < c.k; ++k) {
        const std::int64_t b = k / c.block;
        const int q = code(codes.data() + 1 + j * column, k);
        double zero = bits == 4 ? 8 : 128;
        if (zeros == Zeros::packed) zero = code(packed_zeros.data() + j * zero_row, b);
        if (source.zero_points_f32 != nullptr) zero = float_zeros[static_cast<std::size_t>(j * blocks + b)];
        values[static_cast<std::size_t>(j * c.k + k)] = (q - zero) * scales[static_cast<std::size_t>(j * blocks + b)];
      }
    }
  }
  int code(const std::uint8_t* p, std::int64_t i) const {
    if (bits == 8) return p[i];
    return i % 2 == 0 ? p[i / 2] & 15 : p[i / 2] >> 4;
  }

  int bits;
  std::int64_t blocks = 0;
  std::vector<std::uint8_t> codes, packed_zeros;
  std::vector<float> scales, float_zeros;
  std::vector<double> values;  // [n][k]
  NBitsSource source;
};

void multiply(const Case& c, const Weights& w, const float* a, const float* bias, UnarySpec act, NBitsAccuracy accuracy,
              float* out) {
  Guarded<std::uint8_t> packed(static_cast<std::int64_t>(nbits_packed_bytes(w.source)));
  nbits_pack(w.source, packed.data());
  NBitsArgs args;
  args.m = c.m, args.n = c.n, args.k = c.k, args.bits = w.bits, args.block = c.block, args.a = a, args.lda = c.k;
  args.packed = packed.data(), args.bias = bias, args.c = out, args.ldc = c.n, args.act = act, args.accuracy = accuracy;
  nbits_gemm(args);
}

// Relative to the sum of |activation| |weight| in float32; otherwise to the largest activation times the sum of |weight|: half a
// step of 1 / 32512, and of 1 / 127 (codes of 8 bits are multiplied by 16 bits).
double tolerance(NBitsAccuracy accuracy) {
  if (accuracy == NBitsAccuracy::float32) return 2e-6;
  return accuracy == NBitsAccuracy::float16 ? 2e-5 : 4.1e-3;
}

void check(const Case& c, int bits, Zeros zeros, NBitsAccuracy accuracy) {
  SCOPED_TRACE("m " + std::to_string(c.m) + " k " + std::to_string(c.k) + " block " + std::to_string(c.block) + " bits " +
               std::to_string(bits) + " zeros " + std::to_string(static_cast<int>(zeros)) + " accuracy " +
               std::to_string(static_cast<int>(accuracy)));
  const Weights w(c, bits, zeros);
  Guarded<float> a(c.m * c.k, 1, random_floats(c.m * c.k, 5)), bias(c.n, 1, random_floats(c.n, 6)), out(c.m * c.n, 3);
  multiply(c, w, a.data(), bias.data(), {Unary::relu}, accuracy, out.data());
  for (std::int64_t i = 0; i < c.m; ++i) {
    for (std::int64_t j = 0; j < c.n; ++j) {
      double sum = bias[j], size = 0;
      for (std::int64_t k = 0; k < c.k; ++k) {
        const double weight = w.values[static_cast<std::size_t>(j * c.k + k)], x = a[i * c.k + k];
        sum += x * weight;
        size += std::fabs(weight) * (accuracy == NBitsAccuracy::float32 ? std::fabs(x) : 1.0);
      }
      ASSERT_NEAR(out[i * c.n + j], std::max(0.0, sum), tolerance(accuracy) * (size + 1)) << "row " << i << " column " << j;
    }
  }
}

TEST(KernelsNBits, MatchesDequantisedProduct) {
  for_each_isa([] {
    for (const Case& c :
         {Case{1, 5, 32, 32}, Case{1, 33, 100, 16}, Case{3, 40, 256, 64}, Case{7, 70, 130, 32}, Case{20, 50, 500, 128},
          Case{9, 16, 33, 32}, Case{4, 17, 700, 256}, Case{2, 64, 96, 32}, Case{5, 3, 1, 16}}) {
      for (const int bits : {4, 8}) {
        for (const Zeros zeros : {Zeros::none, Zeros::packed, Zeros::floats, Zeros::whole_floats}) {
          for (const NBitsAccuracy a : {NBitsAccuracy::float32, NBitsAccuracy::float16, NBitsAccuracy::int8})
            check(c, bits, zeros, a);
        }
      }
    }
  });
}

// Every code and activation at its extreme, all of one sign: the sums nearest to overflow.
TEST(KernelsNBits, ExtremesDoNotOverflow) {
  for_each_isa([] {
    const Case c{2, 16, 256, 64};
    for (const int bits : {4, 8}) {
      for (const int code : {0, 255}) {
        for (const int zero : {-1, 0, 255}) {
          for (const float x : {1.0F, -1.0F}) {
            Weights w(c, bits, zero < 0 ? Zeros::none : Zeros::packed);
            std::fill(w.codes.begin(), w.codes.end(), static_cast<std::uint8_t>(code));
            std::fill(w.packed_zeros.begin(), w.packed_zeros.end(), static_cast<std::uint8_t>(zero));
            const std::vector<float> a(static_cast<std::size_t>(c.m * c.k), x);
            const int most = (1 << bits) - 1, q = code & most, z = zero < 0 ? (most + 1) / 2 : zero & most;
            for (const NBitsAccuracy accuracy : {NBitsAccuracy::float32, NBitsAccuracy::float16, NBitsAccuracy::int8}) {
              std::vector<float> out(static_cast<std::size_t>(c.m * c.n));
              multiply(c, w, a.data(), nullptr, {}, accuracy, out.data());
              for (std::int64_t j = 0; j < c.n; ++j) {
                double want = 0;
                for (std::int64_t b = 0; b < w.blocks; ++b)
                  want += static_cast<double>(w.scales[static_cast<std::size_t>(j * w.blocks + b)]) * c.block * (q - z) * x;
                ASSERT_NEAR(out[static_cast<std::size_t>(j)], want, 1e-5 * std::fabs(want) + 1e-4)
                    << "bits " << bits << " code " << q << " zero " << z;
              }
            }
          }
        }
      }
    }
  });
}

// One unusual activation in row 0: each output is what the sum of the products is, and other rows are as ever.
void check_unusual(const Case& c, const Weights& w, NBitsAccuracy accuracy) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr std::int64_t kOdd = 40;
  for (const float odd : {std::numeric_limits<float>::quiet_NaN(), kInf, -kInf, std::numeric_limits<float>::max()}) {
    SCOPED_TRACE("rows " + std::to_string(c.m) + " bits " + std::to_string(w.bits) + " activation " + std::to_string(odd));
    std::vector<float> a = random_floats(c.m * c.k, 5), out(static_cast<std::size_t>(c.m * c.n));
    a[kOdd] = odd;
    multiply(c, w, a.data(), nullptr, {}, accuracy, out.data());
    for (std::int64_t j = 0; j < c.n; ++j) {
      const float got = out[static_cast<std::size_t>(j)],
                  weight = static_cast<float>(w.values[static_cast<std::size_t>(j * c.k + kOdd)]);
      const float want = odd * weight;  // the others are nothing beside it
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << got << " column " << j;
      } else if (std::isinf(want)) {
        EXPECT_EQ(got, want) << "column " << j;
      } else if (weight != 0.0F) {
        EXPECT_NEAR(got / want, 1.0F, 1e-5F) << "column " << j;
      } else {
        EXPECT_LT(std::fabs(got), 1e3F) << "column " << j;
      }
      EXPECT_TRUE(std::isfinite(out[static_cast<std::size_t>(c.n + j)]));
    }
  }
}

// Activations without a fixed-point form are multiplied as floats: NaN, infinities and the largest numbers propagate as in any
// product, tiny numbers count.
TEST(KernelsNBits, UnusualActivations) {
  for_each_isa([] {
    for (const Case& c : {Case{2, 20, 64, 32}, Case{20, 20, 64, 32}}) {
      for (const int bits : {4, 8}) {
        for (const Zeros zeros : {Zeros::none, Zeros::packed, Zeros::floats, Zeros::whole_floats}) {
          Weights w(c, bits, zeros);
          for (const NBitsAccuracy accuracy : {NBitsAccuracy::float32, NBitsAccuracy::float16, NBitsAccuracy::int8})
            check_unusual(c, w, accuracy);
        }
      }
    }
    const Case c{2, 20, 64, 32};
    const Weights w(c, 4, Zeros::none);
    for (const NBitsAccuracy accuracy : {NBitsAccuracy::float32, NBitsAccuracy::int8}) {
      std::vector<float> a(static_cast<std::size_t>(c.m * c.k), 1e-33F), out(static_cast<std::size_t>(c.m * c.n));
      multiply(c, w, a.data(), nullptr, {}, accuracy, out.data());
      double want = 0, size = 0;
      for (std::int64_t k = 0; k < c.k; ++k)
        want += w.values[static_cast<std::size_t>(k)], size += std::fabs(w.values[static_cast<std::size_t>(k)]);
      EXPECT_NEAR(out[0], 1e-33 * want, 1e-35 * size);
    }
  });
}

// Tiles add the same integers as other instructions, and scale those of blocks with one part in the same order.
TEST(KernelsNBits, TilesAgreeWithDotProducts) {
  if (!use_amx()) GTEST_SKIP() << "no AMX";
  for (const Case& c : {Case{16, 32, 32, 32}, Case{17, 40, 100, 16}, Case{33, 70, 130, 32}, Case{47, 50, 500, 128},
                        Case{128, 33, 256, 64}, Case{64, 96, 1024, 32}}) {
    for (const Zeros zeros : {Zeros::none, Zeros::packed, Zeros::floats, Zeros::whole_floats}) {
      SCOPED_TRACE("m " + std::to_string(c.m) + " k " + std::to_string(c.k) + " block " + std::to_string(c.block));
      const Weights w(c, 4, zeros);
      const std::vector<float> a = random_floats(c.m * c.k, 5);
      Guarded<float> tiles(c.m * c.n, 3), dots(c.m * c.n, 3);
      multiply(c, w, a.data(), nullptr, {Unary::relu}, NBitsAccuracy::int8, tiles.data());
      allow_amx(false);
      multiply(c, w, a.data(), nullptr, {Unary::relu}, NBitsAccuracy::int8, dots.data());
      allow_amx(true);
      const float most = c.block <= 32 ? 0.0F : 1e-5F;
      for (std::int64_t i = 0; i < c.m * c.n; ++i) ASSERT_NEAR(tiles[i], dots[i], most * (1 + std::fabs(dots[i]))) << i;
    }
  }
}

// SMMLA adds the same integers as SDOT, which are scaled in the same order.
TEST(KernelsNBits, MatricesAgreeWithDotProducts) {
  if (!use_i8mm()) GTEST_SKIP() << "no I8MM";
  for (const Case& c :
       {Case{1, 32, 64, 32}, Case{2, 40, 100, 16}, Case{3, 70, 130, 32}, Case{4, 50, 500, 128}, Case{15, 33, 256, 64}}) {
    for (const int bits : {4, 8}) {
      for (const Zeros zeros : {Zeros::none, Zeros::packed, Zeros::floats}) {
        for (const NBitsAccuracy accuracy : {NBitsAccuracy::float32, NBitsAccuracy::float16, NBitsAccuracy::int8}) {
          SCOPED_TRACE("m " + std::to_string(c.m) + " k " + std::to_string(c.k) + " bits " + std::to_string(bits));
          const Weights w(c, bits, zeros);
          const std::vector<float> a = random_floats(c.m * c.k, 5);
          Guarded<float> matrices(c.m * c.n, 3), dots(c.m * c.n, 3);
          multiply(c, w, a.data(), nullptr, {}, accuracy, matrices.data());
          allow_i8mm(false);
          multiply(c, w, a.data(), nullptr, {}, accuracy, dots.data());
          allow_i8mm(true);
          for (std::int64_t i = 0; i < c.m * c.n; ++i) ASSERT_EQ(matrices[i], dots[i]) << i;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sdx::cpu
