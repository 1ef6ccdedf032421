#include "cli/bench/bench_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/counted.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/text/json_text.h"
#include "cli/command.h"
#include "inputs/input_plan.h"
#include "session/selection.h"

namespace sdx::cli {
namespace {

// The providers that a backend's name stands for on this machine.
struct Backend {
  std::string name, chain, problem;  // problem: why it cannot be used
};

Backend look_at(const std::string& name, const BenchOptions& o) {
  Backend b{name.empty() ? "auto" : name, "", ""};
  SessionOptions session = o.session;
  if (!name.empty()) session.providers = split_list(name);
  if (o.resolve) o.resolve(session);
  try {
    b.chain = session::label_of(session::select_providers(session));
  } catch (const Error& e) {
    if (e.code() != ErrorCode::provider_unavailable) throw;
    b.problem = session::without_strict(e.message(), ". --fallback warn measures the next provider");
  }
  return b;
}

struct Plan {
  std::vector<Backend> backends;
  std::vector<int> threads;
  std::vector<inputs::InputPlan> batches;

  std::size_t combinations() const { return backends.size() * threads.size() * batches.size(); }
};

Plan plan_of(const BenchSetup& setup) {
  const BenchOptions& o = setup.options;
  Plan plan;
  for (const std::string& b : o.backends.empty() ? std::vector<std::string>{""} : o.backends) {
    plan.backends.push_back(look_at(b, o));
  }
  plan.threads = o.threads.empty() ? std::vector<int>{o.session.threads} : o.threads;
  for (const std::int64_t b : o.batch_sizes.empty() ? std::vector<std::int64_t>{0} : o.batch_sizes) {
    plan.batches.push_back(inputs::plan_inputs(setup.specs, {o.inputs, o.shapes, o.session.dimensions, b}));
  }
  return plan;
}

std::string load_text(const BenchOptions& o) {
  std::string out = o.duration_s > 0 ? fmt::format("for {:g} s", o.duration_s) : fmt::format("{} measured", o.runs);
  out += fmt::format(", {} to warm up each process", o.warmup);
  if (o.clients > 1) out += fmt::format(", {} clients", o.clients);
  if (o.rate > 0) out += fmt::format(", {:g} a second", o.rate);
  if (o.rounds > 0) out += fmt::format(", {} rounds", o.rounds);
  if (o.profile) out += ", and further ones with a profile";
  return out;
}

std::string processes_text(const BenchOptions& o) {
  if (!o.isolate) return "this one";
  // Each needs a round, and a round a run.
  const int most = o.rounds > 0 ? o.rounds : o.duration_s > 0 ? o.processes : o.runs;
  if (o.processes > 0) return fmt::format("{} for each combination", std::min(o.processes, most));
  return fmt::format("up to {} for each combination", kMostProcesses);
}

}  // namespace

std::string bench_plan_text(const BenchSetup& setup, const std::vector<std::string>& files) {
  const BenchOptions& o = setup.options;
  const Plan plan = plan_of(setup);
  const auto line = [](const char* what, const std::string& text) { return fmt::format("  {:<12} {}\n", what, text); };
  std::string out = fmt::format("would measure {} in {}\n", setup.shown, counted(plan.combinations(), "combination"));
  for (const inputs::PlannedInput& i : plan.batches.front().inputs) {
    out += line("input", fmt::format("{}: {}[{}]", i.name, i.type, fmt::join(i.shape, ",")));
  }
  for (const Backend& b : plan.backends) {
    const std::string chain = b.chain == b.name ? "" : ": " + b.chain;
    out += line("backend", b.name + (b.problem.empty() ? chain : ": no figures: " + b.problem));
  }
  std::vector<std::string> threads, batches;
  for (const int t : plan.threads) threads.push_back(t == 0 ? "auto" : fmt::format("{}", t));
  for (const inputs::InputPlan& p : plan.batches) batches.push_back(fmt::format("{}", p.batch));
  out += line("threads", join(threads));
  out += line("batch sizes", join(batches));
  out += line("runs", load_text(o));
  out += line("processes", processes_text(o));
  for (const std::string& f : files) out += line("would write", f);
  return out;
}

std::string bench_plan_json(const BenchSetup& setup, const std::vector<std::string>& files) {
  const BenchOptions& o = setup.options;
  const Plan plan = plan_of(setup);
  std::vector<std::string> inputs, combinations;
  for (const inputs::PlannedInput& i : plan.batches.front().inputs) {
    inputs.push_back(fmt::format("{{\"name\":{},\"dtype\":{},\"shape\":[{}]}}", json_string(i.name), json_string(i.type),
                                 fmt::join(i.shape, ",")));
  }
  for (const inputs::InputPlan& p : plan.batches) {
    for (const int t : plan.threads) {
      for (const Backend& b : plan.backends) {
        combinations.push_back(fmt::format("{{\"backend\":{},\"threads\":{},\"batch_size\":{},\"provider\":{},\"error\":{}}}",
                                           json_string(b.name), t, p.batch, json_string(b.chain), json_string(b.problem)));
      }
    }
  }
  return fmt::format(
      "{{\"dry_run\":true,\"model\":{},\"inputs\":[{}],\"combinations\":[{}],\"warmup\":{},\"runs\":{},\"duration_s\":{},"
      "\"clients\":{},\"rate\":{},\"rounds\":{},\"processes\":{},\"isolate\":{},\"interleave\":{},\"profile\":{},\"files\":{}}}"
      "\n",
      json_string(setup.shown), fmt::join(inputs, ","), fmt::join(combinations, ","), o.warmup, o.duration_s > 0 ? 0 : o.runs,
      o.duration_s, o.clients, o.rate, o.rounds, o.processes, o.isolate, o.interleave, o.profile, json_list(files));
}

}  // namespace sdx::cli
