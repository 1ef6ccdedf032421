#pragma once
// Fourier transforms of many signals along one axis: any length, real or complex numbers at either end. Complex numbers are pairs
// of real and imaginary parts. Sources: ONNX DFT-20; plan.h.

#include <cstdint>
#include <memory>

#include "base/tools_api.h"
#include "kernels/cpu/fft/plan.h"

namespace sdx::cpu {

// The kinds of transforms of n numbers. The input's axis is cut, or filled with zeros, to the length that a kind needs.
enum class Fourier : std::int64_t {
  complex,          // complex to complex
  half,             // real to the first n / 2 + 1 complex numbers, exp(-...)
  half_doubled,     // the same; all but the first, and the last of an even length, times 2: the adjoint of `whole`
  whole,            // the first n / 2 + 1 complex numbers to n real ones, exp(+...)
  real_of_complex,  // complex to the real parts, exp(+...): the adjoint of `half`
};

// Signals lie as [outer, in, inner], results as [outer, out, inner]. Results beyond what the transform gives are zeros.
struct FourierJob {
  Fourier what = Fourier::complex;
  std::int64_t n = 0, in = 0, out = 0;  // points, extents of the axis
  std::int64_t inner = 1;               // elements behind the axis
  bool up = false;                      // exp(+...), of `complex` and `real_of_complex`
  double scale = 1;                     // of all results
};

// The arrangement of elements and signals: one signal, element after element; elements of several signals side by side; signals
// one after the other, several at once.
enum class FourierLayout { one, beside, behind };

// Elements of type C, computed in T. Immutable, so safe to share between threads.
template <class C, class T>
class SDX_TOOLS_API FourierTransform {
 public:
  FourierTransform(const FourierJob& job, std::int64_t outer);

  // Tasks [first, last) of count() may run on any thread; `grain()` of them at once are worth one.
  std::int64_t count() const noexcept { return tasks_; }
  std::int64_t grain() const noexcept;
  void run(const C* in, C* out, std::int64_t first, std::int64_t last) const;

 private:
  template <FourierLayout kLayout>
  void run_tasks(const C* in, C* out, std::int64_t first, std::int64_t last) const;

  FourierJob job_;
  std::shared_ptr<const FftPlan<T>> plan_;
  std::int64_t along_ = 0;   // signals that may be taken together
  std::int64_t lanes_ = 0;   // signals of one task
  std::int64_t groups_ = 0;  // tasks of signals that may be taken together
  std::int64_t tasks_ = 0;
};

}  // namespace sdx::cpu
