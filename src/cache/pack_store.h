#pragma once
// Weights in kernels' own orders: each made once, or found in a compiled model.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include <sdx/tensor.hpp>

#include "base/block_pool.h"

namespace sdx::cache {

// Identifies an order: everything that packed weights depend on besides their sources and the instruction set. Equal keys and
// equal sources give equal bytes, in every process of this build.
class PackKey {
 public:
  // Values: numbers, enumerations, plain structures without padding.
  template <class... T>
  explicit PackKey(std::string_view name, const T&... values) : text_(name) {
    (add(values), ...);
  }
  const std::string& text() const { return text_; }

 private:
  template <class T>
  void add(const T& value) {
    static_assert(std::is_arithmetic_v<T> || std::has_unique_object_representations_v<T>);
    text_ += '/';
    text_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  std::string text_;
};

// Non-null entries are constants of the graph that is being compiled, which outlive the compilation's use of them.
using PackSources = std::span<const Tensor* const>;

// Packed weights of a compiled model.
class PackShelf {
 public:
  virtual ~PackShelf() = default;
  // 64-byte aligned; null where there is nothing for this key, these sources and this size.
  virtual std::shared_ptr<const void> find(const PackKey& key, PackSources sources, std::size_t bytes) const = 0;
};

// One compilation's packed weights. Not thread-safe.
class PackStore {
 public:
  struct Made {
    std::string key;
    std::vector<Tensor> sources;
    std::shared_ptr<const void> data;
    std::size_t bytes = 0;
  };

  // `shelf`: the place to search first; may be null. `record`: made() stores packed weights and their sources in it.
  explicit PackStore(const PackShelf* shelf = nullptr, bool record = false) : shelf_(shelf), record_(record) {}

  // Memory of `bytes` bytes that `fill` wrote, 64-byte aligned; shared with earlier calls of the same key and sources. Releases
  // the file pages behind the sources that it has read.
  std::shared_ptr<const void> get(const PackKey& key, PackSources sources, std::size_t bytes,
                                  const std::function<void(float*)>& fill);

  bool records() const { return record_; }
  // Packed weights that a kernel still holds.
  std::vector<Made> made() const;
  // Calls that the shelf could not answer.
  std::size_t misses() const { return misses_; }

 private:
  const PackShelf* shelf_;
  bool record_;
  std::size_t misses_ = 0;
  BlockPool pool_;
  std::unordered_map<std::string, std::weak_ptr<const void>> known_;  // gone with the last kernel that has it
  std::vector<Made> made_;
};

}  // namespace sdx::cache
