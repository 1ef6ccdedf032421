// The engine's operators over blocked channels (ops/conv/blocked.cc) in float32.

#include <algorithm>

#include "kernels/cpu/conv/blocked/blocked_channels.h"
#include "kernels/cpu/conv/blocked/blocked_conv.h"
#include "kernels/cpu/conv/blocked/blocked_layout.h"
#include "kernels/cpu/conv/blocked/blocked_pool.h"
#include "kernels/cpu/conv/conv_shape.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "ops/conv/signatures.h"
#include "ops/norm/signatures.h"
#include "providers/cpu/activation.h"
#include "providers/cpu/conv_shape.h"
#include "providers/cpu/denormals.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/packed.h"
#include "providers/cpu/pool_state.h"

namespace sdx::cpu {
namespace {

std::int64_t area(const Shape& s) { return s[2] * s[3]; }

bool is_rank(const LowerContext& c, std::size_t i, std::size_t rank) {
  return c.shape(i) != nullptr && c.shape(i)->size() == rank;
}

// Tells whether input i has blocks of the size of this machine under the instruction set in use.
bool has_block(const LowerContext& c, std::size_t i) {
  return is_rank(c, i, 5) && c.shape(i)->back().is_const() && c.shape(i)->back().value() == channel_block();
}

class BlockKernel : public Kernel {
 public:
  std::string_view name() const override { return "block-channels-f32"; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.input(0).size() == 0) return;
    to_blocked_f32(x[0], x[1], area(x), c.in<float>(0), c.out<float>(0));
  }
};

std::unique_ptr<Kernel> make_block(LowerContext& c) {
  if (c.dtype(0) != DataType::float32 || !is_rank(c, 0, 4)) return c.refuse("not float32 with two spatial axes");
  if (ops::parse<ops::BlockAttrs>(c).block != channel_block()) return c.refuse("blocks of another size");
  return std::make_unique<BlockKernel>();
}

class UnblockKernel : public Kernel {
 public:
  explicit UnblockKernel(bool renames) : renames_(renames) {}
  std::string_view name() const override { return "unblock-channels-f32"; }
  int view_of() const override { return renames_ ? 0 : -1; }
  void run(const KernelContext& c) const override {
    const Shape& y = c.output(0).shape();
    if (c.output(0).size() == 0) return;
    from_blocked_f32(y[0], y[1], area(y), c.in<float>(0), c.out<float>(0));
  }

 private:
  bool renames_;  // one pixel and whole blocks: the same elements in the same order
};

std::unique_ptr<Kernel> make_unblock(LowerContext& c) {
  if (c.dtype(0) != DataType::float32 || !has_block(c, 0)) return c.refuse("not float32 in blocks of this machine's size");
  const SymShape& x = *c.shape(0);
  const auto one = [](const Dim& d) { return d.is_const() && d.value() == 1; };
  return std::make_unique<UnblockKernel>(one(x[2]) && one(x[3]) &&
                                         ops::parse<ops::ChannelsAttrs>(c).channels % channel_block() == 0);
}

struct ConvState : KernelState {
  ConvShape shape;
};

std::string_view algorithm_name(BlockedConv algorithm) {
  switch (algorithm) {
    case BlockedConv::plain: return "conv-plain-to-blocked-f32";
    case BlockedConv::depthwise: return "conv-blocked-depthwise-f32";
    case BlockedConv::winograd2: return "conv-blocked-winograd2-f32";
    case BlockedConv::winograd4: return "conv-blocked-winograd4-f32";
    case BlockedConv::winograd2_lean: return "conv-blocked-winograd2-lean-f32";
    case BlockedConv::winograd4_lean: return "conv-blocked-winograd4-lean-f32";
    case BlockedConv::strided: return "conv-blocked-strided-f32";
    case BlockedConv::listed: return "conv-blocked-listed-f32";
    case BlockedConv::direct: break;
  }
  return "conv-blocked-f32";
}

class BlockedConvKernel : public Kernel {
 public:
  BlockedConvKernel(Attributes attrs, Shape weights, BlockedConv algorithm, Packed packed, UnarySpec act)
      : attrs_(std::move(attrs)), weights_(std::move(weights)), algorithm_(algorithm), packed_(std::move(packed)), act_(act) {}

  std::string_view name() const override { return algorithm_name(algorithm_); }
  bool uses_input(std::size_t i) const override { return i != 1 && i != 2; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    Shape x = c.input_shape(0);
    if (x.size() == 5) {
      x[1] = weights_[1] * ops::group_of(attrs_);
      x.pop_back();
    }
    auto state = std::make_unique<ConvState>();
    state->shape = conv_shape(ops::conv_geometry(attrs_, x, weights_));
    const auto attr = ops::parse<ops::JoinedAttrs>(attrs_);
    state->shape.shuffle = attr.shuffle;
    state->shape.joined = attr.joined;
    c.workspace_bytes = conv_blocked_workspace_bytes(algorithm_, state->shape);
    return state;
  }

  void run(const KernelContext& c) const override {
    if (c.output(0).size() == 0) return;
    if (c.has_input(3) && c.input(3).shape() != c.output(0).shape()) {
      fail(ErrorCode::runtime_failure, "Z must have the output's shape {}, received {}", to_string(c.output(0).shape()),
           to_string(c.input(3).shape()));
    }
    conv_blocked_f32(algorithm_, static_cast<const ConvState*>(c.state)->shape, c.in<float>(0), packed_.data(),
                     c.has_input(3) ? c.in<float>(3) : nullptr, act_, c.out<float>(0), c.workspace);
  }

 private:
  Attributes attrs_;
  Shape weights_;
  BlockedConv algorithm_;
  Packed packed_;
  UnarySpec act_;
};

// Takes unknown extents to be those in the middle of a network: every choice is correct for any extents.
BlockedConv choose(const LowerContext& c, const ConvShape& packing, const Shape& w) {
  constexpr std::int64_t kUsual = 28;
  if (is_rank(c, 0, 4)) return BlockedConv::plain;
  if (packing.shuffle != 1) return BlockedConv::listed;
  if (!conv_blocked_supports(BlockedConv::direct, packing)) {
    const bool depthwise = conv_blocked_supports(BlockedConv::depthwise, packing);
    return depthwise ? BlockedConv::depthwise : BlockedConv::listed;
  }
  const SymShape& x = *c.shape(0);
  const auto extent = [](const Dim& d, std::int64_t otherwise) { return d.is_const() ? d.value() : otherwise; };
  const bool known = x[2].is_const() && x[3].is_const();
  const Shape picture{std::max<std::int64_t>(1, extent(x[0], 1)), packing.in_channels, known ? x[2].value() : kUsual,
                      known ? x[3].value() : kUsual};
  try {
    return conv_blocked_choose(conv_shape(ops::conv_geometry(c.attrs(), picture, w)));
  } catch (const Error&) {  // a window larger than the picture taken for it
    return BlockedConv::direct;
  }
}

bool is_padded(const Attributes& attrs) {
  const ops::IntList pads = ops::parse<ops::WindowFields>(attrs).pads;
  return std::any_of(pads.begin(), pads.end(), [](std::int64_t p) { return p != 0; });
}

std::unique_ptr<Kernel> make_conv(LowerContext& c) {
  const auto attr = ops::parse<ops::JoinedAttrs>(c);
  const Tensor *w = c.constant(1), *bias = c.constant(2);
  if (c.dtype(0) != DataType::float32 || w == nullptr || w->dtype() != DataType::float32)
    return c.refuse("not float32 with constant weights");
  if (w->rank() != 4 || w->size() == 0 || (c.has_input(2) && bias == nullptr)) return c.refuse("weights or bias not constant");
  if (ops::parse<ops::BlockAttrs>(c).block != channel_block() || !(is_rank(c, 0, 4) || has_block(c, 0)))
    return c.refuse("blocks of another size");
  const auto act = fused_activation(c.node());
  if (!act) return c.refuse("this activation cannot be fused");
  const std::int64_t group = ops::group_of(c.attrs());
  if (group < 1 || w->shape()[0] % group != 0) return c.refuse("ill-grouped weights");
  ConvShape packing = packing_shape(c.attrs(), w->shape(), false);
  packing.shuffle = attr.shuffle;
  const std::int64_t joined = attr.joined, filters = w->shape()[0] / group;
  if (joined < 1 || w->shape()[1] % joined != 0 || filters % joined != 0) return c.refuse("ill-joined groups");
  std::vector<BlockedConv> able{choose(c, packing, w->shape())};
  if (!conv_blocked_supports(able[0], packing)) return c.refuse("groups that do not fill blocks");
  if (able[0] == BlockedConv::plain && packing.shuffle != 1) return c.refuse("shuffled channels that are not in blocks");
  if (joined > 1 && (able[0] == BlockedConv::plain || able[0] == BlockedConv::listed || able[0] == BlockedConv::depthwise))
    return c.refuse("joined groups that do not fill blocks");
  if (able[0] == BlockedConv::listed && is_padded(c.attrs())) return c.refuse("padding around single pixels");
  if (able[0] != BlockedConv::plain && able[0] != BlockedConv::listed) {
    for (const auto a : {BlockedConv::direct, BlockedConv::depthwise, BlockedConv::winograd2, BlockedConv::winograd4,
                         BlockedConv::winograd2_lean, BlockedConv::winograd4_lean, BlockedConv::strided}) {
      if (a != able[0] && conv_blocked_supports(a, packing)) able.push_back(a);
    }
  }
  std::vector<std::string_view> names;
  for (const BlockedConv a : able) names.push_back(algorithm_name(a));
  const BlockedConv algorithm = able[c.choose(std::move(names))];
  if (bias != nullptr && (bias->size() != w->shape()[0] || bias->dtype() != DataType::float32))
    return c.refuse("a bias of another size");
  Packed packed = c.pack(
      {w, bias}, conv_blocked_packed_bytes(algorithm, packing), cache::PackKey("conv-blocked", algorithm, packing),
      [&](float* to) {
        const Tensor filters = without_denormals(*w), added = bias == nullptr ? Tensor() : without_denormals(*bias);
        conv_blocked_pack(algorithm, packing, filters.data(), bias != nullptr ? added.values<float>().data() : nullptr, to);
      });
  return std::make_unique<BlockedConvKernel>(c.attrs(), w->shape(), algorithm, std::move(packed), *act);
}

class BlockedPoolKernel : public Kernel {
 public:
  BlockedPoolKernel(const LowerContext& c, bool average)
      : attrs_(c.attrs()), average_(average), count_pad_(ops::parse<ops::PoolAttrs>(c).count_include_pad) {}
  std::string_view name() const override { return average_ ? "average-pool-blocked-f32" : "max-pool-blocked-f32"; }

  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    Shape x = c.input_shape(0);
    x.pop_back();
    return pool_state(attrs_, x);
  }

  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const PoolState*>(c.state);
    if (c.output(0).size() == 0) return;
    if (average_) return average_pool_blocked_f32(s.shape, s.pad_end, count_pad_, c.in<float>(0), c.out<float>(0));
    max_pool_blocked_f32(s.shape, c.in<float>(0), c.out<float>(0));
  }

 private:
  Attributes attrs_;
  bool average_;
  bool count_pad_;
};

template <bool Average>
std::unique_ptr<Kernel> make_pool(LowerContext& c) {
  if (c.dtype(0) != DataType::float32 || !has_block(c, 0)) return c.refuse("not float32 in blocks of this machine's size");
  if (Average && ops::may_average_nothing(ops::read_window_attrs(c.attrs(), 2)))
    return c.refuse("windows may hold nothing but padding");
  return std::make_unique<BlockedPoolKernel>(c, Average);
}

class BlockedMeanKernel : public Kernel {
 public:
  std::string_view name() const override { return "global-pool-blocked-f32"; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.output(0).size() == 0) return;
    mean_blocked_f32(x[0], x[1], area(x), c.in<float>(0), c.out<float>(0));
  }
};

std::unique_ptr<Kernel> make_mean(LowerContext& c) {
  if (c.dtype(0) != DataType::float32 || !has_block(c, 0)) return c.refuse("not float32 in blocks of this machine's size");
  return std::make_unique<BlockedMeanKernel>();
}

class BlockedLrnKernel : public Kernel {
 public:
  BlockedLrnKernel(std::int64_t channels, const ops::LrnAttrs& attr) : channels_(channels), attr_(attr) {}
  std::string_view name() const override { return "lrn-blocked-f32"; }
  void run(const KernelContext& c) const override {
    const Shape& x = c.input(0).shape();
    if (c.input(0).size() == 0) return;
    lrn_blocked_f32(c.in<float>(0), c.out<float>(0), x[0], channels_, area(x), attr_.size, attr_.alpha, attr_.beta, attr_.bias);
  }

 private:
  std::int64_t channels_;
  ops::LrnAttrs attr_;
};

std::unique_ptr<Kernel> make_lrn(LowerContext& c) {
  if (c.dtype(0) != DataType::float32 || !has_block(c, 0)) return c.refuse("not float32 in blocks of this machine's size");
  const Dim& blocks = (*c.shape(0))[1];
  if (!blocks.is_const()) return c.refuse("channels are not known");
  const auto attr = ops::parse<ops::LrnAttrs>(c);
  const std::int64_t channels = ops::parse<ops::ChannelsAttrs>(c).channels;
  if (attr.size < 1 || attr.size > 4096) return c.refuse("window is empty or above 4096 channels");
  if (channels < 1 || (channels + channel_block() - 1) / channel_block() != blocks.value())
    return c.refuse("channels that do not fill the blocks");
  return std::make_unique<BlockedLrnKernel>(channels, attr);
}

}  // namespace

void register_kernels_blocked(KernelTable& t) {
  t.add("sdx", "BlockChannels", "block-channels-f32", 10, make_block);
  t.add("sdx", "UnblockChannels", "unblock-channels-f32", 10, make_unblock);
  t.add("sdx", "BlockedConv", "conv-blocked-f32", 10, make_conv);
  t.add("sdx", "BlockedMaxPool", "max-pool-blocked-f32", 10, make_pool<false>);
  t.add("sdx", "BlockedAveragePool", "average-pool-blocked-f32", 10, make_pool<true>);
  t.add("sdx", "BlockedLRN", "lrn-blocked-f32", 10, make_lrn);
  t.add("sdx", "BlockedGlobalAveragePool", "global-pool-blocked-f32", 10, make_mean);
}

}  // namespace sdx::cpu
