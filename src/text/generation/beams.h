#pragma once
// Beam search.

#include <sdx/text.hpp>

#include "text/generation/text_body.h"

namespace sdx::text {

// The n best answers after the content of `body`, which is restored afterwards. `logits`: those after the prompt. `most`: tokens
// of an answer.
std::vector<Choice> beam_search(const LanguageModelInfo& info, const TextBody& body, const Tensor& logits,
                                const GenerationSettings& settings, const OnToken& on_token, std::int64_t most);

}  // namespace sdx::text
