#pragma once
// The components of a tokenizer.json, each from its object.

#include <memory>
#include <vector>

#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/load/part.h"
#include "text/tokenizer/model/model.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"

namespace sdx::text {

// Steps are added in order; sequences are flattened.
void parse_normalizer(const Part& part, std::vector<NormalizerStep>& to);
void parse_pre_tokenizer(const Part& part, std::vector<PreTokenizerStep>& to);
void parse_decoder(const Part& part, std::vector<DecoderStep>& to);
void parse_post_processor(const Part& part, std::vector<PostProcessorStep>& to);

std::unique_ptr<const TokenModel> parse_model(const Part& part);
// An object of tokens and numbers.
Vocabulary parse_vocabulary(const Part& part);
AddedToken parse_added_token(const Part& part);
Truncation parse_truncation(const Part& part);
Padding parse_padding(const Part& part);

}  // namespace sdx::text
