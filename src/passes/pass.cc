#include "passes/pass.h"

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "ops/infer.h"
#include "passes/fuse/fuse.h"
#include "passes/simplify/simplify.h"

namespace sdx {
namespace {

constexpr Pass kPasses[] = {
    // First: fold-constants would turn quantised weights into floats.
    {"qdq-to-integer", fuse::qdq_to_integer, "runs operators between DequantizeLinear and QuantizeLinear in integers"},
    {"byte-tables", fuse::byte_tables, "computes bytes from bytes by tables"},
    {"fuse-block-weights", fuse::fuse_block_weights, "multiplies with weights quantised in blocks as they are"},
    {"bytes-channels-last", fuse::bytes_channels_last, "lets convolutions of bytes have the channels last"},
    // Before fusions, which are for float32.
    {"widen-half", fuse::widen_half, "computes networks of 16-bit floats in float32, with casts at their edges"},
    {"split-fused", simplify::split_fused, "splits what other runtimes fused, for the fusions that follow"},
    // Before fold-constants, which would store transposed weights a second time.
    {"fuse-weights", fuse::weights_in_place, "multiplies with weights in the order in which they are stored"},
    {"fold-constants", simplify::fold_constants, "computes values that depend only on constants"},
    {"gather-early", simplify::gather_early, "takes rows of a table before it is dequantised"},
    {"fold-shapes", simplify::fold_shapes, "replaces shape computations that inference can settle"},
    {"remove-identities", simplify::remove_identities, "drops nodes that change nothing"},
    {"sum-to-add", simplify::sum_to_add, "writes Sum as Add"},
    {"transposed-conv", simplify::transposed_conv, "writes ConvTranspose with stride 1 as Conv"},
    {"pad-conv", simplify::pad_conv, "lets convolutions pad by themselves"},
    {"share-common", simplify::share_common, "computes equal expressions once"},
    {"fold-batch-norm", simplify::fold_batch_norm, "folds BatchNormalization into the convolution before it"},
    // Runs after fold-batch-norm, and before fuse-epilogues, which adds the activation.
    {"resize-late", simplify::resize_late, "convolves pictures by single pixels before they are enlarged"},
    {"fuse-silu", fuse::fuse_silu, "computes x * Sigmoid(x) in one step"},
    {"fuse-layer-norm", fuse::fuse_layer_norm, "normalises rows in one step"},
    {"fuse-rotary", fuse::fuse_rotary, "turns queries and keys by their positions in one step"},
    // Before fuse-attention, which reads heads where they lie side by side.
    {"fuse-stacked-heads", fuse::fuse_stacked_heads, "takes queries, keys and values apart before they are transposed"},
    {"fuse-attention", fuse::fuse_attention, "computes attention without its matrix of scores"},
    {"fuse-gelu", fuse::fuse_gelu, "computes Gelu in one step"},
    {"fuse-linear", fuse::fuse_linear, "lets products with weights add biases and residuals and apply activations"},
    // Runs after fuse-linear, which adds the bias, and before fuse-epilogues, which adds the activation.
    {"channel-products", fuse::channel_products, "multiplies channels without moving them to the last axis"},
    {"fuse-integer-products", fuse::fuse_integer_products, "lets products of bytes give floats, scaled and with a bias"},
    {"fuse-one-hot", fuse::fuse_one_hot, "takes rows of weights instead of multiplying with one-hot vectors"},
    {"elements-to-rows", fuse::elements_to_rows, "moves rows as a whole where one index stands for each"},
    {"fuse-epilogues", fuse::fuse_epilogues, "lets Conv and Gemm add residuals and apply activations"},
    {"fold-dequantized", simplify::fold_dequantized, "dequantises the weights that stayed floats", true},
    {"remove-dead", simplify::remove_dead, "removes nodes whose results are not used"},
};

bool run_recursively(Graph& graph, const Pass& pass) {
  bool changed = false;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    for (Subgraph& s : graph.node(id).subgraphs) changed = run_recursively(*s.graph, pass) || changed;
  }
  if (!pass.run(graph)) return changed;
  graph.compact();
  graph.drop_unused_values();
#if !defined(NDEBUG) || defined(SDX_VERIFY)
  graph.verify();
#endif
  return true;
}

bool apply(Graph& graph, const Pass& pass) {
  if (!run_recursively(graph, pass)) return false;
  ops::infer_in_place(graph);
  return true;
}

}  // namespace

std::span<const Pass> passes() { return kPasses; }

const Pass& find_pass(std::string_view name, std::span<const Pass> list) {
  std::vector<std::string> names;
  for (const Pass& p : list) {
    if (p.name == name) return p;
    names.emplace_back(p.name);
  }
  const std::string near = closest(name, names);
  fail(ErrorCode::invalid_argument, "unknown pass '{}'{} Known: {}", name, near.empty() ? "." : "; did you mean '" + near + "'?",
       join(names));
}

void run_passes(Graph& graph, const PassOptions& options) {
  const auto enabled = [&](const Pass& pass) {
    return std::find(options.disabled.begin(), options.disabled.end(), pass.name) == options.disabled.end();
  };
  const auto settle = [&] {
    for (int round = 0; round < options.max_rounds; ++round) {
      bool changed = false;
      for (const Pass& pass : kPasses) {
        if (!pass.late && enabled(pass)) changed = apply(graph, pass) || changed;
      }
      if (!changed) break;
    }
  };
  settle();
  bool changed = false;
  for (const Pass& pass : kPasses) {
    if (pass.late && enabled(pass)) changed = apply(graph, pass) || changed;
  }
  if (changed) settle();
  for (const Pass& pass : options.last) {
    if (enabled(pass)) apply(graph, pass);
  }
}

bool run_pass(Graph& graph, const Pass& pass) { return apply(graph, pass); }

void sink_constants(Graph& graph) {
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    for (Subgraph& s : graph.node(id).subgraphs) {
      const std::size_t formals = s.graph->inputs().size() - s.captures.size();
      for (std::size_t i = s.captures.size(); i-- > 0;) {
        const ValueInfo& outer = graph.value(s.captures[i]);
        if (!outer.constant || outer.is_input) continue;
        const ValueId inner = s.graph->inputs()[formals + i];
        s.graph->value(inner).constant = outer.constant;
        s.graph->remove_input(formals + i);
        s.captures.erase(s.captures.begin() + static_cast<std::ptrdiff_t>(i));
      }
      sink_constants(*s.graph);
    }
  }
}

}  // namespace sdx
