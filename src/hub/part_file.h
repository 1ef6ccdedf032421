#pragma once
// A file that is being downloaded: NAME.part holds the bytes received so far, NAME.part.json the version and the address that
// they belong to.

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/system/file.h"
#include "hub/transport.h"

namespace sdx::hub {

class PartFile {
 public:
  // Opens or creates the file. What it holds counts only if it belongs to `url`.
  PartFile(std::filesystem::path target, std::string url);

  std::uint64_t size() const { return size_; }
  // The version that the bytes belong to: a strong ETag, without which nothing can be continued.
  const std::string& etag() const { return etag_; }
  // Empties the file; the following bytes belong to this version.
  void restart(const std::string& etag);
  void append(const char* data, std::size_t size);
  std::string sha256() const;
  std::string git_sha1() const;
  // Syncs and renames it to the target.
  void finish();
  // Deletes it.
  void discard();

 private:
  std::filesystem::path state_path() const;
  std::string digest(const char* algorithm, const std::string& prefix) const;

  std::filesystem::path target_, part_;
  std::string url_, etag_;
  std::uint64_t size_ = 0;
  File file_;
};

}  // namespace sdx::hub
