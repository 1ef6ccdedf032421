#include "cli/resolve.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "cli/command.h"

namespace sdx::cli {
namespace {

// The built model of the project where that is up to date, else the model itself.
Session open_project(const Project& project, const SessionOptions& options) {
  const BuildState state = project.build_state(options);
  if (state.kind == BuildState::Kind::fresh) return Session::open(state.compiled, state.options);
  if (state.kind == BuildState::Kind::stale) {
    note(fmt::format("note: the build in '{}' is out of date ({}); `sdx build` renews it",
                     (project.folder() / ".sdx").lexically_normal().string(), state.why));
  }
  return Session::open(project.model(), options);
}

}  // namespace

project::ResolvedModel resolve_unconverted(const SessionFlags& flags) { return project::resolve(flags.model, flags.asked()); }

project::ResolvedModel resolve(const SessionFlags& flags) {
  project::ResolvedModel model = resolve_unconverted(flags);
  if (convert(model)) note(fmt::format("note: converted '{}' to {}", model.source.string(), name(model.dtype)));
  return model;
}

Session open(const project::ResolvedModel& model) {
  const bool as_it_is = model.project && !model.conversion;
  Session session = as_it_is ? open_project(*model.project, model.options) : Session::open(model.model, model.options);
  const Report report = session.report();
  for (const std::string& w : report.warnings) note("warning: " + w);
  return session;
}

void apply_entry(const RegistryEntry& entry, const std::vector<ValueSpec>& specs, std::vector<std::string>& shapes) {
  std::vector<std::string> defaults, other;
  for (const RegistryInput& input : entry.inputs) {
    const auto spec = std::find_if(specs.begin(), specs.end(), [&](const ValueSpec& s) { return s.name == input.name; });
    if (spec == specs.end()) {
      std::vector<std::string> names;
      for (const ValueSpec& s : specs) names.push_back(s.name);
      fail(ErrorCode::invalid_argument, "{}: the model has no input '{}'; it has: {}", entry.place, input.name, join(names));
    }
    if (input.dtype != DataType::undefined && spec->dtype != DataType::undefined && input.dtype != spec->dtype) {
      fail(ErrorCode::invalid_argument, "{}: input '{}' is {} in the model, not {}", entry.place, input.name, spec->type,
           name(input.dtype));
    }
    // One without a name is for the only input that there is.
    const bool typed = std::any_of(shapes.begin(), shapes.end(), [&](const auto& s) {
      return s.find('=') == std::string::npos || s.starts_with(input.name + "=");
    });
    if (input.shape && !typed) defaults.push_back(fmt::format("{}=[{}]", input.name, fmt::join(*input.shape, ",")));
  }
  shapes.insert(shapes.begin(), defaults.begin(), defaults.end());
  if (!is_floating(entry.dtype)) return;
  for (const ValueSpec& s : specs) {
    if (is_floating(s.dtype) && s.dtype != entry.dtype) other.push_back(fmt::format("'{}' ({})", s.name, s.type));
  }
  if (!other.empty()) {
    note(
        fmt::format("warning: {}: the entry has {}, the model takes {}: it runs unchanged; `convert: true` in the entry, or "
                    "--dtype {}, converts it",
                    entry.place, name(entry.dtype), join(other), name(entry.dtype)));
  }
}

}  // namespace sdx::cli
