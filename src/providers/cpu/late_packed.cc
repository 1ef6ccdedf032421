#include "providers/cpu/late_packed.h"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/system/mapped_file.h"

namespace sdx::cpu {

namespace {

void check_unchanged(const Tensor& source) {
  const auto file = MappedFile::holding(source.data());
  if (file != nullptr && file->is_mapped()) file->check_unchanged();
}

}  // namespace

struct LatePacked::Pending {
  std::once_flag once;
  float* memory = nullptr;  // of every Packed that shares this
  std::mutex mutex;         // for sources
  std::vector<Tensor> sources;
  std::function<void(float*)> fill;
  std::atomic<bool> in_use{false};  // the source was given to a run

  void run() {
    for (const Tensor& t : sources) check_unchanged(t);
    fill(memory);
    for (const Tensor& t : sources) check_unchanged(t);  // meanwhile
    for (const Tensor& t : sources) release_mapped_pages(t.data(), t.bytes());
    const std::lock_guard lock(mutex);
    sources.clear();
    fill = nullptr;
  }
};

namespace {

// Packings that are still to be filled, by their memory. An entry whose memory is gone has expired.
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
  if (c.records_packs()) {
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

Tensor LatePacked::first_source() const {
  if (!pending_ || pending_->in_use.exchange(true, std::memory_order_relaxed)) return {};
  const std::lock_guard lock(pending_->mutex);
  if (pending_->sources.empty()) return {};  // another thread has packed it
  check_unchanged(pending_->sources[0]);
  return pending_->sources[0];
}

LateMatrix::LateMatrix(LowerContext& c, const Tensor& w, std::int64_t k, std::int64_t n, bool trans, float scale)
    : ld_(trans ? k : n), trans_(trans) {
  constexpr std::size_t kSmall = std::size_t{256} << 10;
  const std::size_t bytes = packed_b_bytes(k, n);
  packed_ =
      LatePacked(c, {&w}, bytes, cache::PackKey("gemm-b", trans, k, n, scale),
                 [data = w.data(), ld = ld_, trans, k, n, scale](float* to) { pack_b_f32(data, ld, trans, k, n, scale, to); });
  if (bytes < kSmall || scale != 1.0F) packed_.data();
}

void LateMatrix::multiply(GemmArgs& g, const std::function<void()>& product) const {
  const Tensor source = packed_.first_source();
  if (source.data() == nullptr) {
    g.packed_b = packed_.data();
    return product();
  }
  g.b = static_cast<const float*>(source.data());
  g.ldb = ld_;
  g.trans_b = trans_;
  g.like_packed = true;
  product();
  release_mapped_pages(source.data(), source.bytes());
}

}  // namespace sdx::cpu
