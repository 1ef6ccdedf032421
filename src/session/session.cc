#include <sdx/session.hpp>

#include <algorithm>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/stoppable_lock.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "base/thread_pool.h"
#include "onnx/reader.h"
#include "passes/pass.h"
#include "session/additions.h"
#include "session/given/given_inputs.h"
#include "session/observe/measure.h"
#include "session/observe/opened.h"
#include "session/observe/run_profile.h"
#include "session/observe/telemetry.h"
#include "session/observe/trace.h"
#include "session/optimized/optimized_model.h"
#include "session/options/option_table.h"
#include "session/pipeline.h"
#include "session/provider_settings.h"
#include "session/selection.h"
#include "session/service.h"
#include "session/specs.h"
#include "tensor/own.h"

namespace sdx {

using namespace session;

namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

std::size_t output_index(const std::vector<ValueSpec>& outputs, const std::string& name) {
  const auto it = std::find_if(outputs.begin(), outputs.end(), [&](const ValueSpec& s) { return s.name == name; });
  if (it != outputs.end()) return static_cast<std::size_t>(it - outputs.begin());
  const std::vector<std::string> names = names_of(outputs);
  const std::string near = closest(name, names);
  fail(ErrorCode::invalid_argument, "the model has no output '{}'{}. Its outputs: {}", name,
       near.empty() ? "" : "; did you mean '" + near + "'?", join(names));
}

// A value for each output: the tensor that is bound to it, or nothing. Empty where nothing is bound.
std::vector<Value> bound_values(const std::vector<ValueSpec>& outputs, const std::vector<std::pair<std::string, Tensor>>& bound) {
  std::vector<Value> values(bound.empty() ? 0 : outputs.size());
  for (const auto& [name, tensor] : bound) {
    Value& value = values[output_index(outputs, name)];
    if (!value.empty()) fail(ErrorCode::invalid_argument, "output '{}' is bound twice", name);
    if (!tensor.defined() || !tensor.writable()) {
      fail(ErrorCode::invalid_argument, "the tensor bound to output '{}' must be writable, received {}", name,
           tensor.defined() ? "a read-only " + tensor.type_string() : "none");
    }
    value = tensor;
  }
  return values;
}

}  // namespace

const Value* NamedValues::find(std::string_view name) const noexcept {
  for (const NamedValue& item : items_) {
    if (item.name == name) return &item.value;
  }
  return nullptr;
}

const Value& NamedValues::at(std::string_view name) const {
  if (const Value* v = find(name)) return *v;
  std::vector<std::string> names;
  for (const NamedValue& item : items_) names.push_back(item.name);
  fail(ErrorCode::invalid_argument, "no value named '{}'; there are: {}", name, join(names));
}

struct Session::Impl {
  std::shared_ptr<Core> core = std::make_shared<Core>();
  std::string shown;  // the model's name in errors
  Selection selection;
  std::shared_ptr<Service> service;
  std::vector<std::pair<std::string, std::string>> metadata, custom_metadata;
  std::unique_ptr<Telemetry> telemetry;  // null: nobody listens
  double load_ms = 0, init_ms = 0;

  // With select "measured" the first run decides which chain `service` has.
  bool measures = false;
  std::mutex deciding;
  bool undecided = false;  // guarded by `deciding`
  std::filesystem::path decision;

  // Of a model that is to be kept, until it is. Only the thread that opens the session touches it: what compiles in the
  // background, or is left behind there, may outlive the session.
  std::unique_ptr<cache::Recording> recording;
  std::string unused_cache;  // why nothing is kept, or used of what was

  mutable std::mutex mutex;  // guards what follows, and `service` where the session measures
  cache::Decision measurement;
  std::string why;
  std::vector<std::string> warnings;
  std::vector<std::string> option_notes;  // join the warnings once the model's own are known
  bool warned_of_extents = false, warned_of_symbols = false;

  ~Impl() {
    if (service) service->close();
  }

  bool open_compiled();
  void choose();
  void open();
  void keep();
  void describe_interface();
  void warn_of_other_extents(const std::vector<Value>& values);
  void warn_of_two_sizes(const std::vector<Value>& values);
  void warn(std::string text);
  NamedValues run(const NamedValues& given, const RunOptions& run_options);
  std::vector<Value> answer(const Request& request);
  void start();
  void open_measured();
  void decide(const Request& request);
  void serve(std::size_t first, std::shared_ptr<const Engine> ready, cache::Decision found, const std::string& how);
  std::shared_ptr<Service> serving() const;
  std::vector<Value> arrange(const NamedValues& given, std::size_t& which) const;
  Report report() const;
};

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

void Session::Impl::choose() {
  if (!selection.chain.empty()) return;
  option_notes = check_provider_options(core->options);
  if (!core->options.start_on.empty()) canonical_provider(core->options.start_on);  // a misspelt one is an error on any chain
  selection = select_providers(core->options);
  why = selection.why;
}

// Only our own engine.
static bool cpu_alone(const Selection& selection) { return selection.chain.size() == 1 && selection.chain[0]->name() == "cpu"; }

// From the cache, where it has the model. Otherwise notes that it is to have it, if that is asked for.
bool Session::Impl::open_compiled() {
  if (additions() != nullptr) return false;                  // they are no part of what would be kept
  if (!core->options.optimized_model.empty()) return false;  // for which the model has to be read
  const auto place = cache::compiled_place(core->source.path, core->options);
  if (!place || (!core->options.keep_compiled && !cache::has_compiled(*place))) return false;
  unused_cache = cache::compiled_problem(*place);
  if (!unused_cache.empty()) return false;
  core->compiled = cache::CompiledModel::open(*place, core->options.mmap);
  if (core->compiled != nullptr) {
    choose();
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

void Session::Impl::open() {
  const BudgetScope charge(core->budget);
  choose();
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
  const bool as_in_file = prepare(core->model, core->options, core->allow_unknown);
  if (!as_in_file || (core->source.path.empty() && core->source.bytes.empty())) core->source = {};
  describe_interface();
  warnings = core->model.warnings;
  if (!unused_cache.empty()) warnings.push_back("the cache is not used: " + unused_cache);
  start();
  keep();
  write_optimized_model(core->model, core->options);
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

void Session::Impl::open_measured() {
  const std::size_t last = selection.chain.size() - 1;
  if (last == 0) {
    measures = false;
    return serve(0, nullptr, {}, "measured: cpu is the only candidate");
  }
  if (!decision.empty()) {
    if (std::optional<cache::Decision> m = decision_for(decision, selection)) {
      const std::string how = fmt::format("measured on {} with {}: {}", m->when, m->inputs, summary(*m));
      std::size_t first = 0;
      while (selection.chain[first]->name() != m->chosen) ++first;
      return serve(first, nullptr, std::move(*m), how);
    }
  }
  try {
    serve(last, nullptr, {}, "not measured yet: the first run measures " + label_of(selection));
    undecided = true;
  } catch (const Error& e) {
    if (e.code() != ErrorCode::not_implemented) throw;
    serve(0, nullptr, {},
          fmt::format("{}; not measured, because cpu cannot run the whole model: {}", selection.why, e.message()));
  }
}

// From here on the part of the chain from provider number `first` on answers.
void Session::Impl::serve(std::size_t first, std::shared_ptr<const Engine> ready, cache::Decision found, const std::string& how) {
  auto made = std::make_shared<Service>(core, chain_from(selection, first));
  made->open(std::move(ready));
  const std::lock_guard lock(mutex);
  service = std::move(made);
  measurement = std::move(found);
  why = how;
}

// Runs that come while the first one measures wait for it.
void Session::Impl::decide(const Request& request) {
  const std::unique_lock only_one = lock_unless_stopped(deciding, request.stop);
  if (!undecided) return;
  std::shared_ptr<const Engine> winner;
  cache::Decision m = measure_providers(core, selection, request, winner);
  std::size_t first = 0;
  while (selection.chain[first]->name() != m.chosen) ++first;
  std::string kept;
  if (!decision.empty()) {
    try {
      cache::write_decision(decision, m);
      kept = "; remembered in " + decision.string();
    } catch (const Error& e) {
      kept = fmt::format("; not remembered: {}", e.message());
    }
  }
  const std::string how = fmt::format("measured with {}: {}{}", m.inputs, summary(m), kept);
  log::info("{}", how);
  serve(first, std::move(winner), std::move(m), how);
  undecided = false;
}

std::shared_ptr<Service> Session::Impl::serving() const {
  if (!measures) return service;
  const std::lock_guard lock(mutex);
  return service;
}

// The caller holds `mutex`.
void Session::Impl::warn(std::string text) {
  log::warning("{}", text);
  warnings.push_back(std::move(text));
}

// Once per session: a run that the file does not foresee has worked.
void Session::Impl::warn_of_other_extents(const std::vector<Value>& values) {
  const std::vector<ValueSpec>& inputs = core->inputs;
  const std::lock_guard lock(mutex);
  if (std::exchange(warned_of_extents, true)) return;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!values[i].is_tensor() || !check_input(inputs[i], values[i])) continue;
    warn(fmt::format(
        "input '{}' is declared as {} but given as {}: the model runs at this size although its file declares another",
        inputs[i].name, inputs[i].type, values[i].type_string()));
  }
}

// Once per session. Tensors without elements stand for what there is not yet, such as the caches of a decoder's first step.
void Session::Impl::warn_of_two_sizes(const std::vector<Value>& values) {
  const std::lock_guard lock(mutex);
  if (warned_of_symbols) return;
  const std::optional<TwoSizes> sizes = find_two_sizes(core->symbols, values, Empty::skipped);
  if (!sizes) return;
  warned_of_symbols = true;
  warn(describe(*sizes, core->inputs, values) + ": the model runs at these sizes as if each axis had a symbol of its own");
}

// The given values in the order of `inputs`, checked; defaults where nothing is given.
std::vector<Value> Session::Impl::arrange(const NamedValues& given, std::size_t& which) const {
  const std::vector<ValueSpec>& inputs = core->inputs;
  std::vector<Value> values(inputs.size());
  std::vector<bool> present(inputs.size(), false);
  for (const NamedValue& item : given) {
    const auto it = std::find_if(inputs.begin(), inputs.end(), [&](const ValueSpec& s) { return s.name == item.name; });
    if (it == inputs.end()) {
      const std::vector<std::string> names = names_of(inputs);
      const std::string near = closest(item.name, names);
      fail(ErrorCode::invalid_argument, "the model has no input '{}'{}. Its inputs:{}", item.name,
           near.empty() ? "" : "; did you mean '" + near + "'?", describe(inputs));
    }
    const auto i = static_cast<std::size_t>(it - inputs.begin());
    if (present[i]) fail(ErrorCode::invalid_argument, "input '{}' is given twice", item.name);
    present[i] = true;
    values[i] = item.value;
    if (it->has_default) which |= kOverrides;
  }
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!present[i] && inputs[i].has_default) {
      if ((which & kOverrides) == 0) continue;  // then all defaults are constants
      const Graph& graph = core->full_model().graph;
      values[i] = *graph.value(graph.inputs()[i]).constant;
    } else if (!present[i]) {
      if (!core->may_be_absent[i]) missing.push_back("'" + inputs[i].name + "'");
      continue;
    }
    if (check_input(inputs[i], values[i])) which |= kOtherExtents;
  }
  if (!missing.empty()) {
    fail(ErrorCode::invalid_argument, "missing input{} {}. The model takes:{}", missing.size() == 1 ? "" : "s", join(missing),
         describe(inputs));
  }
  // Without extents there are no symbols either.
  if ((which & kOtherExtents) == 0 && find_two_sizes(core->symbols, values)) which |= kOwnSymbols;
  return values;
}

NamedValues Session::Impl::run(const NamedValues& given, const RunOptions& run_options) {
  const std::vector<ValueSpec>& inputs = core->inputs;
  const std::vector<ValueSpec>& outputs = core->outputs;
  std::size_t which = 0;
  std::vector<Value> values = arrange(given, which);
  std::vector<bool> wanted;
  std::vector<std::size_t> order;
  if (!run_options.outputs.empty()) {
    wanted.assign(outputs.size(), false);
    for (const std::string& name : run_options.outputs) {
      order.push_back(output_index(outputs, name));
      wanted[order.back()] = true;
    }
  } else {
    for (std::size_t i = 0; i < outputs.size(); ++i) order.push_back(i);
  }

  Request request;
  request.values = std::move(values);
  request.which = which;
  request.wanted = std::move(wanted);
  request.bound = bound_values(outputs, run_options.bound);
  if (run_options.timeout) request.stop.deadline = Clock::now() + *run_options.timeout;
  if (run_options.cancel) request.stop.cancelled = run_options.cancel->flag();
  request.number = core->runs.fetch_add(1, std::memory_order_relaxed);
  request.profiler = run_profiler();
  std::vector<Value> results;
  try {
    results = answer(request);
  } catch (Error& e) {
    e.add_context("in model '" + shown + "'");
    // Only then is the size to blame; a deadline, say, has nothing to do with it.
    const bool unfit =
        e.code() == ErrorCode::invalid_model || e.code() == ErrorCode::runtime_failure || e.code() == ErrorCode::invalid_argument;
    if ((which & (kOtherExtents | kOwnSymbols)) == 0 || !unfit) throw;
    const std::string sizes = (which & kOtherExtents) != 0
                                  ? describe_other_extents(inputs, request.values)
                                  : describe(*find_two_sizes(core->symbols, request.values), inputs, request.values);
    fail(ErrorCode::invalid_argument, "{}. The model does not work at this size: {}", sizes, e.what());
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "the machine ran out of memory during a run");
  }
  if ((which & kOtherExtents) != 0) warn_of_other_extents(request.values);
  if ((which & kOwnSymbols) != 0) warn_of_two_sizes(request.values);
  std::vector<Value> own(request.bound.size());  // the caller's memory, perhaps on purpose where an input lies
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (request.bound[i].is_tensor()) own[i] = std::exchange(results[i], Value());
  }
  unshare(results, request.values);
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (request.bound[i].is_tensor()) results[i] = std::move(own[i]);
  }
  NamedValues out;
  for (const std::size_t i : order) out.add(outputs[i].name, results[i]);
  return out;
}

// The service's answer, and a line of telemetry about it.
std::vector<Value> Session::Impl::answer(const Request& request) {
  if (measures) decide(request);
  const std::shared_ptr<Service> now = serving();
  if (!telemetry) return now->run(request);
  const auto start = Clock::now();
  std::shared_ptr<const Engine> by;
  const auto tell = [&](std::string_view status) {
    if (!by) by = now->current();
    telemetry->run({by ? by->runtime() : "", by ? by->providers() : "", core->model.path}, ms_since(start), status);
  };
  try {
    std::vector<Value> results = now->run(request, &by);
    tell("ok");
    return results;
  } catch (const Error& e) {
    tell(name(e.code()));
    throw;
  }
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

namespace {

// Null: the process's own.
std::shared_ptr<ThreadPool> pool_of(const SessionOptions& options) {
  if (std::shared_ptr<ThreadPool> given = given_pool()) return given;
  if (options.thread_affinity.empty() && options.threads <= 0) return nullptr;
  const std::vector<int> cores = options.thread_affinity.empty() ? std::vector<int>() : parse_cores(options.thread_affinity);
  return std::make_shared<ThreadPool>(options.threads, cores);
}

template <class Read, class Impl>
void load(Impl& impl, const SessionOptions& options, const std::string& shown, Read&& read) {
  const auto start = Clock::now();
  check_options(options);
  Core& core = *impl.core;
  core.options = options;
  impl.shown = shown;
  core.budget = std::make_shared<MemoryBudget>(options.memory_limit);
  if (options.memory_limit == 0) core.keep = std::make_shared<BlockKeep>();
  core.pool = pool_of(options);
  if (options.profile) core.profiler = std::make_unique<plan::Profiler>();
  try {
    if (impl.open_compiled()) {
      impl.init_ms = ms_since(start);
      log_opened(shown, [&] { return impl.report(); });
      return;
    }
    {
      const BudgetScope charge(core.budget);
      core.model = read();
    }
    impl.load_ms = ms_since(start);
    const auto init = Clock::now();
    impl.open();
    impl.init_ms = ms_since(init);
    log_opened(shown, [&] { return impl.report(); });
  } catch (Error& e) {
    std::string line = "in model '" + shown + "'";  // the reader adds it as well, for those who call it alone
    if (std::find(e.context().begin(), e.context().end(), line) == e.context().end()) e.add_context(std::move(line));
    throw;
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "the machine ran out of memory while loading '{}'", shown);
  }
}

}  // namespace

Session Session::open(const std::filesystem::path& path, const SessionOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->core->source.path = path;
  load(*impl, options, path.string(), [&] { return read_model(path, MappedFile::copied(options.mmap)); });
  return Session(std::move(impl));
}

Session Session::from_bytes(std::span<const std::byte> bytes, const SessionOptions& options,
                            const std::filesystem::path& folder) {
  auto impl = std::make_unique<Impl>();
  load(*impl, options, "(memory)", [&] {
    if (Additions* const given = additions(); given != nullptr && given->model) return *std::exchange(given->model, std::nullopt);
    if (bytes.empty()) fail(ErrorCode::invalid_argument, "the model is empty: it has no bytes");
    const auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    impl->core->source.owner = copy;
    impl->core->source.bytes = *copy;
    impl->core->source.folder = folder;
    return read_model(std::span<const std::byte>(*copy), copy, folder, MappedFile::copied(options.mmap));
  });
  return Session(std::move(impl));
}

const std::vector<ValueSpec>& Session::inputs() const { return impl_->core->inputs; }
const std::vector<ValueSpec>& Session::outputs() const { return impl_->core->outputs; }
const std::vector<std::pair<std::string, std::string>>& Session::metadata() const { return impl_->metadata; }
const std::vector<std::pair<std::string, std::string>>& Session::custom_metadata() const { return impl_->custom_metadata; }

NamedValues Session::run(const NamedValues& inputs, const RunOptions& options) const { return impl_->run(inputs, options); }

Report Session::Impl::report() const {
  Report r;
  r.model = core->model.path;
  {
    const std::lock_guard lock(mutex);
    r.warnings = warnings;
    r.why = why;
    r.measured = measurement.candidates;
  }
  r.fallbacks = selection.fallbacks;
  r.load_ms = load_ms;
  r.init_ms = init_ms;
  r.peak_bytes = core->budget->peak();
  const std::shared_ptr<Service> now = serving();
  const std::shared_ptr<const Engine> engine = now->current();
  append_steps(engine->program(), "", r);
  if (engine->from_compiled()) r.compiled = core->compiled->path().string();
  r.runtime = engine->runtime();
  now->describe(r);
  return r;
}

Report Session::report() const { return impl_->report(); }

std::vector<ProfileEvent> Session::profile() const {
  const plan::Profiler* profiler = impl_->core->profiler.get();
  return profiler != nullptr ? profiler->events() : std::vector<ProfileEvent>{};
}

void Session::write_trace(const std::filesystem::path& path) const { write_chrome_trace(path, profile()); }

std::string Session::dump(std::string_view stage) const {
  if (stage == "loaded") return impl_->core->full_model().graph.dump();
  const std::shared_ptr<const Engine> engine = impl_->serving()->current();
  if (stage == "simplified") return engine->program().graph().dump();
  if (stage == "claimed") return dump_claims(engine->program().graph(), engine->selection());
  if (stage == "planned") return engine->program().dump();
  fail(ErrorCode::invalid_argument, "unknown stage '{}'; stages: loaded, simplified, claimed, planned", stage);
}

}  // namespace sdx
