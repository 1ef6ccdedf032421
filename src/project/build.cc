// sdx build

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sdx/project.hpp>
#include <sdx/provider.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/system/file.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "cache/entry.h"
#include "graph/sizes.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "passes/pass.h"
#include "project/build_info.h"
#include "session/pipeline.h"
#include "session/selection.h"

namespace sdx {
namespace {

using namespace project;

// 0 where there is no such file.
std::uint64_t file_bytes(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  return error ? 0 : bytes;
}

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// If all constants together have at least this size, they go into a file of their own: an ONNX file may have 2 GiB.
constexpr std::uint64_t kOneFile = std::uint64_t{1} << 30;
constexpr std::size_t kExternalAbove = 4096;

double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

// .sdx/, locked while the object lives, and .sdx/.build/, where everything is written before it is renamed to its place in .sdx/.
class Workshop {
 public:
  explicit Workshop(fs::path folder) : folder_(std::move(folder)), staging_(folder_ / ".build") {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) fail(ErrorCode::io, "cannot create '{}': {}", folder_.string(), error.message());
    lock_ = open_folder_lock(folder_);
    if (!lock_) fail(ErrorCode::io, "cannot open '{}': {}", folder_.string(), std::strerror(errno));
    if (!lock_.lock(File::Lock::exclusive, false)) {
      fail(ErrorCode::io, "another build in '{}' is running", folder_.string());
    }
    clear();  // what a killed build left
    fs::create_directories(staging_, error);
    if (error) fail(ErrorCode::io, "cannot create '{}': {}", staging_.string(), error.message());
  }
  ~Workshop() {
    std::error_code ignored;
    fs::remove_all(staging_, ignored);
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;

  const fs::path& folder() const { return folder_; }
  fs::path at(const std::string& name) const { return staging_ / name; }

  void publish(const std::string& name) const {
    std::error_code error;
    fs::rename(staging_ / name, folder_ / name, error);
    if (error) fail(ErrorCode::io, "cannot put '{}' into place: {}", (folder_ / name).string(), error.message());
  }

  // Removes a model that turned out to be useless.
  void drop(const std::string& compiled) const {
    std::error_code error;
    for (const char* ending : {"", ".data"}) fs::remove(folder_ / (compiled + ending), error);
  }

  // Compiled models that no model_info.json names any more.
  void drop_others(const std::string& compiled) const {
    std::error_code error;
    std::vector<fs::path> old;
    for (fs::directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (name.starts_with("model-") && !name.starts_with(compiled)) old.push_back(it->path());
    }
    for (const fs::path& path : old) fs::remove(path, error);
  }

 private:
  void clear() const {
    std::error_code error;
    fs::remove_all(staging_, error);
    if (error) fail(ErrorCode::io, "cannot remove '{}': {}", staging_.string(), error.message());
  }

  fs::path folder_, staging_;
  File lock_;
};

// Why the graph goes into the build as it is; empty where the passes may run.
std::string why_not_optimized(const BuildOptions& build, const SessionOptions& options, const session::Selection& selection,
                              const Graph& graph) {
  if (!build.optimize || !options.optimize) return "--no-optimize";
  if (session::compiles_regions(selection)) {
    return fmt::format("{} optimises the model itself", selection.chain.front()->name());
  }
  for (const ValueId v : graph.inputs()) {
    if (graph.value(v).constant) return fmt::format("input '{}' has a default that a run may replace", graph.value(v).name);
  }
  return "";
}

std::uint64_t write_optimized(Model& model, const SessionOptions& options, const fs::path& path, bool dry_run) {
  session::prepare(model, options);
  sink_constants(model.graph);
  run_passes(model.graph);
  WriteOptions write;
  if (constant_bytes(model.graph) > kOneFile) write.external_above = kExternalAbove;
  write.dry_run = dry_run;
  return write_model(model, path, write);
}

// Copies the model unchanged, but with all its files in this folder.
std::uint64_t write_plain(const fs::path& source, bool external, const fs::path& path, bool dry_run) {
  if (!external) {
    if (!dry_run) write_file_atomically(path, MappedFile::open(source)->bytes());
    return file_bytes(source);
  }
  const Model model = read_model(source);
  WriteOptions write;
  write.external_above = kExternalAbove;
  write.dry_run = dry_run;
  return write_model(model, path, write);
}

// A graph that cannot be written is none to fail for: the report says why, and the model stays as it is.
void optimize_into(const fs::path& staged, Model& model, const SessionOptions& options, bool dry_run, BuildReport& report) {
  try {
    report.compiled_bytes = write_optimized(model, options, staged, dry_run);
    report.nodes_after = count_nodes(model.graph);
    report.optimized = true;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::invalid_argument) throw;
    report.not_optimized = "the optimised graph cannot be written: " + e.message();
  }
}

// Puts the staged model in its place and opens it there, because compiled models are kept for a path. No model_info.json names it
// yet, so the old build stays whole.
Session open_published(const Workshop& workshop, const std::string& compiled, SessionOptions options) {
  if (options.cache_folder.empty()) options.cache_folder = workshop.folder() / "cache";
  options.keep_compiled = true;
  options.profile = false;
  std::error_code ignored;
  const bool was_there = fs::exists(workshop.folder() / compiled, ignored);
  if (fs::exists(workshop.at(compiled + ".data"), ignored)) workshop.publish(compiled + ".data");
  workshop.publish(compiled);
  try {
    return Session::open(workshop.folder() / compiled, options);
  } catch (...) {
    if (!was_there) workshop.drop(compiled);
    throw;
  }
}

}  // namespace

BuildReport Project::build(const BuildOptions& build) const {
  const auto start = Clock::now();
  const auto step = [&](const std::string& what) {
    if (build.progress) build.progress(what);
  };
  BuildReport report;
  step(fmt::format("checking {}", file_.empty() ? model().string() : file_.string()));
  report.warnings = validate();
  SessionOptions options = this->options();
  if (!build.providers.empty()) options.providers = build.providers;
  report.folder = folder_ == "." ? fs::path(".sdx") : folder_ / ".sdx";
  std::optional<Workshop> workshop;
  if (build.dry_run) {
    report.up_to_date = build_state(options).kind == BuildState::Kind::fresh;
    NewFile::check_with_folders(report.folder / ".build" / "model.onnx");
  } else {
    workshop.emplace(report.folder);
  }

  BuildInfo info;
  info.source = config_.model_source;
  info.settings = build_settings(options);
  info.version = version();
  info.files = cache::fingerprints(model());
  for (const cache::Fingerprint& f : info.files) report.source_bytes += f.bytes;

  step("choosing providers");
  const session::Selection selection = session::select_providers(options);
  Model model = read_model(this->model());
  report.nodes_before = report.nodes_after = count_nodes(model.graph);
  report.not_optimized = why_not_optimized(build, options, selection, model.graph);
  std::string identity = info.settings + info.version + report.not_optimized;
  for (const cache::Fingerprint& f : info.files) identity += f.name + f.hash;
  info.compiled = "model-" + hash_text(identity).substr(0, 16) + ".onnx";
  report.compiled = report.folder / info.compiled;
  const fs::path staged = workshop ? workshop->at(info.compiled) : report.compiled;
  if (report.not_optimized.empty()) {
    step("optimising");
    optimize_into(staged, model, options, build.dry_run, report);
  }
  if (!report.optimized) report.compiled_bytes = write_plain(this->model(), info.files.size() > 1, staged, build.dry_run);
  info.optimized = report.optimized;
  if (build.dry_run) {
    for (const Provider* p : selection.chain) report.providers.emplace_back(p->name());
    report.build_ms = ms_since(start);
    return report;
  }

  step("compiling for " + std::string(selection.chain.front()->name()));
  SessionOptions open = options;
  if (report.optimized) open.dimensions.clear();
  const Clock::time_point opening = Clock::now();
  const Session session = open_published(*workshop, info.compiled, std::move(open));
  report.open_ms = ms_since(opening);
  const Report ran = session.report();
  report.providers = info.providers = ran.providers;
  report.fallbacks = ran.fallbacks;
  report.warnings.insert(report.warnings.end(), ran.warnings.begin(), ran.warnings.end());

  step("writing " + workshop->folder().string());
  const fs::path config = file_.empty() ? fs::path() : file_.filename();
  const BuildFacts facts{config_, config.string(), info, report, session, options};
  write_file_atomically(workshop->at("provider_info.json"), provider_info_json(facts));
  write_file_atomically(workshop->at("model_info.json"), model_info_json(facts));
  // model_info.json is last: it names the others, so that up to here the old build is whole.
  workshop->publish("provider_info.json");
  workshop->publish("model_info.json");
  workshop->drop_others(info.compiled);
  for (const cache::CacheItem& item : cache::list_cache(workshop->folder() / "cache")) {
    if (item.provider == "cpu" && item.label != info.compiled) cache::remove_cache_item(item);
  }
  report.build_ms = ms_since(start);
  return report;
}

}  // namespace sdx
