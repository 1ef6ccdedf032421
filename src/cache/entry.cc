#include "cache/entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/system/mapped_file.h"
#include "base/system/process.h"
#include "cache/folder.h"

namespace sdx::cache {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".lock";
constexpr const char* kManifest = ".sealed";
constexpr const char* kFirstLine = "sdx cache entry 1";
constexpr std::size_t kMostManifest = 1 << 24;

bool is_ours(const fs::path& file) { return file.filename() == kLock || file.filename() == kManifest; }

// Whoever removes an entry leaves those who waited for it the lock of a file without a name.
bool still_there(const File& file, const fs::path& path) {
  const std::optional<FileFacts> here = file.facts(), there = file_facts(path);
  return here && there && here->stamp.inode == there->stamp.inode;
}

// Opens and locks the entry's lock file. Not open: another process holds it, or it cannot be opened.
File lock_file(const fs::path& folder, File::Lock kind, bool wait, bool make) {
  const fs::path path = folder / kLock;
  File file = File::open(path, make ? File::For::making : File::For::changing, 0644);
  if (!file || !file.lock(kind, wait) || !still_there(file, path)) return {};
  return file;
}

std::string escape_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// Removes everything but the lock, so that a process waiting for the lock finds the entry empty.
void remove_files(const fs::path& folder) {
  std::error_code none;
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().filename() != kLock) all.push_back(entry.path());
  }
  for (const fs::path& p : all) fs::remove_all(p, none);
}

bool has_files(const fs::path& folder) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (!is_ours(entry.path())) return true;
  }
  return false;
}

struct Manifest {
  std::string label;
  std::map<std::string, std::pair<std::uintmax_t, std::string>> files;  // size and hash by name
};

// An empty list for one that is missing or not whole.
Manifest read_manifest(const fs::path& folder) {
  Manifest m;
  std::string text;
  try {
    text = read_file(folder / kManifest, kMostManifest);
  } catch (const Error&) {
    return m;
  }
  std::istringstream lines(text);
  std::string line;
  if (!std::getline(lines, line) || line != kFirstLine) return m;
  while (std::getline(lines, line)) {
    if (line.starts_with("label ")) m.label = line.substr(6);
    if (!line.starts_with("file ")) continue;
    std::istringstream parts(line.substr(5));
    std::uintmax_t size = 0;
    std::string hash, name;
    parts >> size >> hash;
    std::getline(parts >> std::ws, name);
    if (!name.empty()) m.files[name] = {size, hash};
  }
  return m;
}

}  // namespace

std::shared_ptr<CacheEntry> CacheEntry::open(const fs::path& folder, const std::string& key, const std::string& label) {
  std::shared_ptr<CacheEntry> made(new CacheEntry);
  made->folder_ = folder / key;
  made->label_ = escape_line(label);
  std::string why = "another process keeps removing it";
  if (!cache_problem(folder.parent_path(), made->folder_).empty()) return nullptr;
  constexpr int kMostAttempts = 100;  // each time somebody else removed it in between
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    try {
      if (made->take()) return made;
    } catch (const std::exception& e) {
      why = e.what();
    }
    made->lock_.close();
    if (attempt >= 10) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  log::info("nothing is kept for the next start in '{}': {}", made->folder_.string(), why);
  return nullptr;
}

// One attempt to lock the entry, alone and then shared. Returns false, or throws, if the entry was removed meanwhile.
bool CacheEntry::take() {
  make_cache_folder(folder_);
  lock_ = lock_file(folder_, File::Lock::exclusive, false, true);
  if (lock_) {
    check();
    warm_ = !files_.empty();
    // Between the two locks there may be none.
    if (!lock_.lock(File::Lock::shared, true) || !still_there(lock_, folder_ / kLock)) return false;
  } else {
    lock_ = lock_file(folder_, File::Lock::shared, true, true);
    if (!lock_) return false;
    warm_ = has_files(folder_);
  }
  lock_.touch();  // last used now
  return true;
}

CacheEntry::~CacheEntry() {
  if (lock_) seal();
}

// Lists the files by name; the hashes of unchanged files are taken from `known`.
std::map<std::string, CacheEntry::Kept> CacheEntry::scan(const std::map<std::string, Kept>& known) const {
  std::map<std::string, Kept> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder_)) {
    if (!entry.is_regular_file() || is_ours(entry.path())) continue;
    Kept f{entry.file_size(), "", entry.last_write_time()};
    const std::string name = fs::relative(entry.path(), folder_).string();
    const auto same = known.find(name);
    const bool unchanged = same != known.end() && same->second.size == f.size && same->second.changed == f.changed;
    f.hash = unchanged ? same->second.hash : hash_file(entry.path());
    out.emplace(name, std::move(f));
  }
  return out;
}

void CacheEntry::check() {
  const Manifest sealed = read_manifest(folder_);
  files_ = scan({});
  const bool whole = files_.size() == sealed.files.size() && std::all_of(files_.begin(), files_.end(), [&](const auto& f) {
                       const auto it = sealed.files.find(f.first);
                       return it != sealed.files.end() && it->second.first == f.second.size && it->second.second == f.second.hash;
                     });
  if (whole) return;
  log::info("'{}' has been changed since it was written; its contents are recreated", folder_.string());
  remove_files(folder_);
  files_.clear();
}

void CacheEntry::seal() noexcept {
  try {
    files_ = scan(files_);
    std::string text = fmt::format("{}\nlabel {}\n", kFirstLine, label_);
    for (const auto& [name, f] : files_) text += fmt::format("file {} {} {}\n", f.size, f.hash, name);
    std::error_code none;
    const fs::path path = folder_ / kManifest;
    if (fs::exists(path, none) && read_file(path, kMostManifest) == text) return;
    write_file_atomically(path, text, kCacheFileMode);
  } catch (const std::exception& e) {
    log::debug("'{}' is not sealed: {}", folder_.string(), e.what());
  }
}

void CacheEntry::discard() noexcept {
  try {
    remove_files(folder_);
  } catch (const std::exception& e) {
    log::debug("'{}': {}", folder_.string(), e.what());
  }
  files_.clear();
  warm_ = false;
}

namespace {

std::int64_t seconds_of(const FileStamp& stamp) { return stamp.modified_ns / 1'000'000'000; }

// Reads an entry that is a single file; false if it is none.
bool read_single(const fs::path& file, CacheItem& item) {
  const std::optional<FileStamp> stamp = file_stamp(file);
  if (file.extension() != ".txt" || !stamp) return false;
  item.key = file.stem().string();
  item.bytes = stamp->bytes;
  item.files = 1;
  item.last_used = seconds_of(*stamp);
  std::ifstream in(file);
  constexpr std::string_view kLabel = "label ";
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(kLabel)) item.label = line.substr(kLabel.size(), 200);
  }
  return true;
}

}  // namespace

std::vector<CacheItem> list_cache(const fs::path& root) {
  std::vector<CacheItem> out;
  std::error_code none;
  for (const auto& provider : fs::directory_iterator(root, none)) {
    if (!provider.is_directory(none)) continue;
    for (const auto& entry : fs::directory_iterator(provider.path(), none)) {
      CacheItem single;
      single.provider = provider.path().filename().string();
      single.folder = entry.path();
      if (read_single(entry.path(), single)) {
        out.push_back(std::move(single));
        continue;
      }
      const std::optional<FileStamp> lock = file_stamp(entry.path() / kLock);
      if (!lock) continue;  // something else
      CacheItem item;
      item.provider = provider.path().filename().string();
      item.key = entry.path().filename().string();
      item.folder = entry.path();
      item.label = read_manifest(entry.path()).label;
      item.last_used = seconds_of(*lock);
      for (const auto& file : fs::recursive_directory_iterator(entry.path(), none)) {
        if (!file.is_regular_file(none) || is_ours(file.path())) continue;
        item.bytes += file.file_size(none);
        ++item.files;
      }
      item.in_use = !lock_file(entry.path(), File::Lock::exclusive, false, false);
      out.push_back(std::move(item));
    }
  }
  std::sort(out.begin(), out.end(), [](const CacheItem& a, const CacheItem& b) {
    return a.last_used != b.last_used ? a.last_used > b.last_used : a.key < b.key;
  });
  return out;
}

bool remove_cache_item(const CacheItem& item) {
  std::error_code error;
  if (fs::is_regular_file(item.folder, error)) return fs::remove(item.folder, error);
  File lock = lock_file(item.folder, File::Lock::exclusive, false, false);
  if (!lock) return false;
  // The folder is renamed first: a process that opens the entry during the removal gets a new folder, not one that loses its new
  // files, too.
  static std::atomic<unsigned> counter{0};
  const fs::path gone = item.folder.parent_path() / fmt::format(".{}.{}.{}", item.key, process_id(), counter++);
  std::error_code failed;
  fs::rename(item.folder, gone, failed);
  if (!failed) fs::remove_all(gone, failed);
  return !failed;
}

}  // namespace sdx::cache
