// sdx explain

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sdx/sdx.hpp>
#include <set>

#include "base/counted.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/system/printable.h"
#include "base/text/ascii.h"
#include "base/text/json_text.h"
#include "base/text/text_table.h"
#include "cli/command.h"
#include "cli/resolve.h"
#include "cli/values/outputs.h"
#include "onnx/reader.h"

namespace sdx::cli {
namespace {

constexpr const char* kExplainExamples =
    "Examples:\n"
    "  sdx explain model.onnx\n"
    "  sdx explain model.onnx --op Conv -p cuda,cpu\n"
    "  sdx explain model.onnx --tune -t 1\n"
    "  sdx explain model.onnx --json\n";

struct ExplainCommand {
  SessionFlags session;
  std::string op;
  bool json = false;

  int run();

 private:
  std::vector<NodeReport> wanted_nodes(const std::filesystem::path& model, const std::vector<NodeReport>& all) const;
};

std::string node_json(const NodeReport& n) {
  std::string timed;
  for (const auto& [kernel, ms] : n.timed) timed += fmt::format("{}{}:{:.6g}", timed.empty() ? "" : ",", json_string(kernel), ms);
  return fmt::format("{{\"name\":{},\"op\":{},\"provider\":{},\"kernel\":{},\"output\":{},\"refused\":{},\"timed_ms\":{{{}}}}}",
                     json_string(n.name), json_string(n.op), json_string(n.provider), json_string(n.kernel),
                     json_string(n.output), json_list(n.refused), timed);
}

// Text that is printed below its row of the table.
std::string details_text(const NodeReport& n) {
  std::string out;
  for (const std::string& r : n.refused) out += fmt::format("    not {}\n", one_line(r));
  if (stdout_is_terminal()) out = wrapped_text(out, 8, static_cast<std::size_t>(terminal_columns()));
  for (const auto& [kernel, ms] : n.timed)
    out += fmt::format("    {:<34} {:>10.4f} ms{}\n", kernel, ms, kernel == n.kernel ? ", taken" : "");
  return out;
}

// Prints as many cells as fit into a row's first line; the others follow below, further to the right. `details` follow their
// rows.
std::string table_of(const std::vector<std::vector<std::string>>& rows, const std::vector<std::string>& details) {
  constexpr std::size_t kIndent = 4;
  const std::size_t room = static_cast<std::size_t>(terminal_columns()), count = rows[0].size();
  std::vector<std::size_t> widths(count), start(count);
  std::vector<bool> below(count);  // begins a line
  for (std::size_t c = 0; c < count; ++c) {
    for (const auto& row : rows) widths[c] = std::max(widths[c], row[c].size());
    start[c] = c == 0 ? 0 : start[c - 1] + widths[c - 1] + 1;
    below[c] = c > 0 && start[c] + widths[c] > room;
    if (below[c]) start[c] = kIndent;
  }
  std::string out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < count; ++c) {
      while (line.ends_with(' ')) line.pop_back();
      if (below[c]) {
        out += line + "\n";
        line.clear();
      }
      line += std::string(start[c] - std::min(start[c], line.size()), ' ') + rows[r][c];
    }
    out += line + "\n" + details[r];
  }
  return out;
}

// "com.microsoft.FusedConv" -> "FusedConv"
std::string without_domain(const std::string& op) { return op.substr(op.rfind('.') + 1); }

bool is_named(const std::string& op, const std::string& wanted) {
  return same_word(op, wanted) || same_word(without_domain(op), wanted);
}

// The file's nodes of an operator, which passes may have made other nodes of.
struct Origins {
  std::set<std::string> ops;    // all operators of the file
  std::set<std::string> names;  // of the nodes of the wanted one
  std::size_t count = 0;        // of the nodes of the wanted one
};

void add_origins(const Graph& graph, const std::string& wanted, Origins& to) {
  for (const Node& n : graph.nodes()) {
    if (n.removed) continue;
    const std::string op = n.domain.empty() ? n.op_type : n.domain + "." + n.op_type;
    to.ops.insert(op);
    for (const Subgraph& s : n.subgraphs) add_origins(*s.graph, wanted, to);
    if (!is_named(op, wanted)) continue;
    ++to.count;
    if (!n.name.empty()) to.names.insert(n.name);
  }
}

[[noreturn]] void no_such_node(const std::string& op, const Origins& file, const std::vector<NodeReport>& nodes) {
  std::set<std::string> ops;
  for (const NodeReport& n : nodes) ops.insert(n.op);
  const std::string running = join(std::vector<std::string>(ops.begin(), ops.end()));
  if (file.count > 0) {
    fail(ErrorCode::invalid_argument,
         "no node that runs is a '{}': the file has {}, which passes folded away or merged into other nodes; what runs is: {}. "
         "`sdx inspect MODEL --stage loaded` shows the file's nodes",
         op, file.count, running);
  }
  ops.insert(file.ops.begin(), file.ops.end());
  std::vector<std::string> known(ops.begin(), ops.end());
  for (const std::string& full : ops) known.push_back(without_domain(full));
  const std::string near = closest(op, known);
  fail(ErrorCode::invalid_argument, "no node is a '{}'{}: {}", op,
       near.empty() ? "; what runs is" : ", did you mean '" + near + "'? What runs is", running);
}

std::vector<NodeReport> ExplainCommand::wanted_nodes(const std::filesystem::path& model,
                                                     const std::vector<NodeReport>& all) const {
  if (op.empty()) return all;
  Origins file;
  add_origins(read_model(model).graph, op, file);
  std::vector<NodeReport> shown;
  for (const NodeReport& n : all) {
    if (is_named(n.op, op) || (!n.name.empty() && file.names.contains(n.name))) shown.push_back(n);
  }
  if (shown.empty()) no_such_node(op, file, all);
  return shown;
}

int ExplainCommand::run() {
  const project::ResolvedModel model = resolve(session);
  const Session s = open(model);
  const Report r = s.report();
  const std::vector<NodeReport> shown = wanted_nodes(model.model, r.nodes);
  std::string nodes;
  std::vector<std::vector<std::string>> rows{{"operator", "provider", "kernel", "output", "node"}};
  std::vector<std::string> details{""};
  std::map<std::string, int> kernels;
  for (const NodeReport& n : shown) {
    if (!nodes.empty()) nodes += ',';
    nodes += node_json(n);
    rows.push_back({one_line(n.op), n.provider, one_line(n.kernel), one_line(n.output), one_line(n.name)});
    details.push_back(details_text(n));
    ++kernels[n.provider + " " + one_line(n.kernel)];
  }
  if (json) {
    print(fmt::format("{{\"nodes\":[{}],\"report\":{}}}\n", nodes, report_json(r, -1)));
    return kOk;
  }
  print_coloured(table_of(rows, details), {{"", Colour::bold}});
  std::string summary = counted(static_cast<std::int64_t>(shown.size()), "node");
  for (const auto& [kernel, count] : kernels) summary += fmt::format("; {} on {}", count, kernel);
  print_wrapped(summary + "\n", 4);
  print_wrapped("chosen: " + r.why + "\n", 4);
  for (const MeasuredProvider& m : r.measured) {
    print(fmt::format("    {:<12} {}{}\n", m.provider, m.median_ms > 0 ? fmt::format("{:.3f} ms", m.median_ms) : "no figures",
                      m.chosen         ? ", taken"
                      : m.note.empty() ? ""
                                       : ", " + m.note));
  }
  return kOk;
}

}  // namespace

void add_explain(const Command& app, Action& action) {
  const Command command =
      app.add_subcommand("explain", "Show the provider and kernel of each node, and why better kernels refused it");
  const auto c = std::make_shared<ExplainCommand>();
  c->session.add_to(command);
  command->add_flag("--json", c->json, "Print JSON");
  command->add_option("--op", c->op, "Only nodes of this operator, as the file names it or as it runs")->type_name("NAME");
  command->footer(kExplainExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
