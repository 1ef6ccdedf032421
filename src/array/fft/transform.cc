#include "array/fft/transform.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "array/fft/plan.h"
#include "array/kernels/stated.h"
#include "base/parallel.h"

namespace sdx::array::detail {
namespace {

// Signals that are gathered at once where their elements do not lie side by side.
constexpr std::int64_t kLanes = 16;

struct Job {
  Fourier what = Fourier::complex;
  std::int64_t n = 0, in = 0, out = 0;  // points, extents of the axis
  std::int64_t inner = 1;               // elements behind the axis
  bool up = false;                      // exp(+...)
  double scale = 1;
};

bool real_input(Fourier f) { return f == Fourier::half || f == Fourier::half_doubled; }
bool real_output(Fourier f) { return f == Fourier::whole || f == Fourier::real_of_complex; }

// What one thread works with.
template <class T>
struct Work {
  std::unique_ptr<T[]> numbers;
  T *re = nullptr, *im = nullptr, *scratch = nullptr, *half = nullptr;
  Work(const FftPlan<T>& plan, std::int64_t points, std::int64_t lanes) {
    const auto size = static_cast<std::size_t>(points * lanes), mirrored = static_cast<std::size_t>((points / 2 + 1) * lanes);
    numbers = std::make_unique_for_overwrite<T[]>(2 * size + 2 * mirrored + plan.scratch(lanes));
    re = numbers.get(), im = re + size, half = im + size, scratch = half + 2 * mirrored;
  }
};

template <class T>
void run_plan(const FftPlan<T>& plan, bool up, Work<T>& w, std::int64_t lanes) {
  up ? plan.run(w.im, w.re, w.scratch, lanes) : plan.run(w.re, w.im, w.scratch, lanes);
}

// How elements and signals lie: one signal, element after element; elements of `lanes` signals side by side; signals one after
// the other, several at once.
enum class Layout { one, beside, behind };

// `lanes` signals at once.
template <class T, Layout kLayout>
class Signals {
 public:
  Signals(const Job& job, const FftPlan<T>& plan, bool halved) : job_(job), plan_(plan), halved_(halved) {}

  void operator()(const T* in, T* out, std::int64_t lanes, Work<T>& w) const {
    if constexpr (kLayout == Layout::one) lanes = 1;
    switch (job_.what) {
      case Fourier::half:
      case Fourier::half_doubled:
        read_real(in, lanes, w);
        run_plan(plan_, false, w, lanes);
        halved_ ? write_halves(out, lanes, w) : write(out, lanes, w);
        return;
      case Fourier::whole:
        halved_ ? read_halves(in, lanes, w) : read_mirrored(in, lanes, w);
        run_plan(plan_, true, w, lanes);
        write_real(out, lanes, w);
        return;
      case Fourier::complex:
      case Fourier::real_of_complex:
        read(in, lanes, w);
        run_plan(plan_, job_.up, w, lanes);
        job_.what == Fourier::complex ? write(out, lanes, w) : write_real(out, lanes, w);
        return;
    }
  }

 private:
  // Where element k of signal v lies; `extent` of the axis.
  std::int64_t at(std::int64_t k, std::int64_t v, std::int64_t extent) const {
    if constexpr (kLayout == Layout::one) return k;
    if constexpr (kLayout == Layout::beside) return k * job_.inner + v;
    return k + v * extent;
  }

  // f(k, v) for elements [from, to) of all signals.
  template <class F>
  static void each(std::int64_t from, std::int64_t to, std::int64_t lanes, const F& f) {
    for (std::int64_t k = from; k < to; ++k) {
      if constexpr (kLayout == Layout::one) {
        f(k, 0);
      } else {
        for (std::int64_t v = 0; v < lanes; ++v) f(k, v);
      }
    }
  }
  static std::int64_t place(std::int64_t k, std::int64_t v, std::int64_t lanes) {
    return kLayout == Layout::one ? k : k * lanes + v;
  }

  void clear(Work<T>& w, std::int64_t from, std::int64_t to, std::int64_t lanes) const {
    std::fill(w.re + from * lanes, w.re + to * lanes, T(0));
    std::fill(w.im + from * lanes, w.im + to * lanes, T(0));
  }

  void read(const T* in, std::int64_t lanes, Work<T>& w) const {
    const std::int64_t count = std::min(job_.n, job_.in), extent = job_.in;
    T *re = w.re, *im = w.im;
    each(0, count, lanes, [&](std::int64_t k, std::int64_t v) {
      const std::int64_t from = 2 * at(k, v, extent), to = place(k, v, lanes);
      re[to] = in[from], im[to] = in[from + 1];
    });
    clear(w, count, job_.n, lanes);
  }

  // Even lengths: pairs become complex numbers of half the length.
  void read_real(const T* in, std::int64_t lanes, Work<T>& w) const {
    const std::int64_t count = std::min(job_.n, job_.in), extent = job_.in;
    T *re = w.re, *im = w.im;
    if (!halved_) {
      each(0, count, lanes, [&](std::int64_t k, std::int64_t v) { re[place(k, v, lanes)] = in[at(k, v, extent)]; });
      std::fill(re + count * lanes, re + job_.n * lanes, T(0));
      std::fill(im, im + job_.n * lanes, T(0));
      return;
    }
    each(0, count / 2, lanes, [&](std::int64_t k, std::int64_t v) {
      re[place(k, v, lanes)] = in[at(2 * k, v, extent)];
      im[place(k, v, lanes)] = in[at(2 * k + 1, v, extent)];
    });
    clear(w, count / 2, job_.n / 2, lanes);
    if (count % 2 == 0) return;
    each(count / 2, count / 2 + 1, lanes,
         [&](std::int64_t k, std::int64_t v) { re[place(k, v, lanes)] = in[at(2 * k, v, extent)]; });
  }

  // What there is of the first n / 2 + 1 numbers, lane by lane.
  void half_of(const T* in, std::int64_t lanes, T* re, T* im) const {
    const std::int64_t all = job_.n / 2 + 1, count = std::min(all, job_.in), extent = job_.in;
    each(0, count, lanes, [&](std::int64_t k, std::int64_t v) {
      const std::int64_t from = 2 * at(k, v, extent), to = place(k, v, lanes);
      re[to] = in[from], im[to] = in[from + 1];
    });
    std::fill(re + count * lanes, re + all * lanes, T(0));
    std::fill(im + count * lanes, im + all * lanes, T(0));
    // Their own mirror images.
    std::fill(im, im + lanes, T(0));
    if (job_.n % 2 == 0) std::fill(im + (all - 1) * lanes, im + all * lanes, T(0));
  }

  // The other half is the mirror image.
  void read_mirrored(const T* in, std::int64_t lanes, Work<T>& w) const {
    half_of(in, lanes, w.re, w.im);
    const std::int64_t n = job_.n;
    T *re = w.re, *im = w.im;
    each(1, (n + 1) / 2, lanes, [&](std::int64_t k, std::int64_t v) {
      re[place(n - k, v, lanes)] = re[place(k, v, lanes)];
      im[place(n - k, v, lanes)] = -im[place(k, v, lanes)];
    });
  }

  T factor(std::int64_t k) const {
    const bool doubled = job_.what == Fourier::half_doubled && k != 0 && 2 * k != job_.n;
    return static_cast<T>(doubled ? 2 * job_.scale : job_.scale);
  }

  void zeros(T* out, std::int64_t from, std::int64_t lanes) const {
    each(from, job_.out, lanes, [&](std::int64_t k, std::int64_t v) {
      const std::int64_t to = 2 * at(k, v, job_.out);
      out[to] = out[to + 1] = T(0);
    });
  }

  void write(T* out, std::int64_t lanes, const Work<T>& w) const {
    const bool complex = job_.what == Fourier::complex;
    const std::int64_t count = std::min(job_.out, complex ? job_.n : job_.n / 2 + 1), extent = job_.out;
    const T *re = w.re, *im = w.im;
    const T first = factor(0), by = factor(1);
    each(0, count, lanes, [&](std::int64_t k, std::int64_t v) {
      const std::int64_t to = 2 * at(k, v, extent), from = place(k, v, lanes);
      const T f = k == 0 ? first : by;
      out[to] = re[from] * f, out[to + 1] = im[from] * f;
    });
    zeros(out, count, lanes);
  }

  void write_real(T* out, std::int64_t lanes, const Work<T>& w) const {
    const auto by = static_cast<T>(job_.scale);
    const std::int64_t count = std::min(job_.out, job_.n), extent = job_.out;
    const T *re = w.re, *im = w.im;
    if (halved_) {
      each(0, count / 2, lanes, [&](std::int64_t k, std::int64_t v) {
        out[at(2 * k, v, extent)] = re[place(k, v, lanes)] * by;
        out[at(2 * k + 1, v, extent)] = im[place(k, v, lanes)] * by;
      });
      each(count - count % 2, count, lanes,
           [&](std::int64_t k, std::int64_t v) { out[at(k, v, extent)] = re[place(k / 2, v, lanes)] * by; });
    } else {
      each(0, count, lanes, [&](std::int64_t k, std::int64_t v) { out[at(k, v, extent)] = re[place(k, v, lanes)] * by; });
    }
    each(count, extent, lanes, [&](std::int64_t k, std::int64_t v) { out[at(k, v, extent)] = T(0); });
  }

  // From the transform z of even + i odd elements: with e and o their transforms, x_k = e_k + exp(-2 pi i k / n) o_k.
  void write_halves(T* out, std::int64_t lanes, const Work<T>& w) const {
    const std::int64_t half = job_.n / 2, extent = job_.out;
    const auto& roots = plan_.half_roots();
    const T *re = w.re, *im = w.im, *cosine = roots.re.data(), *sine = roots.im.data();
    const T ends = factor(0), by = factor(1) / 2;
    each(0, std::min<std::int64_t>(1, extent), lanes, [&](std::int64_t, std::int64_t v) {
      out[2 * at(0, v, extent)] = ends * (re[v] + im[v]), out[2 * at(0, v, extent) + 1] = T(0);
    });
    each(1, std::min(half, extent), lanes, [&](std::int64_t k, std::int64_t v) {
      const std::int64_t a = place(k, v, lanes), b = place(half - k, v, lanes), to = 2 * at(k, v, extent);
      const T e_re = re[a] + re[b], e_im = im[a] - im[b], o_re = im[a] + im[b], o_im = re[b] - re[a];
      out[to] = by * (e_re + cosine[k] * o_re + sine[k] * o_im);
      out[to + 1] = by * (e_im + cosine[k] * o_im - sine[k] * o_re);
    });
    each(half, std::min(half + 1, extent), lanes, [&](std::int64_t k, std::int64_t v) {
      out[2 * at(k, v, extent)] = ends * (re[v] - im[v]), out[2 * at(k, v, extent) + 1] = T(0);
    });
    zeros(out, std::min(half + 1, extent), lanes);
  }

  // The other way: z = e + i o.
  void read_halves(const T* in, std::int64_t lanes, Work<T>& w) const {
    const std::int64_t half = job_.n / 2;
    const auto& roots = plan_.half_roots();
    T *h_re = w.half, *h_im = w.half + (half + 1) * lanes, *re = w.re, *im = w.im;
    const T *cosine = roots.re.data(), *sine = roots.im.data();
    half_of(in, lanes, h_re, h_im);
    each(0, half, lanes, [&](std::int64_t k, std::int64_t v) {
      const std::int64_t a = place(k, v, lanes), b = place(half - k, v, lanes);
      const T e_re = h_re[a] + h_re[b], e_im = h_im[a] - h_im[b], d_re = h_re[a] - h_re[b], d_im = h_im[a] + h_im[b];
      re[a] = e_re - (cosine[k] * d_im + sine[k] * d_re);
      im[a] = e_im + (cosine[k] * d_re - sine[k] * d_im);
    });
  }

  const Job& job_;
  const FftPlan<T>& plan_;
  bool halved_;
};

// Several short signals at once fill vectors that one of them does not.
constexpr std::int64_t kShort = 64;

template <class T, Layout kLayout>
void transform(const Job& job, const FftPlan<T>& plan, bool halved, const Tensor& in, Tensor& out) {
  const std::int64_t real_in = real_input(job.what) ? 1 : 2, real_out = real_output(job.what) ? 1 : 2;
  const Signals<T, kLayout> signals(job, plan, halved);
  const std::int64_t outer = out.size() / std::max<std::int64_t>(1, job.out * job.inner);
  const auto* from = static_cast<const T*>(in.data());
  auto* to = static_cast<T*>(out.mutable_data());
  const std::int64_t along = kLayout == Layout::behind ? outer : job.inner;  // signals that may be taken together
  const std::int64_t lanes = kLayout == Layout::one ? 1 : std::min(along, kLanes);
  const std::int64_t groups = (along + lanes - 1) / lanes;
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, job.n * lanes));
  in_parallel(outer * job.inner / along * groups, grain, [&](std::int64_t first, std::int64_t last) {
    Work<T> work(plan, job.n, lanes);
    for (std::int64_t i = first; i < last; ++i) {
      const std::int64_t o = i / groups, lane = i % groups * lanes, count = std::min(lanes, along - lane);
      const std::int64_t step_in = kLayout == Layout::behind ? lane * job.in : o * job.in * job.inner + lane;
      const std::int64_t step_out = kLayout == Layout::behind ? lane * job.out : o * job.out * job.inner + lane;
      signals(from + step_in * real_in, to + step_out * real_out, count, work);
    }
  });
}

template <class T>
void transform(const Job& job, const Tensor& in, Tensor& out) {
  const bool halved = job.n % 2 == 0 && job.n > 0 && (real_input(job.what) || job.what == Fourier::whole);
  const auto plan = fft_plan<T>(halved ? job.n / 2 : job.n);
  if (job.inner > 1) return transform<T, Layout::beside>(job, *plan, halved, in, out);
  if (job.n <= kShort) return transform<T, Layout::behind>(job, *plan, halved, in, out);
  transform<T, Layout::one>(job, *plan, halved, in, out);
}

}  // namespace

void run_fourier(ops::OpContext& c) {
  const std::vector<std::int64_t> ints = c.attrs().get_ints("ints");
  const Tensor& in = c.input(0);
  Tensor& out = stated_output(c);
  const auto axis = static_cast<std::size_t>(ints[2]);
  Job job{static_cast<Fourier>(ints[0]), ints[1], in.dim(axis), out.dim(axis), 1, ints[3] != 0, 1};
  const auto length = static_cast<double>(job.n);
  const auto norm = static_cast<FourierNorm>(ints[4]);
  if (norm != FourierNorm::none) job.scale = 1 / (norm == FourierNorm::by_length ? length : std::sqrt(length));
  for (std::size_t i = axis + 1; i < in.rank(); ++i) job.inner *= in.dim(i);
  if (out.size() == 0) return;
  const bool wide = in.dtype() == DataType::float64 || in.dtype() == DataType::complex128;
  wide ? transform<double>(job, in, out) : transform<float>(job, in, out);
}

}  // namespace sdx::array::detail
