#pragma once
// Fourier transforms of an operator's signals, over all threads.

#include <algorithm>

#include "base/thread_pool.h"
#include "kernels/cpu/fft/fourier.h"
#include "ops/context.h"

namespace sdx::ops {

// C: float or double; computed in double. Stops where the run does.
template <class C>
void transform_signals(const OpContext& c, const cpu::FourierJob& job, std::int64_t outer, const C* in, C* out) {
  const cpu::FourierTransform<C, double> fourier(job, outer);
  const std::int64_t grain = fourier.grain();
  parallel_for(fourier.count(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += grain) {
      c.stop().check();
      fourier.run(in, out, i, std::min(i + grain, end));
    }
  });
}

}  // namespace sdx::ops
