// Clip: ai.onnx 1, 6 (bounds are attributes), 11, 12, 13 (bounds are optional scalar inputs, any numeric type).

#include <optional>

#include "ops/math/elementwise.h"
#include "ops/math/signatures.h"

namespace sdx::ops {
namespace {

// min wins over x, max wins over both, as numpy's clip does (ONNX Clip-13: "when min is greater than max, the result is max").
// NaN passes. Comparisons are arranged so that they compile to min/max instructions.
template <class T>
void clip(const Tensor& in, Tensor& out, std::optional<T> low, std::optional<T> high) {
  using C = ComputeType<T>;
  if (low && high) {
    map_elements<T>(in, out, [lo = static_cast<C>(*low), hi = static_cast<C>(*high)](C x) {
      const C y = x < lo ? lo : x;
      return y > hi ? hi : y;
    });
  } else if (low) {
    map_elements<T>(in, out, [lo = static_cast<C>(*low)](C x) { return x < lo ? lo : x; });
  } else if (high) {
    map_elements<T>(in, out, [hi = static_cast<C>(*high)](C x) { return x > hi ? hi : x; });
  } else {
    map_elements<T>(in, out, [](C x) { return x; });
  }
}

void run_clip_attributes(OpContext& c) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0, in.dtype(), in.shape());
  const auto attr = parse<ClipAttrs>(c);
  dispatch(in.dtype(), FloatTypes{}, "Clip", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto bound = [](std::optional<float> b) { return b ? std::optional<T>(static_cast<T>(*b)) : std::nullopt; };
    clip<T>(in, out, bound(attr.min), bound(attr.max));
  });
}

void run_clip_inputs(OpContext& c) {
  const Tensor& in = c.input(0);
  Tensor& out = c.output(0, in.dtype(), in.shape());
  dispatch(in.dtype(), NumericTypes{}, "Clip", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto bound = [&](std::size_t i) -> std::optional<T> {
      const Tensor* t = c.optional_input(i);
      if (t == nullptr) return std::nullopt;
      if (t->size() != 1 || t->dtype() != in.dtype()) {
        c.fail("{} must be one {}, received {}", i == ClipIn::kMin ? "min" : "max", name(in.dtype()), t->type_string());
      }
      return *static_cast<const T*>(t->data());
    };
    clip<T>(in, out, bound(ClipIn::kMin), bound(ClipIn::kMax));
  });
}

void infer_clip(InferContext& c) {
  infer_same(c);
  const auto* in = c.sym(0);
  if (in == nullptr || c.version() < 11) return;
  std::vector<Dim> out = *in;
  for (const std::size_t i : {ClipIn::kMin, ClipIn::kMax}) {
    if (!c.has_input(i)) continue;
    const auto* bound = c.sym(i);
    if (bound == nullptr || bound->size() != 1) return;
    for (Dim& d : out) d = i == ClipIn::kMin ? max(d, (*bound)[0]) : min(d, (*bound)[0]);
  }
  c.output_sym(0, std::move(out));
}

}  // namespace

void register_clip(OpTable& t) {
  OpDef clip("Clip", 1);
  clip.in("input", "T", types::floats).out("output", "T", types::floats).attrs<ClipAttrs>();
  t.add(std::move(clip).infer_with(infer_clip).run_with(run_clip_attributes));
  OpDef clip_11("Clip", 11);
  clip_11.in("input", "T", types::numeric).in("min", "T", types::numeric, Arity::optional);
  clip_11.in("max", "T", types::numeric, Arity::optional).out("output", "T", types::numeric);
  t.add(std::move(clip_11).infer_with(infer_clip).run_with(run_clip_inputs));
}

}  // namespace sdx::ops
