#include "session/observe/opened.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/counted.h"

namespace sdx::session {

std::string opened_text(const std::string& model, const Report& report) {
  std::vector<std::pair<std::string, int>> places;
  for (const NodeReport& n : report.nodes) {
    const auto at = std::find_if(places.begin(), places.end(), [&](const auto& p) { return p.first == n.provider; });
    at == places.end() ? static_cast<void>(places.emplace_back(n.provider, 1)) : static_cast<void>(++at->second);
  }
  std::string nodes;
  for (const auto& [provider, count] : places)
    nodes += fmt::format("{}{} on {}", nodes.empty() ? "" : ", ", counted(count, "node"), provider);
  std::string out = fmt::format("'{}': {} ({}); {}", model, nodes.empty() ? "no nodes" : nodes, report.runtime, report.why);
  if (report.load_ms > 0) out += fmt::format("; loaded in {:.1f} ms", report.load_ms);
  out += fmt::format("{} initialised in {:.1f} ms", report.load_ms > 0 ? "," : ";", report.init_ms);
  if (!report.compiled.empty()) out += fmt::format(", from '{}'", report.compiled);
  return out;
}

}  // namespace sdx::session
