#include "cache/fingerprint.h"

#include <sys/stat.h>

#include "base/error.h"
#include "base/hash.h"
#include "onnx/external_names.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

struct Stamp {
  bool there = false;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
};

Stamp stamp_of(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  return {true, static_cast<std::uint64_t>(info.st_size),
          std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec};
}

}  // namespace

std::vector<Fingerprint> fingerprints(const fs::path& model) {
  std::vector<Fingerprint> out;
  const auto add = [&](const fs::path& path, const std::string& name, const char* what) {
    const Stamp stamp = stamp_of(path);  // before reading: a file that changes meanwhile counts as changed
    if (!stamp.there) fail(ErrorCode::io, "there is no {} '{}'", what, path.string());
    out.push_back({name, stamp.bytes, stamp.modified_ns, hash_file(path)});
  };
  add(model, model.filename().string(), "model file");
  for (const std::string& name : external_names(model)) add(model.parent_path() / name, name, "external data file");
  return out;
}

bool unchanged(const fs::path& folder, const Fingerprint& known) {
  const fs::path path = folder / known.name;
  const Stamp stamp = stamp_of(path);
  if (!stamp.there || stamp.bytes != known.bytes) return false;
  return stamp.modified_ns == known.modified_ns || hash_file(path) == known.hash;
}

std::string hash_text(const std::string& text) {
  ContentHash hash;
  hash.add(std::as_bytes(std::span(text.data(), text.size())));
  return hash.text();
}

}  // namespace sdx
