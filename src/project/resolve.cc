#include "project/resolve.h"

#include "base/error.h"
#include "project/build_info.h"

namespace sdx::project {

ResolvedModel resolve(const std::string& name, const Places& places) {
  const Located found = locate(name, places);
  ResolvedModel out;
  out.name = name;
  out.entry = found.entry;
  switch (found.kind) {
    case Located::Kind::model: out.source = found.path; break;
    case Located::Kind::project:
      out.project = Project::open(found.path);
      out.source = out.project->model();
      out.options = out.project->options();
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
  return out;
}

bool convert(ResolvedModel& model, DataType dtype, bool keep_io) {
  const bool io_stays = keep_io || model.project.has_value();
  const auto conversion = std::make_shared<const ConvertedModel>(model.source, dtype, io_stays, model.options);
  model.model = conversion->path();
  model.conversion = conversion;
  return conversion->made();
}

}  // namespace sdx::project
