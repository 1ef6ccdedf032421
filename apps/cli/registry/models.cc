// sdx models, and sdx ls, show, rm, ps

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sdx/registry.hpp>
#include <sdx/runner.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/quantity.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "base/text/json_text.h"
#include "cli/command.h"
#include "cli/registry/pull.h"
#include "cli/registry/pulled.h"
#include "cli/registry/running.h"
#include "cli/session_flags.h"
#include "project/resolve.h"
#include "tensor/gguf/gguf_model.h"
#include "tensor/gguf/gguf_names.h"
#include "tensor/json.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostConfig = std::size_t{16} << 20;  // bytes of a config.json

constexpr const char* kModelsExamples =
    "Examples:\n"
    "  sdx models add resnet50 models/resnet50.onnx --tag vision --shape input=1x3x224x224\n"
    "  sdx models pull qwen3:0.6b\n"
    "  sdx models ls --tag vision\n"
    "  sdx models show resnet50 --json\n"
    "  sdx models ps\n"
    "  sdx ls\n"
    "  sdx show qwen3:0.6b\n"
    "  sdx rm qwen3:0.6b\n"
    "  sdx ps\n"
    "  sdx models validate\n"
    "  sdx run resnet50 --random\n"
    "The registry is --registry FILE, else $SDX_REGISTRY, else ./models.yaml, else ~/.sdx/models.yaml.\n";

struct ModelsCommand {
  std::string registry, name, path, tag, description, dtype, endpoint = "http://127.0.0.1:8080";
  std::vector<std::string> tags, shapes;
  int warmup = -1, iterations = -1;
  bool json = false, convert = false, dry_run = false, names = false;

  int list() const;
  int show() const;
  int validate() const;
  int add() const;
  int remove() const;
  int running() const { return show_running(endpoint, json); }

 private:
  int remove_pulled(const PulledModel& model) const;
  void say_nothing_listed(const std::optional<fs::path>& file) const;
  [[noreturn]] void unknown_model(const std::optional<fs::path>& file) const;
  void check_inputs(const RegistryEntry& entry) const;
  Registry open() const;
  RegistryEntry entry_for(const fs::path& file) const;
};

bool exists(const RegistryEntry& entry) {
  std::error_code ignored;
  return fs::is_regular_file(entry.file, ignored) || fs::is_directory(entry.file, ignored);
}

std::string dtype_json(DataType type) { return type == DataType::undefined ? "null" : json_string(std::string(name(type))); }

std::string input_json(const RegistryInput& input) {
  const std::string shape = input.shape ? fmt::format("[{}]", fmt::join(*input.shape, ",")) : "null";
  return fmt::format("{{\"name\":{},\"shape\":{},\"dtype\":{}}}", json_string(input.name), shape, dtype_json(input.dtype));
}

std::string entry_json(const RegistryEntry& e) {
  std::string inputs;
  for (const RegistryInput& input : e.inputs) inputs += (inputs.empty() ? "" : ",") + input_json(input);
  const auto number = [](std::optional<int> n) { return n ? std::to_string(*n) : "null"; };
  return fmt::format(
      "{{\"name\":{},\"path\":{},\"file\":{},\"exists\":{},\"inputs\":[{}],\"dtype\":{},\"convert\":{},\"warmup\":{},"
      "\"iterations\":{},"
      "\"description\":{},\"tags\":{}}}",
      json_string(e.name), json_string(e.path), json_string(e.file.string()), exists(e), inputs, dtype_json(e.dtype), e.convert,
      number(e.warmup), number(e.iterations), json_string(e.description), json_list(e.tags));
}

std::string entry_text(const RegistryEntry& e) {
  std::string out = fmt::format("{}\n  file        {}{}\n", e.name, e.file.string(), exists(e) ? "" : "  (missing)");
  if (!e.description.empty()) out += fmt::format("  description {}\n", e.description);
  if (!e.tags.empty()) out += fmt::format("  tags        {}\n", join(e.tags));
  if (e.dtype != DataType::undefined) out += fmt::format("  dtype       {}{}\n", name(e.dtype), e.convert ? ", converted" : "");
  if (e.warmup) out += fmt::format("  warmup      {}\n", *e.warmup);
  if (e.iterations) out += fmt::format("  iterations  {}\n", *e.iterations);
  for (const RegistryInput& input : e.inputs) {
    out += fmt::format("  input       {}: {}{}\n", input.name,
                       input.dtype == DataType::undefined ? std::string_view("") : name(input.dtype),
                       input.shape ? fmt::format("[{}]", fmt::join(*input.shape, ",")) : "");
  }
  return out;
}

Registry ModelsCommand::open() const {
  if (const auto file = Registry::find_file(registry)) return Registry::open(*file);
  fail(ErrorCode::io, "there is no models.yaml here or in ~/.sdx; `sdx models add NAME PATH` creates one");
}

// What a GGUF file says of its model; "" where there is none, or none that can be read.
std::string gguf_text(const fs::path& folder) {
  std::string out;
  try {
    const auto file = gguf_in(folder);
    if (!file) return out;
    const auto model = GgufModel::open(*file);
    const GgufFile& meta = model->metadata();
    const std::string architecture(meta.text("general.architecture").value_or(""));
    if (!architecture.empty()) out += fmt::format("  architecture {}\n", architecture);
    if (const auto size = meta.text("general.size_label")) out += fmt::format("  parameters  {}\n", *size);
    if (const auto context = meta.whole(architecture + ".context_length")) out += fmt::format("  context     {}\n", *context);
  } catch (const Error&) {  // whoever opens it hears why
  }
  return out;
}

// What the configuration beside .safetensors files says of their model; "" where there is none, or none that can be read.
std::string config_text(const fs::path& folder) {
  std::string out;
  try {
    const nlohmann::json config = parse_json(read_file(folder / "config.json", kMostConfig), "config.json");
    if (!config.is_object()) return out;
    const auto type = config.find("model_type"), context = config.find("max_position_embeddings");
    if (type != config.end() && type->is_string()) out += fmt::format("  architecture {}\n", type->get<std::string>());
    if (context != config.end() && context->is_number_unsigned())
      out += fmt::format("  context     {}\n", context->get<std::uint64_t>());
  } catch (const Error&) {  // whoever opens it hears why
  }
  return out;
}

std::string pulled_json(const PulledModel& m) {
  std::string files;
  for (const hub::PulledFile& f : m.files) {
    files += fmt::format("{}{{\"name\":{},\"bytes\":{}}}", files.empty() ? "" : ",", json_string(f.name), f.bytes);
  }
  return fmt::format("{{\"name\":{},\"folder\":{},\"source\":{},\"revision\":{},\"bytes\":{},\"files\":[{}]}}",
                     json_string(m.name), json_string(m.folder.string()), json_string(m.source), json_string(m.revision),
                     m.bytes(), files);
}

std::string pulled_json(const std::vector<PulledModel>& models) {
  std::string out;
  for (const PulledModel& m : models) out += (out.empty() ? "" : ",") + pulled_json(m);
  return "[" + out + "]";
}

std::string pulled_text(const PulledModel& m) {
  std::string out = fmt::format("{}\n  folder      {}\n  pulled from {}\n", m.name, m.folder.string(), m.source);
  if (!m.revision.empty()) out += fmt::format("  revision    {}\n", m.revision);
  for (const hub::PulledFile& f : m.files) {
    out += fmt::format("  file        {}, {}\n", f.name, size_text(static_cast<double>(f.bytes)));
  }
  const std::string text = gguf_text(m.folder);
  return out + (text.empty() && m.of_text() ? config_text(m.folder) : text);
}

int ModelsCommand::list() const {
  const auto file = Registry::find_file(registry);
  const std::vector<PulledModel> pulled = tag.empty() ? pulled_models() : std::vector<PulledModel>{};
  const Registry all = file ? Registry::open(*file) : Registry::create("models.yaml");
  std::vector<const RegistryEntry*> shown;
  std::size_t width = 4;
  for (const RegistryEntry& e : all.entries()) {
    if (!tag.empty() && !e.has_tag(tag)) continue;
    shown.push_back(&e);
    width = std::max(width, e.name.size());
  }
  for (const PulledModel& m : pulled) width = std::max(width, m.name.size());
  if (names) {
    for (const RegistryEntry* e : shown) print(e->name + "\n");
    for (const PulledModel& m : pulled) print(m.name + "\n");
    return kOk;
  }
  if (json) {
    std::string items;
    for (const RegistryEntry* e : shown) items += (items.empty() ? "" : ",") + entry_json(*e);
    print(fmt::format("{{\"registry\":{},\"models\":[{}],\"pulled\":{}}}\n", file ? json_string(file->string()) : "null", items,
                      pulled_json(pulled)));
    return kOk;
  }
  if (shown.empty() && pulled.empty()) say_nothing_listed(file);
  for (const RegistryEntry* e : shown) {
    std::string line = fmt::format("{:<{}}  {}{}", e->name, width, e->path, exists(*e) ? "" : "  (missing)");
    if (!e->tags.empty()) line += fmt::format("  [{}]", join(e->tags));
    if (!e->description.empty()) line += "  " + e->description;
    print(line + "\n");
  }
  for (const PulledModel& m : pulled)
    print(fmt::format("{:<{}}  {}  {}  (pulled from {})\n", m.name, width, m.folder.string(),
                      size_text(static_cast<double>(m.bytes())), m.source));
  return kOk;
}

void ModelsCommand::say_nothing_listed(const std::optional<fs::path>& file) const {
  if (!file) {
    note("note: there is no models.yaml here or in ~/.sdx; `sdx models add NAME PATH` creates one");
  } else if (!tag.empty()) {
    note(fmt::format("note: '{}' has no model with the tag '{}'", file->string(), tag));
  } else {
    note(fmt::format("note: '{}' lists no models, and none was pulled; `sdx models add NAME PATH` adds one", file->string()));
  }
}

// Neither the registry nor a pull knows the name.
void ModelsCommand::unknown_model(const std::optional<fs::path>& file) const {
  std::vector<std::string> known;
  if (file && fs::exists(*file)) {
    const Registry all = Registry::open(*file);
    for (const RegistryEntry& e : all.entries()) known.push_back(e.name);
  }
  for (const PulledModel& m : pulled_models()) known.push_back(m.name);
  const std::string near = closest(name, known);
  fail(ErrorCode::invalid_argument, "there is no model '{}'{}{}", name,
       file ? fmt::format(" in '{}' or among the pulled ones", file->string()) : "; there is no models.yaml here or in ~/.sdx",
       !near.empty()   ? "; did you mean '" + near + "'?"
       : known.empty() ? "; `sdx models add NAME PATH` adds one"
                       : "; there are: " + join(known));
}

int ModelsCommand::show() const {
  const auto file = Registry::find_file(registry);
  const Registry all = file ? Registry::open(*file) : Registry::create("models.yaml");
  if (all.find(name) == nullptr) {
    const auto pulled = pulled_model_named(name);
    if (!pulled) unknown_model(file);
    print(json ? pulled_json(*pulled) + "\n" : pulled_text(*pulled));
    return kOk;
  }
  const RegistryEntry& entry = all.at(name);
  print(json ? entry_json(entry) + "\n" : entry_text(entry));
  return kOk;
}

int ModelsCommand::validate() const {
  const Registry all = open();
  std::vector<std::string> problems;
  for (const RegistryEntry& e : all.entries()) {
    if (exists(e)) continue;
    problems.push_back(fmt::format("{}: {}: there is no model file '{}'", e.place, e.name, e.file.string()));
    note("error: " + problems.back());
  }
  print(json ? fmt::format("{{\"registry\":{},\"models\":{},\"problems\":{}}}\n", json_string(all.file().string()),
                           all.entries().size(), json_list(problems))
             : fmt::format("{}: {}, {} missing\n", all.file().string(),
                           counted(static_cast<std::int64_t>(all.entries().size()), "model"), problems.size()));
  return problems.empty() ? kOk : kFailed;
}

// Checks that the entry's inputs are inputs of the model at `path`.
void ModelsCommand::check_inputs(const RegistryEntry& entry) const {
  std::vector<std::string> known;
  for (const ValueSpec& s : model_inputs(project::resolve(path).source)) known.push_back(s.name);
  for (const RegistryInput& input : entry.inputs) {
    if (std::find(known.begin(), known.end(), input.name) != known.end()) continue;
    const std::string near = closest(input.name, known);
    throw UsageError(fmt::format("--shape: the model has no input '{}'{}", input.name,
                                 near.empty() ? "; it has: " + join(known) : "; did you mean '" + near + "'?"));
  }
}

RegistryEntry ModelsCommand::entry_for(const fs::path& file) const {
  const bool odd =
      std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) <= 0x20 || c == 0x7F; });
  if (name.empty() || odd)
    throw UsageError(
        fmt::format("'{}': a model's name must have at least one character, and no spaces or control characters", name));
  RegistryEntry entry;
  entry.name = name;
  entry.path = path;
  std::error_code error;
  if (!fs::exists(path, error)) fail(ErrorCode::io, "there is no model file '{}'", path);
  if (!fs::path(path).is_absolute()) {
    const fs::path folder = fs::absolute(file).parent_path();
    if (const fs::path relative = fs::relative(path, folder, error); !error && !relative.empty()) entry.path = relative.string();
  }
  for (const std::string& s : shapes) {
    const auto [input, shape] = split_pair(s, "--shape");
    const bool twice =
        std::any_of(entry.inputs.begin(), entry.inputs.end(), [&, &n = input](const auto& i) { return i.name == n; });
    if (twice) throw UsageError(fmt::format("--shape: the input '{}' is given twice", input));
    entry.inputs.push_back({input, parse_shape(shape, "--shape"), DataType::undefined});
  }
  if (!shapes.empty()) check_inputs(entry);
  if (!dtype.empty()) {
    entry.dtype = parse_data_type(dtype);
    if (entry.dtype == DataType::undefined)
      throw UsageError(fmt::format("--dtype {}: not an element type; expected, for example, float16", dtype));
  }
  if (convert && entry.dtype != DataType::float16 && entry.dtype != DataType::bfloat16) {
    throw UsageError("--convert needs --dtype float16 or bfloat16");
  }
  entry.convert = convert;
  if (warmup >= 0) entry.warmup = warmup;
  if (iterations >= 0) entry.iterations = iterations;
  entry.description = description;
  entry.tags = tags;
  return entry;
}

int ModelsCommand::add() const {
  const fs::path file = Registry::find_file(registry).value_or("models.yaml");
  const RegistryEntry entry = entry_for(file);
  if (dry_run) {
    std::error_code ignored;
    Registry all = fs::exists(file, ignored) ? Registry::open(file) : Registry::create(file);
    all.add(entry);
    print(fmt::format("would add {} to {}\n", name, file.string()));
    return kOk;
  }
  Registry::edit(file, [&](Registry& all) { all.add(entry); });
  note(fmt::format("added {} to {}", name, file.string()));
  return kOk;
}

int ModelsCommand::remove() const {
  const auto found = Registry::find_file(registry);
  const bool listed = found && fs::exists(*found) && Registry::open(*found).find(name) != nullptr;
  if (!listed) {
    const auto pulled = pulled_model_named(name);
    if (!pulled) unknown_model(found);
    return remove_pulled(*pulled);
  }
  const fs::path& file = *found;
  if (dry_run) {
    static_cast<void>(Registry::open(file).at(name));
    print(fmt::format("would remove {} from {}; its files stay\n", name, file.string()));
    return kOk;
  }
  Registry::edit(file, [&](Registry& all) { all.remove(name); });
  note(fmt::format("removed {} from {}; its files stay", name, file.string()));
  return kOk;
}

int ModelsCommand::remove_pulled(const PulledModel& model) const {
  if (dry_run) {
    print(fmt::format("would remove {} and its folder '{}'\n", model.name, model.folder.string()));
    return kOk;
  }
  std::error_code error;
  fs::remove_all(model.folder, error);
  if (error) fail(ErrorCode::io, "cannot remove '{}': {}", model.folder.string(), error.message());
  note(fmt::format("removed {} and its folder '{}'", model.name, model.folder.string()));
  return kOk;
}

using Method = int (ModelsCommand::*)() const;
using Shared = std::shared_ptr<ModelsCommand>;

Command add_sub(const Command& parent, const char* word, const char* help, Method method, const Shared& c, Action& action) {
  const Command sub = parent.add_subcommand(word, help);
  sub->footer(kModelsExamples);
  sub->callback([c, method, &action] { action = [c, method] { return (c.get()->*method)(); }; });
  return sub;
}

Command add_registry(const Command& sub, const Shared& c) {
  sub->add_option("--registry", c->registry, "The registry file")->type_name("FILE");
  return sub;
}

void add_json(const Command& sub, const Shared& c) { sub->add_flag("--json", c->json, "Print JSON"); }
void add_name(const Command& sub, const Shared& c) { sub->add_option("NAME", c->name, "The model's name")->required(); }
void add_dry_run(const Command& sub, const Shared& c) {
  sub->add_flag("--dry-run", c->dry_run, "Print what would be done, and do nothing");
}

// The words of `sdx models` that are commands of their own, too.
void add_list(const Command& parent, const char* help, const Shared& c, Action& action) {
  const Command ls = add_registry(add_sub(parent, "ls", help, &ModelsCommand::list, c, action), c);
  ls->add_option("--tag", c->tag, "Only models with this tag")->type_name("TAG");
  ls->add_flag("--names", c->names, "Print names only, one a line");
  add_json(ls, c);
}

void add_show_one(const Command& parent, const char* help, const Shared& c, Action& action) {
  const Command show = add_registry(add_sub(parent, "show", help, &ModelsCommand::show, c, action), c);
  add_json(show, c);
  add_name(show, c);
}

void add_remove(const Command& parent, const char* help, const Shared& c, Action& action) {
  const Command rm = add_registry(add_sub(parent, "rm", help, &ModelsCommand::remove, c, action), c);
  add_dry_run(rm, c);
  add_name(rm, c);
}

void add_running(const Command& parent, const char* help, const Shared& c, Action& action) {
  const Command ps = add_sub(parent, "ps", help, &ModelsCommand::running, c, action);
  ps->add_option("--endpoint", c->endpoint, "The server's address (http://127.0.0.1:8080)")->type_name("URL");
  add_json(ps, c);
}

void add_entry(const Command& parent, const Shared& c, Action& action) {
  const Command add =
      add_registry(add_sub(parent, "add", "Add an entry; the rest of the file is unchanged", &ModelsCommand::add, c, action), c);
  add_dry_run(add, c);
  add_name(add, c);
  add->add_option("PATH", c->path, "The model file, or a folder with one")->required();
  add->add_option("--tag", c->tags, "Tags, comma-separated")->delimiter(',')->one_word()->type_name("TAG");
  add->add_option("--description", c->description, "A one-line description")->type_name("TEXT");
  add->add_option("--shape", c->shapes, "An input's default shape: input=1x3x224x224")->one_word()->type_name("NAME=SHAPE");
  add->add_option("--dtype", c->dtype, "Element type, for example float16")->type_name("TYPE");
  add->add_flag("--convert", c->convert, "Convert a float32 model to that type when it is used");
  add->add_option("--warmup", c->warmup, "Warm-up runs")->range(0, 100000000)->type_name("N");
  add->add_option("--iterations", c->iterations, "Measured runs")->range(1, 100000000)->type_name("N");
}

}  // namespace

void add_models(const Command& app, Action& action) {
  const Command command =
      app.add_subcommand("models", "Models and their short names: list, show, pull, validate, add, remove, those in use");
  const auto c = std::make_shared<ModelsCommand>();
  command->require_subcommand(1);
  command->footer(kModelsExamples);
  add_list(command, "List the models of the registry and those that were pulled", c, action);
  add_show_one(command, "Show one model", c, action);
  add_json(add_registry(add_sub(command, "validate", "Check the registry file and whether its models exist",
                                &ModelsCommand::validate, c, action),
                        c),
           c);
  add_entry(command, c, action);
  add_remove(command, "Remove an entry but not its files, or a pulled model with its files", c, action);
  add_running(command, "List the models that a running `sdx serve` has loaded", c, action);
  add_pull_flags(command.add_subcommand("pull", "The same as `sdx pull`"), action);
}

void add_ls(const Command& app, Action& action) {
  add_list(app, "List models: the same as `sdx models ls`", std::make_shared<ModelsCommand>(), action);
}
void add_show(const Command& app, Action& action) {
  add_show_one(app, "Show a model: the same as `sdx models show`", std::make_shared<ModelsCommand>(), action);
}
void add_rm(const Command& app, Action& action) {
  add_remove(app, "Remove a model: the same as `sdx models rm`", std::make_shared<ModelsCommand>(), action);
}
void add_ps(const Command& app, Action& action) {
  add_running(app, "List the models in use: the same as `sdx models ps`", std::make_shared<ModelsCommand>(), action);
}

}  // namespace sdx::cli
