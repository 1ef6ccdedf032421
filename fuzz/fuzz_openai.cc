// Bodies of requests for OpenAI's interface: the first byte chooses the path. What is refused must be refused with a status of
// the client's, and what is taken must be what a template and an engine can be given.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/text/json_text.h"
#include "serve/openai/requests.h"

namespace {

using namespace sdx::serve::openai;

void read(unsigned path, const Json& body) {
  if (path == 0) {
    const ChatRequest r = read_chat_request(body);
    if (r.messages.empty() || r.generation.n < 1) std::abort();
    for (const Json& message : r.messages) {
      if (!message.at("content").is_string()) std::abort();
    }
    if (!r.tools.empty() && !read_json(r.tools)) std::abort();
    if (!read_json(sdx::dump_json(r.messages)) && sdx::dump_json(r.messages).size() < 65536) std::abort();
    static_cast<void>(r.generation.sampling.over({}));
  } else if (path == 1) {
    const CompletionRequest r = read_completion_request(body);
    if (r.prompts.empty() || r.best_of < r.generation.n) std::abort();
  } else if (path == 2) {
    if (read_embedding_request(body).input.empty()) std::abort();
  } else {
    if (read_rerank_request(body).documents.empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    read(data[0] % 4U, read_body(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1)));
  } catch (const ApiError& error) {
    if (error.status != 400 || error_json(error).empty() || !read_json(error_json(error))) std::abort();
  }
  return 0;
}
