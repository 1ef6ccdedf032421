#pragma once
// Vocabularies of pieces with scores, as SentencePiece models and GGUF files have them.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/model/bpe.h"
#include "text/tokenizer/pipeline.h"
#include "text/tokenizer/sentencepiece_rules.h"

namespace sdx::text {

// The numbers of both formats.
enum class PieceType { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

// How the second text of a pair follows the first: with the same tokens around it, or, in encoders, without bos, and behind one
// eos or two.
enum class PairForm { alike, one_end, two_ends };

struct ScoredPiece {
  std::string_view text;  // UTF-8
  float score = 0;
  PieceType type = PieceType::normal;
};

struct PieceVocabulary {
  std::vector<ScoredPiece> pieces;  // ids are places
  bool unigram = false;             // else BPE
  bool byte_fallback = false;
  SentencePieceRules rules;
  std::string charsmap;  // empty: none
  std::optional<std::uint32_t> unk, bos, eos;
  bool add_bos = false, add_eos = false;
  bool finds_control = true;  // control tokens are looked for in text
  PairForm pair = PairForm::alike;
};

// Throws Error(invalid_model).
std::shared_ptr<TokenizerPipeline> pipeline_of_pieces(PieceVocabulary vocabulary);

// The merges that such a BPE model does, the soonest first. Equal scores have one rank, so that the place decides.
std::vector<Bpe::RankedMerge> merges_of(const std::vector<ScoredPiece>& pieces, const Vocabulary& vocabulary);

// Sets the post-processor that adds bos before each text and eos after it.
void add_begin_and_end(TokenizerPipeline& pipeline, std::optional<std::uint32_t> bos, std::optional<std::uint32_t> eos,
                       PairForm pair = PairForm::alike);
// The text of a token that is known to the pipeline.
std::string token_text(const TokenizerPipeline& pipeline, std::uint32_t id);

}  // namespace sdx::text
