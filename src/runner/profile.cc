#include "runner/profile.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/error.h"
#include "onnx/reader.h"
#include "passes/pass.h"
#include "runner/facts.h"
#include "session/pipeline.h"

namespace sdx {
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
  w.flops = static_cast<double>(node_flops(g, n));
  w.bytes = 0;
  for (const auto* list : {&n.inputs, &n.outputs}) {
    for (const ValueId v : *list) {
      const double b = value_bytes(g, v);
      w.bytes = b < 0 || w.bytes < 0 ? -1 : w.bytes + b;
    }
  }
  return w;
}

// By node name, of the graph that a session makes of the model for inputs of these shapes. Names need not be unique; where they
// are not, or the model cannot be worked out this way, nothing is known.
std::map<std::string, Work> work_by_name(const std::filesystem::path& path, const SessionOptions& options,
                                         const NamedValues& inputs) {
  std::map<std::string, Work> out;
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
    prepare(model, plain);
    sink_constants(model.graph);
    if (options.optimize) {
      PassOptions passes;
      passes.disabled = options.disabled_passes;
      run_passes(model.graph, passes);
    }
    std::map<std::string, int> seen;
    for (const Node& n : model.graph.nodes()) {
      if (n.removed || n.name.empty()) continue;
      out[n.name] = ++seen[n.name] == 1 ? work_of(model.graph, n) : Work{};
    }
  } catch (const Error&) {
    out.clear();
  }
  return out;
}

struct Sum {
  std::int64_t calls = 0;
  double ns = 0, flops = 0, bytes = 0;
};

}  // namespace

std::vector<OperatorTime> profile_operators(const std::filesystem::path& model, SessionOptions options, const NamedValues& inputs,
                                            const std::filesystem::path& trace) {
  constexpr int kRuns = 10;
  options.profile = true;
  const Session session = Session::open(model, options);
  session.run(inputs);  // plans and first touches of memory are no operator's time
  const std::size_t warm = session.profile().size();
  for (int i = 0; i < kRuns; ++i) session.run(inputs);
  const std::vector<ProfileEvent> events = session.profile();
  if (!trace.empty()) session.write_trace(trace);
  const auto work = work_by_name(model, options, inputs);
  std::map<std::tuple<std::string, std::string, std::string>, Sum> sums;
  double all = 0;
  for (std::size_t i = std::min(warm, events.size()); i < events.size(); ++i) {
    const ProfileEvent& e = events[i];
    Sum& s = sums[{e.op, e.kernel, e.provider}];
    const auto w = work.find(e.name);
    ++s.calls;
    s.ns += static_cast<double>(e.duration_ns);
    const auto add = [&](double& sum, double v) { sum = v < 0 || sum < 0 ? -1 : sum + v; };
    add(s.flops, w == work.end() ? -1 : w->second.flops);
    add(s.bytes, w == work.end() ? -1 : w->second.bytes);
    all += static_cast<double>(e.duration_ns);
  }
  std::vector<OperatorTime> out;
  for (const auto& [key, s] : sums) {
    OperatorTime o;
    std::tie(o.op, o.kernel, o.provider) = key;
    o.calls = s.calls / kRuns;
    o.ms = s.ns / kRuns / 1e6;
    o.share = all > 0 ? s.ns / all : 0;
    o.gflops_per_s = s.ns > 0 && s.flops > 0 ? s.flops / s.ns : 0;  // per nanosecond: 1e9 a second
    o.gbytes_per_s = s.ns > 0 && s.bytes > 0 ? s.bytes / s.ns : 0;
    out.push_back(std::move(o));
  }
  std::sort(out.begin(), out.end(), [](const OperatorTime& a, const OperatorTime& b) { return a.ms > b.ms; });
  return out;
}

}  // namespace sdx
