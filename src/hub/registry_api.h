#pragma once
// The interface of registries that keep models as containers' registries keep images (Ollama's, and all of the Open Container
// Initiative's): GET /v2/NAME/manifests/TAG lists a model's files, GET /v2/NAME/blobs/sha256:HEX is one of them.

#include <string>
#include <vector>

#include "hub/download.h"

namespace sdx::hub {

struct RegistryFile {
  std::string name;  // in the model's folder
  std::uint64_t bytes = 0;
  std::string sha256;
};

// The model first. Throws Error(io) for an answer that is no manifest, Error(invalid_argument) for what is no model: an adapter
// alone, or layers of other formats.
std::vector<RegistryFile> registry_files(const Url& endpoint, const std::string& id, const std::string& tag,
                                         const NetworkOptions& options);

Url blob_url(const Url& endpoint, const std::string& id, const std::string& sha256);

}  // namespace sdx::hub
