// Opens a session from a file or bytes.

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
  const Model& model = context->model;
  const Graph& g = model.graph;
  context->inputs = input_specs(g);
  for (const ValueId v : g.inputs()) context->may_be_absent.push_back(g.value(v).declared.kind == Type::Kind::optional);
  for (std::size_t i = 0; i < g.outputs().size(); ++i) {
    const ValueInfo& info = g.value(g.outputs()[i]);
    Type type = info.type.known() ? info.type : info.declared;
    // The file may declare a rank that inference does not know.
    if (type.is_tensor() && !type.shape && info.declared.is_tensor()) type.shape = info.declared.shape;
    context->outputs.push_back(spec_of(g.output_names()[i], type));
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

void Session::Impl::choose(const InternalOptions& internal) {
  if (!selection.chain.empty()) return;
  option_notes = check_provider_options(context->options);
  if (!context->options.start_on.empty())
    canonical_provider(context->options.start_on);  // a misspelt one is an error on any chain
  selection = select_providers(context->options, internal.fallbacks_told_elsewhere);
  why = selection.why;
}

// Only our own engine.
static bool cpu_alone(const Selection& selection) { return selection.chain.size() == 1 && selection.chain[0]->name() == "cpu"; }

// Opens the model from the cache if it is there. Otherwise prepares to keep it, if the options ask for that.
bool Session::Impl::open_compiled(const InternalOptions& internal) {
  if (internal.change_the_model()) return false;                // which would be missing in the kept file
  if (!context->options.optimized_model.empty()) return false;  // for which the model has to be read
  const auto place = cache::compiled_place(context->source.path, context->options);
  if (!place || (!context->options.keep_compiled && !cache::has_compiled(*place))) return false;
  unused_cache = cache::compiled_problem(*place);
  if (!unused_cache.empty()) return false;
  context->compiled = cache::CompiledModel::open(*place, context->options.mmap);
  if (context->compiled != nullptr) {
    choose(internal);
    if (!cpu_alone(selection)) context->compiled = nullptr;
  } else {  // a stale or damaged one is replaced
    recording = cache::start_recording(*place);
  }
  if (context->compiled == nullptr) return false;
  const BudgetScope charge(context->budget);
  context->model.path = context->source.path.string();
  const cache::ModelInterface& interface = context->compiled->interface();
  context->inputs = interface.inputs;
  context->outputs = interface.outputs;
  context->may_be_absent = interface.may_be_absent;
  metadata = interface.metadata;
  custom_metadata = interface.custom_metadata;
  warnings = interface.warnings;
  start();
  return true;
}

// Keeps the compiled model for the next start.
void Session::Impl::keep() {
  if (recording == nullptr) return;
  cache::write_compiled(*recording, {context->inputs, context->outputs, context->may_be_absent, metadata, custom_metadata,
                                     context->model.warnings});
  recording.reset();
}

void Session::Impl::open(const InternalOptions& internal) {
  const BudgetScope charge(context->budget);
  choose(internal);
  if (recording != nullptr && !cpu_alone(selection)) {
    log::emit(context->options.keep_compiled ? log::Level::warning : log::Level::info,
              "'{}' is not kept as compiled: cpu is not its only provider", shown);
    recording.reset();
  }
  measures = context->options.select == Select::measured;
  if (measures) selection = with_more_candidates(std::move(selection), context->options);
  context->allow_unknown = compiles_regions(selection);
  if (context->options.reject_nan) context->reject_nan = std::make_shared<std::atomic<bool>>(true);
  // Before the source may be dropped.
  if (measures && context->options.cache && selection.chain.size() > 1) decision = decision_file(*context, selection);
  const bool as_in_file = prepare(context->model, context->options, context->allow_unknown, internal);
  const bool given_files = internal.data != nullptr && !internal.data->files.empty();
  if (!as_in_file || given_files || (context->source.path.empty() && context->source.bytes.empty())) context->source = {};
  describe_interface();
  warnings = context->model.warnings;
  if (!unused_cache.empty()) warnings.push_back("the cache is not used: " + unused_cache);
  start();
  keep();
  write_optimized_model(context->model, context->options, internal);
}

// Called when interface and selection are known.
void Session::Impl::start() {
  for (std::size_t i = 0; i < context->inputs.size(); ++i) {
    if (!context->inputs[i].has_default) context->plain_inputs.push_back(i);
  }
  context->symbols = shared_symbols(context->inputs);
  warnings.insert(warnings.end(), option_notes.begin(), option_notes.end());
  telemetry = Telemetry::open(context->options.telemetry);
  if (measures) return open_measured();
  failover = std::make_shared<Failover>(context, selection);
  failover->open(recording == nullptr ? nullptr
                                      : std::make_shared<const CompiledChain>(context, selection, nullptr, recording.get()));
}

namespace {

// Null: the process's own.
std::shared_ptr<ThreadPool> pool_of(const SessionOptions& options, const InternalOptions& internal) {
  if (internal.pool != nullptr) return internal.pool;
  if (options.thread_affinity.empty() && options.threads <= 0) return nullptr;
  const std::vector<int> cores = options.thread_affinity.empty() ? std::vector<int>() : parse_cores(options.thread_affinity);
  return std::make_shared<ThreadPool>(options.threads, cores);
}

}  // namespace

Model Session::Impl::read(Source& source, const InternalOptions& internal) {
  const std::size_t copied = MappedFile::copied(context->options.mmap);
  if (const auto* path = std::get_if<std::filesystem::path>(&source)) return read_model(*path, copied, internal.data);
  if (auto* model = std::get_if<Model>(&source)) return std::move(*model);
  const auto& [bytes, folder] = std::get<ModelBytes>(source);
  if (bytes.empty()) fail(ErrorCode::invalid_argument, "the model is empty: it has no bytes");
  const auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  context->source.owner = copy;
  context->source.bytes = *copy;
  context->source.folder = folder;
  return read_model(std::span<const std::byte>(*copy), copy, folder, copied, internal.data);
}

void Session::Impl::load(Source& source, const SessionOptions& options, const InternalOptions& internal) {
  const auto start = std::chrono::steady_clock::now();
  check_options(options);
  context->options = options;
  const auto* path = std::get_if<std::filesystem::path>(&source);
  if (path != nullptr) context->source.path = *path;
  shown = path != nullptr ? path->string() : "(memory)";
  context->budget = std::make_shared<MemoryBudget>(options.memory_limit);
  if (options.memory_limit == 0) context->keep = std::make_shared<BlockKeep>();
  context->pool = pool_of(options, internal);
  if (options.profile) context->profiler = std::make_unique<plan::Profiler>();
  try {
    if (open_compiled(internal)) {
      init_ms = ms_since(start);
      log_opened(shown, [&] { return report(); });
      return;
    }
    {
      const BudgetScope charge(context->budget);
      context->model = read(source, internal);
    }
    load_ms = ms_since(start);
    const auto init = std::chrono::steady_clock::now();
    open(internal);
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
