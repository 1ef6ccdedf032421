// sdx explain

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sdx/sdx.hpp>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/command.h"
#include "cli/resolve.h"
#include "cli/values/outputs.h"

namespace sdx::cli {
namespace {

constexpr const char* kExamples =
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
};

std::string node_json(const NodeReport& n) {
  std::string timed;
  for (const auto& [kernel, ms] : n.timed) timed += fmt::format("{}{}:{:.6g}", timed.empty() ? "" : ",", json_text(kernel), ms);
  return fmt::format("{{\"name\":{},\"op\":{},\"provider\":{},\"kernel\":{},\"output\":{},\"refused\":{},\"timed_ms\":{{{}}}}}",
                     json_text(n.name), json_text(n.op), json_text(n.provider), json_text(n.kernel), json_text(n.output),
                     json_list(n.refused), timed);
}

// What belongs to a row of the table, below it.
std::string details_text(const NodeReport& n) {
  std::string out;
  for (const std::string& r : n.refused) out += fmt::format("    not {}\n", r);
  for (const auto& [kernel, ms] : n.timed)
    out += fmt::format("    {:<34} {:>10.4f} ms{}\n", kernel, ms, kernel == n.kernel ? ", taken" : "");
  return out;
}

// A line for each row where the terminal has room, else a second one for the node's name. `details` follow their rows.
std::string table_of(const std::vector<std::vector<std::string>>& rows, const std::vector<std::string>& details) {
  std::vector<std::size_t> widths(rows[0].size());
  std::size_t all = 0;
  for (std::size_t c = 0; c < widths.size(); ++c) {
    for (const auto& row : rows) widths[c] = std::max(widths[c], row[c].size());
    all += widths[c] + 1;
  }
  const std::size_t room = static_cast<std::size_t>(terminal_columns());
  const std::size_t last = widths.size() - 1;
  std::string out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < last; ++c) line += fmt::format("{:<{}} ", rows[r][c], widths[c]);
    if (all > room) {
      while (line.ends_with(' ')) line.pop_back();
      line += "\n    ";
    }
    out += line + rows[r][last] + "\n" + details[r];
  }
  return out;
}

int ExplainCommand::run() {
  const project::ResolvedModel model = resolve(session);
  const Session s = open(model);
  const Report r = s.report();
  std::string nodes;
  std::vector<std::vector<std::string>> rows{{"operator", "provider", "kernel", "output", "node"}};
  std::vector<std::string> details{""};
  std::map<std::string, int> kernels;
  int shown = 0;
  for (const NodeReport& n : r.nodes) {
    if (!op.empty() && n.op != op) continue;
    if (shown++ != 0) nodes += ',';
    nodes += node_json(n);
    rows.push_back({n.op, n.provider, n.kernel, n.output, n.name});
    details.push_back(details_text(n));
    ++kernels[n.provider + " " + n.kernel];
  }
  if (shown == 0 && !op.empty()) {
    std::set<std::string> ops;
    for (const NodeReport& n : r.nodes) ops.insert(n.op);
    const std::vector<std::string> known(ops.begin(), ops.end());
    const std::string near = closest(op, known);
    fail(ErrorCode::invalid_argument, "no node is a '{}'{}; what runs is: {}", op,
         near.empty() ? "" : ", did you mean '" + near + "'?", join(known));
  }
  if (json) {
    print(fmt::format("{{\"nodes\":[{}],\"report\":{}}}\n", nodes, report_json(r, -1)));
    return kOk;
  }
  print_coloured(table_of(rows, details), {{"", Colour::bold}});
  std::string summary = fmt::format("{} nodes", shown);
  for (const auto& [kernel, count] : kernels) summary += fmt::format("; {} on {}", count, kernel);
  print(summary + "\n");
  print("chosen: " + r.why + "\n");
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
  command->add_option("--op", c->op, "Only nodes of this operator")->type_name("NAME");
  command->footer(kExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
