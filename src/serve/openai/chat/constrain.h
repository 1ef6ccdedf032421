#pragma once
// What the answer of a chat is held to: its form, calls, and the parameters of strict tools.

#include "serve/openai/model_access.h"
#include "serve/openai/requests.h"

namespace sdx::serve::openai {

// How the model writes this answer's calls and reasoning.
AnswerFormat format_of(const ChatRequest& chat, const Found& found);

// `prompt`: without `chat.continued`. Adds to `ignored` what schemas demand in vain. Throws ApiError.
void hold_answer(GenerationSettings& settings, const ChatRequest& chat, const Found& found, const AnswerFormat& format,
                 const std::string& prompt, Ignored& ignored);

}  // namespace sdx::serve::openai
