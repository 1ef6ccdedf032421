// What `sdx doctor` prints.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/module/one_file.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "base/system/printable.h"
#include "base/text/text_table.h"
#include "cli/doctor/facts.h"

namespace sdx::cli::doctor {
namespace {

constexpr const char *kWorks = "works", *kFails = "fails", *kAbsent = "absent", *kUnused = "unused", *kNone = "none";

using Rows = std::vector<std::vector<std::string>>;

std::string with_hint(const std::string& reason, const std::string& hint) {
  return hint.empty() ? reason : fmt::format("{}. To fix it: {}", reason, hint);
}

// Names that share a reason: "cuda, tensorrt: no NVIDIA GPU; coreml: wrong platform".
class Groups {
 public:
  void add(const std::string& name, const std::string& reason) {
    auto at = std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return g.first == reason; });
    if (at == groups_.end()) at = groups_.insert(at, {reason, {}});
    at->second.push_back(name);
  }
  bool empty() const { return groups_.empty(); }
  std::string text() const {
    std::string out;
    for (const auto& [reason, names] : groups_) out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", join(names), reason);
    return out;
  }

 private:
  using Group = std::pair<std::string, std::vector<std::string>>;
  std::vector<Group> groups_;
};

void add_build(const Build& b, Rows& rows) {
  rows.push_back({"sdx", kWorks, fmt::format("{}, build {} ({}): {}", b.version, b.id.substr(0, 12), b.how, b.command.string())});
  if (b.fits()) {
    rows.push_back({"libsdx", kWorks, b.engine.empty() ? "part of the command" : "of the same build: " + b.engine.string()});
  } else {
    const std::string what =
        fmt::format("of another build, {} of version {}: {}", b.engine_id.substr(0, 12), b.engine_version, b.engine.string());
    rows.push_back({"libsdx", kFails, with_hint(what, "install all files of one release; unset LD_LIBRARY_PATH")});
  }
}

void add_parts(const std::vector<Part>& parts, Rows& rows) {
  std::vector<std::string> working, absent;
  for (const Part& p : parts) {
    if (p.look.state == LibraryLook::State::works) working.push_back(p.name);
    if (p.look.state == LibraryLook::State::absent && p.look.reason.empty()) absent.push_back(p.name);
  }
  if (!working.empty()) rows.push_back({"libraries", kWorks, join(working)});
  if (!absent.empty()) {
    rows.push_back({"libraries", kAbsent, join(absent) + (is_one_file() ? ": this program is one static file" : "")});
  }
  for (const Part& p : parts) {
    if (p.look.state == LibraryLook::State::works || p.look.reason.empty()) continue;
    const bool fails = p.look.state == LibraryLook::State::fails;
    const std::string where = fails && !p.look.file.empty() ? p.look.file.string() + ": " : "";
    rows.push_back({p.name, fails ? kFails : kAbsent, with_hint(where + p.look.reason, p.look.hint)});
  }
}

void add_processor(const Processor& p, Rows& rows) {
  std::vector<std::string> used;
  Groups unused;
  for (const CpuInstructions& i : p.instructions) {
    if (i.used) used.push_back(i.name);
    if (!i.used) unused.add(i.name, i.reason);
  }
  const std::string sets = used.empty() ? "no vector instructions" : join(used);
  rows.push_back({"processor", kWorks, p.name.empty() ? sets : fmt::format("{}: {}", p.name, sets)});
  if (!unused.empty()) rows.push_back({"", kUnused, unused.text()});
  if (!p.problem.empty()) rows.push_back({"", kFails, p.problem});
}

void add_threads(const Threads& t, Rows& rows) {
  std::string text = fmt::format("{} on {}", t.used, counted(t.share.cores, "core"));
  if (t.share.allowed > 0 && t.share.allowed != t.share.cores) text += fmt::format("; this process may use {}", t.share.allowed);
  if (t.share.quota) text += fmt::format("; quota of the time of {:.1f}", *t.share.quota);
  if (!t.variable.empty()) text += fmt::format("; SDX_THREADS={}", one_line(t.variable));
  rows.push_back({"threads", kWorks, text});
}

// "no NVIDIA GPU: none on the PCI bus, …" -> "no NVIDIA GPU".
std::string in_short(const std::string& reason) { return reason.substr(0, std::min(reason.find(": "), reason.find("; "))); }

// Providers for other platforms are not named: nobody can install them here.
void add_providers(const std::vector<ProviderInfo>& providers, Rows& rows) {
  std::vector<std::string> working;
  Groups others;
  for (const ProviderInfo& p : providers) {
    if (p.available) working.push_back(p.version.empty() ? p.name : fmt::format("{} ({})", p.name, p.version));
    if (!p.available && !p.reason.starts_with("wrong platform")) others.add(p.name, in_short(p.reason));
  }
  if (!working.empty()) rows.push_back({"providers", kWorks, join(working)});
  if (!others.empty()) rows.push_back({working.empty() ? "providers" : "", kAbsent, others.text() + ". More: sdx providers"});
}

void add_cache(const CacheFacts& c, Rows& rows) {
  const std::string content =
      fmt::format("{} in {} {}", size_text(static_cast<double>(c.bytes)), c.entries, c.entries == 1 ? "entry" : "entries");
  if (c.folder.empty()) {
    rows.push_back({"cache", kNone, "neither SDX_CACHE_DIR, XDG_CACHE_HOME nor HOME names a folder"});
  } else if (!c.problem.empty()) {
    rows.push_back({"cache", kFails, with_hint(fmt::format("{}: {}", c.folder.string(), c.problem), c.hint)});
  } else {
    rows.push_back({"cache", kWorks, fmt::format("{}: {}", c.folder.string(), c.exists ? content : "made when it is needed")});
  }
}

void add_models(const ModelFacts& m, Rows& rows) {
  rows.push_back({"models", m.folder.empty() ? kNone : kWorks,
                  m.folder.empty()
                      ? "neither SDX_HOME nor HOME names a folder"
                      : fmt::format("{}: {}", m.folder.string(), counted(static_cast<std::int64_t>(m.models), "model"))});
  if (m.registry.empty()) return;
  std::string text = fmt::format("{}: {}", m.registry.string(), counted(static_cast<std::int64_t>(m.listed), "model"));
  if (m.gone > 0) text += fmt::format(", {} without its file (sdx models validate)", m.gone);
  rows.push_back({"registry", m.problem.empty() ? kWorks : kFails, m.problem.empty() ? text : m.problem});
}

void add_rest(const Facts& f, Rows& rows) {
  if (!f.project.file.empty() || !f.project.problem.empty()) {
    const bool fails = !f.project.problem.empty();
    rows.push_back({"project", fails ? kFails : kWorks,
                    fails ? f.project.problem : fmt::format("{}: {}", f.project.file.string(), f.project.name)});
  }
  std::string hub = fmt::format("{}, {}", f.hub.endpoint, f.hub.token ? "with HF_TOKEN" : "no HF_TOKEN");
  if (!f.hub.proxies.empty()) hub += fmt::format(", proxies of {}", join(f.hub.proxies));
  rows.push_back({"downloads", f.hub.problem.empty() ? kWorks : kFails, f.hub.problem.empty() ? hub : f.hub.problem});
  if (!f.variables.empty()) rows.push_back({"variables", "set", join(f.variables)});
}

}  // namespace

std::string text_of(const Facts& facts, std::size_t width) {
  Rows rows{{"part", "state", "details"}};
  add_build(facts.build, rows);
  add_parts(facts.parts, rows);
  add_processor(facts.processor, rows);
  add_threads(facts.threads, rows);
  add_providers(facts.providers, rows);
  add_cache(facts.cache, rows);
  add_models(facts.models, rows);
  add_rest(facts, rows);
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) cell = one_line(cell);
  }
  const auto wrong = static_cast<std::int64_t>(problems(facts).size());
  return text_table(rows, TableLayout{"", width, 1}) +
         (wrong == 0 ? "All that is installed works.\n" : fmt::format("{} above.\n", counted(wrong, "failure")));
}

}  // namespace sdx::cli::doctor
