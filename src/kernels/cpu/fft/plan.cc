#include "kernels/cpu/fft/plan.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <numbers>

#include "base/error.h"

namespace sdx::cpu {
namespace {

// exp(-2 pi i k / n)
template <class T>
void root(std::int64_t k, std::int64_t n, T& re, T& im) {
  const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  re = static_cast<T>(std::cos(angle));
  im = static_cast<T>(-std::sin(angle));
}

// Radices of n, 4 first (most work for each number that is moved); empty where a prime is too large.
std::vector<std::int64_t> radices(std::int64_t n) {
  std::vector<std::int64_t> found;
  for (const std::int64_t p : {4, 2, 3, 5, 7, 11, 13, 17, 19, 23}) {
    for (; n % p == 0; n /= p) found.push_back(p);
  }
  if (n > 1) return {};
  return found;
}

// The smallest product of 2, 3 and 5 from n on.
std::int64_t good_length(std::int64_t n) {
  std::int64_t best = INT64_MAX;
  for (std::int64_t five = 1; five < 2 * n; five *= 5) {
    for (std::int64_t three = five; three < 2 * n; three *= 3) {
      std::int64_t all = three;
      while (all < n) all *= 2;
      best = std::min(best, all);
    }
  }
  return best;
}

template <class T>
FftPass<T> pass_of(std::int64_t n, std::int64_t radix) {
  FftPass<T> pass;
  pass.radix = radix;
  pass.m = n / radix;
  pass.re.resize(static_cast<std::size_t>(pass.m * (radix - 1)));
  pass.im.resize(pass.re.size());
  for (std::int64_t j = 1; j < radix; ++j) {
    for (std::int64_t q = 0; q < pass.m; ++q) {
      const auto at = static_cast<std::size_t>((j - 1) * pass.m + q);
      root(q * j, n, pass.re[at], pass.im[at]);
    }
  }
  if (radix <= 5) return pass;
  pass.root_re.resize(static_cast<std::size_t>(radix));
  pass.root_im.resize(static_cast<std::size_t>(radix));
  for (std::int64_t k = 0; k < radix; ++k)
    root(k, radix, pass.root_re[static_cast<std::size_t>(k)], pass.root_im[static_cast<std::size_t>(k)]);
  return pass;
}

}  // namespace

template <class T>
FftPlan<T>::FftPlan(std::int64_t n) : n_(n) {
  if (n > (std::int64_t{1} << 36)) fail(ErrorCode::out_of_memory, "a Fourier transform of length {} is too long", n);
  if (n <= 1) return;
  const std::vector<std::int64_t> all = radices(n);
  for (const std::int64_t radix : all) {
    passes_.push_back(pass_of<T>(n, radix));
    n /= radix;
  }
  if (!all.empty()) return;
  padded_ = fft_plan<T>(good_length(2 * n_ - 1));
  const auto size = static_cast<std::size_t>(n_), padded = static_cast<std::size_t>(padded_->length());
  chirp_re_.resize(size), chirp_im_.resize(size);
  std::int64_t square = 0;  // k^2 modulo 2n: keeps the angle exact for large k
  for (std::size_t k = 0; k < size; ++k) {
    root(square, 2 * n_, chirp_re_[k], chirp_im_[k]);
    square = (square + 2 * static_cast<std::int64_t>(k) + 1) % (2 * n_);
  }
  spectrum_re_.assign(padded, 0), spectrum_im_.assign(padded, 0);
  for (std::size_t k = 0; k < size; ++k) {
    for (const std::size_t at : {k, (padded - k) % padded}) {
      spectrum_re_[at] = chirp_re_[k] / static_cast<T>(padded);
      spectrum_im_[at] = -chirp_im_[k] / static_cast<T>(padded);
    }
  }
  std::vector<T> scratch(padded_->scratch(1));
  padded_->run(spectrum_re_.data(), spectrum_im_.data(), scratch.data(), 1);
}

template <class T>
std::size_t FftPlan<T>::scratch(std::int64_t lanes) const noexcept {
  const std::int64_t own = 2 * n_ * lanes;
  if (!padded_) return static_cast<std::size_t>(own);
  return static_cast<std::size_t>(2 * padded_->length() * lanes) + padded_->scratch(lanes);
}

template <class T>
std::size_t FftPlan<T>::bytes() const noexcept {
  std::size_t numbers = chirp_re_.size() * 2 + spectrum_re_.size() * 2;
  for (const auto& pass : passes_) numbers += 2 * pass.re.size();
  numbers += 2 * static_cast<std::size_t>(n_);  // half_roots()
  return numbers * sizeof(T) + (padded_ ? padded_->bytes() : 0);
}

template <class T>
const typename FftPlan<T>::HalfRoots& FftPlan<T>::half_roots() const {
  std::call_once(once_, [&] {
    half_roots_.re.resize(static_cast<std::size_t>(n_));
    half_roots_.im.resize(static_cast<std::size_t>(n_));
    for (std::int64_t k = 0; k < n_; ++k) {
      const auto at = static_cast<std::size_t>(k);
      root(k, 2 * n_, half_roots_.re[at], half_roots_.im[at]);
      half_roots_.im[at] = -half_roots_.im[at];
    }
  });
  return half_roots_;
}

template <class T>
void FftPlan<T>::run(T* re, T* im, T* scratch, std::int64_t lanes) const {
  if (padded_) return bluestein(re, im, scratch, lanes);
  FftNumbers<T> numbers{re, im, scratch, scratch + n_ * lanes};
  std::int64_t stride = lanes;
  for (const FftPass<T>& pass : passes_) {
    fft_pass(pass, numbers, stride);
    stride *= pass.radix;
    numbers = {numbers.y_re, numbers.y_im, const_cast<T*>(numbers.x_re), const_cast<T*>(numbers.x_im)};
  }
  if (numbers.x_re == re) return;
  std::copy(numbers.x_re, numbers.x_re + n_ * lanes, re);
  std::copy(numbers.x_im, numbers.x_im + n_ * lanes, im);
}

template <class T>
void FftPlan<T>::bluestein(T* re, T* im, T* scratch, std::int64_t lanes) const {
  const std::int64_t padded = padded_->length();
  T* work_re = scratch;
  T* work_im = scratch + padded * lanes;
  T* rest = scratch + 2 * padded * lanes;
  const auto each = [&](const std::vector<T>& by_re, const std::vector<T>& by_im, const T* from_re, const T* from_im, T* to_re,
                        T* to_im) {
    for (std::size_t k = 0; k < by_re.size(); ++k) {
      const T c = by_re[k], s = by_im[k];
      for (std::int64_t v = 0; v < lanes; ++v) {
        const std::int64_t at = static_cast<std::int64_t>(k) * lanes + v;
        const T x = from_re[at], y = from_im[at];
        to_re[at] = x * c - y * s;
        to_im[at] = x * s + y * c;
      }
    }
  };
  each(chirp_re_, chirp_im_, re, im, work_re, work_im);
  std::fill(work_re + n_ * lanes, work_re + padded * lanes, T(0));
  std::fill(work_im + n_ * lanes, work_im + padded * lanes, T(0));
  padded_->run(work_re, work_im, rest, lanes);
  each(spectrum_re_, spectrum_im_, work_re, work_im, work_re, work_im);
  padded_->run(work_im, work_re, rest, lanes);
  each(chirp_re_, chirp_im_, work_re, work_im, re, im);
}

template <class T>
std::shared_ptr<const FftPlan<T>> fft_plan(std::int64_t n) {
  constexpr std::size_t kMostBytes = std::size_t{64} << 20;
  struct Plans {
    std::mutex mutex;
    std::list<std::shared_ptr<const FftPlan<T>>> known;  // used last, first
    std::size_t bytes = 0;
  };
  static Plans& plans = *new Plans;
  {
    const std::lock_guard lock(plans.mutex);
    for (auto it = plans.known.begin(); it != plans.known.end(); ++it) {
      if ((*it)->length() != n) continue;
      plans.known.splice(plans.known.begin(), plans.known, it);
      return plans.known.front();
    }
  }
  auto made = std::make_shared<const FftPlan<T>>(n);  // outside the lock: Bluestein's needs another plan
  const std::lock_guard lock(plans.mutex);
  plans.known.push_front(made);
  plans.bytes += made->bytes();
  while (plans.bytes > kMostBytes && plans.known.size() > 1) {
    plans.bytes -= plans.known.back()->bytes();
    plans.known.pop_back();
  }
  return made;
}

template class FftPlan<float>;
template class FftPlan<double>;
template std::shared_ptr<const FftPlan<float>> fft_plan(std::int64_t);
template std::shared_ptr<const FftPlan<double>> fft_plan(std::int64_t);

}  // namespace sdx::cpu
