// sdx ChannelsLastConv 1, which the pass channels-last writes into graphs: FusedConv over X, Z and Y [N, H, W, C] with each
// channel's own filter. W is FusedConv's.

#include "ops/conv/signatures.h"
#include "ops/delegate.h"
#include "ops/math/fused_activation.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

constexpr std::int64_t kToPlain[] = {0, 3, 1, 2}, kToLast[] = {0, 2, 3, 1};

template <class S>
S permuted(const S& s, const std::int64_t (&perm)[4]) {
  if (s.size() != 4) fail(ErrorCode::invalid_model, "a tensor with the channels last must have rank 4, received {}", s.size());
  S out;
  for (const std::int64_t axis : perm) out.push_back(s[static_cast<std::size_t>(axis)]);
  return out;
}

Tensor transposed(OpContext& c, const Tensor& x, const std::int64_t (&perm)[4]) {
  permuted(x.shape(), perm);
  Attributes attrs;
  attrs.set("perm", std::vector<std::int64_t>(std::begin(perm), std::end(perm)));
  return Delegate("", "Transpose", 13, std::move(attrs)).run(c, {x});
}

Delegate fused_conv(const Node& node) { return Delegate("com.microsoft", "FusedConv", 1, node.attributes); }

void check_filters(const Attributes& attrs, std::int64_t filters, std::int64_t inputs) {
  if (inputs == 1 && filters == group_of(attrs)) return;
  fail(ErrorCode::invalid_model, "{} groups of {} channels for {} filters; each channel must have its own", group_of(attrs),
       inputs, filters);
}

void infer_last(InferContext& c) {
  const SymShape *x = c.shape(ConvIn::kX), *w = c.shape(ConvIn::kW);
  if (x == nullptr || w == nullptr) return c.output(0, DataType::float32);
  if (w->size() == 4 && (*w)[0].is_const() && (*w)[1].is_const()) check_filters(c.attrs(), (*w)[0].value(), (*w)[1].value());
  const Type plain = Type::tensor(DataType::float32, permuted(*x, kToPlain));
  const Type y = fused_conv(c.node()).infer({plain, c.type(ConvIn::kW)});
  c.output(0, DataType::float32, permuted(*y.shape, kToLast));
}

void run_last(OpContext& c) {
  const Tensor &x = c.input(ConvIn::kX), &w = c.input(ConvIn::kW);
  if (w.rank() != 4) c.fail("W must have rank 4, received {}", w.rank());
  check_filters(c.attrs(), w.dim(0), w.dim(1));
  const Tensor *b = c.optional_input(ConvIn::kB), *z = c.optional_input(ConvIn::kZ);
  const Tensor y = fused_conv(c.node()).run(
      c, {transposed(c, x, kToPlain), w, b != nullptr ? *b : Tensor(), z != nullptr ? transposed(c, *z, kToPlain) : Tensor()});
  c.set_output(0, transposed(c, y, kToLast));
}

}  // namespace

void register_channels_last(OpTable& t) {
  constexpr TypeSet kFloat = set_of(DataType::float32);
  OpDef conv("sdx", "ChannelsLastConv", 1);
  conv.in("X W", "T", kFloat).in("B Z", "T", kFloat, Arity::optional);
  conv.out("Y", "T", kFloat).attrs<ConvAttrs>().attrs<FusedActivationFields>();
  t.add(std::move(conv).infer_with(infer_last).run_with(run_last));
}

}  // namespace sdx::ops
