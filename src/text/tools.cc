#include "text/tools.h"

namespace sdx::text {
namespace {

TokenizeResult tokenize(const TokenizeRequest& request) {
  const Tokenizer tokenizer = Tokenizer::load(request.model);
  TokenizeResult result;
  if (request.decode) {
    result.text = tokenizer.decode(*request.decode, !request.special_tokens);
  } else {
    result.encoding = tokenizer.encode(request.text, request.special_tokens);
  }
  return result;
}

constexpr Tools kTools = {kToolsVersion, SDX_VERSION, &tokenize, &convert_language_model};

}  // namespace
}  // namespace sdx::text

extern "C" SDX_API const sdx::text::Tools* sdx_text_tools() { return &sdx::text::kTools; }
