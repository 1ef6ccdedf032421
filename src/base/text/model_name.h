#pragma once
// Short names of models in registries and hubs: "qwen3:0.6b", "team/model", "hf.co/USER/MODEL:Q4_K_M".

#include <string>
#include <string_view>

#include "base/tools_api.h"

namespace sdx {

// Whether the name of a folder can have the character: letters and digits of ASCII and "._-+".
SDX_TOOLS_API bool is_model_name_character(char c);

// The folder of a pulled model: the tag "latest" says nothing and is left out, other characters become '-'. Never empty, at most
// 128 bytes, and never begins with a dot.
SDX_TOOLS_API std::string model_folder_name(std::string_view name);

// The record that a pull leaves in that folder: its name and source, and the files with their checksums, as JSON.
inline constexpr const char* kPullRecord = ".sdx-pull.json";

}  // namespace sdx
