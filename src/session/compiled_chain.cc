#include "session/compiled_chain.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/stoppable_lock.h"
#include "base/suggest.h"
#include "base/system/mapped_file.h"
#include "onnx/reader.h"
#include "session/pipeline.h"

namespace sdx::session {
namespace {
std::atomic<std::uint64_t> seed_of_sessions{0x5DEECE66DULL};
}

void set_first_seed(std::uint64_t seed) noexcept { seed_of_sessions = seed; }
std::uint64_t first_seed() noexcept { return seed_of_sessions; }

CompiledChain::CompiledChain(std::shared_ptr<SessionContext> context, Selection chain, const std::function<void(int)>& compiling,
                             cache::Recording* recording)
    : context_(std::move(context)), chain_(std::move(chain)) {
  const BudgetScope charge(context_->budget);
  const PoolScope threads(context_->pool ? *context_->pool : *ThreadPool::shared());
  for (const Provider* p : chain_.chain) names_.emplace_back(p->name());
  variants_[0] = make_variant(0, compiling, failures_, recording);
  std::vector<std::string> running;
  for (const Step& step : variants_[0]->steps()) {
    if (std::find(running.begin(), running.end(), step.provider) == running.end()) running.push_back(step.provider);
  }
  providers_ = join(running, ",");
  runtime_ = runtime_of(running, chain_);
}

const Model& SessionContext::full_model() const {
  if (compiled == nullptr) return model;
  const std::lock_guard lock(reading_);
  if (late_) return *late_;
  if (!compiled->sources_unchanged()) {
    fail(ErrorCode::io, "'{}' has changed since the session was opened; open it again", model.path);
  }
  auto late = std::make_unique<Model>(read_model(std::filesystem::path(model.path), MappedFile::copied(options.mmap)));
  prepare(*late, options, allow_unknown);
  late_ = std::move(late);
  return *late_;
}

namespace {

// Weights are read once more where they still lie in the model's files.
void check_files(const Graph& graph) {
  std::set<std::shared_ptr<const MappedFile>> files;
  const auto add = [&](const Graph& g, const auto& self) -> void {
    for (const ValueInfo& v : g.values()) {
      if (!v.constant || v.constant->dtype() == DataType::string) continue;
      if (auto file = MappedFile::holding(v.constant->data())) files.insert(std::move(file));
    }
    for (const Node& n : g.nodes()) {
      for (const Subgraph& s : n.subgraphs) self(*s.graph, self);
    }
  };
  add(graph, add);
  for (const auto& file : files) file->check_unchanged();
}

void forget_extents(Graph& graph) {
  for (const ValueId v : graph.inputs()) {
    ValueInfo& info = graph.value(v);
    if (info.declared.shape) info.declared.shape->assign(info.declared.shape->size(), Dim::unknown());
  }
}

// Every axis of the inputs that has a symbol gets one of its own.
void separate_symbols(Graph& graph) {
  for (const ValueId v : graph.inputs()) {
    ValueInfo& info = graph.value(v);
    if (!info.declared.shape) continue;
    SymShape& shape = *info.declared.shape;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      if (shape[i].is_symbolic()) shape[i] = Dim::symbol(fmt::format("{}:{}", info.name, i));
    }
  }
}

}  // namespace

std::unique_ptr<plan::Program> CompiledChain::make_variant(std::size_t which, const std::function<void(int)>& compiling,
                                                           std::vector<std::string>& failures,
                                                           cache::Recording* recording) const {
  if (which == 0 && context_->compiled) {
    auto program = load_compiled(*context_->compiled, chain_, context_->options);
    from_compiled_ = program != nullptr;
    if (program) return program;
  }
  const Model& model = context_->full_model();
  check_files(model.graph);
  Graph graph = model.graph;
  if ((which & kOverrides) != 0) {
    for (const ValueId v : graph.inputs()) graph.value(v).constant.reset();
  } else {
    for (std::size_t i = context_->inputs.size(); i-- > 0;) {
      if (context_->inputs[i].has_default) graph.remove_input(i);
    }
  }
  if ((which & kOtherExtents) != 0) forget_extents(graph);
  if ((which & kOwnSymbols) != 0) separate_symbols(graph);
  if (which != 0) check_and_infer(graph, context_->allow_unknown);
  const bool as_in_file = (which & (kOtherExtents | kOwnSymbols)) == 0 && context_->options.dimensions.empty();
  const Origin origin{&model, as_in_file ? &context_->source : nullptr, context_->reject_nan, compiling};
  auto program = compile(std::move(graph), chain_, context_->options, origin, failures, recording);
  check_files(model.graph);  // weights were packed meanwhile
  return program;
}

// A compiler may hang as a kernel may: env.provider tells whose it is, also to runs that wait for it.
const plan::Program& CompiledChain::variant(std::size_t which, plan::RunEnv& env) const {
  if (which == 0) return *variants_[0];
  const auto made = [&] {
    const std::lock_guard lock(mutex_);
    return variants_[which].get();
  };
  if (const plan::Program* program = made()) return *program;
  const std::unique_lock turn = lock_unless_stopped(
      compiling_, env.stop, [&] { env.provider.store(busy_.load(std::memory_order_relaxed), std::memory_order_relaxed); });
  const auto tell = [&](const std::string* provider) {
    busy_.store(provider, std::memory_order_relaxed);
    env.provider.store(provider, std::memory_order_relaxed);
  };
  tell(nullptr);
  if (const plan::Program* program = made()) return *program;
  std::vector<std::string> failures;
  std::unique_ptr<plan::Program> program;
  try {
    program = make_variant(
        which, [&](int i) { tell(i < 0 ? nullptr : &names_[static_cast<std::size_t>(i)]); }, failures);
  } catch (...) {
    tell(nullptr);  // if nothing can compile it, no provider has failed
    throw;
  }
  const std::lock_guard lock(mutex_);
  failures_.insert(failures_.end(), failures.begin(), failures.end());
  variants_[which] = std::move(program);
  return *variants_[which];
}

std::vector<Value> CompiledChain::run(const Request& request, plan::RunEnv& env) const {
  const BudgetScope charge(context_->budget);
  const KeepScope reuse(context_->keep);
  const PoolScope threads(context_->pool ? *context_->pool : *ThreadPool::shared());
  env.profiler = request.profiler != nullptr ? request.profiler.get() : context_->profiler.get();
  env.run = request.number;
  env.seed = &context_->seed;
  const plan::Program& program = variant(request.which, env);
  std::vector<Value> passed;
  if ((request.which & kOverrides) != 0) {
    passed = request.values;
  } else {
    passed.reserve(context_->plain_inputs.size());
    for (const std::size_t i : context_->plain_inputs) passed.push_back(request.values[i]);
  }
  program.check_files();
  std::vector<Value> results = program.run(std::move(passed), env, request.wanted, request.bound);
  program.check_files();  // what was written meanwhile may be in the results
  return results;
}

std::string CompiledChain::label() const { return label_of(chain_); }

bool CompiledChain::runs(const std::string& provider) const {
  const auto& steps = variants_[0]->steps();
  return std::any_of(steps.begin(), steps.end(), [&](const Step& s) { return s.provider == provider; });
}

std::vector<std::string> CompiledChain::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

}  // namespace sdx::session
