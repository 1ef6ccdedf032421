// sdx pull

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <sdx/error.hpp>
#include <sdx/registry.hpp>

#include "base/quantity.h"
#include "base/text/json_text.h"
#include "cli/registry/pull.h"
#include "cli/session_flags.h"
#include "hub/pull.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPullExamples =
    "Examples:\n"
    "  sdx pull ./resnet50.onnx --name resnet50\n"
    "  sdx pull https://example.org/models/resnet50.onnx --sha256 0123…\n"
    "  sdx pull qwen3:0.6b\n"
    "  sdx pull hf.co/org/name:Q4_K_M\n"
    "  sdx pull hf://org/name\n"
    "  sdx pull hf://org/name@v1.0/onnx/model_fp16.onnx --name small\n"
    "The model is stored in ~/.sdx/models/NAME, where `sdx run NAME` finds it. An interrupted pull continues where it ended.\n"
    "Environment: SDX_REGISTRY_ENDPOINT (the registry), SDX_HUB_ENDPOINT or HF_ENDPOINT (the hub), HF_TOKEN (for private "
    "models),\n"
    "http_proxy, https_proxy, no_proxy.\n";

struct PullCommand {
  std::string source, name, folder, endpoint, revision, sha256, timeout, max_size;
  int retries = 4;
  bool offline = false, force = false, only_model = false, no_check = false, json = false, enter = false, dry_run = false;

  hub::PullOptions options() const;
  int run();
};

hub::PullOptions PullCommand::options() const {
  hub::PullOptions o;
  o.name = name;
  o.folder = folder;
  o.endpoint = endpoint;
  o.revision = revision;
  o.sha256 = sha256;
  o.offline = offline;
  o.force = force;
  o.only_model = only_model;
  o.check = !no_check;
  o.dry_run = dry_run;
  o.network.retries = retries;
  if (!timeout.empty()) {
    o.network.timeout = parse_duration(timeout, "--timeout");
    if (o.network.timeout.count() < 1 || o.network.timeout.count() > 3'600'000) {
      throw UsageError(fmt::format("--timeout {}: expected 1ms to 60m", timeout));
    }
  }
  if (!max_size.empty()) o.network.max_bytes = parse_bytes(max_size, "--max-size");
  o.network.note = [](const std::string& text) { note("note: " + text); };
  return o;
}

// `dry`: the result is that of a dry run.
std::string result_json(const hub::Pulled& p, bool dry) {
  std::string files;
  for (const hub::PulledFile& f : p.files) {
    if (!files.empty()) files += ',';
    files += fmt::format("{{\"name\":{},\"bytes\":{},\"sha256\":{},\"origin\":{},\"from\":{}}}", json_string(f.name),
                         f.size_known ? fmt::format("{}", f.bytes) : "null", json_string(f.sha256), json_string(f.origin),
                         json_string(f.from));
  }
  return fmt::format(
      "{{\"name\":{},\"folder\":{},\"model\":{},\"source\":{},\"revision\":{},\"files\":[{}],\"received\":{}{}}}\n",
      json_string(p.name), json_string(p.folder.string()), json_string(p.model.string()), json_string(p.source),
      json_string(p.revision), files, p.received, dry ? ",\"dry_run\":true" : "");
}

std::string result_text(const hub::Pulled& p) {
  std::string out = fmt::format("{}: {}\n", p.name, p.model.string());
  if (!p.revision.empty()) out += fmt::format("  revision {}\n", p.revision);
  for (const hub::PulledFile& f : p.files) {
    out += fmt::format("  {:<10}  {:>9}  sha256 {}  {}\n", f.origin, size_text(static_cast<double>(f.bytes)),
                       f.sha256.substr(0, 16), f.name);
  }
  return out;
}

std::string plan_text(const hub::Pulled& p) {
  std::string out = fmt::format("would {} '{}'\n", p.replaces ? "renew" : "make", p.folder.string());
  if (!p.revision.empty()) out += fmt::format("  revision {}\n", p.revision);
  for (const hub::PulledFile& f : p.files) {
    out += fmt::format("  {:<10}  {:>9}  {}{}\n", f.origin, f.size_known ? size_text(static_cast<double>(f.bytes)) : "size ?",
                       f.name, f.from.empty() ? "" : "  from " + f.from);
  }
  return out;
}

// One bar for each file in turn.
class Bars {
 public:
  void show(const hub::PullProgress& at) {
    if (!stderr_is_steerable() || at.total == 0) return;
    if (at.file != file_) {
      bar_.reset();
      bar_ = std::make_unique<Progress>(at.file, "B");
      file_ = at.file;
    }
    bar_->show(static_cast<std::int64_t>(at.done), static_cast<std::int64_t>(at.total));
  }

 private:
  std::string file_;
  std::unique_ptr<Progress> bar_;
};

// --register: an entry with the model's name, in place of one that a pull of the same name has made before.
void enter_into_registry(const hub::Pulled& pulled, bool dry) {
  const fs::path file = Registry::find_file().value_or("models.yaml");
  RegistryEntry entry;
  entry.name = pulled.name;
  entry.path = fs::absolute(pulled.model).lexically_normal().string();
  entry.description = pulled.source;
  const auto enter = [&](Registry& all) {
    const RegistryEntry* old = all.find(entry.name);
    if (old != nullptr && old->path == entry.path) return;
    all.add(entry);
  };
  if (dry) {
    std::error_code ignored;
    Registry all = fs::exists(file, ignored) ? Registry::open(file) : Registry::create(file);
    enter(all);
    note(fmt::format("would enter {} into {}", entry.name, file.string()));
    return;
  }
  Registry::edit(file, enter);
  note(fmt::format("entered {} into {}", entry.name, file.string()));
}

int PullCommand::run() {
  hub::PullOptions o = options();
  hub::Pulled pulled;
  {
    Bars bars;
    o.progress = [&](const hub::PullProgress& at) { bars.show(at); };
    try {
      pulled = hub::pull(source, o);
    } catch (const Error& e) {
      if (e.code() == ErrorCode::invalid_argument) throw UsageError(e.what());
      throw;
    }
  }
  if (enter) enter_into_registry(pulled, dry_run);
  if (pulled.may_be_more) note("note: external data is fetched too; only the model itself names its files");
  print(json ? result_json(pulled, dry_run) : dry_run ? plan_text(pulled) : result_text(pulled));
  return kOk;
}

}  // namespace

void add_pull(const Command& app, Action& action) {
  add_pull_flags(app.add_subcommand("pull", "Fetch a model from a registry, a Hugging-Face-compatible hub, an address or a path"),
                 action);
}

void add_pull_flags(const Command& command, Action& action) {
  const auto c = std::make_shared<PullCommand>();
  command
      ->add_option("SOURCE", c->source,
                   "A name such as qwen3:0.6b or hf.co/ORG/NAME:Q4_K_M, hf://ORG/NAME[@REVISION][/FILE], http(s)://…, or a path")
      ->required();
  command->add_option("--name", c->name, "The model's name; default: that of the source")->type_name("NAME");
  command->add_option("--to", c->folder, "Folder for the model, instead of ~/.sdx/models/NAME")->type_name("FOLDER");
  command->add_option("--endpoint", c->endpoint, "Address of the registry or hub")->type_name("URL");
  command->add_option("--revision", c->revision, "Branch, tag or commit of a hub's repository")->type_name("REV");
  command->add_option("--sha256", c->sha256, "Checksum that the model file must have")->type_name("HEX");
  command->add_flag("--offline", c->offline, "Use the files of an earlier pull, without a network");
  command->add_flag("--force", c->force, "Replace a folder that was not created by a pull");
  command->add_flag("--only-model", c->only_model, "Skip the configuration, tokenizer and label files of a hub's repository");
  command->add_flag("--no-check", c->no_check, "Do not read the model before putting it into place");
  command->add_option("--timeout", c->timeout, "Give up an attempt after this long without progress; default 30 s")
      ->type_name("DURATION");
  command->add_option("--retries", c->retries, "Further attempts after a temporary failure; default 4")
      ->range(0, 1000)
      ->type_name("N");
  command->add_option("--max-size", c->max_size, "Largest file to accept, for example 2GB")->type_name("SIZE");
  command->add_flag("--register", c->enter, "Add the model to the registry (models.yaml) under its name");
  command->add_flag("--dry-run", c->dry_run, "Print what would be fetched, from where and to where; fetch and write nothing");
  command->add_flag("--json", c->json, "Print the result as JSON");
  command->footer(kPullExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
