#include "session/graphs/donate.h"

#include <algorithm>
#include <optional>

#include "providers/cpu/layout/fuse_chains.h"

namespace sdx::session {
namespace {

constexpr std::size_t kMostDonations = 4096;

std::size_t bytes_of(const Type& t) {
  return t.is_tensor() && t.has_static_shape() && t.elem != DataType::undefined
             ? byte_size(t.elem, element_count(to_shape(*t.shape)))
             : 0;
}

// The last step that reads an input's memory; nothing where it may leave with a result.
std::optional<std::size_t> last_reader(const plan::Program& program, ValueId input) {
  const Graph& graph = program.graph();
  std::vector<bool> shares(graph.values().size(), false);
  shares[input] = true;
  std::size_t last = 0;
  for (std::size_t i = 0; i < program.steps().size(); ++i) {
    const Step& step = program.steps()[i];
    const Node& node = graph.node(step.node);
    const auto is_read = [&](ValueId v) { return v != kNoValue && shares[v]; };
    bool reads = std::any_of(node.inputs.begin(), node.inputs.end(), is_read);
    for (const Subgraph& s : node.subgraphs) reads = reads || std::any_of(s.captures.begin(), s.captures.end(), is_read);
    if (!reads) continue;
    last = i;
    if (step.kernel->view_of() < 0 && !step.kernel->allocates_outputs() && node.subgraphs.empty()) continue;
    for (const ValueId v : node.outputs) {
      if (v != kNoValue) shares[v] = true;
    }
  }
  for (const ValueId v : graph.outputs()) {
    if (shares[v]) return std::nullopt;
  }
  return last;
}

// The value whose memory a value uses: itself, unless it is a view.
ValueId viewed(const plan::Program& program, const std::vector<std::size_t>& step_of, ValueId v) {
  while (step_of[v] != SIZE_MAX) {
    const Step& step = program.steps()[step_of[v]];
    if (step.kernel->view_of() < 0) break;
    v = program.graph().node(step.node).inputs[static_cast<std::size_t>(step.kernel->view_of())];
  }
  return v;
}

// Whether `v`, another value, may be in the memory of the graph's input `input`: a kernel that chooses the memory of its results
// may return the memory of its input.
bool may_look_at(const plan::Program& program, const std::vector<std::size_t>& step_of, ValueId v, ValueId input) {
  const ValueId owner = viewed(program, step_of, v);
  if (owner == input || step_of[owner] == SIZE_MAX) return owner == input;
  const Step& step = program.steps()[step_of[owner]];
  const std::vector<ValueId>& from = program.graph().node(step.node).inputs;
  return step.kernel->allocates_outputs() &&
         std::any_of(from.begin(), from.end(), [&](ValueId f) { return f != kNoValue && viewed(program, step_of, f) == input; });
}

// The value that is first written to the memory of a result: the first of several steps that are computed in place of each
// other's results. Nothing if a kernel chooses the memory itself.
std::optional<ValueId> first_in_memory(const plan::Program& program, const std::vector<std::size_t>& step_of, ValueId v) {
  for (;;) {
    const Step& step = program.steps()[step_of[v]];
    if (step.kernel->view_of() >= 0 || step.kernel->allocates_outputs()) return std::nullopt;
    const int place = step.kernel->in_place();
    if (place < 0) return v;
    const ValueId from = program.graph().node(step.node).inputs[static_cast<std::size_t>(place)];
    if (from == kNoValue) return v;
    const ValueId owner = viewed(program, step_of, from);
    if (step_of[owner] == SIZE_MAX) return v;
    v = owner;
  }
}

// Whether step number `at` may write result `output` into the memory of the graph's input `input`: it must be the last that reads
// it.
bool overwrites(const plan::Program& program, const std::vector<std::size_t>& step_of, std::size_t at, ValueId output,
                ValueId input) {
  const Step& step = program.steps()[at];
  const Node& node = program.graph().node(step.node);
  // Another operand may be a view of the same memory, read in another order.
  for (const ValueId v : node.inputs) {
    if (v != kNoValue && v != input && may_look_at(program, step_of, v, input)) return false;
  }
  if (const cpu::ChainOp* chain = cpu::chain_of(node)) {
    const auto in = std::find(node.inputs.begin(), node.inputs.end(), input);
    const auto out = std::find(node.outputs.begin(), node.outputs.end(), output);
    return in != node.inputs.end() && bit_width(chain->result_types[static_cast<std::size_t>(out - node.outputs.begin())]) / 8 ==
                                          chain->chain.input_bytes[static_cast<std::size_t>(in - node.inputs.begin())];
  }
  const int place = step.kernel->in_place();
  return place >= 0 && node.outputs[0] == output && node.inputs[static_cast<std::size_t>(place)] == input &&
         std::count(node.inputs.begin(), node.inputs.end(), input) == 1;
}

}  // namespace

std::vector<Donation> find_donations(const plan::Program& program) {
  const Graph& graph = program.graph();
  struct Input {
    std::uint32_t number;
    std::size_t bytes, last;  // the last step that reads it
  };
  std::vector<Input> inputs;
  for (std::uint32_t i = 0; i < graph.inputs().size(); ++i) {
    const std::size_t bytes = bytes_of(graph.value(graph.inputs()[i]).type);
    if (bytes < kLeastDonated) continue;
    if (const auto last = last_reader(program, graph.inputs()[i])) inputs.push_back({i, bytes, *last});
  }
  std::vector<Donation> out;
  if (inputs.empty()) return out;
  std::vector<std::size_t> step_of(graph.values().size(), SIZE_MAX);
  for (std::size_t i = 0; i < program.steps().size(); ++i) {
    for (const ValueId v : graph.node(program.steps()[i].node).outputs) {
      if (v != kNoValue) step_of[v] = i;
    }
  }
  std::vector<std::uint32_t> times(graph.values().size(), 0);  // that a value is a result
  for (const ValueId v : graph.outputs()) ++times[v];
  for (std::uint32_t o = 0; o < graph.outputs().size() && out.size() < kMostDonations; ++o) {
    const ValueId v = graph.outputs()[o];
    const std::size_t bytes = bytes_of(graph.value(v).type);
    if (step_of[v] == SIZE_MAX || times[v] != 1 || bytes < kLeastDonated) continue;
    const std::optional<ValueId> first = first_in_memory(program, step_of, v);
    if (!first) continue;
    const std::size_t at = step_of[*first];
    for (const Input& in : inputs) {
      if (in.bytes != bytes || in.last > at) continue;
      if (in.last == at && !overwrites(program, step_of, at, *first, graph.inputs()[in.number])) continue;
      out.push_back({o, in.number});
    }
  }
  return out;
}

}  // namespace sdx::session
