#include "session/observe/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "base/text/json_text.h"

namespace sdx::session {

void append_steps(const plan::Program& program, const std::string& prefix, Report& report) {
  for (std::size_t i = 0; i < program.steps().size(); ++i) {
    const Step& step = program.steps()[i];
    const Node& node = program.graph().node(step.node);
    NodeReport n;
    n.name = prefix + node.name;
    n.op = node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
    n.provider = step.provider;
    n.kernel = step.kernel->name();
    for (const Refusal& r : step.refused) n.refused.push_back(r.kernel + ": " + r.reason);
    for (const cache::KernelTime& t : step.timed) n.timed.emplace_back(t.kernel, t.ms);
    if (!node.outputs.empty() && node.outputs[0] != kNoValue) n.output = program.graph().value(node.outputs[0]).type.str();
    if (std::find(report.providers.begin(), report.providers.end(), n.provider) == report.providers.end()) {
      report.providers.push_back(n.provider);
    }
    const std::string inner = n.name.empty() ? node.op_type : n.name;
    report.nodes.push_back(std::move(n));
    for (std::size_t k = 0; k < program.children(i).size(); ++k) {
      append_steps(*program.children(i)[k], inner + "/" + node.subgraphs[k].attribute + "/", report);
    }
  }
}

void write_chrome_trace(const std::filesystem::path& path, const std::vector<ProfileEvent>& events) {
  std::map<std::uint64_t, int> threads;
  std::string out = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [";
  for (std::size_t i = 0; i < events.size(); ++i) {
    const ProfileEvent& e = events[i];
    const int tid = threads.try_emplace(e.thread, static_cast<int>(threads.size())).first->second;
    out += fmt::format(
        "{}\n{{\"name\": {}, \"cat\": {}, \"ph\": \"X\", \"ts\": {:.3f}, \"dur\": {:.3f}, \"pid\": 1, \"tid\": {}, \"args\": "
        "{{\"op\": {}, "
        "\"kernel\": {}, \"provider\": {}, \"run\": {}}}}}",
        i == 0 ? "" : ",", json_string(e.name.empty() ? e.op : e.name), json_string(e.op), static_cast<double>(e.start_ns) / 1e3,
        static_cast<double>(e.duration_ns) / 1e3, tid, json_string(e.op), json_string(e.kernel), json_string(e.provider), e.run);
  }
  out += "\n]}\n";
  write_file_atomically(path, out);
}

}  // namespace sdx::session

namespace sdx {

std::string Report::text() const {
  std::string out =
      fmt::format("model {}\nruntime {}; loaded in {:.2f} ms, ready after {:.2f} ms more; tensors took at most {} bytes\n",
                  model.empty() ? "(memory)" : model, runtime, load_ms, init_ms, peak_bytes);
  if (!compiled.empty()) out += "compiled before: " + compiled + "\n";
  std::map<std::string, std::map<std::string, int>> counts;
  for (const NodeReport& n : nodes) ++counts[n.provider][n.kernel];
  for (const auto& [provider, kernels] : counts) {
    int total = 0;
    std::string list;
    for (const auto& [kernel, count] : kernels) {
      total += count;
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, kernel);
    }
    out += fmt::format("{}: {} nodes ({})\n", provider, total, list);
  }
  if (!why.empty()) out += "chosen: " + why + "\n";
  for (const MeasuredProvider& m : measured) {
    out +=
        fmt::format("measured: {:<12} {}{}\n", m.provider, m.median_ms > 0 ? fmt::format("{:.3f} ms", m.median_ms) : "no figures",
                    m.chosen         ? ", taken"
                    : m.note.empty() ? ""
                                     : ", " + m.note);
  }
  // Usually there is one chain, about which there is nothing to say.
  if (chains.size() > 1 || !events.empty()) {
    for (const ChainReport& c : chains) {
      out += fmt::format("chain {}: {} ({} runs answered, {} failed)\n", join(c.providers, ","), c.state, c.runs, c.failures);
    }
  }
  for (const std::string& e : events) out += "event: " + e + "\n";
  for (const std::string& f : fallbacks) out += "fallback: " + f + "\n";
  for (const std::string& w : warnings) out += "warning: " + w + "\n";
  return out;
}

}  // namespace sdx
