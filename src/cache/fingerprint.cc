#include "cache/fingerprint.h"

#include "base/error.h"
#include "base/hash.h"
#include "base/system/mapped_file.h"
#include "onnx/external_names.h"

namespace sdx::cache {
namespace {
namespace fs = std::filesystem;
}  // namespace

std::vector<Fingerprint> fingerprints(const fs::path& model) {
  std::vector<Fingerprint> out;
  const auto add = [&](const fs::path& path, const std::string& name, const char* what) {
    const auto stamp = file_stamp(path);  // before reading: a file that changes meanwhile counts as changed
    if (!stamp) fail(ErrorCode::io, "there is no {} '{}'", what, path.string());
    out.push_back({name, stamp->bytes, stamp->modified_ns, hash_file(path)});
  };
  add(model, model.filename().string(), "model file");
  for (const std::string& name : external_names(model)) add(model.parent_path() / name, name, "external data file");
  return out;
}

bool unchanged(const fs::path& folder, const Fingerprint& known) {
  const fs::path path = folder / known.name;
  const auto stamp = file_stamp(path);
  if (!stamp || stamp->bytes != known.bytes) return false;
  return stamp->modified_ns == known.modified_ns || hash_file(path) == known.hash;
}

}  // namespace sdx::cache
