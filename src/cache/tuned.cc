#include "cache/tuned.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/system/mapped_file.h"
#include "base/text/json_text.h"
#include "cache/folder.h"

namespace sdx::cache {
namespace {

using Json = nlohmann::json;

// 10,000 entries of a few hundred bytes; a file beyond it is not ours.
constexpr std::size_t kMostBytes = std::size_t{1} << 24;

bool read_entry(const Json& json, std::vector<KernelTime>& out) {
  if (!json.is_object()) return false;
  for (const auto& [kernel, ms] : json.items()) {
    if (!ms.is_number()) return false;
    const double v = ms.get<double>();
    if (!std::isfinite(v) || v <= 0) return false;
    out.push_back({kernel, v});
  }
  return out.size() > 1;
}

Json entry_json(const std::vector<KernelTime>& times) {
  Json out = Json::object();
  for (const KernelTime& t : times) out[t.kernel] = t.ms;
  return out;
}

}  // namespace

TunedChoices::TunedChoices(std::filesystem::path file) : file_(std::move(file)), entries_(read(file_)) {}

TunedChoices::~TunedChoices() {
  if (added_.empty() || file_.empty()) return;
  try {
    Entries all = read(file_);  // another process may have added to it
    for (auto& [key, times] : added_) all[key] = std::move(times);
    Json json = Json::object();
    for (const auto& [key, times] : all) json[key] = entry_json(times);
    make_cache_folder(file_.parent_path());
    write_file_atomically(file_, dump_json(json, 1) + "\n", kCacheFileMode);
  } catch (const std::exception& e) {
    log::info("measured choices are not kept: {}", e.what());
  }
}

TunedChoices::Entries TunedChoices::read(const std::filesystem::path& file) {
  Entries out;
  std::error_code unreadable;
  if (file.empty() || !std::filesystem::exists(file, unreadable)) return out;
  try {
    const Json json = Json::parse(read_file(file, kMostBytes), nullptr, false);
    if (!json.is_object()) return out;
    for (const auto& [key, value] : json.items()) {
      std::vector<KernelTime> times;
      if (read_entry(value, times)) out.emplace(key, std::move(times));
    }
  } catch (const Error& e) {
    log::info("measured choices are measured anew: {}", e.what());
  }
  return out;
}

const std::vector<KernelTime>* TunedChoices::find(const std::string& key) const {
  if (const auto at = added_.find(key); at != added_.end()) return &at->second;
  const auto at = entries_.find(key);
  return at == entries_.end() ? nullptr : &at->second;
}

void TunedChoices::add(const std::string& key, std::vector<KernelTime> times) { added_[key] = std::move(times); }

}  // namespace sdx::cache
