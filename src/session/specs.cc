#include "session/specs.h"

#include "base/error.h"

namespace sdx::session {

ValueSpec spec_of(std::string name, const Type& type) {
  ValueSpec spec;
  spec.name = std::move(name);
  spec.type = type.str();
  spec.is_tensor = type.is_tensor();
  if (!type.is_tensor()) return spec;
  spec.dtype = type.elem;
  spec.has_shape = type.shape.has_value();
  if (!type.shape) return spec;
  for (const Dim& d : *type.shape) {
    spec.shape.push_back(d.is_const() ? d.value() : -1);
    spec.symbols.push_back(d.is_symbolic() ? d.str() : std::string());
  }
  return spec;
}

std::vector<ValueSpec> input_specs(const Graph& graph) {
  std::vector<ValueSpec> specs;
  for (const ValueId v : graph.inputs()) {
    specs.push_back(spec_of(graph.value(v).name, graph.value(v).declared));
    specs.back().has_default = graph.value(v).constant.has_value();
  }
  return specs;
}

namespace {

// Takes `word` from the front of `text`, where it is there.
bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

// Whether a declaration that continues with this text has another element type; one that names none accepts any.
bool other_type(std::string_view declared, DataType dtype) {
  const DataType expected = parse_data_type(declared.substr(0, declared.find_first_of("[,)")));
  return expected != DataType::undefined && dtype != DataType::undefined && expected != dtype;
}

std::string map_problem(std::string_view declared, const Map& map) {
  if (map.keys.size() != map.values.size()) {
    return fmt::format(", a map with {} keys and {} values", map.keys.size(), map.values.size());
  }
  const bool known = take(declared, "map(");
  const std::size_t comma = declared.find(", ");
  if (!known || comma == std::string_view::npos) return "";
  const bool other = other_type(declared, map.keys.dtype()) || other_type(declared.substr(comma + 2), map.values.dtype());
  return other ? ", " + Value(Map(map)).type_string() : "";
}

}  // namespace

std::string container_problem(const std::string& declared, const Value& value) {
  std::string_view type = declared;
  if (value.is_tensor() || value.empty()) return "";
  take(type, "optional(");
  std::string received = ", " + value.type_string();
  if (value.is_map()) return type.starts_with("sequence(") ? received : map_problem(type, value.map());
  if (type.starts_with("map(")) return received;
  const bool known = take(type, "sequence(");
  const Sequence& s = value.sequence();
  if (known && other_type(type, s.element_type)) return received;
  for (std::size_t i = 0; i < s.items.size(); ++i) {
    const Value& item = s.items[i];
    if (item.is_tensor() && s.element_type != item.tensor().dtype()) {
      return fmt::format("{}, whose item {} is {}", received, i, item.type_string());
    }
    const std::string problem = known ? container_problem(std::string(type), item) : "";
    if (!problem.empty()) return fmt::format("{}, whose item {} is{}", received, i, problem.substr(1));
  }
  return "";
}

}  // namespace sdx::session
