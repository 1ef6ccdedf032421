// Tokenizers from any bytes: the first byte chooses the format, the rest is the file. What loads then encodes and decodes a few
// texts, one of them the file's own end. Only sdx::Error may be thrown.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sdx/error.hpp>
#include <sdx/tokenizer.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/text/utf8.h"
#include "text/tokenizer/load/load.h"

namespace {

using sdx::text::TokenizerPipeline;

std::shared_ptr<const TokenizerPipeline> load(unsigned format, std::string_view bytes) {
  switch (format % 5) {
    case 0: return sdx::text::pipeline_of_json(std::string(bytes));
    case 1: return sdx::text::pipeline_of_sentencepiece(bytes, {true, true, true});
    case 2: return sdx::text::pipeline_of_gguf(sdx::GgufFile(std::as_bytes(std::span(bytes))));
    case 3: return sdx::text::pipeline_of_vocab_txt(bytes, {});
    default: {
      const std::size_t middle = bytes.find('\0');
      const std::string_view merges = middle == std::string_view::npos ? std::string_view() : bytes.substr(middle + 1);
      return sdx::text::pipeline_of_vocab_and_merges(std::string(bytes.substr(0, middle)), merges, {});
    }
  }
}

void use(const sdx::Tokenizer& tokenizer, std::string_view text) {
  try {
    const sdx::Encoding e = tokenizer.encode(text, text.substr(0, text.size() / 2));
    tokenizer.decode(e.ids, false);
    tokenizer.encode(text, false);
    sdx::StreamDecoder stream(tokenizer);
    for (const std::uint32_t id : std::span(e.ids).first(std::min<std::size_t>(e.ids.size(), 50))) stream.add(id);
    stream.finish();
  } catch (const sdx::Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const sdx::Tokenizer tokenizer(std::make_shared<sdx::Tokenizer::Impl>(sdx::text::make_impl(load(data[0], bytes))));
    for (const std::string_view text : {"", "a", "Hello  world's 123\n\n", "é中👍e\u0301▁<s></s> [CLS]",
                                        " \t aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
      use(tokenizer, text);
    }
    std::string_view end = bytes.substr(bytes.size() - std::min<std::size_t>(bytes.size(), 64));
    while (!end.empty() && sdx::valid_utf8(end) == 0) end.remove_prefix(1);
    use(tokenizer, end.substr(0, sdx::valid_utf8(end)));
  } catch (const sdx::Error&) {
  }
  return 0;
}
