#include "ops/infer.h"

#include <algorithm>
#include <cstring>
#include <utility>

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

// The same, or known to the same degree.
bool same(const Dim& a, const Dim& b) { return a == b || (a.is_unknown() && b.is_unknown()); }

bool same(const std::vector<Dim>& a, const std::vector<Dim>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Dim& x, const Dim& y) { return same(x, y); });
}

bool same(const Type& a, const Type& b) {
  if (a.kind != b.kind || a.elem != b.elem || a.shape.has_value() != b.shape.has_value()) return false;
  if (a.shape && !same(*a.shape, *b.shape)) return false;
  return a.inner == b.inner || (a.inner && b.inner && same(*a.inner, *b.inner));
}

// A branch that cannot be valid stays in the graph, where passes and kernels would believe what the file declares of it.
void forget_types(Graph& graph) {
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    if (!graph.value(v).constant) graph.value(v).type = Type{};
  }
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    for (Subgraph& s : graph.node(id).subgraphs) forget_types(*s.graph);
  }
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.dtype() != DataType::string && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

}  // namespace

// One graph, in node order; once, or again and again.
class InferEngine {
 public:
  InferEngine(const Graph& graph, const InferOptions& options)
      : graph_(graph), options_(options), defs_(graph.nodes().size(), nullptr) {
    clear();
  }

  InferResult run(const std::vector<Type>& input_types, const std::vector<const Tensor*>& input_values);
  const InferResult& update(const std::vector<Type>& input_types);
  const std::vector<char>& changed() const { return changed_; }
  // Also stores types in the graph and its subgraphs.
  void store_into(Graph* target) { target_ = target; }
  void set_nested() { nested_ = true; }

 private:
  friend class NodeServices;
  // The known elements of a value: its tensor, or else single elements.
  struct Known {
    std::optional<Tensor> value;
    std::optional<std::vector<Dim>> sym;
  };
  void clear();
  Type input_type(ValueId v, const Type& given) const;
  void seed_values(const std::vector<Type>& input_types, const std::vector<const Tensor*>& input_values);
  void note_changed_inputs(const std::vector<Type>& input_types);
  bool reads_changed(const Node& node) const;
  void infer_all(bool only_changed);
  void infer_again(NodeId id);
  Known take_known(ValueId v);
  bool is_known_as(ValueId v, const Known& before) const;
  void infer_node(NodeId id);
  void accept_outputs(NodeId id, InferContext& context);
  void fold(NodeId id, const OpDef& def);
  const Tensor* known(ValueId v);
  const std::vector<Dim>* sym(ValueId v);
  void note_sym(ValueId v, std::vector<Dim> elements);
  void note_value(ValueId v, Tensor value);

  const Graph& graph_;
  Graph* target_ = nullptr;
  bool nested_ = false;
  int contradictions_ = 0;
  InferOptions options_;
  InferResult result_;
  std::unordered_map<ValueId, std::vector<Dim>> syms_;
  std::unordered_map<ValueId, Tensor> aligned_;  // aligned copies of small unaligned constants
  std::vector<char> has_value_, has_sym_;        // by ValueId: whether result_.values and syms_ have it; most have none
  std::vector<const OpDef*> defs_;               // by NodeId; null: not looked up yet
  std::vector<char> changed_;
  bool ready_ = false;  // the last update() went through
};

class NodeServices : public InferServices {
 public:
  NodeServices(InferEngine& engine, NodeId id) : engine_(engine), id_(id) {}

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
    InferEngine inner(*sub.graph, engine_.options_);
    inner.set_nested();
    if (engine_.target_ != nullptr) inner.store_into(engine_.target_->node(id_).subgraphs[index].graph.get());
    InferResult r;
    try {
      r = inner.run(types, values);
    } catch (const Error&) {
      if (engine_.target_ != nullptr) forget_types(*engine_.target_->node(id_).subgraphs[index].graph);
      throw;
    }
    std::vector<Type> outputs;
    for (const ValueId v : sub.graph->outputs()) outputs.push_back(r.types[v]);
    for (std::string& w : r.warnings) engine_.result_.warnings.push_back(std::move(w));
    return outputs;
  }

 private:
  InferEngine& engine_;
  NodeId id_;
};

void InferEngine::clear() {
  const std::size_t values = graph_.values().size();
  result_ = {};
  result_.types.resize(values);
  syms_.clear();
  has_value_.assign(values, 0);
  has_sym_.assign(values, 0);
}

void InferEngine::note_value(ValueId v, Tensor value) {
  result_.values.insert_or_assign(v, std::move(value));
  has_value_[v] = 1;
}

const Tensor* InferEngine::known(ValueId v) {
  if (has_value_[v] != 0) return &result_.values.find(v)->second;
  const auto& constant = graph_.value(v).constant;
  if (!constant) return nullptr;
  if (constant->is_aligned()) return &*constant;
  // Weights: no inference function reads this many elements, and copies of them all took a tenth of a convolution network's
  // loading.
  if (constant->size() > (is_integer(constant->dtype()) ? 1 << 16 : 1 << 10)) return nullptr;
  return &aligned_.try_emplace(v, constant->aligned()).first->second;
}

const std::vector<Dim>* InferEngine::sym(ValueId v) {
  if (has_sym_[v] != 0) return &syms_.find(v)->second;
  const Tensor* t = known(v);
  if (t == nullptr || t->rank() > 1 || t->size() > kMaxSymElements || !is_integer(t->dtype())) return nullptr;
  // Extents, which are int64 but for those of old TensorFlow models: not zero points, biases, or bytes.
  if (t->dtype() != DataType::int64 && t->size() > kMaxNarrow) return nullptr;
  const std::vector<std::int64_t> ints = to_ints(*t);
  has_sym_[v] = 1;
  return &syms_.emplace(v, std::vector<Dim>(ints.begin(), ints.end())).first->second;
}

void InferEngine::note_sym(ValueId v, std::vector<Dim> elements) {
  const Type& type = result_.types[v];
  if (!type.is_tensor() || !type.has_static_shape() || elements.size() > kMaxSymElements) return;
  const Shape shape = to_shape(*type.shape);
  if (shape.size() > 1 || element_count(shape) != static_cast<std::int64_t>(elements.size())) return;
  if (std::all_of(elements.begin(), elements.end(), [](const Dim& d) { return d.is_const(); }) && is_integer(type.elem)) {
    Tensor t(type.elem, shape);
    for (std::size_t i = 0; i < elements.size(); ++i) set_element_int(t, static_cast<std::int64_t>(i), elements[i].value());
    note_value(v, std::move(t));
  }
  syms_.insert_or_assign(v, std::move(elements));
  has_sym_[v] = 1;
}

// Only of tensors does a session compare shapes with the declared ones, not of what sequences and optional values hold.
Type InferEngine::input_type(ValueId v, const Type& given) const {
  const Type& declared = graph_.value(v).declared;
  const bool checked = (!nested_ || options_.trust_declarations) && declared.is_tensor() && given.is_tensor();
  return merge(given, checked ? declared : without_shape(declared));
}

void InferEngine::seed_values(const std::vector<Type>& input_types, const std::vector<const Tensor*>& input_values) {
  for (ValueId v = 0; v < graph_.values().size(); ++v) {
    const ValueInfo& info = graph_.value(v);
    if (info.constant) {
      result_.types[v] = Type::tensor(info.constant->dtype(), to_sym(info.constant->shape()));
    } else if (info.producer == kNoNode && (!nested_ || !info.is_input)) {
      result_.types[v] = info.declared.is_tensor() ? info.declared : without_shape(info.declared);
    }
  }
  for (std::size_t i = 0; i < graph_.inputs().size() && i < input_types.size(); ++i) {
    const ValueId v = graph_.inputs()[i];
    if (!graph_.value(v).constant) result_.types[v] = input_type(v, input_types[i]);
    if (i < input_values.size() && input_values[i] != nullptr) note_value(v, *input_values[i]);
  }
}

void InferEngine::accept_outputs(NodeId id, InferContext& context) {
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
    } else if (options_.trust_declarations) {
      result_.types[v] = merge(inferred, declared);
    } else if (inferred.is_tensor() && inferred.elem != DataType::undefined) {
      result_.types[v] = std::move(inferred);  // the declaration adds nothing
    } else {
      result_.types[v] = merge(inferred, without_shape(declared));
    }
    if (context.output_syms[i]) note_sym(v, std::move(*context.output_syms[i]));
  }
}

void InferEngine::fold(NodeId id, const OpDef& def) {
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
    wanted = wanted || has_value_[v] == 0;
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
    note_value(node.outputs[i], t);
  }
}

void InferEngine::infer_node(NodeId id) {
  const Node& node = graph_.node(id);
  const OpDef*& def = defs_[id];
  if (def == nullptr) def = find(node);
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

bool InferEngine::reads_changed(const Node& node) const {
  const auto changed = [&](ValueId v) { return v != kNoValue && changed_[v] != 0; };
  return std::any_of(node.inputs.begin(), node.inputs.end(), changed) ||
         std::any_of(node.subgraphs.begin(), node.subgraphs.end(),
                     [&](const Subgraph& s) { return std::any_of(s.captures.begin(), s.captures.end(), changed); });
}

void InferEngine::infer_all(bool only_changed) {
  for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
    if (graph_.node(id).removed) continue;
    if (only_changed && !reads_changed(graph_.node(id))) continue;
    try {
      only_changed ? infer_again(id) : infer_node(id);
    } catch (Error& e) {
      e.add_context("in " + graph_.describe(id));
      throw;
    }
  }
}

InferResult InferEngine::run(const std::vector<Type>& input_types, const std::vector<const Tensor*>& input_values) {
  seed_values(input_types, input_values);
  infer_all(false);
  if (contradictions_ > 3) {
    result_.warnings.push_back(
        fmt::format("{} more values of graph '{}' are declared with wrong types", contradictions_ - 3, graph_.name));
  }
  if (target_ != nullptr) {
    for (ValueId v = 0; v < result_.types.size(); ++v) target_->value(v).type = result_.types[v];
  }
  return std::move(result_);
}

const InferResult& InferEngine::update(const std::vector<Type>& input_types) {
  const bool again = std::exchange(ready_, false);
  result_.warnings.clear();
  contradictions_ = 0;
  changed_.assign(graph_.values().size(), again ? 0 : 1);
  if (again) {
    note_changed_inputs(input_types);
  } else {
    clear();
    seed_values(input_types, {});
  }
  infer_all(again);
  ready_ = true;
  return result_;
}

void InferEngine::note_changed_inputs(const std::vector<Type>& input_types) {
  for (std::size_t i = 0; i < graph_.inputs().size() && i < input_types.size(); ++i) {
    const ValueId v = graph_.inputs()[i];
    if (graph_.value(v).constant) continue;
    Type type = input_type(v, input_types[i]);
    if (same(type, result_.types[v])) continue;
    result_.types[v] = std::move(type);
    changed_[v] = 1;
  }
}

// Elements taken from a tensor follow it: they are compared only where there is none.
bool InferEngine::is_known_as(ValueId v, const Known& before) const {
  if (before.value.has_value() != (has_value_[v] != 0)) return false;
  if (before.value) return same(*before.value, result_.values.at(v));
  return before.sym.has_value() == (has_sym_[v] != 0) && (!before.sym || same(*before.sym, syms_.at(v)));
}

InferEngine::Known InferEngine::take_known(ValueId v) {
  Known known;
  if (std::exchange(has_value_[v], 0) != 0) known.value = std::move(result_.values.extract(v).mapped());
  if (std::exchange(has_sym_[v], 0) != 0) known.sym = std::move(syms_.extract(v).mapped());
  return known;
}

void InferEngine::infer_again(NodeId id) {
  const Node& node = graph_.node(id);
  std::vector<std::pair<Type, Known>> before;
  for (const ValueId v : node.outputs) {
    if (v != kNoValue) before.emplace_back(std::exchange(result_.types[v], {}), take_known(v));
  }
  infer_node(id);
  auto old = before.begin();
  for (const ValueId v : node.outputs) {
    if (v == kNoValue) continue;
    changed_[v] = same(old->first, result_.types[v]) && is_known_as(v, old->second) ? 0 : 1;
    ++old;
  }
}

namespace {

std::vector<Type> declared_inputs(const Graph& graph) {
  std::vector<Type> types;
  for (const ValueId v : graph.inputs()) {
    const Type& declared = graph.value(v).declared;
    types.push_back(declared.is_tensor() ? declared : without_shape(declared));
  }
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
  std::string near = closest(node.op_type, names);
  if (names.empty()) {
    std::vector<std::string> domains{"ai.onnx"};
    for (const OpDef& d : table().all()) {
      if (!d.domain.empty() && domains.back() != d.domain) domains.push_back(d.domain);
    }
    if (near = closest(domain, domains); !near.empty()) near = "domain " + near;
  }
  const char* const own = names.empty() && near.empty()
                              ? "; operators of your own come from a library (SessionOptions::custom_ops, --custom-ops)"
                              : "";
  fail(ErrorCode::not_implemented, "no operator {} in domain {} (opset {}){}{}", node.op_type, domain, node.version,
       near.empty() ? "" : "; did you mean " + near + "?", own);
}

InferResult infer(const Graph& graph, const std::vector<Type>& input_types, const InferOptions& options,
                  const std::vector<const Tensor*>& input_values) {
  return InferEngine(graph, options).run(input_types, input_values);
}

Inference::Inference(const Graph& graph, const InferOptions& options) : engine_(std::make_unique<InferEngine>(graph, options)) {}
Inference::~Inference() = default;
const InferResult& Inference::update(const std::vector<Type>& input_types) { return engine_->update(input_types); }
const std::vector<char>& Inference::changed() const { return engine_->changed(); }

std::vector<std::string> infer_in_place(Graph& graph, const InferOptions& options) {
  InferEngine engine(graph, options);
  engine.store_into(&graph);
  return engine.run(declared_inputs(graph), {}).warnings;
}

}  // namespace sdx::ops
