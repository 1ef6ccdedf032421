#pragma once
// For the kernels' unit tests: guarded and misaligned buffers, every instruction set of the machine, comparisons.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/system/amx.h"
#include "base/system/cpu_features.h"

namespace sdx::cpu::test {

// n elements between two canaries, `shift` elements off a 64-byte boundary. Fails the test when a canary was overwritten.
template <class T>
class Guarded {
 public:
  explicit Guarded(std::int64_t n, int shift = 0)
      : n_(n), bytes_(static_cast<std::size_t>(n) * sizeof(T) + 2 * kPad + 64, kMark) {
    const auto at = reinterpret_cast<std::uintptr_t>(bytes_.data() + kPad);
    begin_ = bytes_.data() + kPad + (64 - at % 64) % 64 + static_cast<std::size_t>(shift) * sizeof(T) % 64;
    std::memset(begin_, 0, static_cast<std::size_t>(n) * sizeof(T));
  }
  Guarded(std::int64_t n, int shift, const std::vector<T>& values) : Guarded(n, shift) {
    if (n > 0) std::memcpy(begin_, values.data(), static_cast<std::size_t>(n) * sizeof(T));  // an empty vector has no data
  }
  ~Guarded() { check(); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  T* data() { return reinterpret_cast<T*>(begin_); }
  T& operator[](std::int64_t i) { return data()[i]; }
  std::int64_t size() const { return n_; }
  void check() {
    for (unsigned char* p = bytes_.data(); p != begin_; ++p) ASSERT_EQ(*p, kMark) << "wrote before the buffer";
    unsigned char* end = begin_ + static_cast<std::size_t>(n_) * sizeof(T);
    for (unsigned char* p = end; p != bytes_.data() + bytes_.size(); ++p) ASSERT_EQ(*p, kMark) << "wrote past the buffer";
  }

 private:
  static constexpr std::size_t kPad = 256;
  static constexpr unsigned char kMark = 0xA5;
  std::int64_t n_;
  std::vector<unsigned char> bytes_;
  unsigned char* begin_ = nullptr;
};

inline std::vector<float> random_floats(std::int64_t n, unsigned seed, float lo = -1.0F, float hi = 1.0F) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> dist(lo, hi);
  std::vector<float> v(static_cast<std::size_t>(n));
  for (float& x : v) x = dist(rng);
  return v;
}

template <class T>
std::vector<T> random_ints(std::int64_t n, unsigned seed, int lo = std::numeric_limits<T>::min(),
                           int hi = std::numeric_limits<T>::max()) {
  std::mt19937 rng(seed);
  std::uniform_int_distribution<int> dist(lo, hi);
  std::vector<T> v(static_cast<std::size_t>(n));
  for (T& x : v) x = static_cast<T>(dist(rng));
  return v;
}

// Runs fn, and on machines with AMX or Arm's I8MM also without it.
template <class F>
void with_and_without_tiles(F&& fn) {
  fn();
  if (!use_amx() && !use_i8mm()) return;
  SCOPED_TRACE("no tiles");
  allow_amx(false);
  allow_i8mm(false);
  fn();
  allow_amx(true);
  allow_i8mm(true);
}

// Runs fn under every instruction set of this machine, with and without AMX and I8MM, and restores the choice. SDX_TEST_ISA names
// the only one to run, which saves an emulated machine three quarters of its time.
template <class F>
void for_each_isa(F&& fn) {
  const Isa before = cpu_isa();
  const char* only = std::getenv("SDX_TEST_ISA");
  for (const Isa isa : only != nullptr ? std::vector<Isa>{isa_from_name(only)} : supported_isas()) {
    SCOPED_TRACE("isa " + std::string(name(isa)));
    force_cpu_isa(isa);
    with_and_without_tiles(fn);
    if (::testing::Test::HasFatalFailure()) break;
  }
  force_cpu_isa(before);
}

// Distance in units of the last place of the float nearest to `want`.
inline double ulps(float got, double want) {
  const auto w = static_cast<float>(want);
  if (std::isnan(w)) return std::isnan(got) ? 0.0 : 1e30;
  if (std::isinf(w)) return got == w ? 0.0 : 1e30;
  if (std::isnan(got) || std::isinf(got)) return 1e30;
  int e = 0;
  std::frexp(w, &e);
  const double ulp = std::ldexp(1.0, std::max(e - 24, -149));
  return std::fabs(static_cast<double>(got) - want) / ulp;
}

// |got - want| <= tolerance * (scale or 1), element by element.
inline void expect_close(const float* got, const double* want, std::int64_t n, double tolerance, double scale = 1.0) {
  for (std::int64_t i = 0; i < n; ++i) {
    ASSERT_LE(std::fabs(static_cast<double>(got[i]) - want[i]), tolerance * scale)
        << "element " << i << " of " << n << ": got " << got[i] << ", want " << want[i];
  }
}

}  // namespace sdx::cpu::test
