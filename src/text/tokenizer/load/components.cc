#include "text/tokenizer/load/components.h"

#include "base/text/base64.h"
#include "text/unicode/unicode.h"

namespace sdx::text {

char32_t Part::character() const {
  const std::string_view value = text();
  if (count_chars(value) != 1) wrong("expected one character, not '{}'", value);
  std::size_t at = 0;
  return next_char(value, at);
}

namespace {

Pattern parse_pattern(const Part& part) {
  part.expect(JsonKind::object);
  if (const auto text = part.get("String")) return Pattern::literal(std::string(text->text()));
  const Part regex = part.at("Regex");
  try {
    return Pattern::regex(std::string(regex.text()));
  } catch (Error& e) {
    throw e.add_context("in " + regex.where());
  }
}

Behavior parse_behavior(const Part& part) {
  return part.choice<Behavior>({{"Removed", Behavior::removed},
                                {"Isolated", Behavior::isolated},
                                {"MergedWithPrevious", Behavior::merged_with_previous},
                                {"MergedWithNext", Behavior::merged_with_next},
                                {"Contiguous", Behavior::contiguous}});
}

// Older files have `add_prefix_space` alone.
Prepend parse_prepend(const Part& part) {
  const bool prefix = part.truth("add_prefix_space", true);
  const auto scheme = part.get("prepend_scheme");
  if (!scheme) return prefix ? Prepend::always : Prepend::never;
  const auto prepend =
      scheme->choice<Prepend>({{"first", Prepend::first}, {"never", Prepend::never}, {"always", Prepend::always}});
  if (!prefix && prepend != Prepend::never)
    part.wrong("add_prefix_space is false, which contradicts prepend_scheme '{}'", scheme->text());
  return prepend;
}

template <class Step>
using Parse = void (*)(const Part&, std::vector<Step>&);

template <class Step>
void parse_sequence(const Part& part, std::string_view key, Parse<Step> parse, std::vector<Step>& to) {
  const Part list = part.at(key);
  list.expect(JsonKind::array);
  std::size_t i = 0;
  for (const JsonValue value : list.json()) parse(list.element(value, i++), to);
}

std::shared_ptr<const Charsmap> parse_charsmap(const Part& part) {
  const auto bytes = decode_base64(part.text());
  if (!bytes) part.wrong("not Base64");
  return std::make_shared<Charsmap>(*bytes);
}

using NormalizerKind = NormalizerStep::Kind;

}  // namespace

void parse_normalizer(const Part& part, std::vector<NormalizerStep>& to) {
  part.expect(JsonKind::object);
  const Part type = part.at("type");
  if (type.text() == "Sequence") return parse_sequence(part, "normalizers", parse_normalizer, to);
  NormalizerStep step;
  step.kind = type.choice<NormalizerKind>({{"BertNormalizer", NormalizerKind::bert},
                                           {"Bert", NormalizerKind::bert},
                                           {"Strip", NormalizerKind::strip},
                                           {"StripAccents", NormalizerKind::strip_accents},
                                           {"NFC", NormalizerKind::nfc},
                                           {"NFD", NormalizerKind::nfd},
                                           {"NFKC", NormalizerKind::nfkc},
                                           {"NFKD", NormalizerKind::nfkd},
                                           {"Lowercase", NormalizerKind::lowercase},
                                           {"Nmt", NormalizerKind::nmt},
                                           {"Precompiled", NormalizerKind::precompiled},
                                           {"Replace", NormalizerKind::replace},
                                           {"Prepend", NormalizerKind::prepend},
                                           {"ByteLevel", NormalizerKind::byte_level}});
  switch (step.kind) {
    case NormalizerKind::bert:
      step.clean_text = part.at("clean_text").truth();
      step.chinese_chars = part.at("handle_chinese_chars").truth();
      step.lowercase = part.at("lowercase").truth();
      step.accents = part.truth("strip_accents", step.lowercase);
      break;
    case NormalizerKind::strip:
      step.left = part.at("strip_left").truth();
      step.right = part.at("strip_right").truth();
      break;
    case NormalizerKind::precompiled: step.charsmap = parse_charsmap(part.at("precompiled_charsmap")); break;
    case NormalizerKind::replace:
      step.pattern = parse_pattern(part.at("pattern"));
      step.content = part.at("content").text();
      break;
    case NormalizerKind::prepend: step.content = part.at("prepend").text(); break;
    default: break;
  }
  to.push_back(std::move(step));
}

void parse_pre_tokenizer(const Part& part, std::vector<PreTokenizerStep>& to) {
  using Kind = PreTokenizerStep::Kind;
  part.expect(JsonKind::object);
  const Part type = part.at("type");
  if (type.text() == "Sequence") return parse_sequence(part, "pretokenizers", parse_pre_tokenizer, to);
  PreTokenizerStep step;
  step.kind = type.choice<Kind>({{"BertPreTokenizer", Kind::bert},
                                 {"ByteLevel", Kind::byte_level},
                                 {"CharDelimiterSplit", Kind::char_delimiter},
                                 {"Delimiter", Kind::char_delimiter},
                                 {"Metaspace", Kind::metaspace},
                                 {"Whitespace", Kind::whitespace},
                                 {"WhitespaceSplit", Kind::whitespace_split},
                                 {"Split", Kind::split},
                                 {"Punctuation", Kind::punctuation},
                                 {"Digits", Kind::digits},
                                 {"UnicodeScripts", Kind::unicode_scripts},
                                 {"FixedLength", Kind::fixed_length}});
  switch (step.kind) {
    case Kind::byte_level:
      step.add_prefix_space = part.at("add_prefix_space").truth();
      step.use_regex = part.truth("use_regex", true);
      break;
    case Kind::char_delimiter: step.character = part.at("delimiter").character(); break;
    case Kind::metaspace:
      step.character = part.at("replacement").character();
      step.prepend = parse_prepend(part);
      step.split = part.truth("split", true);
      break;
    case Kind::split:
      step.pattern = parse_pattern(part.at("pattern"));
      step.behavior = parse_behavior(part.at("behavior"));
      step.invert = part.at("invert").truth();
      break;
    case Kind::punctuation:
      if (const auto behavior = part.get("behavior")) step.behavior = parse_behavior(*behavior);
      break;
    case Kind::digits: step.individual = part.at("individual_digits").truth(); break;
    case Kind::fixed_length:
      step.length = part.whole("length", 5);
      if (step.length == 0) part.wrong("length is 0; expected at least 1");
      break;
    default: break;
  }
  to.push_back(std::move(step));
}

void parse_decoder(const Part& part, std::vector<DecoderStep>& to) {
  using Kind = DecoderStep::Kind;
  part.expect(JsonKind::object);
  const Part type = part.at("type");
  if (type.text() == "Sequence") return parse_sequence(part, "decoders", parse_decoder, to);
  DecoderStep step;
  step.kind = type.choice<Kind>({{"BPEDecoder", Kind::bpe},
                                 {"ByteLevel", Kind::byte_level},
                                 {"WordPiece", Kind::wordpiece},
                                 {"Metaspace", Kind::metaspace},
                                 {"CTC", Kind::ctc},
                                 {"Replace", Kind::replace},
                                 {"Fuse", Kind::fuse},
                                 {"Strip", Kind::strip},
                                 {"ByteFallback", Kind::byte_fallback}});
  switch (step.kind) {
    case Kind::bpe: step.text = part.at("suffix").text(); break;
    case Kind::wordpiece:
      step.text = part.at("prefix").text();
      step.cleanup = part.at("cleanup").truth();
      break;
    case Kind::metaspace:
      step.character = part.at("replacement").character();
      step.prepend = parse_prepend(part);
      break;
    case Kind::ctc:
      step.text = part.at("pad_token").text();
      step.delimiter = part.at("word_delimiter_token").text();
      step.cleanup = part.at("cleanup").truth();
      break;
    case Kind::replace:
      step.pattern = parse_pattern(part.at("pattern"));
      step.text = part.at("content").text();
      break;
    case Kind::strip:
      step.character = part.at("content").character();
      step.start = part.at("start").whole();
      step.stop = part.at("stop").whole();
      break;
    default: break;
  }
  to.push_back(std::move(step));
}

namespace {

PostProcessorStep::Special parse_special(const Part& part) {
  part.expect(JsonKind::array);
  if (part.json().size() != 2) part.wrong("expected a token and its number");
  auto i = part.json().begin();
  PostProcessorStep::Special special;
  special.token = part.element(*i, 0).text();
  ++i;
  special.id = part.element(*i, 1).id();
  return special;
}

std::vector<PostProcessorStep::Special> parse_specials(const Part& part) {
  const Part ids = part.at("ids"), tokens = part.at("tokens");
  ids.expect(JsonKind::array);
  tokens.expect(JsonKind::array);
  if (ids.json().size() != tokens.json().size())
    part.wrong("has {} ids and {} tokens; the numbers must be equal", ids.json().size(), tokens.json().size());
  std::vector<PostProcessorStep::Special> specials;
  for (const JsonValue id : ids.json()) specials.push_back({"", ids.element(id, specials.size()).id()});
  std::size_t i = 0;
  for (const JsonValue token : tokens.json()) {
    specials[i].token = tokens.element(token, i).text();
    ++i;
  }
  return specials;
}

std::vector<PostProcessorStep::Piece> parse_template(const Part& part, const Part& specials) {
  part.expect(JsonKind::array);
  std::vector<PostProcessorStep::Piece> pieces;
  for (const JsonValue value : part.json()) {
    const Part element = part.element(value, pieces.size());
    element.expect(JsonKind::object);
    PostProcessorStep::Piece piece;
    if (const auto sequence = element.get("Sequence")) {
      piece.sequence = sequence->at("id").choice<int>({{"A", 0}, {"B", 1}});
      piece.type_id = sequence->at("type_id").id();
    } else {
      const Part special = element.at("SpecialToken");
      piece.specials = parse_specials(specials.at(special.at("id").text()));
      piece.type_id = special.at("type_id").id();
    }
    pieces.push_back(std::move(piece));
  }
  return pieces;
}

}  // namespace

void parse_post_processor(const Part& part, std::vector<PostProcessorStep>& to) {
  using Kind = PostProcessorStep::Kind;
  part.expect(JsonKind::object);
  const Part type = part.at("type");
  if (type.text() == "Sequence") return parse_sequence(part, "processors", parse_post_processor, to);
  PostProcessorStep step;
  step.kind = type.choice<Kind>({{"BertProcessing", Kind::bert},
                                 {"RobertaProcessing", Kind::roberta},
                                 {"ByteLevel", Kind::byte_level},
                                 {"TemplateProcessing", Kind::templated}});
  if (step.kind == Kind::bert || step.kind == Kind::roberta) {
    step.sep = parse_special(part.at("sep"));
    step.cls = parse_special(part.at("cls"));
  }
  if (step.kind == Kind::roberta || step.kind == Kind::byte_level) {
    step.trim_offsets = part.at("trim_offsets").truth();
    step.add_prefix_space = part.at("add_prefix_space").truth();
  }
  if (step.kind == Kind::templated) {
    const Part specials = part.at("special_tokens");
    specials.expect(JsonKind::object);
    step.single = parse_template(part.at("single"), specials);
    step.pair = parse_template(part.at("pair"), specials);
  }
  to.push_back(std::move(step));
}

AddedToken parse_added_token(const Part& part) {
  AddedToken token;
  token.content = part.at("content").text();
  token.single_word = part.truth("single_word", false);
  token.lstrip = part.truth("lstrip", false);
  token.rstrip = part.truth("rstrip", false);
  token.special = part.truth("special", false);
  token.normalized = part.truth("normalized", !token.special);
  return token;
}

Truncation parse_truncation(const Part& part) {
  Truncation t;
  part.expect(JsonKind::object);
  t.max_length = part.at("max_length").whole();
  t.stride = part.at("stride").whole();
  t.strategy = part.at("strategy")
                   .choice<TruncationStrategy>({{"LongestFirst", TruncationStrategy::longest_first},
                                                {"OnlyFirst", TruncationStrategy::only_first},
                                                {"OnlySecond", TruncationStrategy::only_second}});
  if (const auto direction = part.get("direction"))
    t.direction = direction->choice<Side>({{"Left", Side::left}, {"Right", Side::right}});
  return t;
}

Padding parse_padding(const Part& part) {
  Padding p;
  part.expect(JsonKind::object);
  const Part strategy = part.at("strategy");
  if (strategy.json().is(JsonKind::object)) {
    p.fixed_length = strategy.at("Fixed").whole();
  } else {
    strategy.choice<int>({{"BatchLongest", 0}});
  }
  p.direction = part.at("direction").choice<Side>({{"Left", Side::left}, {"Right", Side::right}});
  p.multiple_of = part.whole("pad_to_multiple_of", 0);
  p.id = part.at("pad_id").id();
  p.type_id = part.at("pad_type_id").id();
  p.token = part.at("pad_token").text();
  return p;
}

}  // namespace sdx::text
