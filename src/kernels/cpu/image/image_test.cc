// Pooling, resizing, transposition and strided copies.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/thread_pool.h"
#include "kernels/cpu/image/pool.h"
#include "kernels/cpu/image/resize.h"
#include "kernels/cpu/movement/transpose.h"
#include "support/kernel_problems.h"

namespace sdx::cpu {
namespace {

using test::for_each_isa;
using test::Guarded;
using test::random_floats;

struct Pooling {
  std::int64_t in[3], kernel[3], stride[3], dilation[3], pad[3], pad_end[3];
};

TEST(KernelsPool, MaxAndAverageMatchTheDefinition) {
  const std::vector<Pooling> cases = {
      {{1, 12, 13}, {1, 2, 2}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
      {{1, 9, 35}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}},
      {{1, 7, 7}, {1, 7, 7}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
      {{1, 5, 3}, {1, 5, 3}, {1, 2, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
      {{3, 9, 8}, {3, 9, 8}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 0, 0}},
      {{1, 7, 5}, {1, 7, 5}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {0, 1, 0}},
      {{1, 10, 33}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}},
      {{1, 9, 11}, {1, 3, 2}, {1, 1, 3}, {1, 2, 3}, {0, 1, 1}, {0, 2, 0}},
      {{4, 5, 6}, {2, 3, 2}, {2, 1, 2}, {1, 1, 1}, {0, 1, 0}, {1, 1, 0}},
      {{1, 1, 50}, {1, 1, 40}, {1, 1, 3}, {1, 1, 1}, {0, 0, 5}, {0, 0, 5}},
      {{1, 40, 3}, {1, 36, 2}, {1, 2, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}},
      {{1, 3, 2}, {1, 2, 2}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, {0, 1, 1}},
  };
  for_each_isa([&] {
    for (std::size_t index = 0; index < cases.size(); ++index) {
      SCOPED_TRACE(index);
      const Pooling& c = cases[index];
      ConvShape s;
      s.batch = 2, s.in_channels = 3;
      for (int i = 0; i < 3; ++i) {
        s.in[i] = c.in[i], s.kernel[i] = c.kernel[i], s.stride[i] = c.stride[i], s.dilation[i] = c.dilation[i],
        s.pad[i] = c.pad[i];
        s.out[i] = (c.in[i] + c.pad[i] + c.pad_end[i] - (c.kernel[i] - 1) * c.dilation[i] - 1) / c.stride[i] + 1;
      }
      const std::int64_t in = s.in[0] * s.in[1] * s.in[2], out = s.out[0] * s.out[1] * s.out[2];
      Guarded<float> x(6 * in, 1, random_floats(6 * in, 1)), mx(6 * out, 3), av(6 * out, 2), ap(6 * out, 1);
      max_pool_f32(s, x.data(), mx.data());
      average_pool_f32(s, c.pad_end, false, x.data(), av.data());
      average_pool_f32(s, c.pad_end, true, x.data(), ap.data());
      for (std::int64_t p = 0; p < 6; ++p) {
        for (std::int64_t o = 0; o < out; ++o) {
          const std::int64_t pos[3] = {o / (s.out[2] * s.out[1]), o / s.out[2] % s.out[1], o % s.out[2]};
          double sum = 0, best = -1e300;
          std::int64_t inside = 0, padded = 0;
          for (std::int64_t z = 0; z < s.kernel[0]; ++z) {
            for (std::int64_t h = 0; h < s.kernel[1]; ++h) {
              for (std::int64_t w = 0; w < s.kernel[2]; ++w) {
                const std::int64_t k[3] = {z, h, w};
                std::int64_t at[3];
                bool in_range = true, in_padded = true;
                for (int i = 0; i < 3; ++i) {
                  at[i] = pos[i] * s.stride[i] - s.pad[i] + k[i] * s.dilation[i];
                  in_range = in_range && at[i] >= 0 && at[i] < s.in[i];
                  in_padded = in_padded && at[i] < s.in[i] + c.pad_end[i];
                }
                padded += in_padded ? 1 : 0;
                if (!in_range) continue;
                const double v = x[p * in + (at[0] * s.in[1] + at[1]) * s.in[2] + at[2]];
                sum += v, best = std::max(best, v), ++inside;
              }
            }
          }
          ASSERT_EQ(mx[p * out + o], static_cast<float>(best)) << o;
          ASSERT_NEAR(av[p * out + o], sum / static_cast<double>(inside), 1e-5) << o;
          ASSERT_NEAR(ap[p * out + o], sum / static_cast<double>(padded), 1e-5) << o;
        }
      }
    }
  });
}

TEST(KernelsPool, NanPropagates) {
  for_each_isa([] {
    ConvShape s;
    s.in[1] = s.in[2] = 9, s.kernel[1] = s.kernel[2] = 3, s.out[1] = s.out[2] = 7;
    std::vector<float> x(81, 1.0F), y(49);
    x[80] = x[0] = std::numeric_limits<float>::quiet_NaN();
    max_pool_f32(s, x.data(), y.data());
    EXPECT_TRUE(std::isnan(y[0]));
    EXPECT_TRUE(std::isnan(y[48]));
    EXPECT_EQ(y[24], 1.0F);
  });
}

void follow_the_tables(std::int64_t in_w) {
  for_each_isa([in_w] {
    const std::int64_t planes = 3, in_h = 5;
    Guarded<float> x(planes * in_h * in_w, 1, random_floats(planes * in_h * in_w, 1));
    for (const auto& [out_h, out_w] : {std::pair<std::int64_t, std::int64_t>{10, 2 * in_w}, {3, 4}, {9, 33}, {1, 1}}) {
      std::vector<std::int32_t> rows, columns;
      std::vector<LinearTap> lr, lc;
      for (std::int64_t i = 0; i < out_h; ++i) {
        const float at =
            static_cast<float>(i) * static_cast<float>(in_h - 1) / static_cast<float>(std::max<std::int64_t>(1, out_h - 1));
        rows.push_back(static_cast<std::int32_t>(i * in_h / out_h));
        const auto low = static_cast<std::int32_t>(at);
        lr.push_back({low, std::min<std::int32_t>(low + 1, static_cast<std::int32_t>(in_h - 1)), at - static_cast<float>(low)});
      }
      for (std::int64_t j = 0; j < out_w; ++j) {
        const float at =
            static_cast<float>(j) * static_cast<float>(in_w - 1) / static_cast<float>(std::max<std::int64_t>(1, out_w - 1));
        columns.push_back(static_cast<std::int32_t>(j * in_w / out_w));
        const auto low = static_cast<std::int32_t>(at);
        lc.push_back({low, std::min<std::int32_t>(low + 1, static_cast<std::int32_t>(in_w - 1)), at - static_cast<float>(low)});
      }
      Guarded<float> y(planes * out_h * out_w, 1), z(planes * out_h * out_w, 2);
      resize_nearest_f32(x.data(), y.data(), planes, in_h, in_w, out_h, out_w, rows.data(), columns.data());
      resize_linear_f32(x.data(), z.data(), planes, in_h, in_w, out_h, out_w, lr.data(), lc.data());
      for (std::int64_t p = 0; p < planes; ++p) {
        for (std::int64_t i = 0; i < out_h; ++i) {
          for (std::int64_t j = 0; j < out_w; ++j) {
            const auto at = [&](std::int32_t r, std::int32_t c) { return static_cast<double>(x[(p * in_h + r) * in_w + c]); };
            const LinearTap &r = lr[static_cast<std::size_t>(i)], &c = lc[static_cast<std::size_t>(j)];
            ASSERT_EQ(y[(p * out_h + i) * out_w + j],
                      at(rows[static_cast<std::size_t>(i)], columns[static_cast<std::size_t>(j)]));
            const double top = at(r.low, c.low) + c.t * (at(r.low, c.high) - at(r.low, c.low));
            const double bottom = at(r.high, c.low) + c.t * (at(r.high, c.high) - at(r.high, c.low));
            ASSERT_NEAR(z[(p * out_h + i) * out_w + j], top + r.t * (bottom - top), 1e-6);
          }
        }
      }
    }
  });
}

TEST(KernelsResize, NearestAndLinearFollowTheTables) {
  follow_the_tables(7);
  follow_the_tables(37);
}

// An infinite pixel is infinite as far as it reaches, and beside another one.
TEST(KernelsResize, LinearKeepsInfinities) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {1, kInf, kInf, 2, 1, 1, -kInf, 2};  // 2 x 4
  const std::vector<LinearTap> rows = {{0, 0, 0}, {0, 1, 0.5F}, {1, 1, 0}};
  const std::vector<LinearTap> columns = {{0, 0, 0}, {0, 1, 0.25F}, {1, 2, 0.5F}, {2, 3, 0.75F}, {3, 3, 0}};
  for_each_isa([&] {
    std::vector<float> y(15);
    resize_linear_f32(x.data(), y.data(), 1, 2, 4, 3, 5, rows.data(), columns.data());
    const std::vector<float> first(y.begin(), y.begin() + 5), last(y.begin() + 10, y.end());
    EXPECT_EQ(first, (std::vector<float>{1, kInf, kInf, kInf, 2}));
    EXPECT_EQ(last, (std::vector<float>{1, 1, -kInf, -kInf, 2}));
    EXPECT_EQ(y[5], 1.0F);
    EXPECT_EQ(y[6], kInf);
    EXPECT_TRUE(std::isnan(y[7]));
    EXPECT_TRUE(std::isnan(y[8]));
    EXPECT_EQ(y[9], 2.0F);
  });
}

TEST(KernelsTranspose, EveryPermutationAndElementSize) {
  const std::vector<std::vector<std::int64_t>> shapes = {{7},     {5, 9},  {33, 70}, {2, 5, 3}, {3, 1, 40, 2}, {4, 3, 5, 2, 3},
                                                         {1, 1},  {0, 3},  {3, 83},  {50, 3},   {2, 3, 16},    {2, 41},
                                                         {41, 2}, {4, 37}, {37, 4},  {70, 130}};
  for_each_isa([&] {
    for (const auto& dims : shapes) {
      const int rank = static_cast<int>(dims.size());
      const std::int64_t n = std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
      for (const std::size_t size : {1U, 2U, 4U, 8U, 16U}) {
        const auto bytes = n * static_cast<std::int64_t>(size);
        Guarded<unsigned char> x(bytes, 3, test::random_ints<unsigned char>(bytes, 1)), y_odd(bytes, 5), y_aligned(bytes, 0);
        Guarded<unsigned char> aligned(bytes, 0, test::random_ints<unsigned char>(bytes, 1));
        std::vector<int> perm(dims.size());
        std::iota(perm.begin(), perm.end(), 0);
        bool use_aligned = true;
        for (bool more = true; more;) {
          const unsigned char* src = use_aligned ? aligned.data() : x.data();
          auto& y = use_aligned ? y_aligned : y_odd;
          transpose(src, y.data(), size, rank, dims.data(), perm.data());
          for (std::int64_t i = 0; i < n; ++i) {
            std::int64_t rest = i, from = 0;
            for (int a = rank - 1; a >= 0; --a) {
              const std::int64_t extent = dims[static_cast<std::size_t>(perm[static_cast<std::size_t>(a)])];
              std::int64_t stride = 1;
              for (int b = perm[static_cast<std::size_t>(a)] + 1; b < rank; ++b) stride *= dims[static_cast<std::size_t>(b)];
              from += rest % extent * stride;
              rest /= extent;
            }
            ASSERT_EQ(
                std::memcmp(y.data() + i * static_cast<std::int64_t>(size), src + from * static_cast<std::int64_t>(size), size),
                0)
                << "size " << size << " element " << i;
          }
          use_aligned = !use_aligned;  // each permutation both ways
          if (use_aligned) more = std::next_permutation(perm.begin(), perm.end());
        }
      }
    }
  });
}

TEST(KernelsTranspose, StridedCopies) {
  const std::vector<float> x = random_floats(1000, 1);
  struct Case {
    std::vector<std::int64_t> dims, strides;
    std::int64_t base;
  };
  const std::vector<Case> cases = {{{10, 10}, {100, 1}, 5},         {{7}, {-3}, 500}, {{4, 5}, {0, 7}, 0}, {{4, 5}, {9, 0}, 0},
                                   {{3, 4, 5}, {-200, 30, 2}, 700}, {{1}, {5}, 3}};
  for (const Case& c : cases) {
    std::int64_t n = 1;
    for (const std::int64_t d : c.dims) n *= d;
    Guarded<float> y(n, 1);
    copy_strided(x.data() + c.base, y.data(), 4, static_cast<int>(c.dims.size()), c.dims.data(), c.strides.data());
    std::vector<float> back = random_floats(1000, 2);
    std::vector<float> want = back;
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t rest = i, at = c.base;
      for (std::size_t d = c.dims.size(); d-- > 0;) {
        at += rest % c.dims[d] * c.strides[d];
        rest /= c.dims[d];
      }
      ASSERT_EQ(y[i], x[static_cast<std::size_t>(at)]);
      want[static_cast<std::size_t>(at)] = y[i];
    }
    if (std::find(c.strides.begin(), c.strides.end(), 0) != c.strides.end()) continue;
    copy_strided_to(y.data(), back.data() + c.base, 4, static_cast<int>(c.dims.size()), c.dims.data(), c.strides.data());
    ASSERT_EQ(back, want);
  }
}

}  // namespace
}  // namespace sdx::cpu
