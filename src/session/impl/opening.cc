// From a file or bytes to a session that answers.

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/system/mapped_file.h"
#include "base/thread_pool.h"
#include "onnx/reader.h"
#include "session/impl/impl.h"
#include "session/observe/measure.h"
#include "session/observe/opened.h"
#include "session/optimized/optimized_model.h"
#include "session/options/option_table.h"
#include "session/pipeline.h"
#include "session/provider_settings.h"
#include "session/specs.h"

namespace sdx {

using namespace session;

void Session::Impl::describe_interface() {
  const Model& model = core->model;
  const Graph& g = model.graph;
  core->inputs = input_specs(g);
  for (const ValueId v : g.inputs()) core->may_be_absent.push_back(g.value(v).declared.kind == Type::Kind::optional);
  for (std::size_t i = 0; i < g.outputs().size(); ++i) {
    const ValueInfo& info = g.value(g.outputs()[i]);
    Type type = info.type.known() ? info.type : info.declared;
    // Where inference knows no rank, the file may.
    if (type.is_tensor() && !type.shape && info.declared.is_tensor()) type.shape = info.declared.shape;
    core->outputs.push_back(spec_of(g.output_names()[i], type));
  }
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) metadata.emplace_back(key, value);
  };
  add("producer_name", model.producer_name);
  add("producer_version", model.producer_version);
  add("domain", model.domain);
  add("description", model.doc);
  if (model.model_version != 0) add("model_version", std::to_string(model.model_version));
  custom_metadata = model.metadata;
}

void Session::Impl::choose(const Extras& extras) {
  if (!selection.chain.empty()) return;
  option_notes = check_provider_options(core->options);
  if (!core->options.start_on.empty()) canonical_provider(core->options.start_on);  // a misspelt one is an error on any chain
  selection = select_providers(core->options, extras.fallbacks_told_elsewhere);
  why = selection.why;
}

// Only our own engine.
static bool cpu_alone(const Selection& selection) { return selection.chain.size() == 1 && selection.chain[0]->name() == "cpu"; }

// From the cache, where it has the model. Otherwise notes that it is to have it, if that is asked for.
bool Session::Impl::open_compiled(const Extras& extras) {
  if (extras.change_the_model()) return false;               // which is no part of what would be kept
  if (!core->options.optimized_model.empty()) return false;  // for which the model has to be read
  const auto place = cache::compiled_place(core->source.path, core->options);
  if (!place || (!core->options.keep_compiled && !cache::has_compiled(*place))) return false;
  unused_cache = cache::compiled_problem(*place);
  if (!unused_cache.empty()) return false;
  core->compiled = cache::CompiledModel::open(*place, core->options.mmap);
  if (core->compiled != nullptr) {
    choose(extras);
    if (!cpu_alone(selection)) core->compiled = nullptr;
  } else {  // a stale or damaged one is replaced
    recording = cache::start_recording(*place);
  }
  if (core->compiled == nullptr) return false;
  const BudgetScope charge(core->budget);
  core->model.path = core->source.path.string();
  const cache::ModelInterface& interface = core->compiled->interface();
  core->inputs = interface.inputs;
  core->outputs = interface.outputs;
  core->may_be_absent = interface.may_be_absent;
  metadata = interface.metadata;
  custom_metadata = interface.custom_metadata;
  warnings = interface.warnings;
  start();
  return true;
}

// For the next start.
void Session::Impl::keep() {
  if (recording == nullptr) return;
  cache::write_compiled(*recording,
                        {core->inputs, core->outputs, core->may_be_absent, metadata, custom_metadata, core->model.warnings});
  recording.reset();
}

void Session::Impl::open(const Extras& extras) {
  const BudgetScope charge(core->budget);
  choose(extras);
  if (recording != nullptr && !cpu_alone(selection)) {
    log::emit(core->options.keep_compiled ? log::Level::warning : log::Level::info,
              "'{}' is not kept as compiled: cpu is not its only provider", shown);
    recording.reset();
  }
  measures = core->options.select == Select::measured;
  if (measures) selection = with_more_candidates(std::move(selection), core->options);
  core->allow_unknown = compiles_regions(selection);
  if (core->options.reject_nan) core->reject_nan = std::make_shared<std::atomic<bool>>(true);
  // Before the source may be dropped.
  if (measures && core->options.cache && selection.chain.size() > 1) decision = decision_file(*core, selection);
  const bool as_in_file = prepare(core->model, core->options, core->allow_unknown, extras);
  const bool given_files = extras.data != nullptr && !extras.data->files.empty();
  if (!as_in_file || given_files || (core->source.path.empty() && core->source.bytes.empty())) core->source = {};
  describe_interface();
  warnings = core->model.warnings;
  if (!unused_cache.empty()) warnings.push_back("the cache is not used: " + unused_cache);
  start();
  keep();
  write_optimized_model(core->model, core->options, extras);
}

// With interface and selection known.
void Session::Impl::start() {
  for (std::size_t i = 0; i < core->inputs.size(); ++i) {
    if (!core->inputs[i].has_default) core->plain_inputs.push_back(i);
  }
  core->symbols = shared_symbols(core->inputs);
  warnings.insert(warnings.end(), option_notes.begin(), option_notes.end());
  telemetry = Telemetry::open(core->options.telemetry);
  if (measures) return open_measured();
  service = std::make_shared<Service>(core, selection);
  service->open(recording == nullptr ? nullptr : std::make_shared<const Engine>(core, selection, nullptr, recording.get()));
}

namespace {

// Null: the process's own.
std::shared_ptr<ThreadPool> pool_of(const SessionOptions& options, const Extras& extras) {
  if (extras.pool != nullptr) return extras.pool;
  if (options.thread_affinity.empty() && options.threads <= 0) return nullptr;
  const std::vector<int> cores = options.thread_affinity.empty() ? std::vector<int>() : parse_cores(options.thread_affinity);
  return std::make_shared<ThreadPool>(options.threads, cores);
}

}  // namespace

Model Session::Impl::read(Source& source, const Extras& extras) {
  const std::size_t copied = MappedFile::copied(core->options.mmap);
  if (const auto* path = std::get_if<std::filesystem::path>(&source)) return read_model(*path, copied, extras.data);
  if (auto* model = std::get_if<Model>(&source)) return std::move(*model);
  const auto& [bytes, folder] = std::get<ModelBytes>(source);
  if (bytes.empty()) fail(ErrorCode::invalid_argument, "the model is empty: it has no bytes");
  const auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  core->source.owner = copy;
  core->source.bytes = *copy;
  core->source.folder = folder;
  return read_model(std::span<const std::byte>(*copy), copy, folder, copied, extras.data);
}

void Session::Impl::load(Source& source, const SessionOptions& options, const Extras& extras) {
  const auto start = std::chrono::steady_clock::now();
  check_options(options);
  core->options = options;
  const auto* path = std::get_if<std::filesystem::path>(&source);
  if (path != nullptr) core->source.path = *path;
  shown = path != nullptr ? path->string() : "(memory)";
  core->budget = std::make_shared<MemoryBudget>(options.memory_limit);
  if (options.memory_limit == 0) core->keep = std::make_shared<BlockKeep>();
  core->pool = pool_of(options, extras);
  if (options.profile) core->profiler = std::make_unique<plan::Profiler>();
  try {
    if (open_compiled(extras)) {
      init_ms = ms_since(start);
      log_opened(shown, [&] { return report(); });
      return;
    }
    {
      const BudgetScope charge(core->budget);
      core->model = read(source, extras);
    }
    load_ms = ms_since(start);
    const auto init = std::chrono::steady_clock::now();
    open(extras);
    init_ms = ms_since(init);
    log_opened(shown, [&] { return report(); });
  } catch (Error& e) {
    std::string line = "in model '" + shown + "'";  // the reader adds it as well, for those who call it alone
    if (std::find(e.context().begin(), e.context().end(), line) == e.context().end()) e.add_context(std::move(line));
    throw;
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "the machine ran out of memory while loading '{}'", shown);
  }
}

}  // namespace sdx
