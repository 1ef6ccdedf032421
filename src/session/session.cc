#include <sdx/session.hpp>

#include <algorithm>
#include <array>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/suggest.h"
#include "base/thread_pool.h"
#include "onnx/reader.h"
#include "passes/pass.h"
#include "session/pipeline.h"
#include "session/provider_settings.h"
#include "session/selection.h"
#include "session/specs.h"
#include "session/trace.h"

namespace sdx {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) { return std::chrono::duration<double, std::milli>(Clock::now() - start).count(); }

// Files of IR version 3 list every weight as an input with a default: of those the first few must do.
std::string describe(const std::vector<ValueSpec>& specs) {
  constexpr std::size_t kDefaultsShown = 4;
  std::string out;
  std::size_t defaults = 0;
  for (const ValueSpec& s : specs) {
    if (s.has_default && ++defaults > kDefaultsShown) continue;
    out += fmt::format("\n    {}: {}{}", s.name, s.type, s.has_default ? " (optional, has a default)" : "");
  }
  if (defaults > kDefaultsShown) out += fmt::format("\n    and {} more that have a default", defaults - kDefaultsShown);
  return out;
}

std::vector<std::string> names_of(const std::vector<ValueSpec>& specs) {
  std::vector<std::string> names;
  for (const ValueSpec& s : specs) names.push_back(s.name);
  return names;
}

// Throws Error(invalid_argument) unless the value can be input `spec`. Returns whether an extent differs from a fixed one in the
// declaration: such models may run all the same (see Variant).
bool check_input(const ValueSpec& spec, const Value& value) {
  if (!spec.is_tensor) return false;
  if (!value.is_tensor()) {
    fail(ErrorCode::invalid_argument, "input '{}' must be {}, received {}", spec.name, spec.type, value.type_string());
  }
  const Tensor& t = value.tensor();
  const auto mismatch = [&](const std::string& why) {
    fail(ErrorCode::invalid_argument, "input '{}' must be {}, received {}{}", spec.name, spec.type, t.type_string(), why);
  };
  if (spec.dtype != DataType::undefined && t.dtype() != spec.dtype)
    mismatch(": convert the elements to " + std::string(name(spec.dtype)));
  if (!spec.has_shape) return false;
  if (t.rank() != spec.shape.size()) mismatch(fmt::format(": rank {} instead of {}", t.rank(), spec.shape.size()));
  bool deviates = false;
  for (std::size_t i = 0; i < spec.shape.size(); ++i)
    deviates = deviates || (spec.shape[i] >= 0 && spec.shape[i] != t.shape()[i]);
  return deviates;
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
  SessionOptions options;
  Model model;         // prepared; its graph is what the variants below are compiled from
  std::string shown;   // the model's name in errors
  ModelSource source;  // of the model, as providers with a reader of their own take it
  Selection selection;
  std::vector<ValueSpec> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::shared_ptr<MemoryBudget> budget;
  std::shared_ptr<ThreadPool> pool;
  std::unique_ptr<Profiler> profiler;
  double load_ms = 0, init_ms = 0;

  // Programs differ in what they take for granted. variants[0], made at open, treats inputs with defaults as constants and fixed
  // extents as fixed. A run that overrides a default (1), or brings other extents than the file declares (2: many files declare
  // the size they were exported with, and work at others), uses a variant that is compiled when first needed.
  static constexpr std::size_t kOverrides = 1, kOtherExtents = 2;
  std::array<std::unique_ptr<Program>, 4> variants;
  std::vector<std::size_t> plain_inputs;  // index into `inputs` of those without a default
  mutable std::mutex variants_mutex;      // guards variants[1..3], `warnings`, `fallbacks`
  std::vector<std::string> warnings;
  std::vector<std::string> fallbacks;
  bool warned_of_extents = false;

  std::atomic<std::uint64_t> runs{0};
  std::atomic<std::uint64_t> seed{0x5DEECE66DULL};

  void open();
  void describe_interface();
  std::unique_ptr<Program> make_variant(std::size_t which);
  const Program& variant(std::size_t which);
  void warn_of_other_extents(const std::vector<Value>& values);
  NamedValues run(const NamedValues& given, const RunOptions& run_options);
  std::vector<Value> arrange(const NamedValues& given, std::size_t& which) const;
};

void Session::Impl::describe_interface() {
  const Graph& g = model.graph;
  inputs = input_specs(g);
  for (std::size_t i = 0; i < g.outputs().size(); ++i) {
    const ValueInfo& info = g.value(g.outputs()[i]);
    outputs.push_back(spec_of(g.output_names()[i], info.type.known() ? info.type : info.declared));
  }
  const auto add = [&](const char* key, const std::string& value) {
    if (!value.empty()) metadata.emplace_back(key, value);
  };
  add("producer_name", model.producer_name);
  add("producer_version", model.producer_version);
  add("domain", model.domain);
  add("description", model.doc);
  if (model.model_version != 0) add("model_version", std::to_string(model.model_version));
  metadata.insert(metadata.end(), model.metadata.begin(), model.metadata.end());
}

void Session::Impl::open() {
  const BudgetScope charge(budget);
  check_provider_options(options);
  selection = select_providers(options);
  if (!prepare(model, options, compiles_regions(selection))) source = {};
  describe_interface();
  warnings = model.warnings;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].has_default) plain_inputs.push_back(i);
  }
  variants[0] = make_variant(0);
}

// The caller holds variants_mutex, or is alone.
std::unique_ptr<Program> Session::Impl::make_variant(std::size_t which) {
  Graph graph = model.graph;
  if ((which & kOverrides) != 0) {
    for (const ValueId v : graph.inputs()) graph.value(v).constant.reset();
  } else {
    for (std::size_t i = inputs.size(); i-- > 0;) {
      if (inputs[i].has_default) graph.remove_input(i);
    }
  }
  if ((which & kOtherExtents) != 0) {
    for (const ValueId v : graph.inputs()) {
      ValueInfo& info = graph.value(v);
      if (info.declared.shape) info.declared.shape->assign(info.declared.shape->size(), Dim::unknown());
    }
  }
  if (which != 0) check_and_infer(graph, compiles_regions(selection));
  const bool as_in_file = (which & kOtherExtents) == 0 && options.dimensions.empty();
  return compile(std::move(graph), selection, options, {&model, as_in_file ? &source : nullptr}, fallbacks);
}

const Program& Session::Impl::variant(std::size_t which) {
  if (which == 0) return *variants[0];
  const std::lock_guard lock(variants_mutex);
  if (!variants[which]) variants[which] = make_variant(which);
  return *variants[which];
}

// Once per session: a run that the file does not foresee has worked.
void Session::Impl::warn_of_other_extents(const std::vector<Value>& values) {
  const std::lock_guard lock(variants_mutex);
  if (std::exchange(warned_of_extents, true)) return;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!values[i].is_tensor() || !check_input(inputs[i], values[i])) continue;
    warnings.push_back(fmt::format(
        "input '{}' is declared as {} but given as {}: the model runs at this size although its file does not foresee it",
        inputs[i].name, inputs[i].type, values[i].type_string()));
    log::warning("{}", warnings.back());
  }
}

// The given values in the order of `inputs`, checked; defaults where nothing is given.
std::vector<Value> Session::Impl::arrange(const NamedValues& given, std::size_t& which) const {
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
    const ValueInfo& info = model.graph.value(model.graph.inputs()[i]);
    if (present[i]) {
      if (check_input(inputs[i], values[i])) which |= kOtherExtents;
    } else if (inputs[i].has_default) {
      values[i] = *info.constant;
    } else if (info.declared.kind != Type::Kind::optional) {
      missing.push_back("'" + inputs[i].name + "'");
    }
  }
  if (!missing.empty()) {
    fail(ErrorCode::invalid_argument, "missing input{} {}. The model takes:{}", missing.size() == 1 ? "" : "s", join(missing),
         describe(inputs));
  }
  return values;
}

NamedValues Session::Impl::run(const NamedValues& given, const RunOptions& run_options) {
  std::size_t which = 0;
  std::vector<Value> values = arrange(given, which);
  std::vector<bool> wanted;
  std::vector<std::size_t> order;
  if (!run_options.outputs.empty()) {
    wanted.assign(outputs.size(), false);
    for (const std::string& name : run_options.outputs) {
      const auto it = std::find_if(outputs.begin(), outputs.end(), [&](const ValueSpec& s) { return s.name == name; });
      if (it == outputs.end()) {
        const std::vector<std::string> names = names_of(outputs);
        const std::string near = closest(name, names);
        fail(ErrorCode::invalid_argument, "the model has no output '{}'{}. Its outputs: {}", name,
             near.empty() ? "" : "; did you mean '" + near + "'?", join(names));
      }
      order.push_back(static_cast<std::size_t>(it - outputs.begin()));
      wanted[order.back()] = true;
    }
  } else {
    for (std::size_t i = 0; i < outputs.size(); ++i) order.push_back(i);
  }

  const BudgetScope charge(budget);
  const PoolScope threads(pool ? *pool : *ThreadPool::shared());
  RunEnv env;
  if (run_options.timeout) env.stop.deadline = Clock::now() + *run_options.timeout;
  if (run_options.cancel) env.stop.cancelled = run_options.cancel->flag();
  env.profiler = profiler.get();
  env.run = runs.fetch_add(1, std::memory_order_relaxed);
  env.seed = &seed;
  std::vector<Value> results;
  try {
    const Program& program = variant(which);
    std::vector<Value> passed;
    if ((which & kOverrides) != 0) {
      passed = values;
    } else {
      for (const std::size_t i : plain_inputs) passed.push_back(values[i]);
    }
    results = program.run(std::move(passed), env, wanted);
  } catch (Error& e) {
    e.add_context("in model '" + shown + "'");
    // Only then is the size to blame; a deadline, say, has nothing to do with it.
    const bool unfit =
        e.code() == ErrorCode::invalid_model || e.code() == ErrorCode::runtime_failure || e.code() == ErrorCode::invalid_argument;
    if ((which & kOtherExtents) == 0 || !unfit) throw;
    std::string sizes;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!values[i].is_tensor() || !check_input(inputs[i], values[i])) continue;
      sizes += fmt::format("{}input '{}' must be {}, received {}", sizes.empty() ? "" : "; ", inputs[i].name, inputs[i].type,
                           values[i].type_string());
    }
    fail(ErrorCode::invalid_argument, "{}. The model does not work at this size: {}", sizes, e.what());
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::out_of_memory, "the machine ran out of memory during a run");
  }
  if ((which & kOtherExtents) != 0) warn_of_other_extents(values);
  // Kernels may hand on an input, a constant, or one tensor as two outputs; what the caller gets, nobody else sees.
  for (Value& v : results) {
    if (v.is_tensor() && v.tensor().owner().use_count() != 1) v = v.tensor().clone();
  }
  NamedValues out;
  for (const std::size_t i : order) out.add(outputs[i].name, results[i]);
  return out;
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

namespace {

template <class Read, class Impl>
void load(Impl& impl, const SessionOptions& options, const std::string& shown, Read&& read) {
  const auto start = Clock::now();
  impl.options = options;
  impl.shown = shown;
  impl.budget = std::make_shared<MemoryBudget>(options.memory_limit);
  if (options.threads > 0) impl.pool = std::make_shared<ThreadPool>(options.threads);
  if (options.profile) impl.profiler = std::make_unique<Profiler>();
  try {
    {
      const BudgetScope charge(impl.budget);
      impl.model = read();
    }
    impl.load_ms = ms_since(start);
    const auto init = Clock::now();
    impl.open();
    impl.init_ms = ms_since(init);
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
  impl->source.path = path;
  load(*impl, options, path.string(), [&] { return read_model(path); });
  return Session(std::move(impl));
}

Session Session::from_bytes(std::span<const std::byte> bytes, const SessionOptions& options,
                            const std::filesystem::path& folder) {
  auto impl = std::make_unique<Impl>();
  load(*impl, options, "(memory)", [&] {
    const auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    impl->source.owner = copy;
    impl->source.bytes = *copy;
    impl->source.folder = folder;
    return read_model(std::span<const std::byte>(*copy), copy, folder);
  });
  return Session(std::move(impl));
}

const std::vector<ValueSpec>& Session::inputs() const { return impl_->inputs; }
const std::vector<ValueSpec>& Session::outputs() const { return impl_->outputs; }
const std::vector<std::pair<std::string, std::string>>& Session::metadata() const { return impl_->metadata; }

NamedValues Session::run(const NamedValues& inputs, const RunOptions& options) const { return impl_->run(inputs, options); }

Report Session::report() const {
  Report r;
  r.model = impl_->model.path;
  {
    const std::lock_guard lock(impl_->variants_mutex);
    r.warnings = impl_->warnings;
    r.fallbacks = impl_->selection.fallbacks;
    r.fallbacks.insert(r.fallbacks.end(), impl_->fallbacks.begin(), impl_->fallbacks.end());
  }
  r.load_ms = impl_->load_ms;
  r.init_ms = impl_->init_ms;
  r.peak_bytes = impl_->budget->peak();
  append_steps(*impl_->variants[0], "", r);
  return r;
}

std::vector<ProfileEvent> Session::profile() const {
  return impl_->profiler ? impl_->profiler->events() : std::vector<ProfileEvent>{};
}

void Session::write_trace(const std::filesystem::path& path) const { write_chrome_trace(path, profile()); }

std::string Session::dump(std::string_view stage) const {
  if (stage == "loaded") return impl_->model.graph.dump();
  if (stage == "simplified") return impl_->variants[0]->graph().dump();
  if (stage == "claimed") return dump_claims(impl_->variants[0]->graph(), impl_->selection);
  if (stage == "planned") return impl_->variants[0]->dump();
  fail(ErrorCode::invalid_argument, "unknown stage '{}'; stages: loaded, simplified, claimed, planned", stage);
}

}  // namespace sdx
