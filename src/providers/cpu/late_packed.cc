#include "providers/cpu/late_packed.h"

#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/system/mapped_file.h"

namespace sdx::cpu {

struct LatePacked::Pending {
  std::once_flag once;
  float* memory = nullptr;  // of every Packed that shares this
  std::vector<Tensor> sources;
  std::function<void(float*)> fill;

  void run() {
    for (const Tensor& t : sources) {
      const auto file = MappedFile::holding(t.data());
      if (file != nullptr && file->is_mapped()) file->check_unchanged();
    }
    fill(memory);
    for (const Tensor& t : sources) release_mapped_pages(t.data(), t.bytes());
    sources.clear();
    fill = nullptr;
  }
};

namespace {

// What is still to be filled, by its memory. An entry whose memory is gone has expired.
template <class Pending>
class Registry {
 public:
  std::shared_ptr<Pending> find(const void* memory) {
    const std::lock_guard lock(mutex_);
    const auto it = all_.find(memory);
    return it == all_.end() ? nullptr : it->second.lock();
  }
  void add(const void* memory, const std::shared_ptr<Pending>& pending) {
    const std::lock_guard lock(mutex_);
    std::erase_if(all_, [](const auto& entry) { return entry.second.expired(); });
    all_[memory] = pending;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const void*, std::weak_ptr<Pending>> all_;
};

}  // namespace

LatePacked::LatePacked(LowerContext& c, std::initializer_list<const Tensor*> sources, std::size_t bytes,
                       const cache::PackKey& key, std::function<void(float*)> fill) {
  static Registry<Pending>& registry = *new Registry<Pending>;  // kernels may outlive statics
  float* memory = nullptr;
  packed_ = c.pack(sources, bytes, key, [&](float* to) { memory = to; });
  if (memory == nullptr) {  // an earlier kernel's, which may wait to be filled, or a compiled model's
    pending_ = registry.find(packed_.data());
    return;
  }
  // A store lists what it made only if that is recorded, to be written when the compilation is done.
  const cache::PackStore* store = cache::current_pack_store();
  if (store != nullptr && !store->made().empty()) {
    fill(memory);
    for (const Tensor* t : sources) {
      if (t != nullptr) release_mapped_pages(t->data(), t->bytes());
    }
    return;
  }
  pending_ = std::make_shared<Pending>();
  pending_->memory = memory;
  pending_->fill = std::move(fill);
  for (const Tensor* t : sources) {
    if (t != nullptr) pending_->sources.push_back(*t);
  }
  registry.add(memory, pending_);
}

const float* LatePacked::data() const {
  if (pending_) std::call_once(pending_->once, [this] { pending_->run(); });
  return packed_.data();
}

}  // namespace sdx::cpu
