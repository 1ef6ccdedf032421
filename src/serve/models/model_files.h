#pragma once
// Determines the kind of a model from its files' names and contents, never from the name under which it is served.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sdx::serve {

enum class ModelKind;

struct ModelFiles {
  ModelKind kind;
  std::filesystem::path path;  // the file or folder to open: an .onnx file, a project file, a .gguf file, a folder
  bool project = false;        // `path` is a project file, or a folder with one
};

// Throws Error(io) if there is nothing, and Error(invalid_argument) naming what was looked for.
ModelFiles recognise_model(const std::filesystem::path& path);

// All regular files of a file (or of the parts that it is the first of) or folder, without hidden ones, up to three levels deep:
// an estimate of the model's size.
std::uint64_t model_bytes_on_disk(const std::filesystem::path& path);

// Path, size and times of a model's files: another text when one of them changes.
std::string model_stamp(const std::filesystem::path& path);

// The files of a model, including external data that an ONNX file or a project's model names. Never throws for errors in them.
std::vector<std::filesystem::path> files_of_model(const std::filesystem::path& path);
// The same stamp as model_stamp(), of these files; nothing if one is missing.
std::optional<std::string> files_stamp(const std::vector<std::filesystem::path>& files);

// Throws Error(invalid_argument) where `path`, or a file below it, is a symbolic link that leads out of `root`, an absolute path
// without links.
void check_inside(const std::filesystem::path& path, const std::filesystem::path& root);

}  // namespace sdx::serve
