#include "passes/narrow.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/suggest.h"
#include "graph/edit.h"
#include "ops/context.h"
#include "ops/math/signatures.h"
#include "ops/op.h"
#include "ops/tensor/signatures.h"
#include "passes/narrow_choice.h"
#include "tensor/types.h"

namespace sdx {
namespace {

// Inputs that stay float32 where the rest of the node does not: coordinates and ratios.
bool is_coordinate(const Node& n, std::size_t input) {
  if (!n.domain.empty() || input == 0) return false;
  return n.op_type == "Resize" || n.op_type == "Upsample" || n.op_type == "GridSample";
}

class Narrower {
 public:
  Narrower(Graph& graph, int opset, const NarrowOptions& options, NarrowReport& report)
      : g_(graph), opset_(opset), options_(options), report_(report) {}

  void run() {
    constants_from_nodes();
    const std::vector<std::string> why = reasons_to_stay(g_, options_);
    const auto count = static_cast<NodeId>(g_.nodes().size());
    if (!options_.keep_io) convert_inputs();
    for (NodeId id = 0; id < count; ++id) {
      if (!g_.node(id).removed) visit(id, why[id]);
    }
    settle_outputs();
    g_.compact();
    name_constants();
    g_.drop_unused_values();
  }

 private:
  bool floats(ValueId v) const { return v != kNoValue && (was_float32_.contains(v) || is_float32(g_, v)); }

  // Constant nodes become constants, which are converted where they are read.
  void constants_from_nodes() {
    for (NodeId id = 0; id < g_.nodes().size(); ++id) {
      const Node& n = g_.node(id);
      if (n.removed || n.op_type != "Constant" || !n.domain.empty() || n.outputs.size() != 1 || !floats(n.outputs[0])) continue;
      Tensor value;
      const auto attr = ops::parse<ops::ConstantAttrs>(n);
      if (attr.value != nullptr) {
        value = *attr.value;
      } else if (attr.value_float) {
        value = Tensor::scalar(*attr.value_float);
      } else if (attr.value_floats) {
        value = Tensor::of<float>({static_cast<std::int64_t>(attr.value_floats->size())}, *attr.value_floats);
      } else {
        continue;
      }
      const ValueId out = n.outputs[0];
      g_.remove_node(id);
      g_.value(out).constant = std::move(value);
    }
  }

  void retype(ValueId v, DataType type) {
    ValueInfo& info = g_.value(v);
    if (info.type.elem == DataType::float32) was_float32_.insert(v);
    info.type.elem = type;
    if (info.declared.is_tensor()) info.declared.elem = type;
  }

  void convert_inputs() {
    for (const ValueId v : g_.inputs()) {
      if (!is_float32(g_, v)) continue;
      retype(v, options_.to);
      if (g_.value(v).constant) g_.value(v).constant = converted(*g_.value(v).constant, g_.value(v).name);
    }
  }

  // The value in the wanted type: itself, a converted constant, or the result of a Cast.
  ValueId version(ValueId v, DataType type) {
    if (v == kNoValue || g_.value(v).type.elem == type) return v;
    const auto found = twins_.find(v);
    if (found != twins_.end()) return found->second;
    const std::string other = g_.value(v).name + (type == DataType::float32   ? "_float32"
                                                  : type == DataType::float16 ? "_float16"
                                                                              : "_bfloat16");
    ValueId twin = kNoValue;
    if (constant_of(g_, v) != nullptr) {
      twin = g_.add_constant(other, converted(*g_.value(v).constant, g_.value(v).name));
    } else {
      Type as = g_.value(v).type;
      as.elem = type;
      if (!as.shape) as.shape = g_.value(v).declared.shape;  // files must say something of their outputs
      twin = add_node(g_, make_node(other + "_cast", "Cast", opset_, {v}, {{"to", static_cast<std::int64_t>(type)}}), other,
                      std::move(as));
      ++report_.casts;
    }
    twins_.emplace(v, twin);
    return twin;
  }

  Tensor converted(const Tensor& from, const std::string& name) {
    const bool half = options_.to == DataType::float16;
    // The largest float32 that rounds to a finite number, and the largest and smallest bit patterns: IEEE 754 binary16, bfloat16.
    const float largest = half ? 65504.0F : 3.3895313892515355e38F;
    const std::uint16_t top = half ? 0x7BFF : 0x7F7F;
    Tensor to(options_.to, from.shape());
    auto* out = static_cast<std::uint16_t*>(to.mutable_data());
    std::int64_t clipped = 0;
    std::int64_t raised = 0;
    for (std::int64_t i = 0; i < from.size(); ++i) {
      float value = 0;
      std::memcpy(&value, static_cast<const char*>(from.data()) + i * 4, sizeof(value));
      std::uint16_t bits = half ? float_to_half(value) : BFloat16(value).bits;
      const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
      if (std::isfinite(value) && std::abs(value) > largest) {
        bits = sign | top;
        ++clipped;
      } else if (value != 0 && (bits & 0x7FFF) == 0) {
        bits = sign | 1;
        ++raised;
      }
      out[i] = bits;
    }
    ++report_.constants;
    report_.clipped += clipped;
    report_.raised += raised;
    if (clipped > 0) report_.clipped_in.push_back(name);
    if (raised > 0) report_.raised_in.push_back(name);
    return to;
  }

  void visit(NodeId id, const std::string& why) {
    convert_subgraphs(id);
    const Node& n = g_.node(id);
    const auto is_float = [&](ValueId v) { return floats(v); };
    const bool reads = std::any_of(n.inputs.begin(), n.inputs.end(), is_float);
    const bool makes = std::any_of(n.outputs.begin(), n.outputs.end(), is_float);
    if (!reads && !makes && n.subgraphs.empty()) return;
    std::string reason = why;
    if (reason.empty() && reads && !makes && reads_float32_alone(n)) reason = "its inputs stay float32";
    if (reason.empty()) reason = convert(id);
    if (!reason.empty()) keep(id, std::move(reason));
  }

  // Comparisons, Shape, ArgMax, Cast to integers, … of values that are float32 anyway.
  bool reads_float32_alone(const Node& n) const {
    bool any = false;
    for (const ValueId v : n.inputs) {
      if (!floats(v) || constant_of(g_, v) != nullptr) continue;
      if (!is_float32(g_, v)) return false;
      any = true;
    }
    return any;
  }

  void convert_subgraphs(NodeId id) {
    NarrowOptions inside = options_;
    inside.keep_io = true;
    for (std::size_t s = 0; s < g_.node(id).subgraphs.size(); ++s) {
      Narrower(*g_.node(id).subgraphs[s].graph, opset_, inside, report_).run();
      for (std::size_t i = 0; i < g_.node(id).subgraphs[s].captures.size(); ++i) {
        const ValueId v = g_.node(id).subgraphs[s].captures[i];
        if (!was_float32_.contains(v)) continue;
        const ValueId wide = version(v, DataType::float32);
        g_.node(id).subgraphs[s].captures[i] = wide;
      }
    }
  }

  void keep(NodeId id, std::string why) {
    for (std::size_t i = 0; i < g_.node(id).inputs.size(); ++i) {
      const ValueId v = g_.node(id).inputs[i];
      if (v == kNoValue || !was_float32_.contains(v)) continue;
      const ValueId wide = version(v, DataType::float32);
      g_.node(id).inputs[i] = wide;
    }
    const Node& n = g_.node(id);
    report_.kept.push_back({g_.describe(id), n.domain.empty() ? n.op_type : n.domain + "." + n.op_type, std::move(why)});
  }

  // For each input, whether it is to be of the new type. Arguments of one type variable go together.
  std::vector<bool> convertible(const Node& n, const ops::OpDef& def) const {
    std::map<std::string, bool> variables;
    const auto formal = [&](std::size_t i) -> const ops::Formal& { return def.inputs[std::min(i, def.inputs.size() - 1)]; };
    const auto variable = [&](std::size_t i) {
      return formal(i).type_var.empty() ? "#" + std::to_string(i) : formal(i).type_var;
    };
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (!floats(n.inputs[i])) continue;
      const bool fits = (formal(i).types & ops::bit(options_.to)) != 0;
      variables.emplace(variable(i), true).first->second &= fits;
    }
    std::vector<bool> out(n.inputs.size());
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      out[i] = floats(n.inputs[i]) && variables.at(variable(i)) && !is_coordinate(n, i);
    }
    return out;
  }

  // Attributes that settle the type of the output.
  void set_type_attributes(Node& n) const {
    if (!n.domain.empty()) return;
    if (n.op_type == "Cast" && ops::parse<ops::CastAttrs>(n).to == static_cast<std::int64_t>(DataType::float32)) {
      n.attributes.set("to", static_cast<std::int64_t>(options_.to));
    } else if (n.op_type == "ConstantOfShape") {
      float value = 0;
      const Tensor* given = ops::parse<ops::FillAttrs>(n).value;
      if (given != nullptr) std::memcpy(&value, given->data(), sizeof(value));
      Tensor narrow(options_.to, {1});
      const std::uint16_t bits = options_.to == DataType::float16 ? float_to_half(value) : BFloat16(value).bits;
      std::memcpy(narrow.mutable_data(), &bits, sizeof(bits));
      n.attributes.set("value", std::move(narrow));
    }
  }

  // The element types of the outputs, given which inputs are of the new type; empty where the definition rules it out.
  std::vector<DataType> output_types(const Node& n, const ops::OpDef& def, const std::vector<bool>& narrow) const {
    std::vector<Type> types(n.inputs.size());
    ops::InferContext context(n, nullptr);
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      ops::InferContext::Input input;
      if (n.inputs[i] != kNoValue) {
        const Tensor* constant = constant_of(g_, n.inputs[i]);
        types[i] = g_.value(n.inputs[i]).type;
        if (floats(n.inputs[i])) types[i].elem = narrow[i] ? options_.to : DataType::float32;
        input.type = &types[i];
        if (!narrow[i] && constant != nullptr && constant->is_aligned()) input.value = constant;
      }
      context.inputs.push_back(input);
    }
    context.outputs.resize(n.outputs.size());
    context.output_syms.resize(n.outputs.size());
    try {
      def.infer(context);
    } catch (const Error&) {
      return {};
    }
    std::vector<DataType> out;
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      const DataType type = context.outputs[i].elem;
      const ops::Formal& formal = def.outputs[std::min(i, def.outputs.size() - 1)];
      if (floats(n.outputs[i]) && (type == DataType::undefined || (formal.types & ops::bit(type)) == 0)) return {};
      out.push_back(type);
    }
    return out;
  }

  // Returns why the node stays; empty where it is converted.
  std::string convert(NodeId id) {
    Node n = g_.node(id);
    const ops::OpDef* const def = n.custom ? nullptr : ops::find(n);
    if (def == nullptr) return "its operator is not defined by this program";
    if (def->outputs.empty() || (def->inputs.empty() && !n.inputs.empty())) return lacks_type(n, options_.to);
    std::vector<bool> narrow = convertible(n, *def);
    // A Cast reads the original value: through float16, an index beyond 2048 would become another one.
    if (n.op_type == "Cast" && n.domain.empty()) narrow[0] = floats(n.inputs[0]) && !is_float32(g_, n.inputs[0]);
    set_type_attributes(n);
    const std::vector<DataType> types = output_types(n, *def, narrow);
    const bool reads = std::find(narrow.begin(), narrow.end(), true) != narrow.end();
    if (types.empty() || (!reads && std::find(types.begin(), types.end(), options_.to) == types.end()))
      return lacks_type(n, options_.to);
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (floats(n.inputs[i])) n.inputs[i] = version(n.inputs[i], narrow[i] ? options_.to : DataType::float32);
    }
    for (std::size_t i = 0; i < n.outputs.size(); ++i) {
      if (floats(n.outputs[i]) && types[i] == options_.to) retype(n.outputs[i], options_.to);
    }
    g_.node(id).inputs = std::move(n.inputs);
    g_.node(id).attributes = std::move(n.attributes);
    ++report_.converted;
    return "";
  }

  void settle_outputs() {
    const DataType wanted = options_.keep_io ? DataType::float32 : options_.to;
    const std::vector<ValueId> old = g_.outputs();
    const std::vector<std::string> names = g_.output_names();
    while (!g_.outputs().empty()) g_.remove_output(g_.outputs().size() - 1);
    for (std::size_t i = 0; i < old.size(); ++i) g_.add_output(floats(old[i]) ? version(old[i], wanted) : old[i], names[i]);
  }

  // A constant without float32 readers passes its name to the converted one.
  void name_constants() {
    const Readers readers(g_);
    for (const auto& [wide, narrow] : twins_) {
      if (constant_of(g_, wide) == nullptr || readers.is_read(wide)) continue;
      const std::string name = g_.value(wide).name;
      g_.rename(wide, name + "_unused");
      g_.rename(narrow, name);
    }
  }

  Graph& g_;
  int opset_;
  const NarrowOptions& options_;
  NarrowReport& report_;
  std::set<ValueId> was_float32_;     // values that have become of the new type
  std::map<ValueId, ValueId> twins_;  // a value -> the same in the other type
};

void collect(const Graph& graph, std::vector<std::string>& nodes, std::vector<std::string>& operators) {
  for (const Node& n : graph.nodes()) {
    if (n.removed) continue;
    if (!n.name.empty()) nodes.push_back(n.name);
    operators.push_back(n.domain.empty() ? n.op_type : n.domain + "." + n.op_type);
    for (const Subgraph& s : n.subgraphs) collect(*s.graph, nodes, operators);
  }
}

void check_names(const std::vector<std::string>& given, std::vector<std::string> known, const char* what) {
  std::sort(known.begin(), known.end());
  for (const std::string& name : given) {
    if (std::binary_search(known.begin(), known.end(), name)) continue;
    const std::string near = closest(name, known);
    fail(ErrorCode::invalid_argument, "the model has no {} '{}'{}", what, name,
         near.empty() ? "" : ", did you mean '" + near + "'?");
  }
}

}  // namespace

NarrowReport narrow(Graph& graph, int opset, const NarrowOptions& options) {
  if (options.to != DataType::float16 && options.to != DataType::bfloat16) {
    fail(ErrorCode::invalid_argument, "models are converted to float16 or bfloat16, not to {}", name(options.to));
  }
  const int least = options.to == DataType::float16 ? 6 : 13;  // of Cast
  if (opset < least) {
    fail(ErrorCode::invalid_argument, "a model needs opset {} to compute in {}; this one has {}", least, name(options.to), opset);
  }
  std::vector<std::string> nodes;
  std::vector<std::string> operators;
  collect(graph, nodes, operators);
  check_names(options.keep_nodes, std::move(nodes), "node");
  check_names(options.keep_ops, std::move(operators), "operator");
  NarrowReport report;
  Narrower(graph, opset, options, report).run();
  return report;
}

}  // namespace sdx
