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

}  // namespace sdx::hub
