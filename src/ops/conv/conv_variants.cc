// com.microsoft 1: ConvTransposeWithDynamicPads: ConvTranspose with its pads as an input; NhwcFusedConv: FusedConv with channels
// last.

#include "ops/conv/signatures.h"
#include "ops/delegate.h"
#include "ops/math/fused_activation.h"
#include "ops/op.h"
#include "ops/tensor/movement.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

enum In : std::size_t { kX, kW, kPads, kB };

Delegate transposed_conv(const Attributes& attrs, const std::vector<std::int64_t>& pads) {
  Attributes inner = attrs;
  if (!pads.empty()) inner.set("pads", pads);
  return Delegate("", "ConvTranspose", 11, std::move(inner));
}

void infer_dynamic_pads(InferContext& c) {
  const std::vector<Type> inputs{c.type(kX), c.type(kW), c.type(kB)};
  if (!c.has_input(kPads)) return c.output(0, transposed_conv(c.attrs(), {}).infer(inputs));
  if (const Tensor* pads = c.value(kPads)) return c.output(0, transposed_conv(c.attrs(), to_ints(*pads)).infer(inputs));
  const SymShape* x = c.shape(kX);
  if (x == nullptr) return c.output(0, c.dtype(kX));
  if (x->size() < 3) c.fail("X must have 3 axes or more, received {}", to_string(*x));
  SymShape out(x->size(), Dim::unknown());
  out[0] = (*x)[0];
  if (const SymShape* w = c.shape(kW); w != nullptr && w->size() == x->size()) out[1] = (*w)[1] * Dim(group_of(c.attrs()));
  c.output(0, c.dtype(kX), std::move(out));
}

void run_dynamic_pads(OpContext& c) {
  std::vector<std::int64_t> pads;
  if (const Tensor* t = c.optional_input(kPads)) {
    pads = to_ints(*t);
    if (c.input(kX).rank() < 3 || pads.size() != 2 * (c.input(kX).rank() - 2)) {
      c.fail("Pads must have two elements for each spatial axis, received {}", t->type_string());
    }
  }
  const Tensor* bias = c.optional_input(kB);
  c.set_output(0, transposed_conv(c.attrs(), pads).run(c, {c.input(kX), c.input(kW), bias != nullptr ? *bias : Tensor()}));
}

// --- NhwcFusedConv -----------------------------------------------------------------------------------------------------------

template <class S>
S moved_channels(const S& s, bool to_front) {
  if (s.size() < 3) fail(ErrorCode::invalid_model, "inputs must have 3 axes or more, received {}", to_string(s));
  S out = s;
  for (std::size_t i = 1; i < s.size(); ++i)
    out[i] = to_front ? (i == 1 ? s.back() : s[i - 1]) : (i + 1 == s.size() ? s[1] : s[i + 1]);
  return out;
}

Tensor moved_channels(const Tensor& t, bool to_front) {
  Tensor out(t.dtype(), moved_channels(t.shape(), to_front));
  if (t.size() == 0) return out;
  const std::int64_t channels = to_front ? t.shape().back() : t.dim(1);
  const std::int64_t plane = t.size() / t.dim(0) / channels;
  const std::int64_t whole = plane * channels;
  if (to_front) {
    copy_strided(t, 0, out, 0, {{t.dim(0), whole, whole}, {channels, 1, plane}, {plane, channels, 1}});
  } else {
    copy_strided(t, 0, out, 0, {{t.dim(0), whole, whole}, {plane, 1, channels}, {channels, plane, 1}});
  }
  return out;
}

Type moved_channels(const Type& t, bool to_front) {
  if (!t.is_tensor() || !t.shape) return t;
  return Type::tensor(t.elem, moved_channels(*t.shape, to_front));
}

Delegate fused_conv(const Attributes& attrs) { return Delegate("com.microsoft", "FusedConv", 1, attrs); }

void infer_nhwc(InferContext& c) {
  Type y = fused_conv(c.attrs()).infer({moved_channels(c.type(0), true), c.type(1), c.type(2), moved_channels(c.type(3), true)});
  c.output(0, moved_channels(y, false));
}

void run_nhwc(OpContext& c) {
  const Tensor *bias = c.optional_input(2), *sum = c.optional_input(3);
  const Tensor y = fused_conv(c.attrs()).run(c, {moved_channels(c.input(0), true), c.input(1), bias != nullptr ? *bias : Tensor(),
                                                 sum != nullptr ? moved_channels(*sum, true) : Tensor()});
  c.set_output(0, moved_channels(y, false));
}

}  // namespace

void register_conv_variants(OpTable& t) {
  constexpr TypeSet kThree = set_of(DataType::float16, DataType::float32, DataType::float64);
  OpDef d("com.microsoft", "ConvTransposeWithDynamicPads", 1);
  d.in("X W", "T", kThree).in("Pads", "", types::int64, Arity::optional).in("B", "T", kThree, Arity::optional);
  d.out("Y", "T", kThree).attrs<ConvAttrs>();
  t.add(std::move(d).infer_with(infer_dynamic_pads).run_with(run_dynamic_pads));
  OpDef n("com.microsoft", "NhwcFusedConv", 1);
  n.in("X W", "T", kThree).in("B Z", "T", kThree, Arity::optional);
  n.out("Y", "T", kThree).attrs<FusedActivationFields>().attrs<ConvAttrs>();
  t.add(std::move(n).infer_with(infer_nhwc).run_with(run_nhwc));
}

}  // namespace sdx::ops
