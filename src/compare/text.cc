// Compared outputs as text and JSON.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include <sdx/compare.hpp>

#include "base/system/printable.h"
#include "base/text/json_text.h"
#include "base/text/text_table.h"

namespace sdx {
namespace {

using nlohmann::ordered_json;

std::string number(double v) { return std::isfinite(v) ? fmt::format("{:.3g}", v) : std::string("not finite"); }

void add_rows(std::vector<std::vector<std::string>>& rows, const std::string& what, const std::vector<ValueDifference>& list) {
  for (const ValueDifference& d : list) {
    rows.push_back({d.pass ? "same" : "DIFFERS", what + d.name, d.type, number(d.max_abs), number(d.max_rel),
                    std::to_string(d.differing), d.tolerance});
  }
}

std::string reasons(const std::vector<ValueDifference>& list) {
  std::string out;
  for (const ValueDifference& d : list) {
    if (!d.pass) out += fmt::format("  {}: {}\n", one_line(d.name), d.why);
  }
  return out;
}

const std::vector<std::string> kHeads{"", "value", "type", "max abs", "max rel", "differing", "allowed"};

std::string kernel_text(const std::string& kernel) { return kernel.empty() ? "merged with others, or folded" : kernel; }

constexpr std::size_t kKeys = 2;  // columns that are repeated where the others follow below

std::string node_text(const OutputsComparison& c, std::size_t width) {
  const NodeDifference& n = *c.first;
  std::string out = fmt::format("\nfirst node that differs: {} ({}), of {} that lead to the output; {} runs of both\n",
                                one_line(n.name), one_line(n.op), c.nodes, c.probes);
  out += fmt::format("  {}: {}\n  {}: {}\n", c.backend_a, kernel_text(n.kernel_a), c.backend_b, kernel_text(n.kernel_b));
  std::vector<std::vector<std::string>> rows{kHeads};
  add_rows(rows, "in ", n.inputs);
  add_rows(rows, "out ", n.outputs);
  add_rows(rows, "alone ", n.alone);
  out += text_table(rows, TableLayout{"  ", width, kKeys}) + reasons(n.outputs);
  bool differs = false;
  for (const ValueDifference& d : n.alone) differs = differs || !d.pass;
  if (!n.alone_error.empty()) {
    out += fmt::format("  alone: {}\n", n.alone_error);
  } else if (!n.alone.empty()) {
    out += differs ? "  alone: given the same inputs, the node differs by itself\n"
                   : "  alone: given the same inputs, the node agrees: it only amplifies earlier differences\n";
  }
  return out;
}

ordered_json list_json(const std::vector<ValueDifference>& list) {
  ordered_json out = ordered_json::array();
  for (const ValueDifference& d : list) {
    out.push_back({{"name", d.name},
                   {"type", d.type},
                   {"pass", d.pass},
                   {"max_abs", d.max_abs},
                   {"max_rel", d.max_rel},
                   {"differing", d.differing},
                   {"tolerance", d.tolerance},
                   {"why", d.why}});
  }
  return out;
}

}  // namespace

std::string to_text(const OutputsComparison& c, int width) {
  const auto columns = static_cast<std::size_t>(std::max(0, width));
  std::vector<std::vector<std::string>> rows{kHeads};
  add_rows(rows, "", c.outputs);
  std::string out = fmt::format("{}: {} (ran on {}) against {} (ran on {})\n\n", c.model, c.backend_b, c.providers_b, c.backend_a,
                                c.providers_a);
  out += text_table(rows, TableLayout{"", columns, kKeys}) + reasons(c.outputs);
  if (c.first) out += node_text(c, columns);
  if (!c.notes.empty()) out += "\n";
  for (const std::string& n : c.notes) out += "note: " + n + "\n";
  return out;
}

std::string to_json(const OutputsComparison& c) {
  ordered_json j{{"model", c.model}, {"backends", {c.backend_a, c.backend_b}}, {"providers", {c.providers_a, c.providers_b}},
                 {"pass", c.pass()}, {"outputs", list_json(c.outputs)},        {"first_node", nullptr}};
  if (c.first) {
    j["first_node"] = {{"name", c.first->name},
                       {"op", c.first->op},
                       {"kernels", {c.first->kernel_a, c.first->kernel_b}},
                       {"inputs", list_json(c.first->inputs)},
                       {"outputs", list_json(c.first->outputs)},
                       {"alone", list_json(c.first->alone)},
                       {"alone_error", c.first->alone_error}};
  }
  j["nodes"] = c.nodes;
  j["probes"] = c.probes;
  j["notes"] = c.notes;
  return dump_json(j) + "\n";
}

}  // namespace sdx
