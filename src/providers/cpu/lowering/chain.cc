// Elementwise operators that fuse_chains() joined.

#include <array>

#include "kernels/cpu/elementwise/chain.h"
#include "providers/cpu/kernel_table.h"
#include "providers/cpu/layout/fuse_chains.h"

namespace sdx::cpu {
namespace {

struct ChainState : KernelState {
  ChainState(const Chain& chain, std::span<const Shape> inputs, const Shape& out) : plan(chain, inputs, out) {}
  ChainPlan plan;
};

class ChainKernel : public Kernel {
 public:
  explicit ChainKernel(const ChainOp& op) : op_(op) {}
  std::string_view name() const override { return "elementwise-chain"; }
  std::unique_ptr<KernelState> resolve(ResolveContext& c) const override {
    std::vector<Shape> shapes;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) shapes.push_back(c.input_shape(i));
    return std::make_unique<ChainState>(op_.chain, shapes, op_.shape);
  }
  void run(const KernelContext& c) const override {
    std::array<const void*, Chain::kMostInputs> in;
    std::array<void*, Chain::kMostOutputs> out;
    for (std::size_t i = 0; i < c.inputs.size(); ++i) in[i] = c.input(i).data();
    for (std::size_t i = 0; i < c.outputs.size(); ++i) out[i] = c.output(i).mutable_data();
    static_cast<const ChainState*>(c.state)->plan.run(in.data(), out.data());
  }

 private:
  const ChainOp& op_;  // held by the node of the program's graph, which outlives its kernels
};

std::unique_ptr<Kernel> make_chain(LowerContext& c) {
  const ChainOp* op = chain_of(c.node());
  return op == nullptr ? c.refuse("not a chain of this engine") : std::make_unique<ChainKernel>(*op);
}

}  // namespace

void register_kernels_chain(KernelTable& t) { t.add("sdx", "ElementwiseChain", "elementwise-chain", 10, make_chain); }

}  // namespace sdx::cpu
