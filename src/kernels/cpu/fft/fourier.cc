#include "kernels/cpu/fft/fourier.h"

#include <algorithm>
#include <memory>

namespace sdx::cpu {
namespace {

using Layout = FourierLayout;

// Signals that are gathered at once where their elements do not lie side by side.
constexpr std::int64_t kLanes = 16;

bool real_input(Fourier f) { return f == Fourier::half || f == Fourier::half_doubled; }
bool real_output(Fourier f) { return f == Fourier::whole || f == Fourier::real_of_complex; }

// The workspace of one thread.
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

// `lanes` signals that are transformed together.
template <class C, class T, Layout kLayout>
class Signals {
 public:
  Signals(const FourierJob& job, const FftPlan<T>& plan, bool halved) : job_(job), plan_(plan), halved_(halved) {}

  void operator()(const C* in, C* out, std::int64_t lanes, Work<T>& w) const {
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
  // The position of element k of signal v; `extent`: that of the axis.
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

  void read(const C* in, std::int64_t lanes, Work<T>& w) const {
    const std::int64_t count = std::min(job_.n, job_.in), extent = job_.in;
    T *re = w.re, *im = w.im;
    each(0, count, lanes, [&](std::int64_t k, std::int64_t v) {
      const std::int64_t from = 2 * at(k, v, extent), to = place(k, v, lanes);
      re[to] = in[from], im[to] = in[from + 1];
    });
    clear(w, count, job_.n, lanes);
  }

  // Even lengths: pairs become complex numbers of half the length.
  void read_real(const C* in, std::int64_t lanes, Work<T>& w) const {
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

  // Reads as many of the first n / 2 + 1 numbers as the input has, lane by lane.
  void half_of(const C* in, std::int64_t lanes, T* re, T* im) const {
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
  void read_mirrored(const C* in, std::int64_t lanes, Work<T>& w) const {
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

  void zeros(C* out, std::int64_t from, std::int64_t lanes) const {
    each(from, job_.out, lanes, [&](std::int64_t k, std::int64_t v) {
      const std::int64_t to = 2 * at(k, v, job_.out);
      out[to] = out[to + 1] = C(0);
    });
  }

  void write(C* out, std::int64_t lanes, const Work<T>& w) const {
    const bool complex = job_.what == Fourier::complex;
    const std::int64_t count = std::min(job_.out, complex ? job_.n : job_.n / 2 + 1), extent = job_.out;
    const T *re = w.re, *im = w.im;
    const T first = factor(0), by = factor(1);
    each(0, count, lanes, [&](std::int64_t k, std::int64_t v) {
      const std::int64_t to = 2 * at(k, v, extent), from = place(k, v, lanes);
      const T f = k == 0 ? first : by;
      out[to] = static_cast<C>(re[from] * f), out[to + 1] = static_cast<C>(im[from] * f);
    });
    zeros(out, count, lanes);
  }

  void write_real(C* out, std::int64_t lanes, const Work<T>& w) const {
    const auto by = static_cast<T>(job_.scale);
    const std::int64_t count = std::min(job_.out, job_.n), extent = job_.out;
    const T *re = w.re, *im = w.im;
    if (halved_) {
      each(0, count / 2, lanes, [&](std::int64_t k, std::int64_t v) {
        out[at(2 * k, v, extent)] = static_cast<C>(re[place(k, v, lanes)] * by);
        out[at(2 * k + 1, v, extent)] = static_cast<C>(im[place(k, v, lanes)] * by);
      });
      each(count - count % 2, count, lanes,
           [&](std::int64_t k, std::int64_t v) { out[at(k, v, extent)] = static_cast<C>(re[place(k / 2, v, lanes)] * by); });
    } else {
      each(0, count, lanes,
           [&](std::int64_t k, std::int64_t v) { out[at(k, v, extent)] = static_cast<C>(re[place(k, v, lanes)] * by); });
    }
    each(count, extent, lanes, [&](std::int64_t k, std::int64_t v) { out[at(k, v, extent)] = C(0); });
  }

  // From the transform z of even + i odd elements: with e and o their transforms, x_k = e_k + exp(-2 pi i k / n) o_k.
  void write_halves(C* out, std::int64_t lanes, const Work<T>& w) const {
    const std::int64_t half = job_.n / 2, extent = job_.out;
    const auto& roots = plan_.half_roots();
    const T *re = w.re, *im = w.im, *cosine = roots.re.data(), *sine = roots.im.data();
    const T ends = factor(0), by = factor(1) / 2;
    each(0, std::min<std::int64_t>(1, extent), lanes, [&](std::int64_t, std::int64_t v) {
      out[2 * at(0, v, extent)] = static_cast<C>(ends * (re[v] + im[v])), out[2 * at(0, v, extent) + 1] = C(0);
    });
    each(1, std::min(half, extent), lanes, [&](std::int64_t k, std::int64_t v) {
      const std::int64_t a = place(k, v, lanes), b = place(half - k, v, lanes), to = 2 * at(k, v, extent);
      const T e_re = re[a] + re[b], e_im = im[a] - im[b], o_re = im[a] + im[b], o_im = re[b] - re[a];
      out[to] = static_cast<C>(by * (e_re + cosine[k] * o_re + sine[k] * o_im));
      out[to + 1] = static_cast<C>(by * (e_im + cosine[k] * o_im - sine[k] * o_re));
    });
    each(half, std::min(half + 1, extent), lanes, [&](std::int64_t k, std::int64_t v) {
      out[2 * at(k, v, extent)] = static_cast<C>(ends * (re[v] - im[v])), out[2 * at(k, v, extent) + 1] = C(0);
    });
    zeros(out, std::min(half + 1, extent), lanes);
  }

  // The other way: z = e + i o.
  void read_halves(const C* in, std::int64_t lanes, Work<T>& w) const {
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

  const FourierJob& job_;
  const FftPlan<T>& plan_;
  bool halved_;
};

// Several short signals at once fill vectors that one of them does not.
constexpr std::int64_t kShort = 64;

Layout layout_of(const FourierJob& job) {
  if (job.inner > 1) return Layout::beside;
  return job.n <= kShort ? Layout::behind : Layout::one;
}

bool halves(const FourierJob& job) { return job.n % 2 == 0 && job.n > 0 && (real_input(job.what) || job.what == Fourier::whole); }

}  // namespace

template <class C, class T>
FourierTransform<C, T>::FourierTransform(const FourierJob& job, std::int64_t outer)
    : job_(job), plan_(fft_plan<T>(halves(job) ? job.n / 2 : job.n)) {
  const Layout layout = layout_of(job);
  along_ = layout == Layout::behind ? outer : job.inner;
  lanes_ = layout == Layout::one ? 1 : std::min(along_, kLanes);
  groups_ = lanes_ > 0 ? (along_ + lanes_ - 1) / lanes_ : 0;
  tasks_ = along_ > 0 ? outer * job.inner / along_ * groups_ : 0;
}

template <class C, class T>
std::int64_t FourierTransform<C, T>::grain() const noexcept {
  return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, job_.n * lanes_));
}

template <class C, class T>
void FourierTransform<C, T>::run(const C* in, C* out, std::int64_t first, std::int64_t last) const {
  switch (layout_of(job_)) {
    case Layout::one: return run_tasks<Layout::one>(in, out, first, last);
    case Layout::beside: return run_tasks<Layout::beside>(in, out, first, last);
    case Layout::behind: return run_tasks<Layout::behind>(in, out, first, last);
  }
}

template <class C, class T>
template <FourierLayout kLayout>
void FourierTransform<C, T>::run_tasks(const C* in, C* out, std::int64_t first, std::int64_t last) const {
  const std::int64_t real_in = real_input(job_.what) ? 1 : 2, real_out = real_output(job_.what) ? 1 : 2;
  const Signals<C, T, kLayout> signals(job_, *plan_, halves(job_));
  Work<T> work(*plan_, job_.n, lanes_);
  for (std::int64_t i = first; i < last; ++i) {
    const std::int64_t o = i / groups_, lane = i % groups_ * lanes_, count = std::min(lanes_, along_ - lane);
    const std::int64_t step_in = kLayout == Layout::behind ? lane * job_.in : o * job_.in * job_.inner + lane;
    const std::int64_t step_out = kLayout == Layout::behind ? lane * job_.out : o * job_.out * job_.inner + lane;
    signals(in + step_in * real_in, out + step_out * real_out, count, work);
  }
}

template class FourierTransform<float, float>;
template class FourierTransform<float, double>;
template class FourierTransform<double, double>;

}  // namespace sdx::cpu
