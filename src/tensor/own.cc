#include "tensor/own.h"

#include <algorithm>
#include <functional>
#include <unordered_set>
#include <utility>

namespace sdx {
namespace {

const HeldSequence& held_sequence(const Value& v) { return static_cast<const HeldSequence&>(v.sequence()); }

using Containers = std::unordered_set<const void*>;

const void* address(const Value& v) { return v.is_sequence() ? static_cast<const void*>(&v.sequence()) : &v.map(); }
bool is_container(const Value& v) { return v.is_sequence() || v.is_map(); }

// A value made anew of copies of the tensors that `wants_copy` is true for; `shared` are its own tensors that lie in a sequence
// or map which `enter` is true for. Where nothing is copied it is `v` itself.
class Copier {
 public:
  std::function<bool(const Tensor&)> wants_copy;
  std::function<bool(const Value&)> enter = [](const Value&) { return false; };

  Value copy(const Value& v, bool all = false) {
    if (v.is_tensor()) return take(v.tensor(), all);
    if (!is_container(v)) return v;
    all = enter(v) || all;
    const std::size_t before = copies_;
    if (v.is_map()) {
      Map made{take(v.map().keys, all), take(v.map().values, all)};
      return copies_ != before ? Value(std::move(made)) : v;
    }
    Sequence made{v.sequence().element_type, {}};
    made.items.reserve(v.sequence().items.size());
    for (const Value& item : v.sequence().items) made.items.push_back(copy(item, all));
    return copies_ != before ? Value(std::move(made)) : v;
  }

 private:
  Tensor take(const Tensor& t, bool all) {
    if (!t.defined() || !(all || wants_copy(t))) return t;
    ++copies_;
    return t.clone();
  }
  std::size_t copies_ = 0;
};

void note_containers(const Value& v, Containers& seen) {
  if (!is_container(v)) return;
  seen.insert(address(v));
  if (!v.is_sequence()) return;
  for (const Value& item : v.sequence().items) note_containers(item, seen);
}

}  // namespace

bool owns_memory(const Value& v) {
  const auto owns = [](const Tensor& t) { return !t.defined() || t.owner() != nullptr; };
  if (v.is_tensor()) return owns(v.tensor());
  if (v.is_map()) return owns(v.map().keys) && owns(v.map().values);
  if (!v.is_sequence()) return true;
  const HeldSequence& held = held_sequence(v);
  if (held.owns_memory.load(std::memory_order_relaxed)) return true;
  const bool all = std::all_of(held.items.begin(), held.items.end(), owns_memory);
  if (all) held.owns_memory.store(true, std::memory_order_relaxed);
  return all;
}

Sequence* sole_sequence(Value& v) {
  if (!v.is_sequence() || held_sequence(v).weak_from_this().use_count() != 1) return nullptr;
  return const_cast<HeldSequence*>(&held_sequence(v));  // made as one that may be changed
}

Value owned(const Value& v) {
  if (owns_memory(v)) return v;
  Copier copier;
  copier.wants_copy = [](const Tensor& t) { return t.owner() == nullptr; };
  return copier.copy(v);
}

void unshare(std::vector<Value>& results, const std::vector<Value>& given) {
  Containers seen;
  for (const Value& v : given) note_containers(v, seen);
  Copier copier;
  copier.wants_copy = [](const Tensor& t) { return t.owner().use_count() != 1; };
  // A tensor in a sequence counts one holder, the sequence, even if two hold that.
  copier.enter = [&](const Value& v) { return !seen.insert(address(v)).second; };
  for (Value& v : results) v = copier.copy(v);
}

}  // namespace sdx
