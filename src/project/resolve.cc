#include "project/resolve.h"

#include "base/error.h"
#include "project/backends.h"
#include "project/build_info.h"
#include "project/config.h"

namespace sdx::project {

session::TypedOptions with_backends(session::TypedOptions asked, const Places& places) {
  const std::optional<Backends> backends = find_backends(places);
  if (!backends) return asked;
  apply_backends(*backends, asked.values);
  // A project file says nothing of the other two.
  for (const std::string_view name : {"provider_options", "provider_priority", "platform_defaults"}) {
    if (!asked.has(name)) asked.typed.push_back(name);
  }
  return asked;
}

SessionOptions options_for(const session::TypedOptions& asked, const ProjectConfig* project) {
  return project == nullptr ? asked.values : session::overlay(asked, session_options_of(*project));
}

ResolvedModel resolve(const std::string& name, const Asked& asked, const Places& places) {
  const Located found = locate(name, places);
  ResolvedModel out;
  out.name = name;
  out.entry = found.entry;
  switch (found.kind) {
    case Located::Kind::model: out.source = found.path; break;
    case Located::Kind::project:
      out.project = Project::open(found.path);
      out.source = out.project->model();
      break;
    case Located::Kind::built:
      if (const auto info = read_build_info(found.path)) {
        out.source = found.path / info->compiled;
        out.built = true;
        break;
      }
      fail(ErrorCode::io, "'{}' is not a complete build, and its project file no longer exists", found.path.string());
  }
  out.model = out.source;
  out.options = options_for(asked.session, out.config());
  out.dtype = asked.dtype;
  if (out.dtype == DataType::undefined && out.entry && out.entry->convert) out.dtype = out.entry->dtype;
  out.io_stays = asked.keep_io || out.project.has_value();
  return out;
}

bool convert(ResolvedModel& model) {
  if (model.dtype == DataType::undefined) return false;
  const auto conversion = std::make_shared<const ConvertedModel>(model.source, model.dtype, model.io_stays, model.options);
  model.model = conversion->path();
  model.conversion = conversion;
  return conversion->made();
}

}  // namespace sdx::project
