#include "vision/batch/output/output_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/system/file.h"
#include "base/system/process.h"
#include "base/system/processes/usage.h"
#include "vision/batch/output/naming.h"

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;

// The standard library has no name for it.
#ifdef EDQUOT
const std::error_code kOverQuota(EDQUOT, std::generic_category());
#else
const std::error_code kOverQuota = std::make_error_code(std::errc::no_space_on_device);
#endif

std::error_code last_error() { return {errno, std::generic_category()}; }

std::string key_of(const fs::path& file) {
  const auto facts = file_facts(file);
  return facts ? fmt::format("{}:{}", facts->stamp.device, facts->stamp.inode) : "";
}

}  // namespace

AlreadyThere::AlreadyThere(const fs::path& file)
    : Error(ErrorCode::io,
            fmt::format("'{}' already exists: --overwrite replaces it, --resume continues an earlier run", file.string())) {}

void Protected::add(const fs::path& file) {
  const std::string key = key_of(file);
  const std::lock_guard lock(mutex_);
  if (!key.empty()) files_.insert(key);
}

bool Protected::has(const fs::path& file) const {
  const std::string key = key_of(file);
  const std::lock_guard lock(mutex_);
  return !key.empty() && files_.contains(key);
}

OutputFolder::OutputFolder(fs::path folder, bool replace, bool dry, const Protected& inputs)
    : folder_(std::move(folder)), replace_(replace), dry_(dry), inputs_(inputs) {
  if (dry_) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error || !fs::is_directory(folder_, error)) {
    fail(ErrorCode::io, "cannot create the folder '{}': {}", folder_.string(), error ? error.message() : "a file has this name");
  }
  if (!may_make_files_in(folder_)) {
    fail(ErrorCode::io, "cannot write to the folder '{}': {}", folder_.string(), std::strerror(errno));
  }
  remove_stale();
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  if (!dry_) fs::remove(folder_ / kTemporary, ignored);  // fails while another process works there
}

void OutputFolder::remove_stale() const {
  std::error_code error;
  std::vector<fs::path> stale;
  for (fs::directory_iterator it(folder_ / kTemporary, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::uint64_t process = 0;
    std::from_chars(name.data(), name.data() + name.size(), process);
    const bool gone = process > 0 && !process_exists(process);
    if (gone || process == process_id()) stale.push_back(it->path());
  }
  for (const fs::path& file : stale) fs::remove(file, error);
}

fs::path OutputFolder::claim(const std::string& name, const std::string& owner) {
  fs::path file = folder_ / name;
  {
    const std::lock_guard lock(mutex_);
    const auto [it, fresh] = owners_.emplace(folded(name), owner);
    if (!fresh && it->second != owner) {
      fail(ErrorCode::io, "'{}' was created from '{}': two pictures cannot have one output; use {{stem}} in --name",
           file.string(), it->second);
    }
    if (!fresh) return file;
  }
  std::error_code error;
  const fs::file_status status = fs::symlink_status(file, error);
  if (!fs::exists(status)) return file;
  if (fs::is_directory(status)) fail(ErrorCode::io, "cannot write '{}': a folder has this name", file.string());
  if (inputs_.has(file)) {
    fail(ErrorCode::io, "'{}' is one of the pictures to read: inputs are never replaced; choose another folder or --name",
         file.string());
  }
  if (!replace_) throw AlreadyThere(file);
  return file;
}

void OutputFolder::io(const char* what, const fs::path& file, std::error_code error) {
  if (error == std::errc::no_space_on_device || error == std::errc::read_only_file_system || error == kOverQuota)
    hopeless_ = true;
  fail(ErrorCode::io, "cannot {} '{}': {}", what, text_of(file), error.message());
}

void OutputFolder::write(const fs::path& file, std::string_view content) {
  const fs::path waiting = folder_ / kTemporary;
  const fs::path temporary = waiting / fmt::format("{}-{}", process_id(), next_++);
  std::error_code error;
  File out;
  for (int tries = 0; tries < 3 && !out; ++tries) {  // another process may remove the empty folder meanwhile
    fs::create_directory(waiting, error);
    if (error) io("make the folder", waiting, error);
    out = File::open(temporary, File::For::writing_anew);
    if (!out && errno != ENOENT) break;
  }
  if (!out) io("write", file, last_error());
  const bool written = out.write(content.data(), content.size());
  const std::error_code write_error = last_error();
  const bool closed = out.close();
  // Removes what was written, which may change errno.
  const auto give_up = [&](const char* what, std::error_code why) {
    remove_file(temporary);
    io(what, file, why);
  };
  if (!written || !closed) give_up("write", written ? last_error() : write_error);
  fs::create_directories(file.parent_path(), error);
  if (error) give_up("make the folder of", error);
  if (!rename_over(temporary, file)) give_up("write", last_error());
}

}  // namespace sdx::vision::batch
