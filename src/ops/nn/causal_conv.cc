// CausalConvWithState: ai.onnx 27: a depthwise convolution over [N, C, L] that looks back, with the last k-1 positions carried
// from call to call. com.microsoft 1 has the same operator.

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/op.h"
#include "ops/util/float_view.h"

namespace sdx::ops {
namespace {

bool read_silu(const Attributes& attrs) {
  const std::string word = attrs.get_string("activation", "none");
  if (word == "none" || word.empty()) return false;
  if (word == "silu" || word == "swish") return true;
  fail(ErrorCode::invalid_model, "attribute 'activation' is '{}'; permitted: none, silu, swish", word);
}

// com.microsoft's form has variants of layout and state that ai.onnx lacks.
void check_variant(const Attributes& attrs) {
  const std::pair<const char*, std::int64_t> plain[] = {{"ndim", 1}, {"channels_last", 0}, {"dilation", 1}, {"state_window", 0}};
  for (const auto& [attribute, value] : plain) {
    if (attrs.get_int(attribute, value) == value) continue;
    fail(ErrorCode::not_implemented, "attribute '{}' is {}; only {} is supported", attribute, attrs.get_int(attribute), value);
  }
}

template <class S>
void check_rank(const S& s, const char* name) {
  if (s.size() != 3) fail(ErrorCode::invalid_model, "'{}' must have rank 3, received shape {}", name, to_string(s));
}

void infer_causal(InferContext& c) {
  check_variant(c.attrs());
  read_silu(c.attrs());
  const SymShape* x = c.shape(0);
  const SymShape* w = c.shape(1);
  if (x != nullptr) check_rank(*x, "input");
  if (w != nullptr) check_rank(*w, "weight");
  if (x != nullptr) {
    c.output(0, c.dtype(0), *x);
  } else {
    c.output(0, c.dtype(0));
  }
  const Dim taps = w != nullptr ? (*w)[2] : Dim();
  if (taps.is_const() && taps.value() < 1) c.fail("the weight has no taps: shape {}", to_string(*w));
  c.output(1, c.dtype(0), {x != nullptr ? (*x)[0] : Dim(), x != nullptr ? (*x)[1] : Dim(), taps - Dim(1)});
}

// One channel of one sequence: line = carried positions, then the input.
template <class C>
void convolve(const C* line, std::int64_t length, const C* w, std::int64_t taps, C bias, bool silu, C* out) {
  std::fill_n(out, length, bias);
  for (std::int64_t k = 0; k < taps; ++k) {
    for (std::int64_t i = 0; i < length; ++i) out[i] += w[k] * line[i + k];
  }
  if (!silu) return;
  for (std::int64_t i = 0; i < length; ++i) out[i] = out[i] / (C(1) + std::exp(-out[i]));
}

void run_causal(OpContext& c) {
  const Tensor& x = c.input(0);
  const Tensor& w = c.input(1);
  const Tensor* bias = c.optional_input(2);
  const Tensor* past = c.optional_input(3);
  check_rank(x.shape(), "input");
  check_rank(w.shape(), "weight");
  check_variant(c.attrs());
  const bool silu = read_silu(c.attrs());
  const std::int64_t channels = x.dim(1);
  const std::int64_t length = x.dim(2);
  const std::int64_t taps = w.dim(2);
  if (w.dim(0) != channels || w.dim(1) != 1 || taps < 1) {
    c.fail("the weight must have shape [{}, 1, k] for input {}, received {}", channels, to_string(x.shape()),
           to_string(w.shape()));
  }
  if (bias != nullptr && bias->size() != channels)
    c.fail("the bias must have shape [{}], received {}", channels, to_string(bias->shape()));
  const Shape state{x.dim(0), channels, taps - 1};
  if (past != nullptr && past->shape() != state) {
    c.fail("past_state must have shape {}, received {}", to_string(state), to_string(past->shape()));
  }
  Tensor& y = c.output(0, x.dtype(), x.shape());
  Tensor& present = c.output(1, x.dtype(), state);
  if (x.dim(0) == 0 || channels == 0) return;
  dispatch_compute(x.dtype(), "CausalConvWithState", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fx(x), fw(w), fb(bias), fp(past);
    FloatOutput<C> fy(y), fs(present);
    parallel_for(x.dim(0) * channels, 1 + 16384 / (length + taps), [&](std::int64_t begin, std::int64_t end) {
      std::vector<C> line(static_cast<std::size_t>(length + taps - 1));
      for (std::int64_t row = begin; row < end; ++row) {
        c.stop().check();
        const std::int64_t channel = row % channels;
        if (fp) {
          std::copy_n(fp.data() + row * (taps - 1), taps - 1, line.begin());
        } else {
          std::fill_n(line.begin(), taps - 1, C(0));
        }
        std::copy_n(fx.data() + row * length, length, line.begin() + (taps - 1));
        convolve(line.data(), length, fw.data() + channel * taps, taps, fb ? fb[channel] : C(0), silu, fy.data() + row * length);
        std::copy_n(line.begin() + length, taps - 1, fs.data() + row * (taps - 1));
      }
    });
    fy.store();
    fs.store();
  });
}

}  // namespace

void register_causal_conv(OpTable& t) {
  for (const bool contrib : {false, true}) {
    t.add(OpDef(contrib ? "com.microsoft" : "", "CausalConvWithState", contrib ? 1 : 27)
              .in("input", "T", types::floats)
              .in("weight", "T", types::floats)
              .in("bias", "T", types::floats, Arity::optional)
              .in("past_state", "T", types::floats, Arity::optional)
              .out("output", "T", types::floats)
              .out("present_state", "T", types::floats)
              .attr("activation", AttrKind::s)
              .attr("ndim", AttrKind::i)
              .infer_with(infer_causal)
              .run_with(run_causal));
  }
}

}  // namespace sdx::ops
