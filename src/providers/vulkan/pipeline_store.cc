#include "providers/vulkan/pipeline_store.h"

#include <fmt/format.h>

#include <map>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/system/mapped_file.h"
#include "cache/folder.h"
#include "providers/vulkan/runtime.h"

namespace sdx::vulkan {
namespace {

constexpr const char* kFile = "pipelines";
constexpr std::size_t kMostBytes = std::size_t{256} << 20;  // a few thousand pipelines; more is not ours

std::string key_of(const DeviceFacts& d) {
  std::string text = fmt::format("{} {} {} {} {} {} ", d.name, d.driver, d.vendor, d.device, d.driver_version, d.api_minor);
  for (const unsigned char byte : d.cache_id) text += fmt::format("{:02x}", byte);
  return hash_text(text);
}

}  // namespace

std::shared_ptr<PipelineStore> PipelineStore::of(const std::filesystem::path& cache, const DeviceFacts& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<std::string, std::weak_ptr<PipelineStore>>;
  const std::string key = key_of(device);
  const std::lock_guard lock(mutex);
  std::weak_ptr<PipelineStore>& known = all[(cache / key).string()];
  if (auto store = known.lock()) return store;
  auto entry = cache::CacheEntry::open(cache / "vulkan", key, device.name);
  if (!entry) return nullptr;
  auto made = std::make_shared<PipelineStore>(std::move(entry));
  known = made;
  return made;
}

void PipelineStore::load(const Table& table, Device* device) noexcept {
  const std::lock_guard lock(mutex_);
  if (loaded_) return;
  loaded_ = true;
  try {
    const std::filesystem::path file = entry_->folder() / kFile;
    std::error_code unreadable;
    if (!entry_->warm() || !std::filesystem::exists(file, unreadable)) return;
    const std::string bytes = read_file(file, kMostBytes);
    checked(table.add_pipelines, device, bytes.data(), bytes.size());
    kept_ = bytes.size();
  } catch (const std::exception& e) {
    log::info("vulkan: pipelines are compiled anew: {}", e.what());
    entry_->discard();
  }
}

void PipelineStore::keep(const Table& table, Device* device) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    std::size_t bytes = 0;
    checked(table.pipelines, device, static_cast<void*>(nullptr), std::size_t{0}, &bytes);
    if (bytes <= kept_ || bytes > kMostBytes) return;
    std::string data(bytes, '\0');
    checked(table.pipelines, device, static_cast<void*>(data.data()), data.size(), &bytes);
    if (bytes > data.size()) return;  // more were compiled in between, and another session keeps them
    data.resize(bytes);
    write_file_atomically(entry_->folder() / kFile, data, cache::kCacheFileMode);
    kept_ = bytes;
    entry_->seal();
  } catch (const std::exception& e) {
    log::info("vulkan: compiled pipelines are not kept: {}", e.what());
  }
}

}  // namespace sdx::vulkan
