#pragma once
// Random ggml blocks with the values that they stand for, computed in double from the numbers that were packed, not from the
// bytes.

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tensor/ggml.h"
#include "tensor/types.h"

namespace sdx::test {

struct GgmlBlock {
  std::string bytes;
  std::vector<double> values;
};

class GgmlBlocks {
 public:
  explicit GgmlBlocks(std::uint32_t seed) : random_(seed) {}

  GgmlBlock make(const GgmlFormat& f) {
    GgmlBlock b;
    b.bytes.assign(static_cast<std::size_t>(f.bytes), '\0');
    b.values.assign(static_cast<std::size_t>(f.block), 0.0);
    switch (f.type) {
      case GgmlType::f32: plain_float(b); break;
      case GgmlType::f16: b.values[0] = half(b, 0); break;
      case GgmlType::bf16: brain_float(b); break;
      case GgmlType::q4_0: thirty_two(b, 4, false, 8); break;
      case GgmlType::q4_1: thirty_two(b, 4, true, 0); break;
      case GgmlType::q5_0: thirty_two(b, 5, false, 16); break;
      case GgmlType::q5_1: thirty_two(b, 5, true, 0); break;
      case GgmlType::q8_0: bytes8(b); break;
      case GgmlType::q2_k: two(b); break;
      case GgmlType::q3_k: three(b); break;
      case GgmlType::q4_k: four_or_five(b, false); break;
      case GgmlType::q5_k: four_or_five(b, true); break;
      case GgmlType::q6_k: six(b); break;
      case GgmlType::iq4_nl: nibbles(b, 0, 2, 16, half(b, 0), kUnevenValues); break;
      case GgmlType::iq4_xs: uneven(b); break;
      case GgmlType::tq1_0: five_in_a_byte(b); break;
      case GgmlType::tq2_0: ternary(b); break;
      case GgmlType::mxfp4: power(b); break;
      case GgmlType::nvfp4: small_floats(b); break;
    }
    return b;
  }

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  static void add(GgmlBlock& b, std::size_t at, int value) { b.bytes[at] = static_cast<char>(b.bytes[at] | value); }

  // A half of moderate size at byte `at`.
  double half(GgmlBlock& b, std::size_t at) {
    const Float16 h((static_cast<float>(below(2001)) - 1000.0F) / 8192.0F);
    std::memcpy(b.bytes.data() + at, &h.bits, 2);
    return static_cast<double>(static_cast<float>(h));
  }
  void plain_float(GgmlBlock& b) {
    const float v = static_cast<float>(below(2001) - 1000) / 777.0F;
    std::memcpy(b.bytes.data(), &v, 4);
    b.values[0] = static_cast<double>(v);
  }
  void brain_float(GgmlBlock& b) {
    const BFloat16 v(static_cast<float>(below(2001) - 1000) / 777.0F);
    std::memcpy(b.bytes.data(), &v.bits, 2);
    b.values[0] = static_cast<double>(static_cast<float>(v));
  }
  // Codes of 4 or 5 bits: low nibbles for the first half of the block, high ones for the second.
  void thirty_two(GgmlBlock& b, int bits, bool min, int middle) {
    const double d = half(b, 0), m = min ? half(b, 2) : 0.0;
    const std::size_t fifth = min ? 4 : 2, codes = fifth + (bits == 5 ? 4 : 0);
    for (std::size_t i = 0; i < 32; ++i) {
      const int code = below(1 << bits);
      add(b, codes + i % 16, (code & 15) << (i < 16 ? 0 : 4));
      if (code >= 16) add(b, fifth + i / 8, 1 << (i % 8));
      b.values[i] = d * (code - middle) + m;
    }
  }
  void bytes8(GgmlBlock& b) {
    const double d = half(b, 0);
    for (std::size_t i = 0; i < 32; ++i) {
      const int code = below(256) - 128;
      b.bytes[2 + i] = static_cast<char>(code);
      b.values[i] = d * code;
    }
  }
  void two(GgmlBlock& b) {
    const double d = half(b, 80), dmin = half(b, 82);
    for (std::size_t s = 0; s < 16; ++s) {
      const int scale = below(16), min = below(16);
      add(b, s, scale | min << 4);
      for (std::size_t i = s * 16; i < s * 16 + 16; ++i) {
        const int code = below(4);
        add(b, 16 + i / 128 * 32 + i % 32, code << (2 * (i % 128 / 32)));
        b.values[i] = d * scale * code - dmin * min;
      }
    }
  }
  void three(GgmlBlock& b) {
    const double d = half(b, 108);
    for (std::size_t s = 0; s < 16; ++s) {
      const int scale = below(64);
      add(b, 96 + s % 8, (scale & 15) << (s < 8 ? 0 : 4));
      add(b, 104 + s % 4, scale >> 4 << (2 * (s / 4)));
      for (std::size_t i = s * 16; i < s * 16 + 16; ++i) {
        const int code = below(8);
        add(b, 32 + i / 128 * 32 + i % 32, (code & 3) << (2 * (i % 128 / 32)));
        if (code >= 4) add(b, i % 32, 1 << (i / 32));
        b.values[i] = d * (scale - 32) * (code - 4);
      }
    }
  }
  void four_or_five(GgmlBlock& b, bool five) {
    const double d = half(b, 0), dmin = half(b, 2);
    const std::size_t codes = five ? 48 : 16;
    for (std::size_t s = 0; s < 8; ++s) {
      const int scale = below(64), min = below(64);
      if (s < 4) {
        add(b, 4 + s, scale);
        add(b, 8 + s, min);
      } else {
        add(b, 8 + s, (scale & 15) | (min & 15) << 4);
        add(b, s, scale >> 4 << 6);
        add(b, 4 + s, min >> 4 << 6);
      }
      for (std::size_t i = 0; i < 32; ++i) {
        const int code = below(five ? 32 : 16);
        add(b, codes + s / 2 * 32 + i, (code & 15) << (s % 2 == 0 ? 0 : 4));
        if (code >= 16) add(b, 16 + i, 1 << s);
        b.values[s * 32 + i] = d * scale * code - dmin * min;
      }
    }
  }
  void six(GgmlBlock& b) {
    const double d = half(b, 208);
    for (std::size_t s = 0; s < 16; ++s) {
      const int scale = below(256) - 128;
      b.bytes[192 + s] = static_cast<char>(scale);
      for (std::size_t i = s * 16; i < s * 16 + 16; ++i) {
        const int code = below(64);
        const std::size_t half_of = i / 128, quarter = i % 128 / 32, l = i % 32;
        add(b, half_of * 64 + quarter % 2 * 32 + l, (code & 15) << (quarter < 2 ? 0 : 4));
        add(b, 128 + half_of * 32 + l, code >> 4 << (2 * quarter));
        b.values[i] = d * scale * (code - 32);
      }
    }
  }

  // 2 * `half` codes from value `first` on, in bytes from `at` on: low nibbles, then high ones.
  void nibbles(GgmlBlock& b, std::size_t first, std::size_t at, std::size_t half, double scale, const std::int8_t* values) {
    for (std::size_t i = 0; i < 2 * half; ++i) {
      const int code = below(16);
      add(b, at + i % half, code << (i < half ? 0 : 4));
      b.values[first + i] = scale * values[code];
    }
  }
  void uneven(GgmlBlock& b) {
    const double d = half(b, 0);
    for (std::size_t s = 0; s < 8; ++s) {
      const int scale = below(64);
      add(b, 4 + s / 2, (scale & 15) << (s % 2 * 4));
      add(b, 2 + s / 4, scale >> 4 << (s % 4 * 2));
      nibbles(b, 32 * s, 8 + 16 * s, 16, d * (scale - 32), kUnevenValues);
    }
  }
  void power(GgmlBlock& b) {
    const int e = below(20) + 110;
    b.bytes[0] = static_cast<char>(e);
    nibbles(b, 0, 1, 16, std::ldexp(0.5, e - 127), kFloat4Values);
  }
  void small_floats(GgmlBlock& b) {
    for (std::size_t s = 0; s < 4; ++s) {
      const int exponent = below(12), mantissa = below(8);
      b.bytes[s] = static_cast<char>(exponent << 3 | mantissa);
      const double scale = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
      nibbles(b, 16 * s, 4 + 8 * s, 8, scale / 2, kFloat4Values);
    }
  }
  void ternary(GgmlBlock& b) {
    const double d = half(b, 64);
    for (std::size_t i = 0; i < 256; ++i) {
      const int code = below(3);
      add(b, i / 128 * 32 + i % 32, code << (i % 128 / 32 * 2));
      b.values[i] = d * (code - 1);
    }
  }
  void five_in_a_byte(GgmlBlock& b) {
    const double d = half(b, 52);
    const auto pack = [&](std::size_t first, std::size_t at, std::size_t count, std::size_t digits) {
      for (std::size_t j = 0; j < count; ++j) {
        int number = 0;  // of five digits, of which the last may be missing
        for (std::size_t k = 0; k < 5; ++k) {
          const int digit = k < digits ? below(3) : 0;
          number = number * 3 + digit;
          if (k < digits) b.values[first + k * count + j] = d * (digit - 1);
        }
        b.bytes[at + j] = static_cast<char>((number * 256 + 242) / 243);
      }
    };
    pack(0, 0, 32, 5);
    pack(160, 32, 16, 5);
    pack(240, 48, 4, 4);
  }

  std::mt19937 random_;
};

struct GgmlWeights {
  std::string bytes;
  std::vector<double> values;  // [n, k]
};

// n rows of k elements.
inline GgmlWeights weights_of(const GgmlFormat& f, std::int64_t n, std::int64_t k) {
  GgmlBlocks blocks(static_cast<std::uint32_t>(n * 31 + k));
  GgmlWeights w;
  for (std::int64_t i = 0; i < n * (k / f.block); ++i) {
    const GgmlBlock b = blocks.make(f);
    w.bytes += b.bytes;
    w.values.insert(w.values.end(), b.values.begin(), b.values.end());
  }
  return w;
}

inline const std::array<GgmlType, 19> kGgmlTypes{
    GgmlType::f32,    GgmlType::f16,   GgmlType::bf16,  GgmlType::q4_0,  GgmlType::q4_1, GgmlType::q5_0, GgmlType::q5_1,
    GgmlType::q8_0,   GgmlType::q2_k,  GgmlType::q3_k,  GgmlType::q4_k,  GgmlType::q5_k, GgmlType::q6_k, GgmlType::iq4_nl,
    GgmlType::iq4_xs, GgmlType::tq1_0, GgmlType::tq2_0, GgmlType::mxfp4, GgmlType::nvfp4};

}  // namespace sdx::test
