// Runs operators in float16 and bfloat16 on their float32 kernels: widens operands, and rounds results once.

#include "kernels/cpu/elements/halves.h"
#include "providers/cpu/kernel_table.h"

namespace sdx::cpu {
namespace {

bool has_halves(const Type& t) { return t.is_tensor() && is_half(t.elem); }

Type widened(Type t) {
  if (has_halves(t)) t.elem = DataType::float32;
  return t;
}

Tensor widened(const Tensor& t) {
  if (!is_half(t.dtype())) return t;
  Tensor wide(DataType::float32, t.shape());
  widen(t.dtype(), t.data(), static_cast<float*>(wide.mutable_data()), t.size());
  return wide;
}

// Where widened operands and results lie in the workspace, behind the float32 kernel's own; 0 for others.
struct WidenedState : KernelState {
  std::unique_ptr<KernelState> of_kernel;
  std::vector<std::size_t> inputs, outputs;
};

class WidenedKernel : public Kernel {
 public:
  // `graph` holds the node alone, in float32; the kernel may refer to it.
  WidenedKernel(std::unique_ptr<const Graph> graph, std::unique_ptr<const Kernel> kernel)
      : graph_(std::move(graph)), kernel_(std::move(kernel)), name_("widened-" + std::string(kernel_->name())) {
    for (const ValueId v : graph_->node(0).inputs) {
      const bool constant = v != kNoValue && graph_->value(v).constant && graph_->value(v).type.elem == DataType::float32;
      constants_.push_back(constant ? Value(graph_->value(v).constant->aligned()) : Value());
    }
  }
  std::string_view name() const override { return name_; }
  bool uses_input(std::size_t i) const override { return constants_[i].empty() && kernel_->uses_input(i); }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    auto state = std::make_unique<WidenedState>();
    ResolveContext inner;
    const std::vector<Type> in_types = types_of(c.inputs), out_types = types_of(c.outputs);
    const auto in = pointers(c.inputs, in_types), out = pointers(c.outputs, out_types);
    inner.inputs = in;
    inner.outputs = out;
    state->of_kernel = kernel_->resolve(inner);
    c.workspace_bytes = lines(inner.workspace_bytes);
    const auto place = [&](const Type* t) {
      const std::size_t at = c.workspace_bytes;
      if (t == nullptr || !has_halves(*t)) return std::size_t{0};
      c.workspace_bytes += lines(static_cast<std::size_t>(element_count(to_shape(*t->shape))) * sizeof(float));
      return at;
    };
    for (std::size_t i = 0; i < c.inputs.size(); ++i) state->inputs.push_back(uses_input(i) ? place(c.inputs[i]) : 0);
    for (const Type* t : c.outputs) state->outputs.push_back(place(t));
    return state;
  }
  void run(const KernelContext& c) const override {
    const auto& s = *static_cast<const WidenedState*>(c.state);
    const auto at = [&](std::size_t place) {
      return static_cast<float*>(static_cast<void*>(static_cast<char*>(c.workspace) + place));
    };
    std::vector<Value> in_values(c.inputs.size()), out_values(c.outputs.size());
    std::vector<const Value*> in(c.inputs.begin(), c.inputs.end());
    std::vector<Value*> out(c.outputs.begin(), c.outputs.end());
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (!constants_[i].empty()) {
        in[i] = &constants_[i];
      } else if (in[i] != nullptr && is_half(c.input(i).dtype())) {
        const Tensor& x = c.input(i);
        widen(x.dtype(), x.data(), at(s.inputs[i]), x.size());
        in_values[i] = Tensor::view(at(s.inputs[i]), DataType::float32, x.shape());
        in[i] = &in_values[i];
      }
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i] == nullptr || !is_half(c.output(i).dtype())) continue;
      out_values[i] = Tensor::view_mutable(at(s.outputs[i]), DataType::float32, c.output(i).shape());
      out[i] = &out_values[i];
    }
    kernel_->run({in, out, s.of_kernel.get(), c.workspace, c.services});
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (out[i] != &out_values[i]) continue;
      Tensor& y = c.output(i);
      narrow(y.dtype(), at(s.outputs[i]), y.mutable_data(), y.size());
    }
  }

 private:
  static std::size_t lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }
  static std::vector<Type> types_of(std::span<const Type* const> types) {
    std::vector<Type> wide(types.size());
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (types[i] != nullptr) wide[i] = widened(*types[i]);
    }
    return wide;
  }
  static std::vector<const Type*> pointers(std::span<const Type* const> given, const std::vector<Type>& wide) {
    std::vector<const Type*> to(given.size());
    for (std::size_t i = 0; i < given.size(); ++i) to[i] = given[i] == nullptr ? nullptr : &wide[i];
    return to;
  }

  std::unique_ptr<const Graph> graph_;
  std::unique_ptr<const Kernel> kernel_;
  std::string name_;
  std::vector<Value> constants_;  // in float32; empty where an input is none
};

// Returns a graph that holds the node alone, with float32 in place of 16-bit floats.
std::unique_ptr<Graph> widened_graph(const LowerContext& c) {
  auto graph = std::make_unique<Graph>();
  Node node = c.node();
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (!c.has_input(i)) continue;
    const Tensor* constant = c.constant(i);
    const std::string name = "input" + std::to_string(i);
    node.inputs[i] =
        constant != nullptr ? graph->add_constant(name, widened(*constant)) : graph->add_value(name, widened(c.input(i)));
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (c.has_output(i)) node.outputs[i] = graph->add_value("output" + std::to_string(i), widened(c.output(i)));
  }
  graph->add_node(std::move(node));
  return graph;
}

std::unique_ptr<Kernel> make_widened(LowerContext& c) {
  bool halves = false;
  for (std::size_t i = 0; i < c.node().inputs.size(); ++i) halves = halves || (c.has_input(i) && has_halves(c.input(i)));
  if (!halves) return c.refuse("no operand is float16 or bfloat16");
  std::unique_ptr<Graph> graph = widened_graph(c);
  for (const KernelEntry* entry : kernel_table().find(c.node().domain, c.node().op_type)) {
    if (entry->make == make_widened) continue;
    LowerContext wide(*graph, 0);
    std::unique_ptr<Kernel> kernel = entry->make(wide);
    if (kernel && !kernel->allocates_outputs()) return std::make_unique<WidenedKernel>(std::move(graph), std::move(kernel));
    c.refuse("in float32: " + (kernel ? "outputs of unknown shape" : wide.reason()));
  }
  return nullptr;
}

}  // namespace

void register_kernels_widened(KernelTable& t) {
  for (const char* op : {"ReduceSum",
                         "ReduceMean",
                         "ReduceMax",
                         "ReduceMin",
                         "ReduceProd",
                         "ReduceSumSquare",
                         "ReduceL1",
                         "ReduceL2",
                         "ReduceLogSum",
                         "ReduceLogSumExp",
                         "MatMul",
                         "Gemm",
                         "ArgMax",
                         "ArgMin",
                         "TopK",
                         "CumSum",
                         "CumProd",
                         "Softmax",
                         "LogSoftmax",
                         "Hardmax",
                         "LayerNormalization",
                         "SimplifiedLayerNormalization",
                         "RMSNormalization",
                         "BatchNormalization",
                         "InstanceNormalization",
                         "GroupNormalization",
                         "LRN",
                         "LpNormalization",
                         "MeanVarianceNormalization"}) {
    t.add("", op, "widened", 30, make_widened);
  }
  for (const char* op : {"LayerNormalization", "SimplifiedLayerNormalization", "SkipLayerNormalization",
                         "SkipSimplifiedLayerNormalization", "FusedMatMul", "FusedGemm"}) {
    t.add("com.microsoft", op, "widened", 30, make_widened);
  }
}

}  // namespace sdx::cpu
