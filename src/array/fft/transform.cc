#include "array/fft/transform.h"

#include <cmath>
#include <vector>

#include "array/array_op.h"
#include "base/parallel.h"

namespace sdx::array::detail {
namespace {

template <class T>
void transform(const cpu::FourierJob& job, const Tensor& in, Tensor& out) {
  const cpu::FourierTransform<T, T> fourier(job, out.size() / (job.out * job.inner));
  const auto* from = static_cast<const T*>(in.data());
  auto* to = static_cast<T*>(out.mutable_data());
  in_parallel(fourier.count(), fourier.grain(),
              [&](std::int64_t first, std::int64_t last) { fourier.run(from, to, first, last); });
}

}  // namespace

void run_fourier(ops::OpContext& c) {
  const std::vector<std::int64_t> ints = c.attrs().get_ints("ints");
  const Tensor& in = c.input(0);
  Tensor& out = result_tensor(c);
  const auto axis = static_cast<std::size_t>(ints[2]);
  cpu::FourierJob job{static_cast<Fourier>(ints[0]), ints[1], in.dim(axis), out.dim(axis), 1, ints[3] != 0, 1};
  const auto length = static_cast<double>(job.n);
  const auto norm = static_cast<FourierNorm>(ints[4]);
  if (norm != FourierNorm::none) job.scale = 1 / (norm == FourierNorm::by_length ? length : std::sqrt(length));
  for (std::size_t i = axis + 1; i < in.rank(); ++i) job.inner *= in.dim(i);
  if (out.size() == 0) return;
  const bool wide = in.dtype() == DataType::float64 || in.dtype() == DataType::complex128;
  wide ? transform<double>(job, in, out) : transform<float>(job, in, out);
}

}  // namespace sdx::array::detail
