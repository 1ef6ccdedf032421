#include "conformance/interpreter.h"

#include "base/error.h"
#include "ops/context.h"
#include "ops/op.h"

namespace sdx::testing {
namespace {

// What all frames of one run share.
struct Run {
  const InterpreterOptions& options;
  std::uint64_t next_seed;
};

// One graph being run; subgraphs get a frame of their own.
class Frame : public ops::RunServices {
 public:
  Frame(Run& run, const Graph& graph) : run_(run), graph_(graph), values_(graph.values().size()) {}

  std::vector<Value> run(std::vector<Value> inputs) {
    bind(std::move(inputs));
    for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
      if (graph_.node(id).removed) continue;
      run_.options.stop.check();
      try {
        run_node(graph_.node(id));
      } catch (Error& e) {
        e.add_context("in " + graph_.describe(id));
        throw;
      }
    }
    std::vector<Value> out;
    for (const ValueId v : graph_.outputs()) out.push_back(values_[v]);
    return out;
  }

  std::vector<Value> run_subgraph(const Node& node, std::size_t index, std::vector<Value> formal_inputs) override {
    const Subgraph& sub = node.subgraphs.at(index);
    const std::size_t formals = sub.graph->inputs().size() - sub.captures.size();
    if (formal_inputs.size() != formals) {
      fail(ErrorCode::invalid_model, "graph '{}' takes {} inputs, received {}", sub.attribute, formals, formal_inputs.size());
    }
    for (const ValueId v : sub.captures) formal_inputs.push_back(values_[v]);
    return Frame(run_, *sub.graph).run(std::move(formal_inputs));
  }
  const StopCondition& stop() const override { return run_.options.stop; }
  std::uint64_t next_seed() override { return run_.next_seed++; }

 private:
  void bind(std::vector<Value> inputs) {
    if (inputs.size() != graph_.inputs().size()) {
      fail(ErrorCode::invalid_argument, "the graph takes {} inputs, received {}", graph_.inputs().size(), inputs.size());
    }
    for (ValueId v = 0; v < values_.size(); ++v) {
      if (graph_.value(v).constant) values_[v] = graph_.value(v).constant->aligned();
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].empty()) continue;
      if (inputs[i].is_tensor()) inputs[i] = inputs[i].tensor().aligned();
      values_[graph_.inputs()[i]] = std::move(inputs[i]);
    }
  }

  void run_node(const Node& node) {
    const ops::OpDef* const def = ops::find(node);
    if (def == nullptr) fail(ErrorCode::not_implemented, "no operator {} (opset {})", node.op_type, node.version);
    if (run_.options.check_nodes) ops::check_node(graph_, node, *def);
    std::vector<const Value*> in;
    for (const ValueId v : node.inputs) in.push_back(v == kNoValue ? nullptr : &values_[v]);
    std::vector<Value> results(node.outputs.size());
    std::vector<Value*> out;
    for (std::size_t i = 0; i < results.size(); ++i) out.push_back(node.outputs[i] == kNoValue ? nullptr : &results[i]);
    ops::OpContext context(node, in, out, *this);
    def->run(context);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (node.outputs[i] != kNoValue) values_[node.outputs[i]] = std::move(results[i]);
    }
  }

  Run& run_;
  const Graph& graph_;
  std::vector<Value> values_;
};

}  // namespace

std::vector<Value> interpret(const Graph& graph, std::vector<Value> inputs, const InterpreterOptions& options) {
  Run run{options, options.seed};
  return Frame(run, graph).run(std::move(inputs));
}

}  // namespace sdx::testing
