#include "plan/program.h"

#include <algorithm>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/printable.h"
#include "ops/infer.h"
#include "ops/op.h"

namespace sdx::plan {

Program::Program(Graph graph, std::span<const Provider* const> chain, std::size_t plan_cache_size, Regions regions,
                 const LowerOptions& lowering)
    : graph_(std::move(graph)), cache_size_(std::max<std::size_t>(plan_cache_size, 1)) {
  lower_nodes(chain, std::move(regions), lowering);
  for (const Step& step : steps_) expected_.add(graph_, graph_.node(step.node).inputs, graph_.node(step.node).outputs);
  expected_.add(graph_, graph_.inputs(), {});
  compile_children(chain, lowering);
  settle_constants();
  note_files();
  needed_ = {};
}

Program::~Program() = default;

namespace {

// The mapped file that a constant lies in; null: none.
std::shared_ptr<const MappedFile> mapped_file(const Tensor& constant) {
  if (constant.dtype() == DataType::string) return nullptr;
  auto file = MappedFile::holding(constant.data());
  return file != nullptr && file->is_mapped() ? file : nullptr;
}

}  // namespace

void Program::note_files() {
  for (const Value& v : constants_) {
    if (!v.is_tensor()) continue;
    if (auto file = mapped_file(v.tensor())) files_.push_back(std::move(file));
  }
  for (const auto& programs : children_) {
    for (const auto& child : programs) files_.insert(files_.end(), child->files_.begin(), child->files_.end());
  }
  std::sort(files_.begin(), files_.end());
  files_.erase(std::unique(files_.begin(), files_.end()), files_.end());
}

void Program::check_files() const {
  for (const auto& file : files_) file->check_unchanged();
}

namespace {

[[noreturn]] void refuse_node(const Node& node, const std::vector<Refusal>& refused) {
  if (refused.empty() && ops::find(node) == nullptr) ops::unknown_operator(node);
  std::string reasons;
  for (const Refusal& r : refused) reasons += (reasons.empty() ? ": " : "; ") + r.kernel + ": " + r.reason;
  fail(ErrorCode::not_implemented, "no provider can run this operator{}", reasons);
}

// Counts the nodes, captures and outputs that refer to each constant.
std::vector<std::uint32_t> constant_uses(const Graph& graph) {
  std::vector<std::uint32_t> uses(graph.values().size(), 0);
  for (const Node& node : graph.nodes()) {
    for (const ValueId v : node.inputs) {
      if (v != kNoValue) ++uses[v];
    }
    for (const Subgraph& s : node.subgraphs) {
      for (const ValueId v : s.captures) ++uses[v];
    }
  }
  for (const ValueId v : graph.outputs()) ++uses[v];
  return uses;
}

}  // namespace

void Program::lower_nodes(std::span<const Provider* const> all, Regions regions, const LowerOptions& lowering) {
  std::vector<const Provider*> chain;
  for (const Provider* p : all) {
    if (!p->compiles_regions()) chain.push_back(p);
  }
  std::vector<std::vector<Claim>> claims;
  for (const Provider* p : chain) claims.push_back(p->claim(graph_, {}));
  needed_.assign(graph_.values().size(), false);
  std::vector<std::uint32_t> pending = constant_uses(graph_);
  for (NodeId id = 0; id < graph_.nodes().size(); ++id) {
    const Node& node = graph_.node(id);
    if (node.domain == ops::kRegionDomain) {
      CompiledRegion& region = regions.compiled.at(static_cast<std::size_t>(node.attributes.get_int("region")));
      Step step;
      step.node = id;
      step.provider = region.provider;
      step.kernel = std::move(region.kernel);
      steps_.push_back(std::move(step));
      continue;
    }
    std::vector<Refusal> refused;
    if (!node.outputs.empty() && node.outputs[0] != kNoValue) {
      const auto it = regions.refused.find(graph_.value(node.outputs[0]).name);
      if (it != regions.refused.end()) refused = it->second;
    }
    const Provider* taker = nullptr;
    for (std::size_t i = 0; i < chain.size() && taker == nullptr; ++i) {
      if (claims[i][id].taken) {
        taker = chain[i];
      } else {
        refused.push_back({std::string(chain[i]->name()), claims[i][id].reason});
      }
    }
    try {
      if (taker == nullptr) refuse_node(node, refused);
      Step step = taker->lower(graph_, id, lowering);
      step.node = id;
      step.provider = taker->name();
      step.refused.insert(step.refused.begin(), refused.begin(), refused.end());
      drop_packed(step, pending);
      steps_.push_back(std::move(step));
    } catch (Error& e) {
      e.add_context("in " + graph_.describe(id));
      throw;
    }
  }
}

void Program::compile_children(std::span<const Provider* const> chain, const LowerOptions& lowering) {
  children_.resize(steps_.size());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const NodeId id = steps_[i].node;
    for (Subgraph& s : graph_.node(id).subgraphs) {
      try {
        children_[i].push_back(std::make_unique<Program>(std::move(*s.graph), chain, cache_size_, Regions{}, lowering));
      } catch (Error& e) {
        e.add_context("in " + s.attribute + " of " + graph_.describe(id));
        throw;
      }
      // The formal interface stays behind for inference; its constants and nodes are the child's.
      s.graph = std::make_unique<Graph>(children_[i].back()->graph());
    }
  }
}

void Program::drop_constant(ValueId value) {
  constexpr std::size_t kSmall = 4096;  // bytes; inference may want to look at small ones
  auto& constant = graph_.value(value).constant;
  release_mapped_pages(constant->data(), constant->bytes());
  if (constant->bytes() <= kSmall) return;
  graph_.value(value).declared = Type::tensor(constant->dtype(), to_sym(constant->shape()));
  constant.reset();
}

// Frees a node's constants once the last node that has them is lowered and none reads them: otherwise weights that a pass
// made would all be held twice until the end.
void Program::drop_packed(const Step& step, std::vector<std::uint32_t>& pending) {
  const Node& node = graph_.node(step.node);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId v = node.inputs[i];
    if (v == kNoValue || !graph_.value(v).constant) continue;
    if (step.kernel->uses_input(i)) needed_[v] = true;
    if (--pending[v] == 0 && !needed_[v] && !graph_.value(v).is_input) drop_constant(v);
  }
}

namespace {

// Small constants leave a mapped file. A run that reads one there maps up to 2 MB around it each time that those pages were
// released: 80 MB of ViT-B/16's file.
bool leaves_file(const Tensor& constant) {
  constexpr std::size_t kCopied = 65536;  // bytes
  return constant.bytes() <= kCopied && mapped_file(constant) != nullptr;
}

}  // namespace

// Keeps constants that have readers, aligned if the reader needs it, and releases file pages that are not needed.
void Program::settle_constants() {
  const std::size_t n = graph_.values().size();
  std::vector<bool>& needed = needed_;
  needed.resize(n, false);
  std::vector<bool> align(n, false);
  for (const Step& step : steps_) {
    const Node& node = graph_.node(step.node);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == kNoValue || !graph_.value(v).constant || !step.kernel->uses_input(i)) continue;
      needed[v] = true;
      if (!step.kernel->accepts_unaligned(i)) align[v] = true;
    }
    for (const Subgraph& s : node.subgraphs) {
      for (const ValueId v : s.captures) needed[v] = align[v] = true;
    }
  }
  for (const ValueId v : graph_.outputs()) needed[v] = align[v] = true;
  constants_.resize(n);
  for (ValueId v = 0; v < n; ++v) {
    auto& constant = graph_.value(v).constant;
    if (!constant || graph_.value(v).is_input) continue;
    if (!needed[v]) {
      drop_constant(v);
      continue;
    }
    if (leaves_file(*constant)) {
      constants_[v] = constant->clone();
    } else if (align[v] && !constant->is_aligned()) {
      constants_[v] = constant->aligned();
      release_mapped_pages(constant->data(), constant->bytes());
    } else {
      constants_[v] = *constant;
    }
  }
}

namespace {

// The key of a plan: kind, element type and extents of every input; see types_of().
std::vector<std::int64_t> signature_of(const std::vector<Value>& inputs) {
  std::vector<std::int64_t> key;
  key.reserve(inputs.size() * 6);
  for (const Value& v : inputs) {
    if (!v.is_tensor()) {
      key.push_back(v.empty() ? -1 : (v.is_sequence() ? -2 : -3));
      if (v.is_sequence()) key.push_back(static_cast<std::int64_t>(v.sequence().element_type));
      continue;
    }
    const Tensor& t = v.tensor();
    key.push_back(static_cast<std::int64_t>(t.dtype()));
    key.push_back(static_cast<std::int64_t>(t.rank()));
    key.insert(key.end(), t.shape().begin(), t.shape().end());
  }
  return key;
}

std::vector<Type> types_of(const std::vector<Value>& inputs) {
  std::vector<Type> types;
  for (const Value& v : inputs) {
    if (v.is_tensor()) {
      types.push_back(Type::tensor(v.tensor().dtype(), to_sym(v.tensor().shape())));
    } else if (v.is_sequence()) {
      const DataType elem = v.sequence().element_type;
      types.push_back(elem == DataType::undefined ? Type{} : Type::sequence(Type::tensor(elem)));
    } else {
      types.emplace_back();
    }
  }
  return types;
}

}  // namespace

// Passes have relied on the types of a subgraph's inputs: no fallback is left where these are others.
void Program::check_inputs(const std::vector<Type>& types) const {
  std::vector<const Type*> pointers;
  for (const Type& t : types) pointers.push_back(&t);
  if (expected_.hold(steps_.size(), pointers, {})) return;
  std::string expected, received;
  for (std::size_t i = 0; i < types.size(); ++i) {
    const ValueInfo& info = graph_.value(graph_.inputs()[i]);
    expected += fmt::format("{}'{}': {}", i == 0 ? "" : ", ", info.name, info.type.str());
    received += (i == 0 ? "" : ", ") + types[i].str();
  }
  fail(ErrorCode::runtime_failure, "graph '{}' takes {}, received {}: correct the shapes that the model declares", graph_.name,
       expected, received);
}

std::shared_ptr<const Plan> Program::plan_for(const std::vector<Value>& inputs) const {
  std::vector<std::int64_t> key = signature_of(inputs);
  {
    const std::lock_guard lock(mutex_);
    for (auto it = plans_.begin(); it != plans_.end(); ++it) {
      if ((*it)->signature != key) continue;
      plans_.splice(plans_.begin(), plans_, it);
      return plans_.front();
    }
  }
  const std::vector<Type> types = types_of(inputs);
  check_inputs(types);
  std::shared_ptr<const Plan> plan = planner_.plan(std::move(key), types);
  const std::lock_guard lock(mutex_);
  plans_.push_front(plan);
  if (plans_.size() > cache_size_) plans_.pop_back();
  return plan;
}

void Program::release_memory(std::size_t least) const {
  const std::lock_guard lock(mutex_);
  std::erase_if(arenas_, [&](const ArenaBlock& block) { return block.bytes >= least; });
}

std::string Program::dump() const {
  std::string out;
  std::shared_ptr<const Plan> plan;
  if (has_fixed_inputs(graph_)) {
    std::vector<Type> types;
    for (const ValueId v : graph_.inputs()) types.push_back(graph_.value(v).type);
    plan = planner_.plan({}, types);
    out += fmt::format("plan: {} of {} steps, arena {} bytes\n", plan->steps.size(), steps_.size(), plan->arena_bytes);
  } else {
    out += fmt::format("plan: {} steps; input shapes are not fixed, memory is laid out per shape\n", steps_.size());
  }
  const auto place = [&](ValueId v) -> std::string {
    if (v == kNoValue) return "_";
    const std::string name = "%" + one_line(graph_.value(v).name);
    if (!plan) return name + ": " + one_line(graph_.value(v).type.str());
    const ValuePlan& p = plan->values[v];
    std::string typed = name + ": " + one_line(p.type->str());
    switch (p.place) {
      case Place::arena: return fmt::format("{} @{}", typed, p.offset);
      case Place::output: return typed + " @output";
      case Place::view: return typed + " @" + one_line(graph_.value(p.root).name);
      case Place::dynamic: return typed + " @dynamic";
      default: return typed;
    }
  };
  const auto line = [&](const Step& step) {
    const Node& node = graph_.node(step.node);
    std::string text = "  ";
    for (std::size_t i = 0; i < node.outputs.size(); ++i) text += (i == 0 ? "" : ", ") + place(node.outputs[i]);
    text += " = " + one_line(node.op_type) + " [" + step.provider + ": " + std::string(step.kernel->name()) + "]";
    if (!node.name.empty()) text += "  # " + one_line(node.name);
    return text + "\n";
  };
  if (plan) {
    for (const StepPlan& s : plan->steps) out += line(steps_[s.step]);
  } else {
    for (const Step& s : steps_) out += line(s);
  }
  return out;
}

}  // namespace sdx::plan
