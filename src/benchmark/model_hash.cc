#include "benchmark/model_hash.h"

#include "base/error.h"
#include "base/hash.h"
#include "cache/fingerprint.h"

namespace sdx::benchmark {

std::string model_hash(const std::filesystem::path& model) {
  try {
    const std::vector<cache::Fingerprint> files = cache::fingerprints(model);
    if (files.size() == 1) return files.front().hash;
    // Without the first one's name: a copy under another name is the same model.
    std::string all = files.front().hash;
    for (std::size_t i = 1; i < files.size(); ++i) all += "\n" + files[i].name + "\n" + files[i].hash;
    return hash_text(all);
  } catch (const Error&) {
    return "";
  }
}

}  // namespace sdx::benchmark
