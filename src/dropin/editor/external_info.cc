// The places of weights in files, as programs set and query them.

#include <memory>
#include <string>

#include "dropin/objects.h"
#include "dropin/status.h"
#include "dropin/table.h"

namespace sdx::dropin {

struct OrtExternalInitializerInfo {
  std::string path;
  std::int64_t offset = 0;
  std::size_t bytes = 0;
};

namespace {

OrtStatus* create(const char* path, std::int64_t offset, std::size_t bytes, OrtExternalInitializerInfo** out) noexcept {
  return guarded([&] {
    require(out, "out") = nullptr;
    *out = std::make_unique<OrtExternalInitializerInfo>(OrtExternalInitializerInfo{&require(path, "filepath"), offset, bytes})
               .release();
  });
}
void release(OrtExternalInitializerInfo* info) noexcept { delete info; }
const char* file_path(const OrtExternalInitializerInfo* info) noexcept { return info != nullptr ? info->path.c_str() : nullptr; }
std::int64_t file_offset(const OrtExternalInitializerInfo* info) noexcept { return info != nullptr ? info->offset : 0; }
std::size_t byte_size_of(const OrtExternalInitializerInfo* info) noexcept { return info != nullptr ? info->bytes : 0; }

}  // namespace

void fill_external_info(Table& table) {
  table.set(Slot::CreateExternalInitializerInfo, &create);
  table.set(Slot::ReleaseExternalInitializerInfo, &release);
  table.set(Slot::ExternalInitializerInfo_GetFilePath, &file_path);
  table.set(Slot::ExternalInitializerInfo_GetFileOffset, &file_offset);
  table.set(Slot::ExternalInitializerInfo_GetByteSize, &byte_size_of);
}

}  // namespace sdx::dropin
