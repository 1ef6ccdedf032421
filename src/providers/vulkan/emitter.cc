#include "providers/vulkan/emitter.h"

#include <algorithm>

#include "base/error.h"
#include "tensor/element.h"

namespace sdx::vulkan {

Dispatch::Dispatch(Shader shader, std::initializer_list<std::uint32_t> constants) {
  SDX_ASSERT(constants.size() <= kMostConstants);
  command.shader = shader;
  command.constant_count = static_cast<std::uint32_t>(constants.size());
  std::copy(constants.begin(), constants.end(), command.constants);
}

void Dispatch::add(const void* bytes, std::size_t count) {
  SDX_ASSERT(command.push_bytes + count <= kMostPush);
  std::memcpy(command.push + command.push_bytes, bytes, count);
  command.push_bytes += static_cast<std::uint32_t>(count);
}

Dispatch& Dispatch::address(Operand operand, std::uint64_t offset, bool writes) {
  patches.push_back({command.push_bytes, operand, offset, writes});
  return no_address();
}

Dispatch& Dispatch::no_address() {
  const std::uint64_t none = 0;
  add(&none, sizeof none);
  return *this;
}

Dispatch& Dispatch::word(std::int64_t value) {
  if (value > 0x7FFFFFFF || value < -0x7FFFFFFF) {
    fail(ErrorCode::not_implemented, "vulkan: {} is more than a shader counts to", value);
  }
  const auto narrow = static_cast<std::int32_t>(value);
  add(&narrow, sizeof narrow);
  return *this;
}

Dispatch& Dispatch::number(float value) {
  add(&value, sizeof value);
  return *this;
}

Emitter::Emitter(const Graph& graph, const ops::InferResult& inferred, const DeviceFacts& device)
    : graph_(graph), inferred_(inferred), device_(device), aliases_(graph.values().size()) {}

Shape Emitter::shape(ValueId v) const {
  const Type& type = inferred_.types[v];
  if (!type.has_static_shape()) {
    fail(ErrorCode::runtime_failure, "vulkan: the shape of '{}' is not known before the run: {}", graph_.value(v).name,
         type.str());
  }
  return to_shape(*type.shape);
}

std::uint64_t Emitter::bytes(ValueId v) const { return byte_size(type(v), size(v)); }

const Tensor* Emitter::known(ValueId v) const {
  if (const auto it = inferred_.values.find(v); it != inferred_.values.end()) return &it->second;
  const ValueInfo& info = graph_.value(v);
  return info.constant && !info.is_input ? &*info.constant : nullptr;
}

std::vector<std::int64_t> Emitter::ints(ValueId v) const {
  const Tensor* t = known(v);
  if (t == nullptr) {
    fail(ErrorCode::runtime_failure, "vulkan: the elements of '{}' are not known before the run", graph_.value(v).name);
  }
  return to_ints(t->is_aligned() ? *t : t->aligned());
}

void Emitter::check_size(const Node& node, std::size_t input, std::int64_t wanted) const {
  if (!has(node, input) || size(node.inputs[input]) == wanted) return;
  fail(ErrorCode::runtime_failure, "input '{}' must have {} elements, received {}", graph_.value(node.inputs[input]).name, wanted,
       to_string(shape(node.inputs[input])));
}

void Emitter::alias(ValueId out, ValueId in, std::uint64_t offset) { aliases_[out] = Alias{in, offset}; }

Operand Emitter::temporary(std::uint64_t bytes) {
  extras_.push_back({bytes, {}});
  return static_cast<Operand>(graph_.values().size() + extras_.size() - 1);
}

Operand Emitter::table(std::vector<std::uint32_t> words) {
  const Operand made = temporary(words.size() * 4);
  extras_.back().words = std::move(words);
  return made;
}

Operand Emitter::status(std::string message) {
  const Operand word = temporary(4);
  statuses_.push_back({word, std::move(message)});
  dispatch(std::move(Dispatch(Shader::fill, {}).write(word).word(1).word(0)), 1);
  return word;
}

void Emitter::dispatch(Dispatch d, std::int64_t invocations, std::uint64_t cost_each) {
  const std::int64_t groups = (invocations + kGroup - 1) / kGroup;
  const std::int64_t x = std::min<std::int64_t>(groups, device_.most_groups[0]);
  dispatch_groups(std::move(d), x, x == 0 ? 0 : (groups + x - 1) / x, 1, static_cast<std::uint64_t>(invocations) * cost_each);
}

void Emitter::dispatch_groups(Dispatch d, std::int64_t x, std::int64_t y, std::int64_t z, std::uint64_t cost) {
  if (x == 0 || y == 0 || z == 0) return;
  const std::int64_t asked[] = {x, y, z};
  for (int i = 0; i < 3; ++i) {
    if (asked[i] > device_.most_groups[i]) {
      fail(ErrorCode::not_implemented, "vulkan: a dispatch of {} workgroups is more than the device allows ({})", asked[i],
           device_.most_groups[i]);
    }
    d.command.groups[i] = static_cast<std::uint32_t>(asked[i]);
  }
  d.command.cost = cost;
  dispatches_.push_back(std::move(d));
}

void Emitter::dispatch_rows(Dispatch d, std::int64_t rows, std::uint32_t lanes, std::int64_t extent) {
  const std::int64_t each = kGroup / lanes;
  const std::int64_t groups = (rows + each - 1) / each;
  const std::int64_t x = std::min<std::int64_t>(groups, device_.most_groups[0]);
  const auto cost = static_cast<std::uint64_t>(rows) * static_cast<std::uint64_t>(extent) * 4;
  dispatch_groups(std::move(d), x, x == 0 ? 0 : (groups + x - 1) / x, 1, cost);
}

std::uint32_t lanes_for(std::int64_t rows, std::int64_t extent, std::int64_t inner) {
  // Neighbouring rows lie side by side: an invocation each reads in order.
  if (inner > 1 && rows >= 1024) return 1;
  const auto half = static_cast<std::uint64_t>(std::clamp<std::int64_t>(extent / 2, 1, kGroup));
  return static_cast<std::uint32_t>(std::bit_floor(half));
}

}  // namespace sdx::vulkan
