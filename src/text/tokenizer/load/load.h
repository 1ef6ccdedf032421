#pragma once
// Files and folders to tokenizers.

#include <filesystem>
#include <memory>
#include <string>

#include "text/tokenizer/core.h"

namespace sdx::text {

std::shared_ptr<const Core> load_core(const std::filesystem::path& path);
std::shared_ptr<const Core> core_of_json(std::string json);
Tokenizer::Impl make_impl(std::shared_ptr<const Core> core);

}  // namespace sdx::text
