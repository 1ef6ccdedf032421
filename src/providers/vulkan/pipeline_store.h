#pragma once
// Compiled pipelines of a device, kept between processes: ROOT/vulkan/KEY/pipelines in the cache folder.

#include <filesystem>
#include <memory>
#include <mutex>

#include "cache/entry.h"
#include "kernels/vulkan/table.h"

namespace sdx::vulkan {

// Thread-safe. Sessions on the same device share one.
class PipelineStore {
 public:
  // `cache`: the cache folder. Null where nothing can be kept there.
  static std::shared_ptr<PipelineStore> of(const std::filesystem::path& cache, const DeviceFacts& device);
  explicit PipelineStore(std::shared_ptr<cache::CacheEntry> entry) : entry_(std::move(entry)) {}

  // Gives the device what an earlier process has kept, once. Never throws: pipelines are compiled anew then.
  void load(const Table& table, Device* device) noexcept;
  // Keeps what has been compiled since. Never throws.
  void keep(const Table& table, Device* device) noexcept;

 private:
  std::shared_ptr<cache::CacheEntry> entry_;
  std::mutex mutex_;  // guards what follows
  bool loaded_ = false;
  std::size_t kept_ = 0;  // bytes of the file
};

}  // namespace sdx::vulkan
