#include <algorithm>

#include "text/tokenizer/load/components.h"
#include "text/tokenizer/model/bpe.h"
#include "text/tokenizer/model/unigram.h"
#include "text/tokenizer/model/word_models.h"

namespace sdx::text {
namespace {

// Merges are pairs, or, in older files, two tokens with a space between.
std::vector<Bpe::TextPair> parse_merges(const Part& part) {
  part.expect(JsonKind::array);
  std::vector<Bpe::TextPair> merges;
  merges.reserve(part.json().size());
  for (const JsonValue value : part.json()) {
    if (const auto line = value.string()) {
      if (line->starts_with("#version")) continue;
      const std::size_t space = line->find(' ');
      if (space == std::string_view::npos || line->find(' ', space + 1) != std::string_view::npos) {
        part.element(value, merges.size()).wrong("expected two tokens with a space between, not '{}'", *line);
      }
      merges.push_back({line->substr(0, space), line->substr(space + 1)});
      continue;
    }
    std::string_view both[2];
    std::size_t count = 0;
    for (const JsonValue token : value) {
      const auto text = token.string();
      if (text && count < 2) both[count] = *text;
      count += text ? 1 : 3;
    }
    if (count != 2) part.element(value, merges.size()).wrong("expected a pair of tokens");
    merges.push_back({both[0], both[1]});
  }
  return merges;
}

std::unique_ptr<const TokenModel> parse_bpe(const Part& part) {
  BpeOptions options;
  if (const auto dropout = part.get("dropout")) options.dropout = dropout->number();
  if (const auto unk = part.get("unk_token")) options.unk_token = std::string(unk->text());
  options.continuing_prefix = part.text("continuing_subword_prefix", "");
  options.end_of_word_suffix = part.text("end_of_word_suffix", "");
  options.fuse_unk = part.truth("fuse_unk", false);
  options.byte_fallback = part.truth("byte_fallback", false);
  options.ignore_merges = part.truth("ignore_merges", false);
  Vocabulary vocabulary = parse_vocabulary(part.at("vocab"));
  const Part merges = part.at("merges");
  return std::make_unique<Bpe>(std::move(vocabulary), parse_merges(merges), std::move(options));
}

std::unique_ptr<const TokenModel> parse_unigram(const Part& part) {
  const Part vocab = part.at("vocab");
  vocab.expect(JsonKind::array);
  std::vector<Unigram::Piece> pieces;
  pieces.reserve(vocab.json().size());
  for (const JsonValue value : vocab.json()) {
    const auto wrong = [&] { vocab.element(value, pieces.size()).wrong("expected a token and its score"); };
    if (!value.is(JsonKind::array) || value.size() != 2) wrong();
    auto i = value.begin();
    const auto token = (*i).string();
    ++i;
    const auto score = (*i).number();
    if (!token || !score) wrong();
    pieces.push_back({*token, *score});
  }
  std::optional<std::uint64_t> unk;
  if (const auto id = part.get("unk_id")) unk = id->whole();
  return std::make_unique<Unigram>(pieces, unk, part.truth("byte_fallback", false));
}

std::unique_ptr<const TokenModel> parse_wordpiece(const Part& part) {
  return std::make_unique<WordPiece>(parse_vocabulary(part.at("vocab")), std::string(part.at("unk_token").text()),
                                     std::string(part.at("continuing_subword_prefix").text()),
                                     part.at("max_input_chars_per_word").whole());
}

std::unique_ptr<const TokenModel> parse_wordlevel(const Part& part) {
  return std::make_unique<WordLevel>(parse_vocabulary(part.at("vocab")), std::string(part.at("unk_token").text()));
}

using Parse = std::unique_ptr<const TokenModel> (*)(const Part&);

// Determines the type of files that do not state it, by their members.
Parse guess(const Part& part) {
  const auto has = [&](std::string_view key) { return part.json().find(key).has_value(); };
  const auto vocab = part.json().find("vocab");
  if (vocab && vocab->is(JsonKind::array)) return parse_unigram;
  if (has("vocab") && has("merges")) return parse_bpe;
  if (has("vocab") && has("continuing_subword_prefix") && has("max_input_chars_per_word")) return parse_wordpiece;
  if (has("vocab") && has("unk_token")) return parse_wordlevel;
  part.wrong("'type' is missing, and the members fit none of BPE, WordPiece, WordLevel, Unigram");
}

}  // namespace

Vocabulary parse_vocabulary(const Part& part) {
  part.expect(JsonKind::object);
  Vocabulary vocabulary;
  vocabulary.reserve(part.json().size(), part.json().size() * 8);
  const auto end = part.json().end();
  for (auto i = part.json().begin(); !(i == end); ++i) {
    const auto id = (*i).whole();
    if (!id || *id > 0xFFFFFFFFU)
      Part(*i, fmt::format("{}['{}']", part.where(), i.key())).wrong("expected a token's number, 0 to 4294967295");
    vocabulary.add(i.key(), static_cast<std::uint32_t>(*id));
  }
  vocabulary.finish();
  return vocabulary;
}

std::unique_ptr<const TokenModel> parse_model(const Part& part) {
  part.expect(JsonKind::object);
  const auto type = part.get("type");
  const Parse parse =
      !type
          ? guess(part)
          : type->choice<Parse>(
                {{"BPE", parse_bpe}, {"WordPiece", parse_wordpiece}, {"WordLevel", parse_wordlevel}, {"Unigram", parse_unigram}});
  try {
    return parse(part);
  } catch (Error& e) {
    throw e.add_context("in " + part.where());
  }
}

}  // namespace sdx::text
