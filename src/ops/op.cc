#include "ops/op.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/words.h"
#include "ops/bound_types.h"
#include "ops/custom.h"

namespace sdx::ops {

void register_all(OpTable& table);  // generated: op_list.cc

namespace {

struct KnownDomain {
  std::string_view name;
  int newest;
};

constexpr KnownDomain kDomains[] = {{"", 28},
                                    {"ai.onnx.ml", 6},
                                    {"ai.onnx.preview", 1},
                                    {"ai.onnx.preview.training", 1},
                                    {"ai.onnx.training", 1},
                                    {"com.microsoft", 1},
                                    {"sdx", 1}};

std::string_view canonical(std::string_view domain) { return domain == "ai.onnx" ? std::string_view() : domain; }

auto key(const OpDef& d) { return std::tuple<std::string_view, std::string_view, int>(d.domain, d.name, d.since); }

bool kind_matches(AttrKind kind, const AttributeValue& value) {
  switch (kind) {
    case AttrKind::i: return std::holds_alternative<std::int64_t>(value);
    case AttrKind::f: return std::holds_alternative<float>(value) || std::holds_alternative<std::int64_t>(value);
    case AttrKind::s: return std::holds_alternative<std::string>(value);
    case AttrKind::t: return std::holds_alternative<Tensor>(value);
    case AttrKind::ints: return std::holds_alternative<std::vector<std::int64_t>>(value);
    case AttrKind::floats: return std::holds_alternative<std::vector<float>>(value);
    case AttrKind::strings: return std::holds_alternative<std::vector<std::string>>(value);
    case AttrKind::tensors: return std::holds_alternative<std::vector<Tensor>>(value);
    case AttrKind::type: return std::holds_alternative<Type>(value);
    case AttrKind::g:
    case AttrKind::graphs: return false;
  }
  return false;
}

void check_attributes(const Node& node, const OpDef& def) {
  for (const AttrDef& a : def.attributes) {
    if (a.kind == AttrKind::g) {
      if (a.required && node.subgraph(a.name) == nullptr) {
        fail(ErrorCode::invalid_model, "required graph attribute '{}' is missing", a.name);
      }
      continue;
    }
    const AttributeValue* value = node.attributes.find(a.name);
    if (value == nullptr) {
      if (a.required) fail(ErrorCode::invalid_model, "required attribute '{}' is missing", a.name);
    } else if (!kind_matches(a.kind, *value)) {
      fail(ErrorCode::invalid_model, "attribute '{}' has the wrong type ({})", a.name, kind_name(*value));
    }
  }
}

void check_count(const std::vector<Formal>& formals, const std::vector<ValueId>& actual, std::string_view what) {
  const bool variadic = !formals.empty() && formals.back().arity == Arity::variadic;
  std::size_t least = 0;
  for (std::size_t i = 0; i < formals.size(); ++i) {
    if (formals[i].arity == Arity::required) least = i + 1;
  }
  if (actual.size() < least || (!variadic && actual.size() > formals.size())) {
    fail(ErrorCode::invalid_model, "expected {}{} {}{}, received {}", variadic ? "at least " : "", least,
         variadic || formals.size() == least ? "" : fmt::format("to {} ", formals.size()), what, actual.size());
  }
}

bool permitted(const Type& type, TypeSet set) {
  switch (type.kind) {
    case Type::Kind::unknown: return true;
    case Type::Kind::tensor: return type.elem == DataType::undefined || (set & bit(type.elem)) != 0;
    case Type::Kind::sparse_tensor: return true;
    case Type::Kind::sequence: return (set & types::sequence) != 0;
    case Type::Kind::optional: return (set & (types::optional | types::any_tensor | types::sequence)) != 0;
    case Type::Kind::map: return (set & types::map) != 0;
  }
  return true;
}

std::string set_text(TypeSet set) {
  std::string out;
  for (int i = 1; i < kDataTypeCount; ++i) {
    const auto t = static_cast<DataType>(i);
    if ((set & bit(t)) != 0) out += (out.empty() ? "" : ", ") + std::string(name(t));
  }
  if ((set & types::sequence) != 0) out += out.empty() ? "sequence" : ", sequence";
  if ((set & types::optional) != 0) out += out.empty() ? "optional" : ", optional";
  if ((set & types::map) != 0) out += out.empty() ? "map" : ", map";
  return out;
}

void check_types(const Graph& graph, const Node& node, const OpDef& def) {
  BoundTypes bound;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const Formal& formal = input_formal(def, i);
    if (node.inputs[i] == kNoValue) {
      if (formal.arity == Arity::required) {
        fail(ErrorCode::invalid_model, "required input {} ('{}') is left out", i, formal.name);
      }
      continue;
    }
    const Type& type = graph.value(node.inputs[i]).type;
    if (!permitted(type, formal.types)) {
      fail(ErrorCode::invalid_model, "input {} ('{}') is {}; permitted: {}", i, formal.name, type.str(), set_text(formal.types));
    }
    if (!type.is_tensor() || type.elem == DataType::undefined) continue;
    if (const auto* other = bound.conflict(formal, type.elem)) {
      fail(ErrorCode::invalid_model, "inputs '{}' ({}) and '{}' ({}) must have the same element type", other->formal,
           name(other->type), formal.name, name(type.elem));
    }
  }
}

}  // namespace

OpDef::OpDef(std::string_view op, int since_version) : name(op), since(since_version) {}
OpDef::OpDef(std::string_view op_domain, std::string_view op, int since_version)
    : domain(op_domain), name(op), since(since_version) {}
OpDef::OpDef(const OpDef&) = default;
OpDef::OpDef(OpDef&&) noexcept = default;
OpDef& OpDef::operator=(const OpDef&) = default;
OpDef& OpDef::operator=(OpDef&&) noexcept = default;
OpDef::~OpDef() = default;

OpDef& OpDef::in(std::string_view formal, std::string_view type_var, TypeSet t, Arity a) & {
  for_each_word(formal, [&](std::string_view one) { inputs.push_back({std::string(one), std::string(type_var), t, a}); });
  return *this;
}
OpDef&& OpDef::in(std::string_view formal, std::string_view type_var, TypeSet t, Arity a) && {
  return std::move(in(formal, type_var, t, a));
}
OpDef& OpDef::out(std::string_view formal, std::string_view type_var, TypeSet t, Arity a) & {
  for_each_word(formal, [&](std::string_view one) { outputs.push_back({std::string(one), std::string(type_var), t, a}); });
  return *this;
}
OpDef&& OpDef::out(std::string_view formal, std::string_view type_var, TypeSet t, Arity a) && {
  return std::move(out(formal, type_var, t, a));
}
OpDef& OpDef::attr(std::string_view attribute, AttrKind kind, bool required) & {
  attributes.push_back({std::string(attribute), kind, required});
  return *this;
}
OpDef&& OpDef::attr(std::string_view attribute, AttrKind kind, bool required) && {
  return std::move(attr(attribute, kind, required));
}
OpDef&& OpDef::infer_with(InferFn fn) && {
  infer = fn;
  return std::move(*this);
}
OpDef&& OpDef::run_with(RunFn fn) && {
  run = fn;
  return std::move(*this);
}
OpDef&& OpDef::random() && {
  deterministic = false;
  return std::move(*this);
}

void OpTable::add(OpDef def) {
  SDX_ASSERT(def.infer != nullptr && def.run != nullptr);
  defs_.push_back(std::move(def));
}

void OpTable::finish() {
  std::sort(defs_.begin(), defs_.end(), [](const OpDef& a, const OpDef& b) { return key(a) < key(b); });
  for (std::size_t i = 1; i < defs_.size(); ++i) SDX_ASSERT(key(defs_[i - 1]) != key(defs_[i]));
}

const OpDef* OpTable::find(std::string_view domain, std::string_view name, int version) const {
  const std::tuple<std::string_view, std::string_view, int> wanted(canonical(domain), name, version);
  const auto it = std::upper_bound(defs_.begin(), defs_.end(), wanted, [](const auto& k, const OpDef& d) { return k < key(d); });
  if (it == defs_.begin()) return nullptr;
  const OpDef& found = *(it - 1);
  return found.domain == canonical(domain) && found.name == name ? &found : nullptr;
}

// Never destroyed: a thread that was left behind with a vendor's compiler may still look things up when the process ends.
const OpTable& table() {
  static const OpTable& instance = *[] {
    auto* t = new OpTable;
    register_all(*t);
    t->finish();
    return t;
  }();
  return instance;
}

const OpDef* find(const Node& node) {
  return node.custom ? &node.custom->def : table().find(node.domain, node.op_type, node.version);
}

int newest_version(std::string_view domain) {
  for (const KnownDomain& d : kDomains) {
    if (d.name == canonical(domain)) return d.newest;
  }
  return 0;
}

void check_node(const Graph& graph, const Node& node, const OpDef& def) {
  if (def.deprecated_at != 0 && node.version >= def.deprecated_at) {
    fail(ErrorCode::invalid_model, "operator {} was removed in opset {}; the model imports opset {}", def.name, def.deprecated_at,
         node.version);
  }
  check_count(def.inputs, node.inputs, "inputs");
  check_count(def.outputs, node.outputs, "outputs");
  check_attributes(node, def);
  if (!def.inputs.empty()) check_types(graph, node, def);
}

}  // namespace sdx::ops
