// The engine's own operators over blocked channels, which the pass block-channels writes into graphs: tensors
// [N, ceil(C / c), H, W, c] in place of [N, C, H, W], where element (n, k, y, x) is at [n, k / c, y, x, k % c]. What lies beyond
// C in the last block is 0 here and anything elsewhere. sdx 1: BlockChannels and UnblockChannels (the way in and back),
// BlockedConv (FusedConv; of a plain X as well; of X's channels shuffled as ShuffleNet does in `shuffle` groups; each of `group`
// made of `joined` ones, whose weights for each other's channels count as absent rather than 0), BlockedMaxPool,
// BlockedAveragePool, BlockedGlobalAveragePool, BlockedLRN.

#include <algorithm>

#include "ops/conv/signatures.h"
#include "ops/delegate.h"
#include "ops/math/fused_activation.h"
#include "ops/norm/signatures.h"
#include "ops/op.h"

namespace sdx::ops {
namespace {

constexpr std::int64_t kMostChannels = 64;  // in a block

std::int64_t block_of(const Attributes& attrs) {
  const std::int64_t block = parse<BlockAttrs>(attrs).block;
  if (block < 1 || block > kMostChannels) {
    fail(ErrorCode::invalid_model, "block must lie within 1 and {}, received {}", kMostChannels, block);
  }
  return block;
}

void check_rank(std::size_t rank, std::size_t expected, std::string_view what) {
  if (rank != expected) fail(ErrorCode::invalid_model, "{} must have rank {}, received {}", what, expected, rank);
}

// [N, C, H, W] -> [N, ceil(C / c), H, W, c]
SymShape blocked_shape(const SymShape& x, std::int64_t block) {
  check_rank(x.size(), 4, "a plain tensor");
  return {x[0], ceil_div(x[1], Dim(block)), x[2], x[3], Dim(block)};
}

// The plain shape of a blocked one; `channels` unknown: all that the blocks hold.
SymShape plain_shape(const SymShape& x, const Dim& channels) {
  check_rank(x.size(), 5, "a blocked tensor");
  if (channels.is_const() && x[1].is_const() && x[4].is_const()) {
    const std::int64_t block = x[4].value();
    if (block < 1 || channels.value() < 0 || x[1].value() != (channels.value() + block - 1) / block) {
      fail(ErrorCode::invalid_model, "{} channels do not fill a tensor of shape {}", channels.value(), to_string(x));
    }
  }
  return {x[0], channels.is_unknown() ? x[1] * x[4] : channels, x[2], x[3]};
}

// Copies between the two forms; elements beyond the channels are set to 0 on the way in.
void copy_blocks(const Shape& plain, std::int64_t block, const float* from, float* to, bool into_blocks) {
  const std::int64_t area = plain[2] * plain[3];
  const std::int64_t blocks = (plain[1] + block - 1) / block;
  for (std::int64_t n = 0; n < plain[0]; ++n) {
    for (std::int64_t k = 0; k < blocks * block; ++k) {
      for (std::int64_t p = 0; p < area; ++p) {
        const std::int64_t in_blocks = ((n * blocks + k / block) * area + p) * block + k % block;
        const std::int64_t in_plain = (n * plain[1] + k) * area + p;
        if (k >= plain[1]) {
          if (into_blocks) to[in_blocks] = 0.0F;
        } else if (into_blocks) {
          to[in_blocks] = from[in_plain];
        } else {
          to[in_plain] = from[in_blocks];
        }
      }
    }
  }
}

Tensor to_plain(const Tensor& x, std::int64_t channels) {
  const SymShape shape = plain_shape(to_sym(x.shape()), channels < 0 ? Dim() : Dim(channels));
  Tensor out(DataType::float32, to_shape(shape));
  copy_blocks(out.shape(), x.dim(4), x.values<float>().data(), out.mutable_values<float>().data(), false);
  return out;
}

void block_output(OpContext& c, const Tensor& y, std::int64_t block) {
  Tensor& out = c.output(0, DataType::float32, to_shape(blocked_shape(to_sym(y.shape()), block)));
  copy_blocks(y.shape(), block, y.values<float>().data(), out.mutable_values<float>().data(), true);
}

// --- the way in and back -----------------------------------------------------------------------------------------------------

void infer_block(InferContext& c) {
  const std::int64_t block = block_of(c.attrs());
  if (const SymShape* x = c.shape(0)) return c.output(0, DataType::float32, blocked_shape(*x, block));
  c.output(0, DataType::float32);
}

void run_block(OpContext& c) { block_output(c, c.input(0), block_of(c.attrs())); }

void infer_unblock(InferContext& c) {
  const std::int64_t channels = parse<ChannelsAttrs>(c).channels;
  if (const SymShape* x = c.shape(0)) return c.output(0, DataType::float32, plain_shape(*x, Dim(channels)));
  c.output(0, DataType::float32);
}

void run_unblock(OpContext& c) { c.set_output(0, to_plain(c.input(0), parse<ChannelsAttrs>(c).channels)); }

// --- convolution -------------------------------------------------------------------------------------------------------------

Attributes without_block(const Attributes& attrs) {
  Attributes inner = attrs;
  inner.erase("block");
  inner.erase("shuffle");
  inner.erase("joined");
  return inner;
}

Delegate fused_conv(const Attributes& attrs) { return Delegate("com.microsoft", "FusedConv", 1, without_block(attrs)); }

// Channel i of the result is channel i % groups * (C / groups) + i / groups.
Tensor shuffled(const Tensor& x, std::int64_t groups) {
  const std::int64_t channels = x.dim(1), area = x.dim(2) * x.dim(3);
  if (groups < 1 || channels % groups != 0) {
    fail(ErrorCode::invalid_model, "{} channels cannot be shuffled in {} groups", channels, groups);
  }
  Tensor out(DataType::float32, x.shape());
  const float* from = x.values<float>().data();
  float* to = out.mutable_values<float>().data();
  for (std::int64_t i = 0; i < x.dim(0) * channels; ++i) {
    const std::int64_t k = i % channels;
    const std::int64_t source = i - k + k % groups * (channels / groups) + k / groups;
    std::copy_n(from + source * area, area, to + i * area);
  }
  return out;
}

void infer_conv(InferContext& c) {
  const std::int64_t block = block_of(c.attrs());
  const SymShape *x = c.shape(0), *w = c.shape(1);
  if (x == nullptr || w == nullptr) return c.output(0, DataType::float32);
  check_rank(w->size(), 4, "W");
  const Dim channels = (*w)[1] * Dim(group_of(c.attrs()));
  const Type plain = Type::tensor(DataType::float32, x->size() == 4 ? *x : plain_shape(*x, channels));
  const Type y = fused_conv(c.attrs()).infer({plain, c.type(1), c.type(2), Type{}});
  c.output(0, DataType::float32, blocked_shape(*y.shape, block));
}

// Splits the weights of `group` groups, each of which holds `joined` smaller groups with zeros between them, and drops these
// zeros.
Tensor parted(const Tensor& w, std::int64_t group, std::int64_t joined) {
  if (joined < 1 || group < 1 || w.dim(1) % joined != 0 || w.dim(0) % (group * joined) != 0) {
    fail(ErrorCode::invalid_model, "{} joined groups in each of {} do not fit weights of shape {}", joined, group,
         to_string(w.shape()));
  }
  Tensor out(DataType::float32, {w.dim(0), w.dim(1) / joined, w.dim(2), w.dim(3)});
  const std::int64_t run = out.dim(1) * w.dim(2) * w.dim(3), each = w.dim(0) / (group * joined);
  const float* from = w.values<float>().data();
  float* to = out.mutable_values<float>().data();
  for (std::int64_t row = 0; row < w.dim(0); ++row) {
    std::copy_n(from + (row * joined + row / each % joined) * run, run, to + row * run);
  }
  return out;
}

void run_conv_blocked(OpContext& c) {
  const std::int64_t block = block_of(c.attrs());
  check_rank(c.input(1).rank(), 4, "W");
  const auto attr = parse<JoinedAttrs>(c);
  const std::int64_t joined = attr.joined, shuffle = attr.shuffle;
  const std::int64_t group = group_of(c.attrs()) * joined;
  const Tensor& x = c.input(0);
  const Tensor w = joined == 1 ? c.input(1) : parted(c.input(1), group / joined, joined);
  Attributes attrs = c.attrs();
  attrs.set("group", group);
  const Tensor plain = x.rank() == 4 ? x : to_plain(x, w.dim(1) * group);
  const Tensor *bias = c.optional_input(2), *sum = c.optional_input(3);
  const Tensor y =
      fused_conv(attrs).run(c, {shuffle != 1 ? shuffled(plain, shuffle) : plain, w, bias != nullptr ? *bias : Tensor(),
                                sum != nullptr ? to_plain(*sum, w.dim(0)) : Tensor()});
  block_output(c, y, block);
}

// --- pooling -----------------------------------------------------------------------------------------------------------------

Delegate pool_of(const Node& node) { return Delegate("", node.op_type.substr(7), 13, node.attributes); }

void infer_pool_blocked(InferContext& c) {
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, DataType::float32);
  const Type y = pool_of(c.node()).infer({Type::tensor(DataType::float32, plain_shape(*x, Dim()))});
  const SymShape& s = *y.shape;
  c.output(0, DataType::float32, {(*x)[0], (*x)[1], s[2], s[3], (*x)[4]});
}

void run_pool_blocked(OpContext& c) {
  const Tensor plain = to_plain(c.input(0), -1);
  const std::int64_t block = c.input(0).dim(4);
  if (block < 1) c.fail("X has blocks of {} channels", block);
  block_output(c, pool_of(c.node()).run(c, {plain}), block);
}

void infer_lrn_blocked(InferContext& c) {
  const SymShape* x = c.shape(0);
  if (x == nullptr) return c.output(0, DataType::float32);
  plain_shape(*x, Dim(parse<ChannelsAttrs>(c).channels));
  c.output(0, DataType::float32, *x);
}

void run_lrn_blocked(OpContext& c) {
  Attributes inner = c.attrs();
  inner.erase("channels");
  const Tensor plain = to_plain(c.input(0), parse<ChannelsAttrs>(c).channels);
  const std::int64_t block = c.input(0).dim(4);
  if (block < 1) c.fail("X has blocks of {} channels", block);
  block_output(c, Delegate("", "LRN", 13, std::move(inner)).run(c, {plain}), block);
}

OpDef pool_def(const char* name) {
  return OpDef("sdx", name, 1)
      .in("X", "T", set_of(DataType::float32))
      .out("Y", "T", set_of(DataType::float32))
      .infer_with(infer_pool_blocked)
      .run_with(run_pool_blocked);
}

}  // namespace

void register_blocked(OpTable& t) {
  constexpr TypeSet kFloat = set_of(DataType::float32);
  t.add(OpDef("sdx", "BlockChannels", 1)
            .in("X", "T", kFloat)
            .out("Y", "T", kFloat)
            .attrs<BlockAttrs>()
            .infer_with(infer_block)
            .run_with(run_block));
  t.add(OpDef("sdx", "UnblockChannels", 1)
            .in("X", "T", kFloat)
            .out("Y", "T", kFloat)
            .attrs<ChannelsAttrs>()
            .infer_with(infer_unblock)
            .run_with(run_unblock));
  OpDef conv("sdx", "BlockedConv", 1);
  conv.in("X W", "T", kFloat).in("B Z", "T", kFloat, Arity::optional);
  conv.out("Y", "T", kFloat).attrs<BlockAttrs>().attrs<JoinedAttrs>().attrs<ConvAttrs>().attrs<FusedActivationFields>();
  t.add(std::move(conv).infer_with(infer_conv).run_with(run_conv_blocked));
  t.add(pool_def("BlockedMaxPool").attrs<PoolAttrs>());
  t.add(pool_def("BlockedAveragePool").attrs<PoolAttrs>());
  t.add(pool_def("BlockedGlobalAveragePool"));
  OpDef lrn("sdx", "BlockedLRN", 1);
  lrn.in("X", "T", kFloat).out("Y", "T", kFloat).attrs<ChannelsAttrs>().attrs<LrnAttrs>();
  t.add(std::move(lrn).infer_with(infer_lrn_blocked).run_with(run_lrn_blocked));
}

}  // namespace sdx::ops
