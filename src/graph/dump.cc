#include <fmt/format.h>

#include "base/system/printable.h"
#include "graph/graph.h"
#include "tensor/print.h"

namespace sdx {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out + "\"";
}

template <class T, class F>
std::string list(const std::vector<T>& items, F&& text) {
  std::string out = "[";
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i != 0) out += ", ";
    if (i == 16 && items.size() > 20) {
      out += fmt::format("… {} in all", items.size());
      break;
    }
    out += text(items[i]);
  }
  return out + "]";
}

std::string constant_text(const Tensor& t) {
  std::string out = t.type_string();
  if (t.size() <= 8) out += " " + print_elements(t, 8);
  return out;
}

std::string attribute_text(const AttributeValue& value) {
  struct Visitor {
    std::string operator()(std::int64_t v) const { return std::to_string(v); }
    std::string operator()(float v) const { return fmt::format("{:g}", v); }
    std::string operator()(const std::string& v) const { return quoted(v.size() > 80 ? v.substr(0, 80) + "…" : v); }
    std::string operator()(const Tensor& v) const { return constant_text(v); }
    std::string operator()(const Type& v) const { return v.str(); }
    std::string operator()(const std::vector<std::int64_t>& v) const {
      return list(v, [](std::int64_t i) { return std::to_string(i); });
    }
    std::string operator()(const std::vector<float>& v) const {
      return list(v, [](float f) { return fmt::format("{:g}", f); });
    }
    std::string operator()(const std::vector<std::string>& v) const { return list(v, quoted); }
    std::string operator()(const std::vector<Tensor>& v) const { return list(v, constant_text); }
    std::string operator()(const std::vector<Type>& v) const {
      return list(v, [](const Type& t) { return t.str(); });
    }
  };
  return std::visit(Visitor{}, value);
}

void dump_graph(const Graph& g, const std::string& indent, std::string& out) {
  const auto value = [&](ValueId v) { return v == kNoValue ? std::string("_") : "%" + one_line(g.value(v).name); };
  const auto typed = [&](ValueId v) {
    return v == kNoValue ? std::string("_") : "%" + one_line(g.value(v).name + ": " + g.value(v).type.str());
  };
  for (const ValueId v : g.inputs()) out += fmt::format("{}input {}\n", indent, typed(v));
  for (const ValueInfo& v : g.values()) {
    if (v.constant) out += fmt::format("{}constant %{}: {}\n", indent, one_line(v.name), constant_text(*v.constant));
    // A program drops weights that kernels keep in their own form.
    if (!v.constant && !v.is_input && v.producer == kNoNode && v.declared.has_static_shape()) {
      out += fmt::format("{}constant %{}: {}\n", indent, one_line(v.name), v.declared.str());
    }
  }
  for (const Node& n : g.nodes()) {
    if (n.removed) continue;
    out += indent + list(n.outputs, typed) + " = " + one_line((n.domain.empty() ? "" : n.domain + ".") + n.op_type) +
           list(n.inputs, value);
    std::string attributes;
    for (const auto& [key, attribute] : n.attributes.items()) {
      attributes += (attributes.empty() ? "" : ", ") + one_line(key) + "=" + attribute_text(attribute);
    }
    if (!attributes.empty()) out += " {" + attributes + "}";
    if (!n.name.empty()) out += "  # " + one_line(n.name);
    out += "\n";
    for (const Subgraph& s : n.subgraphs) {
      out += fmt::format("{}  {}: captures {}\n", indent, one_line(s.attribute), list(s.captures, value));
      dump_graph(*s.graph, indent + "    ", out);
    }
  }
  for (std::size_t i = 0; i < g.outputs().size(); ++i) {
    const std::string& shown = g.output_names()[i];
    const std::string alias = shown == g.value(g.outputs()[i]).name ? "" : " as " + one_line(shown);
    out += fmt::format("{}output {}{}\n", indent, typed(g.outputs()[i]), alias);
  }
}

}  // namespace

std::string Graph::dump() const {
  std::string out = fmt::format("graph {}\n", one_line(name));
  dump_graph(*this, "  ", out);
  return out;
}

}  // namespace sdx
