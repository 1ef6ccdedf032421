#pragma once
// Answers to one prompt, by the settings: with guesses, beams, and a context that slides.

#include <sdx/text.hpp>

#include "text/generation/text_body.h"

namespace sdx::text {

// Throws Error(invalid_argument) for settings out of range, and prompts that leave no room.
Generation generate_answers(const LanguageModel& model, TextBody& body, std::span<const TokenId> prompt,
                            const GenerationSettings& settings, const OnToken& on_token);

// Goes back to where `ids` and the state's tokens part, and returns how many they have in common: all of `ids` but the last one
// at most, which is computed for its logits.
std::size_t keep_common(TextState& state, std::span<const TokenId> ids);

}  // namespace sdx::text
