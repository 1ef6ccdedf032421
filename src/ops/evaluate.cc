#include "ops/evaluate.h"

#include "base/error.h"
#include "ops/check_values.h"
#include "ops/context.h"

namespace sdx::ops {
namespace {

class EvaluateServices : public RunServices {
 public:
  std::vector<Value> run_subgraph(const Node&, std::size_t, std::vector<Value>) override {
    fail(ErrorCode::internal, "only sessions evaluate operators with subgraphs");
  }
  const StopCondition& stop() const override { return stop_; }
  std::uint64_t next_seed() override { return 0; }

 private:
  StopCondition stop_;
};

}  // namespace

std::vector<Value> evaluate(const Node& node, const OpDef& def, std::span<const Value* const> inputs) {
  check_values(def, inputs);  // inference comes before nodes are checked with types
  std::vector<Value> outputs(node.outputs.size());
  std::vector<Value*> slots(node.outputs.size(), nullptr);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (node.outputs[i] != kNoValue) slots[i] = &outputs[i];
  }
  EvaluateServices services;
  OpContext context(node, inputs, slots, services);
  def.run(context);
  return outputs;
}

}  // namespace sdx::ops
