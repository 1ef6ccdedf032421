#include <algorithm>
#include <sdx/project.hpp>

#include "base/error.h"
#include "onnx/reader.h"
#include "project/build_info.h"
#include "project/check_model.h"
#include "project/config.h"
#include "project/find.h"
#include "session/pipeline.h"
#include "session/specs.h"

namespace sdx {
namespace {

using namespace project;

namespace fs = std::filesystem;

// Does not add a "./" that the user did not type.
fs::path inside(const fs::path& folder, const fs::path& name) { return folder == "." ? name : folder / name; }

fs::path parent_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

}  // namespace

Project Project::open(const fs::path& path) {
  const std::optional<Located> found = locate_path(path);
  if (!found) fail(ErrorCode::io, "there is no model or project file '{}'", path.string());
  Project p;
  if (found->kind == Located::Kind::built) {
    fail(ErrorCode::io, "'{}' was built from a project whose file is gone", path.string());
  }
  if (found->kind == Located::Kind::model) {
    p.config_.name = found->path.stem().string();
    p.config_.model_source = found->path.string();
    p.folder_ = ".";
    return p;
  }
  ParsedProject parsed = read_project(found->path);
  p.config_ = std::move(parsed.config);
  p.file_ = found->path;
  p.folder_ = parent_of(found->path);
  p.places_.assign(parsed.places.begin(), parsed.places.end());
  return p;
}

Project Project::find(const std::string& name) { return open(locate(name).path); }

fs::path Project::model() const { return inside(folder_, config_.model_source); }

SessionOptions Project::options() const { return session_options_of(config_); }

std::string Project::place(const std::string& key) const {
  const auto it = std::find_if(places_.begin(), places_.end(), [&](const auto& p) { return p.first == key; });
  if (it != places_.end()) return it->second;
  return file_.empty() ? "" : file_.string() + ": ";
}

std::vector<std::string> Project::validate() const {
  std::error_code ignored;
  if (!fs::is_regular_file(model(), ignored)) {
    fail(ErrorCode::io, "{}there is no model file '{}'", place("model"), model().string());
  }
  Model model = read_model(this->model());
  session::prepare(model, {}, true);
  std::vector<ValueSpec> outputs;
  const Graph& g = model.graph;
  for (std::size_t i = 0; i < g.outputs().size(); ++i) {
    const ValueInfo& info = g.value(g.outputs()[i]);
    outputs.push_back(session::spec_of(g.output_names()[i], info.type.known() ? info.type : info.declared));
  }
  return check_against_model(config_, session::input_specs(g), outputs, [this](const std::string& key) { return place(key); });
}

std::vector<std::string> Project::validate(const Session& session) const {
  return check_against_model(config_, session.inputs(), session.outputs(), [this](const std::string& key) { return place(key); });
}

BuildState Project::build_state(const SessionOptions& options) const {
  BuildState state;
  const std::optional<BuildInfo> info = read_build_info(inside(folder_, ".sdx"));
  // One folder has one build: another project's, or another model's, is none of this one's.
  if (!info || info->source != config_.model_source) return state;
  state.kind = BuildState::Kind::stale;
  if (info->version != version()) {
    state.why = "built by sdx " + info->version;
    return state;
  }
  for (const cache::Fingerprint& file : info->files) {
    if (cache::unchanged(parent_of(model()), file)) continue;
    state.why = "'" + file.name + "' has changed since";
    return state;
  }
  std::error_code ignored;
  const fs::path compiled = inside(folder_, ".sdx") / info->compiled;
  if (!fs::is_regular_file(compiled, ignored)) {
    state.why = "'" + compiled.string() + "' is gone";
    return state;
  }
  const bool own_graph = !options.optimize || !options.disabled_passes.empty();
  if (build_settings(options) != info->settings || (info->optimized && own_graph) || !options.custom_ops.empty()) {
    const bool file_changed = build_settings(this->options()) != info->settings;
    state.kind = file_changed ? BuildState::Kind::stale : BuildState::Kind::other;
    state.why =
        file_changed ? "its runtime section has changed since, or it was built for another -p" : "built for other options";
    return state;
  }
  state.kind = BuildState::Kind::fresh;
  state.compiled = compiled;
  state.options = options;
  if (info->optimized) state.options.dimensions.clear();  // they are fixed in the built model
  if (state.options.cache_folder.empty()) state.options.cache_folder = inside(folder_, ".sdx") / "cache";
  state.providers = info->providers;
  return state;
}

Session Project::session(const SessionOptions& options) const {
  const BuildState state = build_state(options);
  return state.kind == BuildState::Kind::fresh ? Session::open(state.compiled, state.options) : Session::open(model(), options);
}

}  // namespace sdx
