#include "providers/cpu/tune.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/error.h"
#include "base/system/cpu_features.h"
#include "base/thread_pool.h"

namespace sdx::cpu {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kNoise = 0.03;
constexpr double kEnoughMs = 20;
constexpr int kFewestRounds = 5, kMostRounds = 200;

std::string attribute_text(const AttributeValue& value) {
  return std::visit(
      [&](const auto& v) -> std::string {
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, Tensor>) {
          return v.type_string();
        } else if constexpr (std::is_same_v<T, Type>) {
          return v.str();
        } else if constexpr (std::is_same_v<T, std::vector<Tensor>> || std::is_same_v<T, std::vector<Type>>) {
          return fmt::format("{} of them", v.size());
        } else {
          return fmt::format("{}", v);
        }
      },
      value);
}

// Values around zero, of no special size, because a kernel's speed must not depend on them.
Tensor made_up(const Type& type) {
  Tensor t(type.elem, to_shape(*type.shape));
  if (type.elem == DataType::float32) {
    std::uint32_t state = 0x9E3779B9U;
    for (float& v : t.mutable_values<float>()) {
      state = state * 1664525U + 1013904223U;
      v = static_cast<float>(state >> 8) / static_cast<float>(1 << 24) - 0.5F;
    }
  } else {
    std::fill_n(static_cast<std::byte*>(t.mutable_data()), t.bytes(), std::byte{0});
  }
  return t;
}

// One kernel with the memory that its runs need.
class Rehearsal {
 public:
  Rehearsal(const Graph& graph, const Node& node, const Kernel& kernel, const std::vector<Value>& inputs)
      : kernel_(kernel), outputs_(node.outputs.size()) {
    ResolveContext resolve;
    std::vector<const Type*> in_types, out_types;
    for (const ValueId v : node.inputs) in_types.push_back(v == kNoValue ? nullptr : &graph.value(v).type);
    for (const ValueId v : node.outputs) out_types.push_back(v == kNoValue ? nullptr : &graph.value(v).type);
    resolve.inputs = in_types;
    resolve.outputs = out_types;
    state_ = kernel.resolve(resolve);
    // 64 bytes more, for the alignment that kernels are promised.
    workspace_.resize(resolve.workspace_bytes + 64);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) in_.push_back(node.inputs[i] == kNoValue ? nullptr : &inputs[i]);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != kNoValue) outputs_[i] = Tensor(out_types[i]->elem, to_shape(*out_types[i]->shape));
      out_.push_back(node.outputs[i] == kNoValue ? nullptr : &outputs_[i]);
    }
  }

  double run_ms() {
    KernelContext c;
    c.inputs = in_;
    c.outputs = out_;
    c.state = state_.get();
    const auto at = reinterpret_cast<std::uintptr_t>(workspace_.data());
    c.workspace = workspace_.data() + (64 - at % 64) % 64;
    const auto start = Clock::now();
    kernel_.run(c);
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  }

 private:
  const Kernel& kernel_;
  std::unique_ptr<KernelState> state_;
  std::vector<std::byte> workspace_;
  std::vector<Value> outputs_;
  std::vector<const Value*> in_;
  std::vector<Value*> out_;
};

}  // namespace

std::string tuned_kernel(const Graph& graph, NodeId id, const KernelEntry& entry, cache::TunedChoices* tuned,
                         std::vector<cache::KernelTime>& times) {
  const Node& node = graph.node(id);
  if (!untimeable(graph, node).empty()) return "";
  cache::PackStore losers_too;  // their packed weights are discarded in the end
  LowerContext context(graph, id, &losers_too);
  std::vector<std::unique_ptr<Kernel>> kernels;
  kernels.push_back(entry.make(context));
  if (kernels[0] == nullptr || context.offered().size() < 2) return "";
  const std::string key = tuning_key(graph, node);
  const auto offers = [&](const cache::KernelTime& t) {
    return std::find(context.offered().begin(), context.offered().end(), t.kernel) != context.offered().end();
  };
  const std::vector<cache::KernelTime>* known = tuned != nullptr ? tuned->find(key) : nullptr;
  if (known != nullptr && known->size() == context.offered().size() && std::all_of(known->begin(), known->end(), offers)) {
    times = *known;
  } else {
    for (std::size_t i = 1; i < context.offered().size(); ++i) {
      LowerContext other(graph, id, &losers_too, context.offered()[i]);
      kernels.push_back(entry.make(other));
      SDX_ASSERT(kernels.back() != nullptr);
    }
    times = time_kernels(graph, node, kernels);
    if (tuned != nullptr) tuned->add(key, times);
  }
  const auto rank = [&](const cache::KernelTime& t) {
    return std::find(context.offered().begin(), context.offered().end(), t.kernel) - context.offered().begin();
  };
  std::sort(times.begin(), times.end(),
            [&](const cache::KernelTime& a, const cache::KernelTime& b) { return rank(a) < rank(b); });
  return times[fastest(times)].kernel;
}

std::string untimeable(const Graph& graph, const Node& node) {
  for (const auto* list : {&node.inputs, &node.outputs}) {
    for (const ValueId v : *list) {
      if (v == kNoValue || graph.value(v).constant) continue;
      if (!graph.value(v).type.is_tensor() || !graph.value(v).type.has_static_shape()) {
        return fmt::format("the shape of '{}' is not known before a run", graph.value(v).name);
      }
    }
  }
  return "";
}

std::string tuning_key(const Graph& graph, const Node& node) {
  static const std::string machine = fmt::format("{} {}", SDX_VERSION, processor_name());
  std::string key = fmt::format("{} {} {} threads: {}", machine, name(cpu_isa()), current_pool().threads(), node.op_type);
  for (const ValueId v : node.inputs) key += v == kNoValue ? " -" : " " + graph.value(v).type.str();
  for (const auto& [name, value] : node.attributes.items()) key += fmt::format(" {}={}", name, attribute_text(value));
  return key;
}

std::vector<cache::KernelTime> time_kernels(const Graph& graph, const Node& node,
                                            const std::vector<std::unique_ptr<Kernel>>& kernels) {
  std::vector<Value> inputs;
  for (const ValueId v : node.inputs) {
    if (v == kNoValue) {
      inputs.emplace_back();
    } else if (graph.value(v).constant) {
      inputs.emplace_back(graph.value(v).constant->aligned());
    } else {
      inputs.emplace_back(made_up(graph.value(v).type));
    }
  }
  std::vector<Rehearsal> rehearsals;
  std::vector<cache::KernelTime> times;
  for (const auto& kernel : kernels) {
    rehearsals.emplace_back(graph, node, *kernel, inputs);
    rehearsals.back().run_ms();  // first touches of memory
    times.push_back({std::string(kernel->name()), std::numeric_limits<double>::max()});
  }
  double spent = 0;
  for (int round = 0; round < kMostRounds; ++round) {
    if (round >= kFewestRounds && spent > kEnoughMs * static_cast<double>(kernels.size())) break;
    for (std::size_t i = 0; i < rehearsals.size(); ++i) {
      const double ms = rehearsals[i].run_ms();
      spent += ms;
      times[i].ms = std::min(times[i].ms, ms);
    }
  }
  return times;
}

std::size_t fastest(const std::vector<cache::KernelTime>& times) {
  const auto least = std::min_element(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.ms < b.ms; });
  return least->ms < times[0].ms * (1 - kNoise) ? static_cast<std::size_t>(least - times.begin()) : 0;
}

}  // namespace sdx::cpu
