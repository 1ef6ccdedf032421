#include <algorithm>
#include <cstring>
#include <map>

#include "graph/edit.h"
#include "ops/op.h"
#include "passes/pass.h"
#include "passes/simplify/simplify.h"

namespace sdx::simplify {
namespace {

constexpr std::size_t kSmallConstant = 1024;  // bytes: part of a key as a whole
constexpr std::size_t kSample = 64;           // bytes of a larger one that are

void append(std::string& key, const void* data, std::size_t size) { key.append(static_cast<const char*>(data), size); }

void append_number(std::string& key, std::uint64_t n) { append(key, &n, sizeof n); }

void append_text(std::string& key, const std::string& text) {
  append_number(key, text.size());
  key += text;
}

bool append_tensor(std::string& key, const Tensor& t) {
  if (t.dtype() == DataType::string || t.bytes() > kSmallConstant) return false;
  append_number(key, static_cast<std::uint64_t>(t.dtype()));
  append_number(key, t.rank());
  for (const std::int64_t d : t.shape()) append_number(key, static_cast<std::uint64_t>(d));
  append(key, t.data(), t.bytes());
  return true;
}

// False for attributes that are not worth comparing.
bool append_attribute(std::string& key, const AttributeValue& value) {
  append_number(key, value.index());
  if (const auto* i = std::get_if<std::int64_t>(&value)) return append_number(key, static_cast<std::uint64_t>(*i)), true;
  if (const auto* f = std::get_if<float>(&value)) return append(key, f, sizeof *f), true;
  if (const auto* s = std::get_if<std::string>(&value)) return append_text(key, *s), true;
  if (const auto* t = std::get_if<Tensor>(&value)) return append_tensor(key, *t);
  if (const auto* v = std::get_if<std::vector<std::int64_t>>(&value)) {
    append_number(key, v->size());
    for (const std::int64_t i : *v) append_number(key, static_cast<std::uint64_t>(i));
    return true;
  }
  if (const auto* v = std::get_if<std::vector<float>>(&value)) {
    append_number(key, v->size());
    append(key, v->data(), v->size() * sizeof(float));
    return true;
  }
  return false;
}

// "" for nodes that cannot be shared.
std::string key_of(const Node& n) {
  const ops::OpDef* def = ops::find(n);
  if (n.removed || def == nullptr || !def->deterministic || !n.subgraphs.empty()) return {};
  std::string key;
  append_text(key, n.domain);
  append_text(key, n.op_type);
  append_number(key, static_cast<std::uint64_t>(n.version));
  append_number(key, n.name.starts_with(kAgain) ? 1 : 0);
  append_number(key, n.outputs.size());
  append_number(key, n.inputs.size());
  for (const ValueId v : n.inputs) append_number(key, v);
  for (const auto& [name, value] : n.attributes.items()) {
    append_text(key, name);
    if (!append_attribute(key, value)) return {};
  }
  return key;
}

// Equal for equal tensors. Of large ones it holds the first 64 bytes: weights of one shape nearly always differ there, and are
// then never read as a whole, which would bring a file's pages into memory before they are needed. The page of the first bytes
// has been read already, with the tensor's name.
std::string constant_key(const Tensor& t) {
  std::string key;
  if (t.dtype() == DataType::string || append_tensor(key, t)) return key;
  append_number(key, static_cast<std::uint64_t>(t.dtype()));
  append_number(key, t.rank());
  for (const std::int64_t d : t.shape()) append_number(key, static_cast<std::uint64_t>(d));
  append(key, t.data(), kSample);
  return key;
}

bool share_constants(Graph& graph, Readers& readers) {
  bool changed = false;
  std::map<std::string, std::vector<ValueId>> seen;
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    const ValueInfo& info = graph.value(v);
    if (!info.constant || info.is_input) continue;
    const Tensor& t = *info.constant;
    std::string key = constant_key(t);
    if (key.empty()) continue;
    std::vector<ValueId>& alike = seen[std::move(key)];
    const auto same = std::find_if(alike.begin(), alike.end(), [&](ValueId other) {
      const void* data = graph.value(other).constant->data();
      return t.bytes() <= kSmallConstant || data == t.data() || std::memcmp(data, t.data(), t.bytes()) == 0;
    });
    if (same == alike.end()) {
      alike.push_back(v);
      continue;
    }
    readers.replace(graph, v, *same);
    graph.value(v).constant.reset();
    changed = true;
  }
  return changed;
}

}  // namespace

bool share_common(Graph& graph) {
  Readers readers(graph);
  bool changed = share_constants(graph, readers);
  std::map<std::string, NodeId> seen;
  for (NodeId id = 0; id < graph.nodes().size(); ++id) {
    std::string key = key_of(graph.node(id));
    if (key.empty()) continue;
    const auto [it, added] = seen.emplace(std::move(key), id);
    if (added) continue;
    const std::vector<ValueId> gone = graph.node(id).outputs;
    const std::vector<ValueId> kept = graph.node(it->second).outputs;
    bool same_outputs = true;
    for (std::size_t i = 0; i < gone.size(); ++i) same_outputs = same_outputs && (gone[i] == kNoValue || kept[i] != kNoValue);
    if (!same_outputs) continue;
    graph.remove_node(id);
    for (std::size_t i = 0; i < gone.size(); ++i) {
      if (gone[i] != kNoValue) readers.replace(graph, gone[i], kept[i]);
    }
    changed = true;
  }
  return changed;
}

}  // namespace sdx::simplify
