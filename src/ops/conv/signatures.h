#pragma once
// Convolutions and poolings: attributes and places of inputs. conv_geometry.h checks them and fills in what depends on the input.

#include "ops/signature.h"

namespace sdx::ops {

// The windows of convolutions and poolings alike, as the node has them.
struct WindowFields {
  IntList kernel_shape, strides, dilations, pads;
  std::string_view auto_pad = "NOTSET";
  bool ceil_mode = false;

  void fields(auto& f) {
    f("auto_pad", auto_pad);
    f("ceil_mode", ceil_mode);
    f("dilations", dilations);
    f("kernel_shape", kernel_shape);
    f("pads", pads);
    f("strides", strides);
  }
};

struct GroupAttrs {
  std::int64_t group = 1;

  void fields(auto& f) { f("group", group); }
};
// Of any convolution.
inline std::int64_t group_of(const Attributes& attrs) { return parse<GroupAttrs>(attrs).group; }

// Further attributes of transposed convolutions.
struct OutputAttrs {
  IntList output_padding, output_shape;

  void fields(auto& f, bool with_shape = true) {
    f("output_padding", output_padding);
    if (with_shape) f("output_shape", output_shape);
  }
};

// Everything that is named like a convolution, in any domain.
struct ConvAttrs : GroupAttrs {
  WindowFields window;
  OutputAttrs output;             // of transposed ones
  std::int64_t offset_group = 1;  // DeformConv

  void fields(auto& f, const OpId& op) {
    const bool deformed = op.name == "DeformConv", dynamic = op.name == "ConvTransposeWithDynamicPads";
    if (!deformed) f("auto_pad", window.auto_pad);
    f("dilations", window.dilations);
    GroupAttrs::fields(f);
    f("kernel_shape", window.kernel_shape);
    if (!dynamic) f("pads", window.pads);
    f("strides", window.strides);
    if (deformed) f("offset_group", offset_group);
    if (op.name.starts_with("ConvTranspose")) output.fields(f, !dynamic);
  }
};
struct ConvIn {
  enum Slot : std::size_t { kX, kW, kB, kZ };  // Z: of FusedConv, added before the activation
};

// AveragePool, LpPool, MaxPool, and com.microsoft's and sdx's kinds of them.
struct PoolAttrs {
  WindowFields window;
  bool count_include_pad = false;  // averages
  bool storage_order = false;      // MaxPool: indices count down the columns

  void fields(auto& f, const OpId& op) {
    f("auto_pad", window.auto_pad);
    if (op.name == "LpPool" && op.version < 2) {
      f("kernel_shape", window.kernel_shape);
    } else {
      f.required("kernel_shape", window.kernel_shape);
    }
    f("pads", window.pads);
    f("strides", window.strides);
    const bool masked = op.name == "MaxpoolWithMask", early = op.name == "MaxPool" && op.version < 8;
    if (!masked && !early) f("ceil_mode", window.ceil_mode);
    if (!masked && !early && op.name != "QLinearAveragePool") f("dilations", window.dilations);
    if (op.name.ends_with("AveragePool")) f("count_include_pad", count_include_pad);
    if (masked || (op.name == "MaxPool" && !early)) f("storage_order", storage_order);
  }
};

// sdx: operators on channels in blocks of neighbours (providers/cpu/layout/block_channels.h).
struct BlockAttrs {  // BlockChannels, BlockedConv
  std::int64_t block = 0;

  void fields(auto& f) { f.required("block", block); }
};
struct ChannelsAttrs {  // UnblockChannels, BlockedLRN: channels without those that fill the last block
  std::int64_t channels = 0;

  void fields(auto& f) { f.required("channels", channels); }
};
struct JoinedAttrs {         // BlockedConv
  std::int64_t shuffle = 1;  // the input's channels lie in the order of this many groups
  std::int64_t joined = 1;   // groups of the original in each group

  void fields(auto& f) {
    f("shuffle", shuffle);
    f("joined", joined);
  }
};

}  // namespace sdx::ops
