// sdx GatedDelta, SelectiveScan and StateConvolution: states of texts in the slots of a pool, which is changed in place where the
// output is bound to it.

#include <cstring>

#include "kernels/cpu/attention/linear_state.h"
#include "ops/recurrent/text_states.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

std::vector<Shape> shapes_of(const ResolveContext& c, std::size_t count) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < count; ++i) shapes.push_back(c.has_input(i) ? c.input_shape(i) : Shape());
  return shapes;
}
std::vector<const float*> floats_of(const KernelContext& c, std::size_t count) {
  std::vector<const float*> floats;
  for (std::size_t i = 0; i < count; ++i) floats.push_back(c.has_input(i) ? c.in<float>(i) : nullptr);
  return floats;
}

// `state` is the pool's input, which those that say where texts are follow.
std::vector<StateText> texts_of(const KernelContext& c, std::size_t state, std::int64_t tokens, std::int64_t slots,
                                std::int64_t size) {
  const ops::TextStates t = ops::checked_texts(tokens, slots, c.input(state + 1), c.input(state + 2), c.input(state + 3));
  const Tensor& from = c.input(state);
  Tensor& to = c.output(1);
  if (to.data() != from.data() && from.bytes() != 0) std::memcpy(to.mutable_data(), from.data(), from.bytes());
  float* pool = c.out<float>(1);
  std::vector<StateText> texts;
  for (std::int64_t s = 0; s < t.texts; ++s) {
    if (t.length(s) == 0) continue;
    texts.push_back({t.starts[s], t.starts[s + 1], t.begins(s) ? nullptr : pool + t.from(s) * size, pool + t.to(s) * size});
  }
  return texts;
}

struct LinearState : KernelState {
  ops::LinearStates shapes;
};

class LinearKernel : public Kernel {
 public:
  LinearKernel(const LowerContext& c, bool delta) : node_(c.node()), delta_(delta) {}
  std::string_view name() const override { return delta_ ? "gated-delta-f32" : "selective-scan-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<LinearState>();
    const std::vector<Shape> shapes = shapes_of(c, kCount);
    state->shapes = delta_ ? ops::gated_delta(node_, shapes) : ops::selective_scan(node_, shapes);
    c.workspace_bytes = byte_size(DataType::float32, ops::linear_workspace(state->shapes));
    return state;
  }

  void run(const KernelContext& c) const override {
    const ops::LinearStates& s = static_cast<const LinearState*>(c.state)->shapes;
    LinearStateArgs a;
    a.texts = texts_of(c, kState, s.tokens, s.slots, s.state_size());
    if (s.tokens == 0) return;
    const std::vector<const float*> in = floats_of(c, kState);
    auto* workspace = static_cast<float*>(c.workspace);
    const ops::LinearTokens t = delta_ ? ops::gated_delta_tokens(s, in, workspace) : ops::selective_scan_tokens(s, in, workspace);
    a.heads = s.heads, a.key_heads = s.key_heads, a.rows = s.rows, a.columns = s.columns;
    a.corrects = s.corrects, a.tiled = s.tiled;
    a.q = t.q, a.k = t.k, a.v = t.v, a.key_row = t.key_row, a.value_row = t.value_row;
    a.decay = t.decay, a.rate = t.rate, a.skip = t.skip;
    a.out = c.out<float>(0);
    linear_state_f32(a);
  }

 private:
  static constexpr std::size_t kState = ops::GatedDeltaIn::kState, kCount = ops::GatedDeltaIn::kCount;
  static_assert(kState == ops::SelectiveScanIn::kState && kCount == ops::SelectiveScanIn::kCount);

  Node node_;
  bool delta_;
};

struct ConvolutionState : KernelState {
  ops::StateConvolution shapes;
};

class StateConvolutionKernel : public Kernel {
 public:
  std::string_view name() const override { return "state-convolution-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<ConvolutionState>();
    state->shapes = ops::state_convolution(shapes_of(c, kCount));
    return state;
  }

  void run(const KernelContext& c) const override {
    const ops::StateConvolution& s = static_cast<const ConvolutionState*>(c.state)->shapes;
    StateConvolutionArgs a;
    a.texts = texts_of(c, kState, s.tokens, s.slots, (s.taps - 1) * s.channels);
    if (s.tokens == 0) return;
    a.channels = s.channels, a.taps = s.taps;
    a.x = c.in<float>(kX), a.weights = c.in<float>(kWeights), a.bias = c.has_input(kBias) ? c.in<float>(kBias) : nullptr;
    a.out = c.out<float>(0);
    state_convolution_f32(a);
  }

 private:
  using enum ops::StateConvolutionIn::Slot;
};

std::unique_ptr<Kernel> make_delta(LowerContext& c) {
  if (!c.has_output(1)) return c.refuse("the new states are not requested");
  return std::make_unique<LinearKernel>(c, true);
}
std::unique_ptr<Kernel> make_scan(LowerContext& c) {
  if (!c.has_output(1)) return c.refuse("the new states are not requested");
  return std::make_unique<LinearKernel>(c, false);
}
std::unique_ptr<Kernel> make_convolution(LowerContext& c) {
  if (!c.has_output(1)) return c.refuse("the new states are not requested");
  return std::make_unique<StateConvolutionKernel>();
}

}  // namespace

void register_kernels_text_states(KernelTable& t) {
  t.add("sdx", "GatedDelta", "gated-delta-f32", 10, make_delta);
  t.add("sdx", "SelectiveScan", "selective-scan-f32", 10, make_scan);
  t.add("sdx", "StateConvolution", "state-convolution-f32", 10, make_convolution);
}

}  // namespace sdx::cpu
