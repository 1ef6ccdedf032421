// Bodies of requests for the interfaces other than OpenAI's first: the first byte chooses the path. What is refused must be
// refused with a status of the client's, and what is taken must be what a template and an engine can be given.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text/json_text.h"
#include "serve/anthropic/requests.h"
#include "serve/llama/requests.h"
#include "serve/ollama/requests.h"
#include "serve/responses/requests.h"
#include "serve/vllm/requests.h"

namespace {

using namespace sdx::serve;

void check(const openai::ChatRequest& chat) {
  for (const openai::Json& message : chat.messages) {
    if (!message.at("role").is_string() || !message.at("content").is_string()) std::abort();
  }
  if (!chat.tools.empty() && !openai::read_json(chat.tools)) std::abort();
  if (chat.tool_use != openai::ToolUse::none && chat.tools.empty()) std::abort();
  static_cast<void>(chat.generation.sampling.over({}));
}

void read(unsigned path, const openai::Json& body) {
  static const responses::Store store;
  std::vector<llama::PromptPart> prompt;
  switch (path) {
    case 0: check(anthropic::read_message_request(body).chat); break;
    case 1: check(ollama::read_chat(body).chat); break;
    case 2: check(ollama::read_generate(body).chat); break;
    case 3: static_cast<void>(ollama::read_embed(body)); break;
    case 4: check(responses::read_response_request(body, store, "").chat); break;
    case 5:
      check(llama::read_completion(body, prompt).chat);
      if (prompt.empty()) std::abort();
      break;
    case 6: static_cast<void>(llama::read_tokenize(body)); break;
    case 7: static_cast<void>(llama::read_detokenize(body)); break;
    case 8: static_cast<void>(llama::read_embedding(body)); break;
    case 9: static_cast<void>(vllm::read_score(body)); break;
    case 10: static_cast<void>(vllm::read_classify(body)); break;
    case 11: {
      openai::FillRequest fill;
      check(llama::read_infill(body, fill).chat);
      break;
    }
    case 12: static_cast<void>(ollama::read_embeddings(body)); break;
    case 13: {
      openai::Ignored ignored;
      if (ollama::read_model_name(body, ignored).empty()) std::abort();
      static_cast<void>(ollama::read_stream(body));
      break;
    }
    default: check(anthropic::read_message_request(body, true).chat); break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    read(data[0] % 15U, openai::read_body(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1)));
  } catch (const openai::ApiError& error) {
    if (error.status != 400 || error.message.empty()) std::abort();
  }
  return 0;
}
