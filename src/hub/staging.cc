#include "hub/staging.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/system/files/placing.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "base/text/json_text.h"
#include "base/text/model_name.h"
#include "base/text/safe_name.h"

namespace sdx::hub {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string text(const json& document) { return dump_json(document, 1) + "\n"; }

std::string word(const json& object, const char* key) {
  const json value = object.is_object() ? object.value(key, json()) : json();
  return value.is_string() ? value.get<std::string>() : "";
}

json describe(const PulledFile& f) { return {{"name", f.name}, {"bytes", f.bytes}, {"sha256", f.sha256}, {"etag", f.etag}}; }

// Files that the folder holds with the listed size.
std::vector<PulledFile> files_of(const json& document, const fs::path& folder) {
  std::vector<PulledFile> out;
  const json list = document.is_object() ? document.value("files", json()) : json();
  for (const json& entry : list) {
    PulledFile f;
    f.name = word(entry, "name");
    f.sha256 = word(entry, "sha256");
    f.etag = word(entry, "etag");
    if (!unsafe_name(f.name).empty() || !entry.value("bytes", json()).is_number_unsigned()) continue;
    f.bytes = entry["bytes"].get<std::uint64_t>();
    std::error_code error;
    if (fs::is_regular_file(folder / f.name, error) && fs::file_size(folder / f.name, error) == f.bytes && !error)
      out.push_back(f);
  }
  return out;
}

json read_json(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return json();
  return json::parse(read_file(path, std::size_t{64} << 20), nullptr, false);
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail(ErrorCode::io, "cannot remove '{}': {}", path.string(), error.message());
}

// Whether the folder is still the one that was locked.
bool locks(const File& lock, const fs::path& folder) {
  const auto a = lock.facts(), b = open_folder_lock(folder).facts();
  return a && b && a->stamp.device == b->stamp.device && a->stamp.inode == b->stamp.inode;
}

// Names the requested folder in the error, not the one beside it that collects the files.
[[noreturn]] void cannot_write(const fs::path& target, const std::error_code& error) {
  fail(ErrorCode::io, "cannot write '{}': no folder can be made in '{}': {}", target.string(), nearest_folder(target).string(),
       error.message());
}

File lock_folder(const fs::path& folder, const fs::path& target) {
  for (;;) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) cannot_write(target, error);
    File lock = open_folder_lock(folder);
    if (!lock && errno == ENOENT) continue;  // another process has just finished with it
    if (!lock) fail(ErrorCode::io, "cannot open '{}': {}", folder.string(), std::strerror(errno));
    if (!lock.lock(File::Lock::exclusive, false)) fail(ErrorCode::io, "another pull into '{}' is at work", target.string());
    if (locks(lock, folder)) return lock;
  }
}

}  // namespace

Staging::Staging(const fs::path& target, const std::string& plan)
    : target_(target), folder_(target.parent_path() / (".pull-" + target.filename().string())), plan_(plan) {
  lock_ = lock_folder(folder_, target_);
  const json state = read_json(folder_ / "state.json");
  if (word(state, "plan") == plan_) {
    for (PulledFile& f : files_of(state, folder_ / "files")) done_.emplace(f.name, f);
  } else {
    remove_tree(folder_ / "files");
  }
  std::error_code error;
  fs::create_directories(folder_ / "files", error);
  if (error) cannot_write(target_, error);
  write_state();
}

namespace {

// Whether a folder holds bytes that the next pull need not fetch again.
bool holds_anything(const fs::path& folder) {
  std::error_code error, ignored;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    if (it->is_regular_file(ignored) && it->file_size(ignored) > 0) return true;
  }
  return false;
}

}  // namespace

Staging::~Staging() {
  if (lock_ && locks(lock_, folder_) && (useless_ || !holds_anything(folder_ / "files"))) remove_locked_folder(folder_, lock_);
}

void Staging::drop() noexcept { useless_ = true; }

fs::path Staging::path_of(const std::string& name) const {
  fs::path path = folder_ / "files" / name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) cannot_write(target_, error);
  return path;
}

const PulledFile* Staging::done(const std::string& name) const {
  const auto at = done_.find(name);
  return at == done_.end() ? nullptr : &at->second;
}

void Staging::add(const PulledFile& file) {
  done_[file.name] = file;
  write_state();
}

void Staging::write_state() const {
  json files = json::array();
  for (const auto& [name, file] : done_) files.push_back(describe(file));
  write_file_atomically(folder_ / "state.json", text({{"plan", plan_}, {"files", files}}));
}

void Staging::commit() {
  // Files that are not part of the model (left by an interrupted call) stay out of the folder.
  std::vector<fs::path> extra;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ / "files")) {
    const std::string name = entry.path().lexically_relative(folder_ / "files").string();
    if (entry.is_regular_file() && !done_.contains(name) && name != kPullRecord) extra.push_back(entry.path());
  }
  for (const fs::path& path : extra) remove_tree(path);
  const fs::path files = folder_ / "files";
  std::error_code error;
  // After this, an interrupted pull must not continue with files/.
  fs::remove(folder_ / "state.json", error);
  if (!fs::exists(fs::symlink_status(target_))) {
    fs::rename(files, target_, error);
  } else if (!exchange_names(files, target_)) {
    // A file system that cannot exchange: for a moment neither is there, but never half of one.
    const fs::path old = folder_ / "old";
    remove_tree(old);
    fs::rename(target_, old, error);
    if (!error) fs::rename(files, target_, error);
  }
  if (error) fail(ErrorCode::io, "cannot put '{}' into place: {}", target_.string(), error.message());
  if (const std::error_code left = remove_locked_folder(folder_, lock_)) {
    fail(ErrorCode::io, "cannot remove '{}': {}", folder_.string(), left.message());
  }
}

void write_manifest(const fs::path& folder, const Pulled& p) {
  json files = json::array();
  for (const PulledFile& f : p.files) files.push_back(describe(f));
  write_file_atomically(folder / kPullRecord,
                        text({{"name", p.name}, {"source", p.source}, {"revision", p.revision}, {"files", files}}));
}

Pulled read_manifest(const fs::path& folder) {
  const json document = read_json(folder / kPullRecord);
  Pulled p;
  p.name = word(document, "name");
  if (p.name.empty()) p.name = folder.filename().string();
  p.source = word(document, "source");
  p.revision = word(document, "revision");
  p.files = files_of(document, folder);
  const json list = document.is_object() ? document.value("files", json()) : json();
  if (p.files.size() != list.size() || p.files.empty()) p.files.clear();
  return p;
}

}  // namespace sdx::hub
