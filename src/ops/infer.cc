#include "ops/infer.h"

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "ops/context.h"
#include "ops/evaluate.h"
#include "tensor/element.h"

namespace sdx::ops {
namespace {

constexpr std::int64_t kMaxSymElements = 1024, kMaxNarrow = 16;

Type without_shape(Type type) {
  type.shape.reset();
  if (type.inner) type.inner = std::make_shared<const Type>(without_shape(*type.inner));
  return type;
}

// One graph, one pass, in node order.
class Engine {
 public:
  Engine(const Graph& graph, const InferOptions& options) : graph_(graph), options_(options) {
    result_.types.resize(graph.values().size());
  }

  InferResult run(const std::vector<Type>& input_types, const std::vector<const Tensor*>& input_values);
  // Also stores types in the graph and its subgraphs.
  void store_into(Graph* target) { target_ = target; }
  void set_nested() { nested_ = true; }

 private:
  friend class NodeServices;
  void seed_values(const std::vector<Type>& input_types, const std::vector<const Tensor*>& input_values);
  void infer_node(NodeId id);
  void accept_outputs(NodeId id, InferContext& context);
  void fold(NodeId id, const OpDef& def);
  const Tensor* known(ValueId v);
  const std::vector<Dim>* sym(ValueId v);
  void note_sym(ValueId v, std::vector<Dim> elements);

  const Graph& graph_;
  Graph* target_ = nullptr;
  bool nested_ = false;
  int contradictions_ = 0;
  InferOptions options_;
  InferResult result_;
  std::unordered_map<ValueId, std::vector<Dim>> syms_;
  std::unordered_map<ValueId, Tensor> aligned_;  // aligned copies of small unaligned constants
};

class NodeServices : public InferServices {
 public:
  NodeServices(Engine& engine, NodeId id) : engine_(engine), id_(id) {}

  std::vector<Type> infer_subgraph(std::size_t index, std::span<const Type> formal_inputs) override {
    const Node& node = engine_.graph_.node(id_);
    const Subgraph& sub = node.subgraphs.at(index);
    const std::size_t formals = sub.graph->inputs().size() - sub.captures.size();
    if (formal_inputs.size() != formals) {
      fail(ErrorCode::invalid_model, "graph '{}' takes {} inputs, received {}", sub.attribute, formals, formal_inputs.size());
    }
    std::vector<Type> types(formal_inputs.begin(), formal_inputs.end());
    std::vector<const Tensor*> values(formals, nullptr);
    for (const ValueId v : sub.captures) {
      types.push_back(engine_.result_.types[v]);
      values.push_back(engine_.known(v));
    }
    Engine inner(*sub.graph, engine_.options_);
    inner.set_nested();
    if (engine_.target_ != nullptr) inner.store_into(engine_.target_->node(id_).subgraphs[index].graph.get());
    InferResult r = inner.run(types, values);
    std::vector<Type> outputs;
    for (const ValueId v : sub.graph->outputs()) outputs.push_back(r.types[v]);
    for (std::string& w : r.warnings) engine_.result_.warnings.push_back(std::move(w));
    return outputs;
  }

 private:
  Engine& engine_;
  NodeId id_;
};

const Tensor* Engine::known(ValueId v) {
  const auto it = result_.values.find(v);
  if (it != result_.values.end()) return &it->second;
  const auto& constant = graph_.value(v).constant;
  if (!constant) return nullptr;
  if (constant->is_aligned()) return &*constant;
  // Weights, of which no inference function reads as many: copies of them all took a tenth of a convolution network's loading.
  if (constant->size() > (is_integer(constant->dtype()) ? 1 << 16 : 1 << 10)) return nullptr;
  return &aligned_.try_emplace(v, constant->aligned()).first->second;
}

const std::vector<Dim>* Engine::sym(ValueId v) {
  const auto it = syms_.find(v);
  if (it != syms_.end()) return &it->second;
  const Tensor* t = known(v);
  if (t == nullptr || t->rank() > 1 || t->size() > kMaxSymElements || !is_integer(t->dtype())) return nullptr;
  // Extents, which are int64 but for those of old TensorFlow models: not zero points, biases, or bytes.
  if (t->dtype() != DataType::int64 && t->size() > kMaxNarrow) return nullptr;
  const std::vector<std::int64_t> ints = to_ints(*t);
  return &syms_.emplace(v, std::vector<Dim>(ints.begin(), ints.end())).first->second;
}

void Engine::note_sym(ValueId v, std::vector<Dim> elements) {
  const Type& type = result_.types[v];
  if (!type.is_tensor() || !type.has_static_shape() || elements.size() > kMaxSymElements) return;
  const Shape shape = to_shape(*type.shape);
  if (shape.size() > 1 || element_count(shape) != static_cast<std::int64_t>(elements.size())) return;
  if (std::all_of(elements.begin(), elements.end(), [](const Dim& d) { return d.is_const(); }) && is_integer(type.elem)) {
    Tensor t(type.elem, shape);
    for (std::size_t i = 0; i < elements.size(); ++i) set_element_int(t, static_cast<std::int64_t>(i), elements[i].value());
    result_.values.insert_or_assign(v, std::move(t));
  }
  syms_.insert_or_assign(v, std::move(elements));
}

void Engine::seed_values(const std::vector<Type>& input_types, const std::vector<const Tensor*>& input_values) {
  for (ValueId v = 0; v < graph_.values().size(); ++v) {
    const ValueInfo& info = graph_.value(v);
    if (info.constant) {
      result_.types[v] = Type::tensor(info.constant->dtype(), to_sym(info.constant->shape()));
    } else if (info.producer == kNoNode && (!nested_ || !info.is_input)) {
      result_.types[v] = info.declared;
    }
  }
  for (std::size_t i = 0; i < graph_.inputs().size() && i < input_types.size(); ++i) {
    const ValueId v = graph_.inputs()[i];
    const Type& declared = graph_.value(v).declared;
    if (!graph_.value(v).constant) result_.types[v] = merge(input_types[i], nested_ ? without_shape(declared) : declared);
    if (i < input_values.size() && input_values[i] != nullptr) result_.values.insert_or_assign(v, *input_values[i]);
  }
}

void Engine::accept_outputs(NodeId id, InferContext& context) {
  const Node& node = graph_.node(id);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ValueId v = node.outputs[i];
    if (v == kNoValue) continue;
    const Type& declared = graph_.value(v).declared;
    Type& inferred = context.outputs[i];
    if (!compatible(inferred, declared)) {
      // An exporter that got one size wrong got most of them wrong: three examples tell the story.
      if (++contradictions_ <= 3) {
        result_.warnings.push_back(fmt::format("value '{}' is declared as {} but is {} ({}): the declaration is ignored",
                                               graph_.value(v).name, declared.str(), inferred.str(), graph_.describe(id)));
      }
      result_.types[v] = std::move(inferred);
    } else {
      result_.types[v] = merge(inferred, without_shape(declared));
    }
    if (context.output_syms[i]) note_sym(v, std::move(*context.output_syms[i]));
  }
}

void Engine::fold(NodeId id, const OpDef& def) {
  const Node& node = graph_.node(id);
  if (options_.fold_elements <= 0 || !def.deterministic || !node.subgraphs.empty() || node.outputs.empty()) return;
  std::int64_t total = 0;
  bool wanted = false;
  for (const ValueId v : node.outputs) {
    if (v == kNoValue) continue;
    const Type& type = result_.types[v];
    if (!type.has_static_shape()) return;
    total += element_count(to_shape(*type.shape));
    if (total > options_.fold_elements) return;
    wanted = wanted || !result_.values.contains(v);
  }
  if (!wanted) return;
  std::vector<Value> inputs(node.inputs.size());
  std::vector<const Value*> in(node.inputs.size(), nullptr);
  std::int64_t work = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Tensor* t = known(node.inputs[i]);
    if (t == nullptr) return;
    work += t->size();
    if (work > options_.fold_elements * 64) return;
    inputs[i] = *t;
    in[i] = &inputs[i];
  }
  std::vector<Value> outputs;
  try {
    outputs = evaluate(node, def, in);
  } catch (const Error& e) {
    if (e.code() == ErrorCode::internal || e.code() == ErrorCode::out_of_memory) throw;
    return;  // it may stand in a branch that is never taken: left for run time to report
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].is_tensor()) continue;
    const Tensor& t = outputs[i].tensor();
    result_.types[node.outputs[i]] = Type::tensor(t.dtype(), to_sym(t.shape()));
    result_.values.insert_or_assign(node.outputs[i], t);
  }
}

void Engine::infer_node(NodeId id) {
  const Node& node = graph_.node(id);
  const OpDef* def = find(node);
  if (def == nullptr) {
    if (!options_.allow_unknown && node.domain != kRegionDomain) unknown_operator(node);
    for (const ValueId v : node.outputs) {
      if (v != kNoValue) result_.types[v] = without_shape(graph_.value(v).declared);
    }
    return;
  }
  NodeServices services(*this, id);
  InferContext context(node, &services);
  for (const ValueId v : node.inputs) {
    InferContext::Input in;
    if (v != kNoValue) {
      in.type = &result_.types[v];
      in.value = known(v);
      in.sym = sym(v);
    }
    context.inputs.push_back(in);
  }
  context.outputs.resize(node.outputs.size());
  context.output_syms.resize(node.outputs.size());
  def->infer(context);
  accept_outputs(id, context);
  fold(id, *def);
}

InferResult Engine::run(const std::vector<Type>& input_types, const std::vector<const Tensor*>& input_values) {
  seed_values(input_types, input_values);
  for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
    if (graph_.node(id).removed) continue;
    try {
      infer_node(id);
    } catch (Error& e) {
      e.add_context("in " + graph_.describe(id));
      throw;
    }
  }
  if (contradictions_ > 3) {
    result_.warnings.push_back(
        fmt::format("{} more values of graph '{}' are declared with wrong types", contradictions_ - 3, graph_.name));
  }
  if (target_ != nullptr) {
    for (ValueId v = 0; v < result_.types.size(); ++v) target_->value(v).type = result_.types[v];
  }
  return std::move(result_);
}

std::vector<Type> declared_inputs(const Graph& graph) {
  std::vector<Type> types;
  for (const ValueId v : graph.inputs()) types.push_back(graph.value(v).declared);
  return types;
}

}  // namespace

void unknown_operator(const Node& node) {
  std::vector<std::string> names;
  int first = 0;
  for (const OpDef& d : table().all()) {
    if (d.domain == node.domain && d.name == node.op_type && first == 0) first = d.since;
    if (d.domain == node.domain) names.push_back(d.name);
  }
  const std::string domain = node.domain.empty() ? "ai.onnx" : node.domain;
  if (first != 0) {
    fail(ErrorCode::invalid_model, "operator {} needs opset {} of {}; the model imports opset {}", node.op_type, first, domain,
         node.version);
  }
  const std::string near = closest(node.op_type, names);
  const char* const own =
      names.empty() ? "; operators of your own come from a library (SessionOptions::custom_ops, --custom-ops)" : "";
  fail(ErrorCode::not_implemented, "no operator {} in domain {} (opset {}){}{}", node.op_type, domain, node.version,
       near.empty() ? "" : "; did you mean " + near + "?", own);
}

InferResult infer(const Graph& graph, const std::vector<Type>& input_types, const InferOptions& options,
                  const std::vector<const Tensor*>& input_values) {
  return Engine(graph, options).run(input_types, input_values);
}

std::vector<std::string> infer_in_place(Graph& graph, const InferOptions& options) {
  Engine engine(graph, options);
  engine.store_into(&graph);
  return engine.run(declared_inputs(graph), {}).warnings;
}

}  // namespace sdx::ops
