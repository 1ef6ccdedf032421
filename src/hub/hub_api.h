#pragma once
// The interface of Hugging Face's hub, which others offer as well: GET /api/models/ID/revision/REV lists a repository's files,
// GET /ID/resolve/REV/FILE is one of them.

#include <optional>
#include <string>
#include <vector>

#include "hub/download.h"

namespace sdx::hub {

struct HubFile {
  std::string name;  // path in the repository
  std::optional<std::uint64_t> bytes;
  std::string sha256;    // of large files
  std::string git_sha1;  // of the others
};

struct HubListing {
  std::string revision;  // the commit, where the hub says it
  std::vector<HubFile> files;
  const HubFile* find(const std::string& name) const;
};

// Names that could leave a folder are left out. Throws Error(io).
HubListing list_files(const Url& endpoint, const std::string& id, const std::string& revision, const NetworkOptions& options);

Url file_url(const Url& endpoint, const std::string& id, const std::string& revision, const std::string& file);

// The model of a repository: `wanted` if given, else the only .onnx file, else model.onnx, onnx/model.onnx or <name>.onnx.
// Throws Error(invalid_argument) listing what there is.
const HubFile& choose_model(const HubListing& listing, const std::string& wanted, const std::string& id);

// The GGUF file of a repository, with all parts of a split one, the first in front: that of the quantisation `tag`, which its
// name ends in; without one Q4_K_M, or else the first. Throws Error(invalid_argument) listing what there is.
std::vector<HubFile> choose_gguf(const HubListing& listing, const std::string& tag, const std::string& id);

// Files that belong to a model besides its weights (configuration, tokenizer, labels), in the model's folder or the repository's
// root.
std::vector<HubFile> companions(const HubListing& listing, const std::string& model);

}  // namespace sdx::hub
