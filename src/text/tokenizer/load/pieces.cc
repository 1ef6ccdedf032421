#include "text/tokenizer/load/pieces.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/text/utf8.h"
#include "text/tokenizer/model/unigram.h"
#include "text/unicode/unicode.h"

namespace sdx::text {
namespace {

bool is_text(const ScoredPiece& p) { return p.type == PieceType::normal || p.type == PieceType::user_defined; }

void check(const PieceVocabulary& v) {
  if (v.pieces.empty()) fail(ErrorCode::invalid_model, "the vocabulary is empty");
  if (v.pieces.size() > 0x7FFFFFFF) fail(ErrorCode::invalid_model, "the vocabulary has {} tokens", v.pieces.size());
  for (std::size_t i = 0; i < v.pieces.size(); ++i) {
    const std::string_view text = v.pieces[i].text;
    if (!is_utf8(text)) fail(ErrorCode::invalid_model, "token {} of the vocabulary is not UTF-8", i);
    if (!(v.pieces[i].score == v.pieces[i].score)) fail(ErrorCode::invalid_model, "the score of token {} is not a number", i);
  }
}

std::unique_ptr<const TokenModel> make_bpe(const PieceVocabulary& v) {
  Vocabulary vocabulary;
  std::size_t bytes = 0;
  for (const ScoredPiece& p : v.pieces) bytes += p.text.size();
  vocabulary.reserve(v.pieces.size(), bytes);
  for (std::size_t i = 0; i < v.pieces.size(); ++i) vocabulary.add(v.pieces[i].text, static_cast<std::uint32_t>(i));
  vocabulary.finish();
  BpeOptions options;
  options.byte_fallback = v.byte_fallback;
  options.fuse_unk = true;
  if (v.unk) options.unk_token = std::string(v.pieces[*v.unk].text);
  auto merges = merges_of(v.pieces, vocabulary);
  return std::make_unique<Bpe>(std::move(vocabulary), std::move(merges), std::move(options));
}

std::unique_ptr<const TokenModel> make_unigram(const PieceVocabulary& v) {
  std::vector<Unigram::Piece> pieces;
  pieces.reserve(v.pieces.size());
  for (const ScoredPiece& p : v.pieces) pieces.push_back({p.text, p.score, p.type == PieceType::normal});
  return std::make_unique<Unigram>(pieces, v.unk, v.byte_fallback, true);
}

std::vector<DecoderStep> make_decoder(const SentencePieceRules& rules) {
  std::vector<DecoderStep> steps(4);
  steps[0].kind = DecoderStep::Kind::replace;
  steps[0].pattern = Pattern::literal("▁");
  steps[0].text = " ";
  steps[1].kind = DecoderStep::Kind::byte_fallback;
  steps[2].kind = DecoderStep::Kind::fuse;
  steps[3].kind = DecoderStep::Kind::strip;
  steps[3].start = rules.add_dummy_prefix || rules.remove_extra_whitespaces ? 1 : 0;
  return steps;
}

}  // namespace

// Two neighbours are joined where what they make is a token; the better its score, the sooner.
std::vector<Bpe::RankedMerge> merges_of(const std::vector<ScoredPiece>& pieces, const Vocabulary& vocabulary) {
  std::vector<std::uint32_t> order(pieces.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return pieces[a].score > pieces[b].score; });
  const auto usable = [&](std::string_view text) -> std::optional<std::uint32_t> {
    const auto id = vocabulary.id(text);
    return id && is_text(pieces[*id]) ? id : std::nullopt;
  };
  std::vector<Bpe::RankedMerge> merges;
  std::uint32_t rank = 0;
  float last = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ScoredPiece& p = pieces[order[i]];
    if (i > 0 && p.score != last) ++rank;
    last = p.score;
    if (!is_text(p) || vocabulary.id(p.text) != order[i]) continue;
    for (std::size_t at = p.text.empty() ? 0 : bytes_of_lead(p.text[0]); at < p.text.size(); at += bytes_of_lead(p.text[at])) {
      const auto left = usable(p.text.substr(0, at)), right = left ? usable(p.text.substr(at)) : std::nullopt;
      if (right) merges.push_back({*left, *right, {rank, order[i]}});
    }
  }
  return merges;
}

std::string token_text(const TokenizerPipeline& pipeline, std::uint32_t id) {
  if (const auto token = pipeline.model->vocabulary().token(id)) return std::string(*token);
  const std::string* added = pipeline.added.text(id);
  return added == nullptr ? std::string() : *added;
}

void add_begin_and_end(TokenizerPipeline& pipeline, std::optional<std::uint32_t> bos, std::optional<std::uint32_t> eos,
                       PairForm pair) {
  PostProcessorStep step;
  step.kind = PostProcessorStep::Kind::templated;
  const auto special = [&](std::uint32_t id, std::uint32_t type) {
    PostProcessorStep::Piece piece;
    piece.specials = {{token_text(pipeline, id), id}};
    piece.type_id = type;
    return piece;
  };
  for (std::uint32_t sequence = 0; sequence < 2; ++sequence) {
    const bool second = sequence == 1;
    const std::uint32_t type = pair == PairForm::alike ? sequence : 0;
    std::vector<PostProcessorStep::Piece> pieces;
    if (second && eos && pair == PairForm::two_ends) pieces.push_back(special(*eos, type));
    if (bos && (!second || pair == PairForm::alike)) pieces.push_back(special(*bos, type));
    PostProcessorStep::Piece text;
    text.sequence = static_cast<int>(sequence);
    text.type_id = type;
    pieces.push_back(text);
    if (eos) pieces.push_back(special(*eos, type));
    if (!second) step.single = pieces;
    step.pair.insert(step.pair.end(), pieces.begin(), pieces.end());
  }
  pipeline.post_processor = {step};
  pipeline.has_post_processor = true;
}

std::shared_ptr<TokenizerPipeline> pipeline_of_pieces(PieceVocabulary v) {
  check(v);
  for (std::size_t i = 0; i < v.pieces.size(); ++i) {
    if (v.pieces[i].type == PieceType::unknown && !v.unk) v.unk = static_cast<std::uint32_t>(i);
  }
  const auto in_range = [&](std::optional<std::uint32_t>& id) {
    if (id && *id >= v.pieces.size()) id.reset();
  };
  in_range(v.unk);
  in_range(v.bos);
  in_range(v.eos);
  auto pipeline = std::make_shared<TokenizerPipeline>();
  pipeline->model = v.unigram ? make_unigram(v) : make_bpe(v);
  auto rules = std::make_shared<SentencePieceRules>(std::move(v.rules));
  for (const ScoredPiece& p : v.pieces) {
    if (p.type == PieceType::user_defined && !p.text.empty()) rules->user_symbols.emplace_back(p.text);
  }
  std::vector<Trie::Key> keys;
  for (const std::string& s : rules->user_symbols) keys.push_back({s, 0});
  rules->symbols = Trie(std::move(keys));
  NormalizerStep step;
  step.kind = NormalizerStep::Kind::sentencepiece;
  if (!v.charsmap.empty()) step.charsmap = std::make_shared<Charsmap>(v.charsmap);
  step.rules = rules;
  pipeline->normalizer = {step};
  for (std::size_t i = 0; i < v.pieces.size(); ++i) {
    const ScoredPiece& p = v.pieces[i];
    const bool control = p.type == PieceType::control || p.type == PieceType::unknown;
    if (p.text.empty() || (!control && p.type != PieceType::user_defined)) continue;
    AddedToken token;
    token.content = std::string(p.text);
    token.special = control;
    token.searched = !control || v.finds_control;
    token.normalized = !control;  // others stand in the normalized text as they are
    pipeline->added.put(static_cast<std::uint32_t>(i), std::move(token));
  }
  pipeline->added.build({});
  pipeline->decoder = make_decoder(*rules);
  pipeline->has_decoder = true;
  if (v.unk) pipeline->special.unk = token_text(*pipeline, *v.unk);
  if (v.bos) pipeline->special.bos = token_text(*pipeline, *v.bos);
  if (v.eos) pipeline->special.eos = token_text(*pipeline, *v.eos);
  add_begin_and_end(*pipeline, v.add_bos ? v.bos : std::nullopt, v.add_eos ? v.eos : std::nullopt, v.pair);
  pipeline->finish();
  return pipeline;
}

}  // namespace sdx::text
