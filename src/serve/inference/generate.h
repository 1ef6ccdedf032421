#pragma once
// Texts of language models by the names of Triton's language backends: text_input, stream, sampling_parameters … → text_output.

#include <functional>
#include <string>

#include "serve/inference/infer.h"

namespace sdx::serve {

// Whether the model answers with text; loads it where it must.
bool generates(Catalog& catalog, const std::string& name, const std::string& version);

// `answer` is called for each piece of the text if the request says "stream", and once with `last`: with the whole text, or
// without outputs after pieces, or with an error. It runs on the engine's thread, so it must be quick, throw nothing, and not
// destroy the engine. Returning false ends the text. `cancel_with` receives the function that cancels it. Throws if the request
// cannot be submitted; then `answer` is not called.
void generate(Catalog& catalog, const InferRequest& request, std::function<bool(const InferResult&, bool last)> answer,
              const std::function<void(std::function<void()>)>& cancel_with);

}  // namespace sdx::serve
