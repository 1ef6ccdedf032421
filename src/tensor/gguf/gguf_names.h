#pragma once
// Decides by names which .gguf files belong together: parts of one model, and files that are no model of their own.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/tools_api.h"

namespace sdx {

// NAME-00002-of-00003.gguf
struct GgufPart {
  std::string stem;  // NAME
  std::uint64_t number = 1, count = 1;
};
SDX_TOOLS_API std::optional<GgufPart> gguf_part(const std::filesystem::path& file);

// All parts of the model whose first part this is; else the file alone. Whether they are there is not asked.
SDX_TOOLS_API std::vector<std::filesystem::path> gguf_parts(const std::filesystem::path& file);

// The name of a model by its file: "NAME" also for NAME-00001-of-00003.gguf.
SDX_TOOLS_API std::string model_name_of(const std::filesystem::path& file);

// Whether a .gguf file is opened by itself: it is not a later part, nor a projector of pictures or sounds (mmproj-….gguf), which
// belongs to the model beside it.
SDX_TOOLS_API bool is_whole_gguf(const std::filesystem::path& file);

// The one model among the .gguf files of a folder; nothing where there is none. Throws Error(invalid_argument) where there are
// several.
SDX_TOOLS_API std::optional<std::filesystem::path> gguf_in(const std::filesystem::path& folder);

}  // namespace sdx
