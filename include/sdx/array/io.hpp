#pragma once
// Reads and writes array files: NumPy's npy and npz, safetensors, GGUF. Reading maps the file where its data can be used
// directly, so numbers are read from disk when first used; meanwhile files may be replaced but must not be modified. Writing
// computes the arrays and is atomic. Saving appends the format's extension if it is missing. Errors: Error(io) if a file cannot
// be read or written; Error(invalid_argument | invalid_model) for contents that are not of the format, and for element types that
// it lacks.

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <sdx/array/array.hpp>

namespace sdx::array {

using NamedArrays = std::vector<std::pair<std::string, array>>;  // in the order of the file
using Metadata = std::map<std::string, std::string>;
using GgufMetadata = std::map<std::string, std::variant<array, std::string, std::vector<std::string>>>;

SDX_API void save(const std::filesystem::path& file, const array& a);
SDX_API void savez(const std::filesystem::path& file, const NamedArrays& arrays);
SDX_API void savez_compressed(const std::filesystem::path& file, const NamedArrays& arrays);
SDX_API void save_safetensors(const std::filesystem::path& file, const NamedArrays& arrays, const Metadata& metadata = {});
// Arrays of float16, bfloat16, float32, float64 and int8 to int64. Metadata: numbers, one-dimensional arrays of numbers, texts,
// lists of texts.
SDX_API void save_gguf(const std::filesystem::path& file, const NamedArrays& arrays, const GgufMetadata& metadata = {});

SDX_API array load_npy(const std::filesystem::path& file);
SDX_API NamedArrays load_npz(const std::filesystem::path& file);
SDX_API std::pair<NamedArrays, Metadata> load_safetensors(const std::filesystem::path& file);
// Block-quantised weights (Q4_K and the like) are converted to float16 when used. Axes are reversed: the last axis is the file's
// first.
SDX_API std::pair<NamedArrays, GgufMetadata> load_gguf(const std::filesystem::path& file);

// Format by file extension, or by `format`: "npy" (one array, named ""), "npz", "safetensors", "gguf".
struct Loaded {
  NamedArrays arrays;
  GgufMetadata metadata;  // only strings, except for GGUF
};
SDX_API Loaded load(const std::filesystem::path& file, const std::string& format = "");

}  // namespace sdx::array
