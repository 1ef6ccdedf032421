#include "cache/pack_store.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/system/mapped_file.h"

namespace sdx::cache {
namespace {

// A source is identified by its address: all constants of a graph exist before its compilation begins.
std::string full_key(const PackKey& key, PackSources sources, std::size_t bytes) {
  std::string text = key.text();
  const auto add = [&](const auto& value) { text.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  add(bytes);
  for (const Tensor* t : sources) {
    const void* data = t != nullptr ? t->data() : nullptr;
    add(data);
  }
  return text;
}

}  // namespace

std::shared_ptr<const void> PackStore::get(const PackKey& key, PackSources sources, std::size_t bytes,
                                           const std::function<void(float*)>& fill) {
  std::string full = full_key(key, sources, bytes);
  if (const auto it = known_.find(full); it != known_.end()) {
    if (auto held = it->second.lock()) return held;
  }
  std::shared_ptr<const void> data = shelf_ != nullptr ? shelf_->find(key, sources, bytes) : nullptr;
  if (data == nullptr) {
    ++misses_;
    const std::shared_ptr<void> memory = pool_.allocate(bytes);
    fill(static_cast<float*>(memory.get()));
    for (const Tensor* t : sources) {
      if (t != nullptr) release_mapped_pages(t->data(), t->bytes());
    }
    data = memory;
  }
  if (record_) {
    Made made{key.text(), {}, data, bytes};
    for (const Tensor* t : sources) made.sources.push_back(t != nullptr ? *t : Tensor());
    made_.push_back(std::move(made));
  }
  known_[std::move(full)] = data;
  return data;
}

std::vector<PackStore::Made> PackStore::made() const {
  std::vector<Made> held;
  std::copy_if(made_.begin(), made_.end(), std::back_inserter(held), [](const Made& m) { return m.data.use_count() > 1; });
  return held;
}

}  // namespace sdx::cache
