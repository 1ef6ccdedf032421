#include "hub/part_file.h"

#include <algorithm>
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
  file_ = File::open(part_, File::For::making_no_link);
  if (!file_) fail_io("open", part_);
  const auto facts = file_.facts();
  if (!facts || facts->kind != FileFacts::Kind::regular) fail_io("use", part_);
  size_ = facts->stamp.bytes;
  if (etag_.empty() && size_ > 0) restart("");
}

fs::path PartFile::state_path() const {
  fs::path path = part_;
  return path += ".json";
}

void PartFile::restart(const std::string& etag) {
  // The order matters: bytes of one version must never stand beside the ETag of another.
  if (!file_.resize(0)) fail_io("truncate", part_);
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
  if (!file_.write_at(data, size, size_)) fail_io("write", part_);
  size_ += size;
}

std::string PartFile::digest(const char* algorithm, const std::string& prefix) const {
  Digest digest(algorithm);
  digest.update(prefix.data(), prefix.size());
  std::vector<char> buffer(1 << 20);
  std::uint64_t at = 0;
  while (at < size_) {
    const std::ptrdiff_t n = file_.read_at(buffer.data(), std::min<std::uint64_t>(buffer.size(), size_ - at), at);
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
  if (!file_.sync() && errno != EINVAL) fail_io("sync", part_);
  if (!rename_over(part_, target_)) fail_io("rename into place", part_);
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
