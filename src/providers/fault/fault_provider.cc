#include "providers/fault/fault_provider.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <limits>
#include <optional>
#include <stdexcept>
#include <thread>

#include "base/error.h"
#include "base/suggest.h"
#include "ops/op.h"

namespace sdx::fault {
namespace {

using Ms = std::chrono::milliseconds;

struct Script {
  std::optional<std::string> fail_probe, fail_compile, throw_compile;
  std::int64_t compile_ms = 0, recompile_ms = 0, run_ms = 0, hang_ms = 10'000;
  std::string fault;
  std::int64_t at = 0, count = 1;

  // Whether run number `run`, from 1, fails.
  bool hits(std::int64_t run) const { return at > 0 && run >= at && (count == 0 || run < at + count); }
};

std::int64_t number(const std::string& key, const std::string& text) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || end != text.data() + text.size() || n < 0 || n > 1'000'000'000) {
    fail(ErrorCode::invalid_argument, "option '{}' of provider 'fault' must be a number from 0, received '{}'", key, text);
  }
  return n;
}

Script script_of(const ProviderSettings& settings) {
  static const std::vector<std::string> known{
      "fail_probe", "fail_compile", "throw_compile", "compile_ms", "recompile_ms", "run_ms", "fault", "at", "count", "hang_ms"};
  static const std::vector<std::string> kinds{"error", "hang", "shape", "type", "nan", "value"};
  Script s;
  for (const auto& [key, value] : settings.options) {
    if (key == "fail_probe")
      s.fail_probe = value;
    else if (key == "fail_compile")
      s.fail_compile = value;
    else if (key == "throw_compile")
      s.throw_compile = value;
    else if (key == "compile_ms")
      s.compile_ms = number(key, value);
    else if (key == "recompile_ms")
      s.recompile_ms = number(key, value);
    else if (key == "run_ms")
      s.run_ms = number(key, value);
    else if (key == "hang_ms")
      s.hang_ms = number(key, value);
    else if (key == "at")
      s.at = number(key, value);
    else if (key == "count")
      s.count = number(key, value);
    else if (key == "fault" && std::find(kinds.begin(), kinds.end(), value) != kinds.end())
      s.fault = value;
    else if (key == "fault")
      fail(ErrorCode::invalid_argument, "provider 'fault' has no fault '{}'; known: {}", value, join(kinds));
    else {
      const std::string near = closest(key, known);
      fail(ErrorCode::invalid_argument, "provider 'fault' has no option '{}'{} Known: {}", key,
           near.empty() ? "." : "; did you mean '" + near + "'?", join(known));
    }
  }
  if (s.fault.empty()) s.fault = "error";
  return s;
}

// Sleeps, unless the run is stopped.
void sleep_unless(const StopCondition& stop, Ms time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    stop.check();
    std::this_thread::sleep_for(std::min(Ms(1), time));
  }
}

// Puts something else where a result was.
void spoil(const std::string& fault, Value& result) {
  if (!result.is_tensor()) return;
  Tensor& t = result.tensor();
  if (fault == "type") {
    result = Tensor(t.dtype() == DataType::int8 ? DataType::int16 : DataType::int8, t.shape());
  } else if (fault == "shape") {
    Shape shape = t.shape();
    if (shape.empty()) {
      shape.push_back(2);
    } else {
      ++shape.back();
    }
    result = Tensor(t.dtype(), shape);
  } else if (t.dtype() == DataType::float32) {
    t = t.clone();  // a kernel may have handed on an input or a constant
    for (float& x : t.mutable_values<float>()) x = fault == "nan" ? std::numeric_limits<float>::quiet_NaN() : x + 1;
  }
}

class FaultKernel : public Kernel {
 public:
  FaultKernel(Graph graph, Script script) : graph_(std::move(graph)), script_(std::move(script)) {}

  std::string_view name() const override { return "fault"; }
  bool allocates_outputs() const override { return true; }

  void run(const KernelContext& context) const override {
    const std::int64_t number = runs_.fetch_add(1) + 1;
    const StopCondition& stop = context.services->stop();
    if (script_.run_ms > 0) sleep_unless(stop, Ms(script_.run_ms));
    const bool hit = script_.hits(number);
    if (hit && script_.fault == "hang") sleep_unless(stop, Ms(script_.hang_ms));
    if (hit && script_.fault == "error") fail(ErrorCode::runtime_failure, "device lost (run {} of the test provider)", number);
    std::vector<Value> values(graph_.values().size());
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) values[graph_.inputs()[i]] = *context.inputs[i];
    for (ValueId v = 0; v < values.size(); ++v) {
      const ValueInfo& info = graph_.value(v);
      if (info.constant && !info.is_input) values[v] = info.constant->is_aligned() ? *info.constant : info.constant->aligned();
    }
    for (const Node& node : graph_.nodes()) {
      if (!node.removed) run_node(node, values, *context.services);
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      Value& result = values[graph_.outputs()[i]];
      if (hit) spoil(script_.fault, result);
      if (context.outputs[i] != nullptr) *context.outputs[i] = result;
    }
  }

 private:
  static void run_node(const Node& node, std::vector<Value>& values, ops::RunServices& services) {
    std::vector<const Value*> in;
    std::vector<Value*> out;
    for (const ValueId v : node.inputs) in.push_back(v == kNoValue ? nullptr : &values[v]);
    for (const ValueId v : node.outputs) out.push_back(v == kNoValue ? nullptr : &values[v]);
    ops::OpContext context(node, in, out, services);
    ops::find(node)->run(context);
  }

  Graph graph_;
  Script script_;
  mutable std::atomic<std::int64_t> runs_{0};
};

class FaultProvider : public Provider {
 public:
  std::string_view name() const override { return "fault"; }
  bool compiles_regions() const override { return true; }
  void check_options(const ProviderSettings& settings) const override { script_of(settings); }

  ProviderInfo probe(const ProviderSettings& settings, Effort) const override {
    ProviderInfo info;
    info.name = "fault";
    info.devices = {"test"};
    try {
      info.reason = script_of(settings).fail_probe.value_or("");
    } catch (const Error& e) {
      info.reason = e.message();
    }
    info.available = info.reason.empty();
    return info;
  }

  std::vector<Claim> claim(const Graph& graph, const ProviderSettings&) const override {
    std::vector<Claim> claims(graph.nodes().size());
    for (NodeId id = 0; id < claims.size(); ++id) {
      const Node& node = graph.node(id);
      claims[id].taken = node.subgraphs.empty() && !node.custom && ops::find(node) != nullptr;
      if (!claims[id].taken) claims[id].reason = "the test provider runs operators without subgraphs";
    }
    return claims;
  }

  RegionResult compile(const Region& region, const ProviderSettings& settings) const override {
    Script script = script_of(settings);
    const std::int64_t takes = script.compile_ms + (region.source == nullptr ? script.recompile_ms : 0);
    if (takes > 0) std::this_thread::sleep_for(Ms(takes));
    if (script.throw_compile) throw std::logic_error(*script.throw_compile);
    if (script.fail_compile) fail(ErrorCode::provider_unavailable, "{}", *script.fail_compile);
    RegionResult result;
    result.kernel = std::make_unique<FaultKernel>(*region.graph, std::move(script));
    return result;
  }
};

}  // namespace

const Provider* find(std::string_view name) {
  static const FaultProvider instance;
  return name == "fault" && test_provider_enabled() ? &instance : nullptr;
}

}  // namespace sdx::fault
