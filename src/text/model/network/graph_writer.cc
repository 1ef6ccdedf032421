#include "text/model/network/graph_writer.h"

#include <algorithm>
#include <charconv>

#include "base/parallel.h"
#include "tensor/types.h"

namespace sdx::text {
namespace {

constexpr int kOpset = 21;

Dim dim_of(const std::string& text) {
  std::int64_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && end == text.data() + text.size() ? Dim(n) : Dim::symbol(text);
}

}  // namespace

Tensor with_type(Tensor floats, DataType type) {
  if (type == DataType::float32) return floats;
  constexpr float kMost = 65504.0F;
  Tensor out(DataType::float16, floats.shape());
  const float* from = floats.values<float>().data();
  auto* to = static_cast<std::uint16_t*>(out.mutable_data());
  in_parallel(floats.size(), 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) to[i] = float_to_half(std::clamp(from[i], -kMost, kMost));
  });
  return out;
}

GraphWriter::GraphWriter() {
  model_.ir_version = 10;
  model_.producer_name = "sardonyx";
  model_.opsets = {{"", kOpset}, {"com.microsoft", 1}};
  model_.graph.name = "main_graph";
}

ValueId GraphWriter::input(const std::string& name, DataType type, const std::vector<std::string>& extents) {
  SymShape shape;
  for (const std::string& e : extents) shape.push_back(dim_of(e));
  return graph().add_input(name, Type::tensor(type, std::move(shape)));
}

void GraphWriter::output(ValueId value, const std::string& name) { graph().add_output(value, name); }

std::vector<ValueId> GraphWriter::nodes(const std::string& op, const std::string& name, std::vector<ValueId> inputs,
                                        const std::vector<std::string>& outputs, const AttributeList& attributes) {
  Node n;
  const std::size_t dot = op.rfind('.');
  n.domain = dot == std::string::npos ? "" : op.substr(0, dot);
  n.op_type = dot == std::string::npos ? op : op.substr(dot + 1);
  n.version = n.domain.empty() ? kOpset : 1;
  model_.opsets.emplace(n.domain, n.version);
  n.name = name;
  while (!inputs.empty() && inputs.back() == kNoValue) inputs.pop_back();
  n.inputs = std::move(inputs);
  for (const std::string& o : outputs) n.outputs.push_back(o.empty() ? kNoValue : graph().add_value(o));
  for (const auto& [key, value] : attributes) n.attributes.set(key, value);
  std::vector<ValueId> made = n.outputs;
  graph().add_node(std::move(n));
  return made;
}

ValueId GraphWriter::node(const std::string& op, const std::string& name, std::vector<ValueId> inputs,
                          const AttributeList& attributes) {
  return nodes(op, name, std::move(inputs), {name + "/output_0"}, attributes)[0];
}

}  // namespace sdx::text
