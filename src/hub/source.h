#pragma once
// Parses the SOURCE of `sdx pull`.

#include <filesystem>
#include <string>
#include <string_view>

#include "hub/url.h"

namespace sdx::hub {

struct Source {
  enum class Kind { local, http, hub, registry };
  Kind kind = Kind::local;
  std::filesystem::path path;  // local: a model file, or a folder with one
  Url url;                     // http; registry: its address where the name has one, else without a host
  std::string sha256;          // http: from "#sha256=…"
  std::string id;              // hub: "org/name"; registry: "library/qwen3"
  std::string revision;        // hub: "" for the default
  std::string tag;             // hub: the quantisation of a GGUF file, "" for the usual one; registry: "latest", "0.6b"
  bool gguf = false;           // hub: a GGUF file is meant
  std::string file;            // hub: "" for the model that the repository has
  std::string name;            // under which the model is kept unless the user says otherwise
};

// "https://host/path/x.onnx[#sha256=HEX]", "hf://org/name[@revision][/file]", "hf.co/org/name[:quantisation]", a path, or what is
// no path: "[[HOST/]NAMESPACE/]NAME[:TAG]" of a registry, where a name with '/' needs a tag. Throws Error(invalid_argument).
Source parse_source(std::string_view text);

// The names among these: "[NAMESPACE/]NAME[:TAG]" of the registry and "hf.co/ORG/NAME[:QUANTISATION]" of the hub. Never a path,
// an address or a host. Throws Error(invalid_argument).
Source parse_model_name(std::string_view text);

// 64 hexadecimal digits, as lower case. Throws Error(invalid_argument).
std::string checked_sha256(std::string_view text);

// Throws Error(invalid_argument) unless `name` can be a model's: letters, digits, "._-+", not starting with a dot, at most 128
// bytes.
void check_model_name(const std::string& name);

}  // namespace sdx::hub
