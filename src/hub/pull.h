#pragma once
// `sdx pull`: a model with everything that belongs to it, from a path, an address or a hub, into a folder of its own.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hub/download.h"
#include "hub/url.h"

namespace sdx::hub {

// Of a file that is being fetched.
struct PullProgress {
  const std::string& file;            // its name in the model's folder
  const std::string& sha256;          // "" where it is not known before
  std::uint64_t done = 0, total = 0;  // bytes; total 0: not known
};

struct PullOptions {
  std::string name;              // "": from the source
  std::filesystem::path root;    // folder of the models: the model goes to root/name. "": $SDX_HOME/models or ~/.sdx/models
  std::filesystem::path folder;  // instead of root/name
  std::string endpoint;          // of the hub or registry; "": as endpoint_url() and registry_url() say
  std::string revision;          // of a hub's repository
  std::string sha256;            // that the model file must have
  bool only_names = false;       // parse_model_name(), and no other model in the folder
  bool offline = false;          // use what an earlier pull left; no network
  bool force = false;            // replace a folder that no pull has made
  bool only_model = false;       // without configuration, tokenizer and labels
  bool check = true;             // read the model before it is put into place
  bool dry_run = false;          // say what would be pulled; see pull()
  NetworkOptions network;
  std::function<void(const PullProgress&)> progress;
};

struct PulledFile {
  std::string name;  // in the folder
  std::uint64_t bytes = 0;
  std::string sha256;
  std::string origin;  // "downloaded", "copied", "unchanged"; of a dry run: "download", "copy", "unchanged"
  std::string etag;
  std::string from;        // address or path; of what an earlier pull left, empty
  bool size_known = true;  // false in a dry run if the server does not say
};

struct Pulled {
  std::string name;  // as users write it: "qwen3:0.6b"
  std::filesystem::path folder;
  std::filesystem::path model;  // the model file
  std::string source, revision;
  std::vector<PulledFile> files;  // the model first
  std::uint64_t received = 0;     // bytes of files over the network
  bool replaces = false;          // the folder was there before
  bool may_be_more = false;       // a dry run: external data that the model names, which is known when the model is here
};

// The folder appears, or is exchanged for the older one, when everything in it is complete and checked. What an interrupted call
// has fetched lies in ".pull-NAME" beside it, and the next call continues there. Two calls for one folder exclude each other.
// A dry run asks servers for listings and sizes alone, checks what can be checked without the files, and writes nothing.
// Throws Error: io, invalid_argument, invalid_model.
Pulled pull(const std::string& source, const PullOptions& options);

// The hub's address: `asked`, SDX_HUB_ENDPOINT, HF_ENDPOINT, or the usual one. Throws Error(invalid_argument) for what is no
// address.
Url endpoint_url(const std::string& asked = {});

// The registry's address: `asked`, SDX_REGISTRY_ENDPOINT, or the usual one. Throws likewise.
Url registry_url(const std::string& asked = {});

// $SDX_HOME/models, else ~/.sdx/models. Throws Error(io) where there is no home folder.
std::filesystem::path models_folder();

}  // namespace sdx::hub
