// CausalConvWithState: ai.onnx 27: a depthwise convolution over [N, C, L] that looks back, with the last k-1 positions carried
// from call to call. com.microsoft 1 adds a dilation, another layout, and the states after each of the last positions.

#include <algorithm>
#include <cmath>

#include "base/thread_pool.h"
#include "ops/context.h"
#include "ops/math/float_view.h"
#include "ops/op.h"
#include "ops/signature.h"

namespace sdx::ops {
namespace {

struct CausalConvAttrs {
  std::string_view activation = "none";
  bool channels_last = false;
  std::int64_t dilation = 1;
  std::int64_t ndim = 1;
  std::int64_t state_window = 0;

  void fields(auto& f) {
    f("activation", activation);
    f("channels_last", channels_last);
    f("dilation", dilation);
    f("ndim", ndim);
    f("state_window", state_window);
  }
};

bool read_silu(const CausalConvAttrs& attr) {
  const std::string_view word = attr.activation;
  if (word == "none" || word.empty()) return false;
  if (word == "silu" || word == "swish") return true;
  fail(ErrorCode::invalid_model, "attribute 'activation' is '{}'; permitted: none, silu, swish", word);
}

// Tensors are [N, C, L], or with channels_last [N, L, ...] where the axes after L make up the channels.
struct Variant {
  std::int64_t dilation = 1, window = 0;
  bool last = false;
};

Variant variant_of(const CausalConvAttrs& attr) {
  Variant v{attr.dilation, attr.state_window, attr.channels_last};
  if (attr.ndim != 1) {
    fail(ErrorCode::not_implemented, "attribute 'ndim' is {}; only 1 is supported", attr.ndim);
  }
  if (v.dilation < 1 || v.dilation > (1 << 30)) {
    fail(ErrorCode::invalid_model, "attribute 'dilation' must be at least 1, received {}", v.dilation);
  }
  if (v.window < 0 || v.window > 8) {
    fail(ErrorCode::invalid_model, "attribute 'state_window' must be 0 to 8, received {}", v.window);
  }
  return v;
}

template <class S>
void check_rank(const S& s, const char* name, bool at_least = false) {
  if (s.size() == 3 || (at_least && s.size() > 3)) return;
  fail(ErrorCode::invalid_model, "'{}' must have rank 3, received shape {}", name, to_string(s));
}

// [window?, N, C, carried], or [window?, N, carried, ...].
template <class S, class D>
S state_shape(const S& x, const D& carried, const Variant& v) {
  S state = x;
  state[v.last ? 1 : 2] = carried;
  if (v.window > 0) state.insert(state.begin(), D(v.window));
  return state;
}

void infer_causal(InferContext& c) {
  const auto attr = parse<CausalConvAttrs>(c);
  const Variant v = variant_of(attr);
  read_silu(attr);
  const SymShape* x = c.shape(0);
  const SymShape* w = c.shape(1);
  if (x != nullptr) check_rank(*x, "input", v.last);
  if (w != nullptr) check_rank(*w, "weight");
  const Dim taps = w != nullptr ? (*w)[2] : Dim();
  if (taps.is_const() && (taps.value() < 1 || taps.value() > (1 << 30))) c.fail("the weight has shape {}", to_string(*w));
  if (x != nullptr) {
    c.output(0, c.dtype(0), *x);
    c.output(1, c.dtype(0), state_shape(*x, (taps - Dim(1)) * Dim(v.dilation), v));
  } else {
    c.output(0, c.dtype(0));
    c.output(1, c.dtype(0));
  }
}

// One channel of one sequence: line = carried positions, then the input.
template <class C>
struct Filter {
  const C* w;
  std::int64_t taps, dilation;
  C bias;
  bool silu;
};

template <class C>
void convolve(const C* line, std::int64_t length, const Filter<C>& f, C* out, std::int64_t step) {
  for (std::int64_t i = 0; i < length; ++i) {
    C y = f.bias;
    for (std::int64_t k = 0; k < f.taps; ++k) y += f.w[k] * line[i + k * f.dilation];
    out[i * step] = f.silu ? y / (C(1) + std::exp(-y)) : y;
  }
}

// The position of a channel of a sequence in an array of `rows` positions, and the distance between its elements.
struct Layout {
  std::int64_t channels;
  bool last;
  std::int64_t start(std::int64_t row, std::int64_t rows) const {
    return last ? row / channels * rows * channels + row % channels : row * rows;
  }
  std::int64_t step() const { return last ? channels : 1; }
};

template <class C>
void copy_strided(const C* from, std::int64_t from_step, C* to, std::int64_t to_step, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
}

void run_causal(OpContext& c) {
  const auto attr = parse<CausalConvAttrs>(c);
  const Tensor& x = c.input(0);
  const Tensor& w = c.input(1);
  const Tensor* bias = c.optional_input(2);
  const Tensor* past = c.optional_input(3);
  const Variant v = variant_of(attr);
  check_rank(x.shape(), "input", v.last);
  check_rank(w.shape(), "weight");
  const bool silu = read_silu(attr);
  const std::int64_t length = x.dim(v.last ? 1 : 2);
  const std::int64_t channels = v.last ? element_count(Shape(x.shape().begin() + 2, x.shape().end())) : x.dim(1);
  const std::int64_t taps = w.dim(2);
  if (w.dim(0) != channels || w.dim(1) != 1 || taps < 1 || taps > (1 << 30)) {
    c.fail("the weight must have shape [{}, 1, k] for input {}, received {}", channels, to_string(x.shape()),
           to_string(w.shape()));
  }
  if (bias != nullptr && bias->size() != channels)
    c.fail("the bias must have shape [{}], received {}", channels, to_string(bias->shape()));
  const std::int64_t carried = (taps - 1) * v.dilation;
  const Shape state = state_shape(x.shape(), carried, v);
  if (past != nullptr && past->shape() != state) {
    c.fail("past_state must have shape {}, received {}", to_string(state), to_string(past->shape()));
  }
  Tensor& y = c.output(0, x.dtype(), x.shape());
  Tensor& present = c.output(1, x.dtype(), state);
  if (x.dim(0) == 0 || channels == 0) return;
  const std::int64_t slots = std::max<std::int64_t>(v.window, 1);
  const Layout layout{channels, v.last};
  const std::int64_t block = element_count(Shape{x.dim(0), channels, carried});  // elements of one slot
  dispatch_compute(x.dtype(), "CausalConvWithState", [&](auto tag) {
    using C = typename decltype(tag)::type;
    const FloatInput<C> fx(x), fw(w), fb(bias), fp(past);
    FloatOutput<C> fy(y), fs(present);
    parallel_for(x.dim(0) * channels, 1 + 16384 / (length + carried + 1), [&](std::int64_t begin, std::int64_t end) {
      std::vector<C> line(static_cast<std::size_t>(length + carried));
      for (std::int64_t row = begin; row < end; ++row) {
        c.stop().check();
        const std::int64_t channel = row % channels;
        const std::int64_t at = layout.start(row, carried), step = layout.step();
        std::fill_n(line.begin(), carried, C(0));
        if (fp) copy_strided(fp.data() + (slots - 1) * block + at, step, line.data(), 1, carried);
        copy_strided(fx.data() + layout.start(row, length), step, line.data() + carried, 1, length);
        const Filter<C> filter{fw.data() + channel * taps, taps, v.dilation, fb ? fb[channel] : C(0), silu};
        convolve(line.data(), length, filter, fy.data() + layout.start(row, length), step);
        for (std::int64_t slot = 0; slot < slots; ++slot) {  // the state after this many positions; zeros before the first
          const std::int64_t seen = length - slots + 1 + slot;
          C* to = fs.data() + slot * block + at;
          if (seen < (v.window > 0 ? 1 : 0)) {
            for (std::int64_t i = 0; i < carried; ++i) to[i * step] = C(0);
          } else {
            copy_strided(line.data() + seen, 1, to, step, carried);
          }
        }
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
              .in("input weight", "T", types::floats)
              .in("bias past_state", "T", types::floats, Arity::optional)
              .out("output present_state", "T", types::floats)
              .attrs<CausalConvAttrs>()
              .infer_with(infer_causal)
              .run_with(run_causal));
  }
}

}  // namespace sdx::ops
