#include "providers/openvino/library.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>

#include "base/log.h"
#include "base/system/files/library_name.h"
#include "providers/vendor/search.h"

namespace sdx::openvino {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStem = "openvino_c";

// "2025.3.0-19807-44526285f24-releases/2025/3" -> "2025.3.0"
std::string short_version(const std::string& build) { return build.substr(0, build.find('-')); }

}  // namespace

std::vector<fs::path> library_candidates(const ProviderSettings& settings) {
  if (const char* v = std::getenv("SDX_OPENVINO_LIB"); v != nullptr && *v != 0) return {v};
  if (!settings.openvino_library.empty()) return {settings.openvino_library};
  std::vector<fs::path> out;
  for (const fs::path& folder : program_folders()) add_library_of(folder, kStem, out);
  for (const fs::path& site : site_packages()) add_library_of(site / "openvino" / "libs", kStem, out);
  if (const char* v = std::getenv("INTEL_OPENVINO_DIR"); v != nullptr && *v != 0) {
    for (const char* leaf : {"intel64", "aarch64", "arm64"}) add_library_of(fs::path(v) / "runtime" / "lib" / leaf, kStem, out);
  }
  if (const std::string found = find_library(shared_library_name(kStem)); !found.empty()) out.emplace_back(found);
  // Without the development package there are names with versions alone.
  for (const LoaderCacheEntry& e : LoaderView::current().cache) {
    if (e.soname.starts_with("libopenvino_c.so")) out.emplace_back(e.path);
  }
  return out;
}

fs::path choose_library(const ProviderSettings& settings) {
  if (!can_load_libraries()) fail(ErrorCode::provider_unavailable, "OpenVINO cannot be used: {}", why_no_libraries());
  const std::vector<fs::path> candidates = library_candidates(settings);
  if (candidates.empty()) {
    fail(ErrorCode::provider_unavailable,
         "{} was looked for beside this program, in the Python package openvino, below INTEL_OPENVINO_DIR and on "
         "the loader's search path",
         shared_library_name(kStem));
  }
  std::error_code none;
  if (!fs::exists(candidates.front(), none)) {
    fail(ErrorCode::provider_unavailable, "'{}', given by SDX_OPENVINO_LIB or the configuration, does not exist",
         candidates.front().string());
  }
  return candidates.front();
}

std::shared_ptr<const Library> Library::open(const fs::path& file) {
  static std::mutex mutex;
  // Never destroyed: see the class.
  static auto* const open_libraries = new std::map<std::string, std::shared_ptr<const Library>>;
  const std::lock_guard lock(mutex);
  std::error_code none;
  const fs::path resolved = fs::exists(file, none) ? fs::canonical(file, none) : file;
  std::shared_ptr<const Library>& slot = (*open_libraries)[resolved.string()];
  if (slot) return slot;
  const std::shared_ptr<Library> made(new Library);
  made->path_ = resolved;
  made->file_ = DynamicLibrary::open(resolved);
  Functions& f = made->f_;
#define SDX_OPENVINO_LOAD(result, name, arguments) f.name = reinterpret_cast<decltype(f.name)>(made->file_->symbol("ov_" #name));
  SDX_OPENVINO_FUNCTIONS(SDX_OPENVINO_LOAD)
  SDX_OPENVINO_OPTIONAL(SDX_OPENVINO_LOAD)
#undef SDX_OPENVINO_LOAD
#define SDX_OPENVINO_NEED(result, name, arguments)                                                                         \
  if (f.name == nullptr) {                                                                                                 \
    fail(ErrorCode::provider_unavailable, "'{}' has no function ov_{}: it is not a C library of OpenVINO 2023.1 or newer", \
         resolved.string(), #name);                                                                                        \
  }
  SDX_OPENVINO_FUNCTIONS(SDX_OPENVINO_NEED)
#undef SDX_OPENVINO_NEED
  c::Version version{};
  made->check(f.get_openvino_version(&version), ErrorCode::provider_unavailable);
  made->version_ = short_version(version.build == nullptr ? "" : version.build);
  f.version_free(&version);
  made->check(f.core_create(&made->core_), ErrorCode::provider_unavailable);
  made->find_element_types();
  log::info("OpenVINO {} is loaded from '{}'", made->version_, resolved.string());
  slot = made;
  return slot;
}

// The numbers of element types have changed between versions (2025 dropped one at the beginning, 2024 added some in the middle),
// but the sizes of elements tell them: a group of types in a fixed order stands where eight elements take the right numbers of
// bytes.
void Library::find_element_types() {
  constexpr int kMost = 20;  // the last that is looked for is 17 in 2023.1 and 19 in 2026.4
  std::array<std::size_t, kMost> bytes{};
  for (int type = 0; type < kMost; ++type) {
    std::int64_t eight = 8;
    c::Tensor* t = nullptr;
    if (f_.tensor_create(type, {1, &eight}, &t) != kOk || t == nullptr) continue;
    if (f_.tensor_get_byte_size(t, &bytes[static_cast<std::size_t>(type)]) != kOk) bytes[static_cast<std::size_t>(type)] = 0;
    f_.tensor_free(t);
  }
  const auto find_group = [&](const std::vector<std::pair<DataType, std::size_t>>& group, std::size_t from) {
    for (std::size_t at = from; at + group.size() <= bytes.size(); ++at) {
      std::size_t i = 0;
      while (i < group.size() && bytes[at + i] == 8 * group[i].second) ++i;
      if (i < group.size()) continue;
      for (i = 0; i < group.size(); ++i) {
        if (group[i].first != DataType::undefined) types_.emplace_back(group[i].first, static_cast<int>(at + i));
      }
      return at + group.size();
    }
    fail(ErrorCode::provider_unavailable, "OpenVINO {} ('{}') numbers its element types in an unknown way", version_,
         path_.string());
  };
  using enum DataType;
  const std::size_t next = find_group({{boolean, 1}, {bfloat16, 2}, {float16, 2}, {float32, 4}, {float64, 8}}, 0);
  // Between these is i4 (half a byte each), before i8.
  const std::size_t after = find_group({{int8, 1}, {int16, 2}, {int32, 4}, {int64, 8}}, next);
  find_group({{uint8, 1}, {uint16, 2}, {uint32, 4}, {uint64, 8}}, after);
}

int Library::element_type(DataType type) const {
  const auto it = std::find_if(types_.begin(), types_.end(), [&](const auto& t) { return t.first == type; });
  return it == types_.end() ? -1 : it->second;
}

DataType Library::data_type(int type) const {
  const auto it = std::find_if(types_.begin(), types_.end(), [&](const auto& t) { return t.second == type; });
  return it == types_.end() ? DataType::undefined : it->first;
}

std::vector<Device> Library::devices() const {
  c::Devices list{};
  if (f_.core_get_available_devices(core_, &list) != kOk) return {};
  std::vector<Device> out;
  for (std::size_t i = 0; i < list.count; ++i) {
    Device d;
    d.name = list.names[i];
    char* text = nullptr;
    if (f_.core_get_property(core_, list.names[i], "FULL_DEVICE_NAME", &text) == kOk && text != nullptr) {
      d.full_name = text;
      f_.free(text);
    }
    out.push_back(std::move(d));
  }
  f_.available_devices_free(&list);
  return out;
}

std::string Library::message(int status) const {
  constexpr int kInterfaceErrors = -14;  // and below: of the C interface itself, which leave an older message as the last
  if (f_.get_last_err_msg != nullptr && status > kInterfaceErrors) {
    const char* text = f_.get_last_err_msg();
    if (text != nullptr && *text != 0) return text;
  }
  const char* text = f_.get_error_info(status);
  return text == nullptr ? "" : text;
}

void Library::check(int status, ErrorCode code) const {
  if (status == kOk) return;
  fail(code, "OpenVINO {}: {}", version_, message(status));
}

}  // namespace sdx::openvino
