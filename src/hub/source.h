#pragma once
// Parses the SOURCE of `sdx pull`.

#include <filesystem>
#include <string>
#include <string_view>

#include "hub/url.h"

namespace sdx::hub {

struct Source {
  enum class Kind { local, http, hub };
  Kind kind = Kind::local;
  std::filesystem::path path;  // local: a model file, or a folder with one
  Url url;                     // http
  std::string sha256;          // http: from "#sha256=…"
  std::string id;              // hub: "org/name"
  std::string revision;        // hub: "" for the default
  std::string file;            // hub: "" for the model that the repository has
  std::string name;            // under which the model is kept unless the user says otherwise
};

// "https://host/path/x.onnx[#sha256=HEX]", "hf://org/name[@revision][/file]", or a path. Throws Error(invalid_argument).
Source parse_source(std::string_view text);

// 64 hexadecimal digits, as lower case. Throws Error(invalid_argument).
std::string checked_sha256(std::string_view text);

// Throws Error(invalid_argument) unless `name` can be a model's: letters, digits, "._-+", not starting with a dot, at most 128
// bytes.
void check_model_name(const std::string& name);

}  // namespace sdx::hub
