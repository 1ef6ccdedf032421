#include "benchmark/profile.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/error.h"
#include "benchmark/statistics.h"
#include "inspect/facts.h"
#include "onnx/reader.h"
#include "passes/pass.h"
#include "session/open.h"
#include "session/pipeline.h"

namespace sdx::benchmark {
namespace {

struct Work {
  double flops = -1, bytes = -1;  // -1: not known
};

double value_bytes(const Graph& g, ValueId v) {
  if (v == kNoValue) return 0;
  const ValueInfo& info = g.value(v);
  if (info.constant) return static_cast<double>(info.constant->bytes());
  if (!info.type.has_static_shape()) return -1;
  double count = 1;
  for (const Dim& d : *info.type.shape) count *= static_cast<double>(d.value());
  return count * bit_width(info.type.elem) / 8;
}

Work work_of(const Graph& g, const Node& n) {
  Work w;
  w.flops = static_cast<double>(inspect::node_flops(g, n));
  w.bytes = 0;
  for (const auto* list : {&n.inputs, &n.outputs}) {
    for (const ValueId v : *list) {
      const double b = value_bytes(g, v);
      w.bytes = b < 0 || w.bytes < 0 ? -1 : w.bytes + b;
    }
  }
  return w;
}

// Names nodes like the profiler: nameless nodes have the name of their first output.
std::string shown_name(const Graph& g, const Node& n) {
  const bool nameless = n.name.empty() && !n.outputs.empty() && n.outputs[0] != kNoValue;
  return nameless ? g.value(n.outputs[0]).name : n.name;
}

using WorkByName = std::map<std::string, Work>;

void add_work(const Graph& g, WorkByName& out) {
  for (const Node& n : g.nodes()) {
    if (n.removed) continue;
    const auto [at, fresh] = out.try_emplace(shown_name(g, n), work_of(g, n));
    if (!fresh) at->second = Work{};  // names need not be unique
    for (const Subgraph& s : n.subgraphs) add_work(*s.graph, out);
  }
}

// The costs of the graph that a session makes of the model for inputs of these shapes; nothing if they cannot be determined this
// way.
WorkByName work_by_name(const std::filesystem::path& path, const SessionOptions& options, const NamedValues& inputs) {
  WorkByName out;
  try {
    Model model = read_model(path);
    for (const ValueId v : model.graph.inputs()) {
      ValueInfo& info = model.graph.value(v);
      const Value* given = inputs.find(info.name);
      if (given == nullptr || !given->is_tensor() || !info.declared.is_tensor()) continue;
      std::vector<Dim> dims;
      for (const std::int64_t d : given->tensor().shape()) dims.emplace_back(d);
      info.declared.shape = dims;
      info.type = info.declared;
    }
    SessionOptions plain = options;
    plain.dimensions.clear();  // the inputs' own extents are fixed already
    session::prepare(model, plain);
    sink_constants(model.graph);
    if (options.optimize) {
      PassOptions passes;
      passes.disabled = options.disabled_passes;
      run_passes(model.graph, passes);
    }
    add_work(model.graph, out);
  } catch (const Error&) {
    out.clear();
  }
  return out;
}

// The time of each event without that of the steps of its subgraphs, which are events of their own. Steps are recorded when they
// end: those inside come before the one around them.
std::vector<double> own_times(const std::vector<ProfileEvent>& events) {
  std::vector<double> own;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::size_t>>
      open;  // run, thread -> ended, not yet inside another
  for (std::size_t i = 0; i < events.size(); ++i) {
    const ProfileEvent& e = events[i];
    own.push_back(static_cast<double>(e.duration_ns));
    auto& ended = open[{e.run, e.thread}];
    while (!ended.empty() && events[ended.back()].start_ns >= e.start_ns) {
      own[i] -= static_cast<double>(events[ended.back()].duration_ns);
      ended.pop_back();
    }
    own[i] = std::max(0.0, own[i]);
    ended.push_back(i);
  }
  return own;
}

constexpr std::size_t kRuns = 10;

struct Sum {
  std::int64_t calls = 0;
  std::array<double, kRuns> ns{};  // of each run
  double flops = 0, bytes = 0;     // of all runs; -1: not known

  void add(std::size_t run, double time, const Work& w) {
    const auto more = [](double& sum, double v) { sum = v < 0 || sum < 0 ? -1 : sum + v; };
    ++calls;
    ns[std::min(run, kRuns - 1)] += time;
    more(flops, w.flops);
    more(bytes, w.bytes);
  }
  // The median run. A run during which another process took the core for some milliseconds says nothing about the kernel.
  double typical_ns() const { return median({ns.begin(), ns.end()}); }
};

// Of one run.
double amount(double of_all_runs) { return std::max(0.0, of_all_runs) / static_cast<double>(kRuns); }

// A rate per nanosecond is 1e9 per second.
double rate(double of_all_runs, double ns) { return ns > 0 ? amount(of_all_runs) / ns : 0; }

}  // namespace

Profile profile_model(const std::filesystem::path& model, SessionOptions options, const NamedValues& inputs,
                      const std::filesystem::path& trace) {
  options.profile = true;
  session::InternalOptions internal;
  internal.fallbacks_told_elsewhere = true;
  const Session session = session::open(model, options, internal);
  session.run(inputs);  // plans and first touches of memory are no operator's time
  const std::size_t warm = session.profile().size();
  for (std::size_t i = 0; i < kRuns; ++i) session.run(inputs);
  std::vector<ProfileEvent> events = session.profile();
  if (!trace.empty()) session.write_trace(trace);
  events.erase(events.begin(), events.begin() + static_cast<std::ptrdiff_t>(std::min(warm, events.size())));
  const WorkByName work = work_by_name(model, options, inputs);
  const std::vector<double> own = own_times(events);
  using Key = std::tuple<std::string, std::string, std::string, std::string>;  // op, kernel, provider, node
  std::map<Key, Sum> operators;
  std::map<Key, Sum> nodes;
  for (std::size_t i = 0; i < events.size(); ++i) {
    const ProfileEvent& e = events[i];
    const auto w = work.find(e.name);
    const Work known = w == work.end() ? Work{} : w->second;
    const auto run = static_cast<std::size_t>(e.run - events.front().run);
    operators[{e.op, e.kernel, e.provider, ""}].add(run, own[i], known);
    nodes[{e.op, e.kernel, e.provider, e.name}].add(run, own[i], known);
  }
  double all = 0;
  for (const auto& [key, s] : operators) all += s.typical_ns();
  Profile out;
  for (const auto& [key, s] : operators) {
    const auto& [op, kernel, provider, none] = key;
    const double ns = s.typical_ns();
    out.operators.push_back({op, kernel, provider, s.calls / static_cast<std::int64_t>(kRuns), ns / 1e6, all > 0 ? ns / all : 0,
                             rate(s.flops, ns), rate(s.bytes, ns)});
  }
  for (const auto& [key, s] : nodes) {
    const auto& [op, kernel, provider, name] = key;
    const double ns = s.typical_ns();
    out.nodes.push_back({name, op, kernel, provider, ns / 1e6, all > 0 ? ns / all : 0, amount(s.flops) / 1e9,
                         amount(s.bytes) / 1e9, rate(s.flops, ns), rate(s.bytes, ns)});
  }
  const auto by_time = [](const auto& a, const auto& b) { return a.ms > b.ms; };
  std::stable_sort(out.operators.begin(), out.operators.end(), by_time);
  std::stable_sort(out.nodes.begin(), out.nodes.end(), by_time);
  return out;
}

}  // namespace sdx::benchmark
