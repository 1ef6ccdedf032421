#pragma once
// Models into ONNX files.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>

#include "base/tools_api.h"
#include "graph/graph.h"

namespace sdx {

struct WriteOptions {
  // Initializers of the main graph with at least this many bytes go into one file beside the model, each at a multiple of
  // `alignment` bytes, by default so that it can be mapped. 0: everything goes into the model file.
  std::size_t external_above = 0;
  std::size_t alignment = 4096;
  // The name of that file, without a folder; empty: the model file's name and ".data".
  std::string external_name;
  std::set<std::string, std::less<>> typed{};  // names of constants that go into the fields of their type instead of raw_data
  bool dry_run = false;                        // touch no file, and only tell the size
};

// The serialised ModelProto, everything inside. Reading it again gives a graph with the same dump(), apart from names that had to
// change because a pass had renamed things: where a graph output is to be shown under another name than its value, the value is
// renamed, or an Identity node added. The IR version is raised to 4 where it is lower (see read_model()).
// Throws Error(invalid_argument) when the result would exceed the 2 GiB that protocol buffers allow.
SDX_TOOLS_API std::string write_model(const Model& model);

// The place of a tensor's bytes: a file, whose path is relative to the model's folder, and an offset.
struct FilePlace {
  std::string location;
  std::uint64_t offset = 0;
};
// The same, but constants of the main graph for which `place` names a place become references to it. They are not written again.
SDX_TOOLS_API std::string write_model(const Model& model, const std::function<std::optional<FilePlace>(const Tensor&)>& place);

// The same into a file, which appears whole or not at all. Returns the bytes of both files together. Throws Error(io |
// invalid_argument).
SDX_TOOLS_API std::uint64_t write_model(const Model& model, const std::filesystem::path& path, const WriteOptions& options = {});

}  // namespace sdx
