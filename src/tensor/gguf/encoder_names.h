#pragma once
// Networks that embed texts.

#include <string_view>

namespace sdx {

// Their architectures in GGUF files, and their model_type in folders.
inline constexpr std::string_view kEncoderArchitectures = "bert nomic-bert modern-bert jina-bert-v2 gemma-embedding";
inline constexpr std::string_view kEncoderTypes = "bert roberta xlm-roberta camembert nomic_bert modernbert";

}  // namespace sdx
