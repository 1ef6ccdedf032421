// sdx init and sdx build

#include <fmt/format.h>

#include <memory>
#include <sdx/project.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "base/text/json_text.h"
#include "cli/command.h"
#include "cli/resolve.h"
#include "cli/values/outputs.h"
#include "providers/interface/provider.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInitExamples =
    "Examples:\n"
    "  sdx init model.onnx\n"
    "  sdx init models/resnet50.onnx --name classifier -o classifier.yml\n"
    "  sdx init model.onnx -o -\n";

constexpr const char* kBuildExamples =
    "Examples:\n"
    "  sdx build\n"
    "  sdx build -c sdx.yml -p cuda,cpu\n"
    "  sdx build model.onnx --no-optimize\n"
    "The result is stored in .sdx/ beside the project file. `sdx run NAME` uses it until the model or settings change.\n";

struct InitCommand {
  std::string model, name, output = "sdx.yml";
  bool force = false, dry_run = false;
  int run() const;
};

int InitCommand::run() const {
  InitOptions o;
  o.name = name;
  const fs::path file = output;
  if (output != "-" && file.extension() != ".yml" && file.extension() != ".yaml") {
    throw UsageError(fmt::format("-o {}: a project file ends in .yml or .yaml", output));
  }
  o.folder = output != "-" && file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::error_code ignored;
  if (output != "-" && !force && fs::exists(file, ignored)) {
    throw UsageError(fmt::format("'{}' already exists; --force overwrites it, -o FILE chooses another name", output));
  }
  const project::ResolvedModel found = project::resolve(model);
  if (found.project || found.built) fail(ErrorCode::invalid_argument, "'{}' already has a project file", model);
  const std::string text = project_text(found.source, o);
  if (output == "-") {
    print(text);
    return kOk;
  }
  if (dry_run) {
    NewFile::check_with_folders(file);
    print(fmt::format("would {} {}, {} bytes\n", fs::exists(file, ignored) ? "overwrite" : "write", output, text.size()));
    return kOk;
  }
  fs::create_directories(o.folder, ignored);
  write_file_atomically(file, text);
  note(fmt::format("wrote {}; next, run `sdx build{}`", output, output == "sdx.yml" ? "" : " -c " + output));
  return kOk;
}

struct BuildCommand {
  std::string path, config;
  std::vector<std::string> providers;
  bool no_optimize = false, json = false, dry_run = false;
  int run() const;

 private:
  Project project() const;
};

Project BuildCommand::project() const {
  if (!config.empty()) {
    if (!path.empty() && !fs::is_directory(path)) throw UsageError("give PATH or -c CONFIG, not both");
    // A relative CONFIG is looked for in PATH, then here.
    std::error_code ignored;
    const fs::path inside = fs::path(path) / config;
    return Project::open(!path.empty() && fs::is_regular_file(inside, ignored) ? inside : fs::path(config));
  }
  if (!path.empty()) return Project::find(path);
  if (const auto file = project::project_file_in(".")) return Project::open(*file);
  fail(ErrorCode::io, "there is no sdx.yml here; `sdx init MODEL` writes one, or give a PATH");
}

// `dry`: the report is about a dry run.
std::string report_text(const Project& p, const BuildReport& r, bool dry) {
  const auto line = [](const char* what, const std::string& text) { return fmt::format("{:<11} {}\n", what, text); };
  std::string out = line("project", fmt::format("{} {}{}", p.config().name, p.config().version,
                                                p.file().empty() ? "" : " (" + p.file().string() + ")"));
  out += line("model", fmt::format("{}, {}, {} bytes", p.model().string(), counted(r.nodes_before, "node"), r.source_bytes));
  out += line("optimised", r.optimized ? fmt::format("{} {} {}", counted(r.nodes_before, "node"), dry ? "would become" : "became",
                                                     r.nodes_after)
                                       : "no: " + r.not_optimized);
  out += line("providers", r.providers.empty() ? "none needed" : join(r.providers));
  if (dry) {
    return out + line("would build", fmt::format("{}, {} bytes{}", r.compiled.string(), r.compiled_bytes,
                                                 r.up_to_date ? "; the existing build is up to date" : ""));
  }
  out += line("built", fmt::format("{}, {} bytes; opens in {:.1f} ms, took {:.1f} ms in all", r.compiled.string(),
                                   r.compiled_bytes, r.open_ms, r.build_ms));
  return out;
}

std::string report_json(const Project& p, const BuildReport& r, bool dry) {
  return fmt::format(
      "{{\"name\":{},\"model\":{},\"folder\":{},\"compiled\":{},\"optimized\":{},\"not_optimized\":{},\"nodes_before\":{},"
      "\"nodes\":{},\"source_bytes\":{},\"compiled_bytes\":{},\"providers\":{},\"fallbacks\":{},\"warnings\":{},\"open_ms\":{:."
      "3f},"
      "\"build_ms\":{:.3f}{}}}\n",
      json_string(p.config().name), json_string(p.model().string()), json_string(r.folder.string()),
      json_string(r.compiled.string()), r.optimized, json_string(r.not_optimized), r.nodes_before, r.nodes_after, r.source_bytes,
      r.compiled_bytes, json_list(r.providers), json_list(r.fallbacks), json_list(r.warnings), r.open_ms, r.build_ms,
      dry ? fmt::format(",\"up_to_date\":{},\"dry_run\":true", r.up_to_date) : "");
}

int BuildCommand::run() const {
  BuildOptions o;
  o.optimize = !no_optimize;
  o.providers = providers;
  o.dry_run = dry_run;
  for (const std::string& p : providers) {
    try {
      provider_chain(std::vector<std::string>{p}, false);
    } catch (const Error& e) {
      throw UsageError(e.message());
    }
  }
  const Project p = project();
  if (stderr_is_terminal()) o.progress = [](std::string_view step) { note(fmt::format("{} …", step)); };
  const BuildReport r = p.build(o);
  for (const std::string& w : r.warnings) note("warning: " + w);
  // Fallbacks are warned of by the library.
  print(json ? report_json(p, r, dry_run) : report_text(p, r, dry_run));
  return kOk;
}

}  // namespace

void add_init(const Command& app, Action& action) {
  const Command command = app.add_subcommand("init", "Write a project file (sdx.yml) for a model");
  const auto c = std::make_shared<InitCommand>();
  command->add_option("MODEL", c->model, "The model file")->required();
  command->add_option("-o,--output", c->output, "Project file (sdx.yml); '-': standard output")->type_name("FILE");
  command->add_option("--name", c->name, "Project name; default: the name of the model file")->type_name("NAME");
  command->add_flag("--force", c->force, "Overwrite an existing file");
  command->add_flag("--dry-run", c->dry_run, "Print what would be written, and write nothing");
  command->footer(kInitExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

void add_build(const Command& app, Action& action) {
  const Command command = app.add_subcommand("build", "Check a project, optimise its model and compile it for the providers");
  const auto c = std::make_shared<BuildCommand>();
  command->add_option("PATH", c->path, "A folder with sdx.yml, a project file, a model or a name; default: the current folder");
  command->add_option("-c,--config", c->config, "The project file")->type_name("CONFIG");
  command->add_option("-p,--provider", c->providers, "The chain to build for, comma-separated, instead of the project's")
      ->delimiter(',')
      ->one_word()
      ->type_name("CHAIN");
  command->add_flag("--no-optimize,!--optimize", c->no_optimize, "Do not rewrite the graph");
  command->add_flag("--dry-run", c->dry_run, "Print what would be built, and where; compile and write nothing");
  command->add_flag("--json", c->json, "Print a summary as JSON");
  command->footer(kBuildExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
