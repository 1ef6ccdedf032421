#include <algorithm>

#include "base/words.h"
#include "text/tokenizer/load/components.h"
#include "text/tokenizer/load/load.h"

namespace sdx::text {

std::shared_ptr<TokenizerPipeline> pipeline_of_json(std::string json) {
  const JsonDocument document(std::move(json));
  const Part root(document.root(), "tokenizer.json");
  root.expect(JsonKind::object);
  if (const auto version = root.get("version"); version && version->text() != "1.0") {
    version->wrong("unknown version '{}'; expected 1.0", version->text());
  }
  constexpr std::string_view known =
      "version truncation padding added_tokens normalizer pre_tokenizer post_processor decoder model";
  for (auto i = root.json().begin(); !(i == root.json().end()); ++i) {
    if (!has_word(known, i.key())) root.wrong("unknown member '{}'", i.key());
  }
  auto pipeline = std::make_shared<TokenizerPipeline>();
  if (const auto part = root.get("truncation")) pipeline->truncation = parse_truncation(*part);
  if (const auto part = root.get("padding")) pipeline->padding = parse_padding(*part);
  if (const auto part = root.get("normalizer")) parse_normalizer(*part, pipeline->normalizer);
  if (const auto part = root.get("pre_tokenizer")) parse_pre_tokenizer(*part, pipeline->pre_tokenizer);
  if (const auto part = root.get("post_processor")) {
    pipeline->has_post_processor = true;
    parse_post_processor(*part, pipeline->post_processor);
  }
  if (const auto part = root.get("decoder")) {
    pipeline->has_decoder = true;
    parse_decoder(*part, pipeline->decoder);
  }
  pipeline->model = parse_model(root.at("model"));
  std::vector<AddedToken> added;
  if (const auto part = root.get("added_tokens")) {
    part->expect(JsonKind::array);
    for (const JsonValue value : part->json()) added.push_back(parse_added_token(part->element(value, added.size())));
  }
  pipeline->added.add(added, pipeline->model->vocabulary(), pipeline->normalizer);
  pipeline->finish();
  return pipeline;
}

Tokenizer::Impl make_impl(std::shared_ptr<const TokenizerPipeline> pipeline) {
  Tokenizer::Impl impl;
  impl.truncation = pipeline->truncation;
  impl.padding = pipeline->padding;
  impl.pipeline = std::move(pipeline);
  return impl;
}

}  // namespace sdx::text
