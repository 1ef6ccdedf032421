// sdx explain

#include <fmt/format.h>

#include <map>
#include <memory>
#include <sdx/sdx.hpp>

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

std::string node_text(const NodeReport& n) {
  std::string out = fmt::format("{:<24} {:<8} {:<30} {:<28} {}\n", n.op, n.provider, n.kernel, n.output, n.name);
  for (const std::string& r : n.refused) out += fmt::format("    not {}\n", r);
  for (const auto& [kernel, ms] : n.timed)
    out += fmt::format("    {:<34} {:>10.4f} ms{}\n", kernel, ms, kernel == n.kernel ? ", taken" : "");
  return out;
}

int ExplainCommand::run() {
  const project::ResolvedModel model = resolve(session);
  const Session s = open(model);
  const Report r = s.report();
  std::string nodes;
  std::string lines;
  std::map<std::string, int> kernels;
  int shown = 0;
  for (const NodeReport& n : r.nodes) {
    if (!op.empty() && n.op != op) continue;
    if (shown++ != 0) nodes += ',';
    nodes += node_json(n);
    lines += node_text(n);
    ++kernels[n.provider + " " + n.kernel];
  }
  if (json) {
    print(fmt::format("{{\"nodes\":[{}],\"report\":{}}}\n", nodes, report_json(r, -1)));
    return kOk;
  }
  print(fmt::format("{:<24} {:<8} {:<30} {:<28} {}\n", "operator", "provider", "kernel", "output", "node"));
  print(lines);
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
