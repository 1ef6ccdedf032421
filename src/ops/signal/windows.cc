// HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix: ai.onnx 17.

#include <array>
#include <cmath>
#include <cstring>
#include <numbers>

#include "ops/context.h"
#include "ops/op.h"
#include "ops/signature.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

// HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix.
struct WindowAttrs {
  std::int64_t output_datatype = 1;  // float32
  bool periodic = true;              // of the windows

  void fields(auto& f, const OpId& op) {
    f("output_datatype", output_datatype);
    if (op.name != "MelWeightMatrix") f("periodic", periodic);
  }
};

DataType output_type(const WindowAttrs& attr) {
  const std::int64_t code = attr.output_datatype;
  const auto type = static_cast<DataType>(code);
  if (code < 1 || code >= kDataTypeCount || (types::numeric & bit(type)) == 0) {
    fail(ErrorCode::invalid_model, "attribute 'output_datatype' is {}, which is not a numeric type", code);
  }
  return type;
}

std::int64_t count_of(const Tensor& t, const char* name, std::int64_t least) {
  if (t.size() != 1) fail(ErrorCode::invalid_model, "'{}' must be a scalar, received shape {}", name, to_string(t.shape()));
  const std::int64_t n = element_as_int(t, 0);
  if (n < least) fail(ErrorCode::invalid_model, "'{}' is {}; it must be at least {}", name, n, least);
  return n;
}

void infer_window(InferContext& c) {
  const Tensor* size = c.value(0);
  c.output(0, output_type(parse<WindowAttrs>(c)), {size == nullptr ? Dim() : Dim(count_of(*size, "size", 0))});
}

// Coefficients of 1, cos(x) and cos(2x). Sources: ONNX HannWindow-17, HammingWindow-17, BlackmanWindow-17.
using Cosines = std::array<double, 3>;

template <const Cosines& kTerms>
void run_window(OpContext& c) {
  const std::int64_t n = count_of(c.input(0), "size", 0);
  Tensor& out = c.output(0, output_type(parse<WindowAttrs>(c)), {n});
  const std::int64_t period = parse<WindowAttrs>(c).periodic ? n : n - 1;
  for (std::int64_t i = 0; i < n; ++i) {
    if (i % 65536 == 0) c.stop().check();
    // A symmetric window of one sample is its peak.
    const double x = period == 0 ? std::numbers::pi : 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(period);
    set_element(out, i, kTerms[0] + kTerms[1] * std::cos(x) + kTerms[2] * std::cos(2 * x));
  }
}

constexpr Cosines kHann{0.5, -0.5, 0};
constexpr Cosines kHamming{25.0 / 46.0, -21.0 / 46.0, 0};
constexpr Cosines kBlackman{0.42, -0.5, 0.08};

// --- MelWeightMatrix -----------------------------------------------------------------------------------------------------

void infer_mel(InferContext& c) {
  const Tensor* bins = c.value(0);
  const Tensor* length = c.value(1);
  c.output(0, output_type(parse<WindowAttrs>(c)),
           {length == nullptr ? Dim() : Dim(count_of(*length, "dft_length", 1) / 2 + 1),
            bins == nullptr ? Dim() : Dim(count_of(*bins, "num_mel_bins", 1))});
}

double edge(const Tensor& t, const char* name) {
  if (t.size() != 1) fail(ErrorCode::invalid_model, "'{}' must be a scalar, received shape {}", name, to_string(t.shape()));
  const double v = element_as_double(t, 0);
  if (!(v >= 0) || !std::isfinite(v)) fail(ErrorCode::invalid_model, "'{}' is {}; it must be a frequency", name, v);
  return v;
}

double to_mel(double hertz) { return 2595 * std::log10(1 + hertz / 700); }
double to_hertz(double mel) { return 700 * (std::pow(10, mel / 2595) - 1); }

// Spectrum bins where the triangles start, peak and end: `count` + 2 of them, evenly spaced in mel.
std::vector<std::int64_t> triangle_bins(OpContext& c, std::int64_t count, std::int64_t length) {
  const std::int64_t rate = count_of(c.input(2), "sample_rate", 1);
  const double low = to_mel(edge(c.input(3), "lower_edge_hertz"));
  const double high = to_mel(edge(c.input(4), "upper_edge_hertz"));
  if (!(high > low)) c.fail("upper_edge_hertz must be above lower_edge_hertz");
  const std::int64_t spectrum = length / 2 + 1;
  // The operator's definition divides by the number of edges, not of intervals.
  const double step = (high - low) / static_cast<double>(count + 2);
  std::vector<std::int64_t> bins(static_cast<std::size_t>(count + 2));
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const double bin =
        std::floor(static_cast<double>(length + 1) * to_hertz(static_cast<double>(i) * step + low) / static_cast<double>(rate));
    if (!(bin >= 0 && bin < static_cast<double>(spectrum))) {
      c.fail("the mel band {} reaches spectrum bin {}, but a transform of length {} has {}: lower upper_edge_hertz", i, bin,
             length, spectrum);
    }
    bins[i] = static_cast<std::int64_t>(bin);
  }
  return bins;
}

void run_mel(OpContext& c) {
  const std::int64_t count = count_of(c.input(0), "num_mel_bins", 1);
  const std::int64_t length = count_of(c.input(1), "dft_length", 1);
  Tensor& out = c.output(0, output_type(parse<WindowAttrs>(c)), {length / 2 + 1, count});
  std::memset(out.mutable_data(), 0, out.bytes());
  const std::vector<std::int64_t> bins = triangle_bins(c, count, length);
  for (std::int64_t m = 0; m < count; ++m) {
    c.stop().check();
    const std::int64_t left = bins[static_cast<std::size_t>(m)];
    const std::int64_t peak = bins[static_cast<std::size_t>(m) + 1];
    const std::int64_t right = bins[static_cast<std::size_t>(m) + 2];
    if (peak == left) set_element(out, peak * count + m, 1);
    for (std::int64_t j = left; peak > left && j <= peak; ++j) {
      set_element(out, j * count + m, static_cast<double>(j - left) / static_cast<double>(peak - left));
    }
    for (std::int64_t j = peak; j < right; ++j) {
      set_element(out, j * count + m, static_cast<double>(right - j) / static_cast<double>(right - peak));
    }
  }
}

OpDef window_def(const char* name, RunFn run) {
  return OpDef(name, 17)
      .in("size", "T1", types::indices)
      .out("output", "T2", types::numeric)
      .attrs<WindowAttrs>()
      .infer_with(infer_window)
      .run_with(run);
}

}  // namespace

void register_windows(OpTable& t) {
  t.add(window_def("HannWindow", run_window<kHann>));
  t.add(window_def("HammingWindow", run_window<kHamming>));
  t.add(window_def("BlackmanWindow", run_window<kBlackman>));
  t.add(OpDef("MelWeightMatrix", 17)
            .in("num_mel_bins dft_length sample_rate", "T1", types::indices)
            .in("lower_edge_hertz upper_edge_hertz", "T2", types::floats)
            .out("output", "T3", types::numeric)
            .attrs<WindowAttrs>()
            .infer_with(infer_mel)
            .run_with(run_mel));
}

}  // namespace sdx::ops
