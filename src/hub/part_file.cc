#include "hub/part_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/json_text.h"
#include "base/text/safe_name.h"

namespace sdx::hub {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

[[noreturn]] void fail_io(const char* what, const fs::path& path) {
  fail(ErrorCode::io, "cannot {} '{}': {}", what, path.string(), std::strerror(errno));
}

// A weak ETag promises no equal bytes (RFC 9110, 8.8.1).
bool strong(const std::string& etag) { return etag.size() > 2 && etag.starts_with('"'); }

}  // namespace

PartFile::PartFile(fs::path target, std::string url) : target_(std::move(target)), part_(target_), url_(std::move(url)) {
  constexpr std::size_t kEndings = 10;  // ".part.json"
  part_.replace_filename(shortened_name(target_.filename().string(), kLongestName - kEndings) + ".part");
  std::error_code ignored;
  if (fs::is_regular_file(state_path(), ignored)) {
    const json state = json::parse(read_file(state_path(), 1 << 20), nullptr, false);
    if (state.is_object() && state.value("url", json()) == json(url_) && state.value("etag", json()).is_string()) {
      etag_ = state["etag"].get<std::string>();
    }
  }
  fd_ = ::open(part_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd_ < 0) fail_io("open", part_);
  struct stat info {};
  if (::fstat(fd_, &info) != 0 || !S_ISREG(info.st_mode)) fail_io("use", part_);
  size_ = static_cast<std::uint64_t>(info.st_size);
  if (etag_.empty() && size_ > 0) restart("");
}

PartFile::~PartFile() {
  if (fd_ >= 0) ::close(fd_);
}

fs::path PartFile::state_path() const { return part_.string() + ".json"; }

void PartFile::restart(const std::string& etag) {
  // The order matters: bytes of one version must never stand beside the ETag of another.
  if (::ftruncate(fd_, 0) != 0) fail_io("truncate", part_);
  size_ = 0;
  etag_ = strong(etag) ? etag : "";
  if (etag_.empty()) {
    std::error_code ignored;
    fs::remove(state_path(), ignored);
  } else {
    write_file_atomically(state_path(), dump_json(json{{"url", url_}, {"etag", etag_}}));
  }
}

void PartFile::append(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t n = ::pwrite(fd_, data, size, static_cast<off_t>(size_));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_io("write", part_);
    data += n;
    size -= static_cast<std::size_t>(n);
    size_ += static_cast<std::uint64_t>(n);
  }
}

std::string PartFile::digest(const char* algorithm, const std::string& prefix) const {
  Digest digest(algorithm);
  digest.update(prefix.data(), prefix.size());
  std::vector<char> buffer(1 << 20);
  std::uint64_t at = 0;
  while (at < size_) {
    const ssize_t n = ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) fail_io("read", part_);
    digest.update(buffer.data(), static_cast<std::size_t>(n));
    at += static_cast<std::uint64_t>(n);
  }
  return digest.hex();
}

std::string PartFile::sha256() const { return digest("sha256", ""); }

std::string PartFile::git_sha1() const {
  std::string prefix = "blob " + std::to_string(size_);
  prefix += '\0';
  return digest("sha1", prefix);
}

void PartFile::finish() {
  if (::fsync(fd_) != 0 && errno != EINVAL) fail_io("sync", part_);
  if (::rename(part_.c_str(), target_.c_str()) != 0) fail_io("rename into place", part_);
  std::error_code ignored;
  fs::remove(state_path(), ignored);
}

void PartFile::discard() {
  std::error_code ignored;
  fs::remove(state_path(), ignored);
  fs::remove(part_, ignored);
  size_ = 0;
}

}  // namespace sdx::hub
