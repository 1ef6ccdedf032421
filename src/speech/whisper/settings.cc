#include "speech/whisper/settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/model/config_object.h"

namespace sdx::speech {
namespace {

namespace fs = std::filesystem;
using text::ConfigObject;

std::int64_t count(ConfigObject& o, const char* key, std::int64_t most, std::optional<std::int64_t> usual = {}) {
  const std::optional<std::int64_t> read = o.integer(key), n = read ? read : usual;
  if (!n) fail(ErrorCode::invalid_model, "{} is missing", o.shown(key));
  if (*n < 1 || *n > most) fail(ErrorCode::invalid_model, "{} must be from 1 to {}, received {}", o.shown(key), most, *n);
  return *n;
}

void read_config(const fs::path& folder, WhisperSettings& s) {
  const nlohmann::json file = text::read_json_file(folder / "config.json");
  ConfigObject o(file, "config.json: ");
  const std::string type = o.text("model_type").value_or("");
  if (type != "whisper") {
    fail(ErrorCode::not_implemented, "{} = '{}' is no speech model that is supported; expected 'whisper'", o.shown("model_type"),
         type);
  }
  s.vocabulary = count(o, "vocab_size", 1 << 24);
  s.positions = count(o, "max_target_positions", 1 << 16, 448);
  s.source_positions = count(o, "max_source_positions", 1 << 16, 1500);
  s.layers = count(o, "decoder_layers", 1 << 10);
  s.heads = count(o, "decoder_attention_heads", 1 << 10);
  s.width = count(o, "d_model", 1 << 16);
  s.encoder_layers = count(o, "encoder_layers", 1 << 10, s.layers);
  s.encoder_heads = count(o, "encoder_attention_heads", 1 << 10, s.heads);
  s.scaled_words = o.flag("scale_embedding").value_or(false);
  s.activation = o.text("activation_function").value_or("gelu");
  s.features.bins = count(o, "num_mel_bins", 1024, 80);
  for (const std::int64_t heads : {s.heads, s.encoder_heads}) {
    if (s.width % heads != 0)
      fail(ErrorCode::invalid_model, "config.json: {} elements cannot be divided among {} heads", s.width, heads);
  }
  s.max_length = count(o, "max_length", 1 << 16, s.positions);
  s.start = o.token("decoder_start_token_id").value_or(0);
  const std::vector<TokenId> ends = o.tokens("eos_token_id");
  if (!ends.empty()) s.end = ends.front();
  s.suppress = o.tokens("suppress_tokens");
  s.suppress_at_begin = o.tokens("begin_suppress_tokens");
}

std::optional<TokenId> named(const nlohmann::json* map, const std::string& key) {
  if (map == nullptr || !map->is_object() || !map->contains(key) || !(*map)[key].is_number_unsigned()) return std::nullopt;
  const auto id = (*map)[key].get<std::uint64_t>();
  return id > UINT32_MAX ? std::nullopt : std::optional(static_cast<TokenId>(id));
}

// "<|de|>" → "de"; "" for other tokens.
std::string language_of(const std::string& token) {
  if (!token.starts_with("<|") || !token.ends_with("|>") || token.size() < 6 || token.size() > 7) return "";
  return token.substr(2, token.size() - 4);
}

void read_alignment(ConfigObject& o, WhisperSettings& s) {
  const nlohmann::json* heads = o.take("alignment_heads");
  if (heads == nullptr) return;
  const auto wrong = [&](const nlohmann::json& shown) {
    fail(ErrorCode::invalid_model, "{} must be pairs of a layer below {} and a head below {}, received {}",
         o.shown("alignment_heads"), s.layers, s.heads, shown.dump());
  };
  if (!heads->is_array() || static_cast<std::int64_t>(heads->size()) > s.layers * s.heads) wrong(*heads);
  for (const nlohmann::json& pair : *heads) {
    const bool numbers = pair.is_array() && pair.size() == 2 && pair[0].is_number_unsigned() && pair[1].is_number_unsigned();
    if (!numbers || pair[0].get<std::uint64_t>() >= static_cast<std::uint64_t>(s.layers) ||
        pair[1].get<std::uint64_t>() >= static_cast<std::uint64_t>(s.heads)) {
      wrong(pair);
    }
    const AlignmentHead head{pair[0].get<std::int64_t>(), pair[1].get<std::int64_t>()};
    if (std::find(s.alignment_heads.begin(), s.alignment_heads.end(), head) == s.alignment_heads.end()) {
      s.alignment_heads.push_back(head);
    }
  }
}

void read_generation(const fs::path& folder, WhisperSettings& s) {
  std::error_code error;
  if (!fs::exists(folder / "generation_config.json", error)) return;
  const nlohmann::json file = text::read_json_file(folder / "generation_config.json");
  ConfigObject o(file, "generation_config.json: ");
  s.max_length = count(o, "max_length", 1 << 16, s.max_length);
  if (const auto id = o.token("decoder_start_token_id")) s.start = *id;
  if (const std::vector<TokenId> ends = o.tokens("eos_token_id"); !ends.empty()) s.end = ends.front();
  if (const auto id = o.token("no_timestamps_token_id")) s.no_timestamps = *id;
  s.previous = o.token("prev_sot_token_id");
  if (o.has("suppress_tokens")) s.suppress = o.tokens("suppress_tokens");
  if (o.has("begin_suppress_tokens")) s.suppress_at_begin = o.tokens("begin_suppress_tokens");
  s.most_initial_timestamp = o.integer("max_initial_timestamp_index");
  read_alignment(o, s);
  const nlohmann::json* tasks = o.take("task_to_id");
  s.transcribe = named(tasks, "transcribe");
  s.translate = named(tasks, "translate");
  const nlohmann::json* languages = o.take("lang_to_id");
  if (languages == nullptr || !languages->is_object()) return;
  for (const auto& [token, id] : languages->items()) {
    const std::string code = language_of(token);
    if (const auto known = named(languages, token); known && !code.empty()) s.languages.emplace_back(code, *known);
  }
}

// Names are the same in all vocabularies.
void read_names(const Tokenizer& tokenizer, WhisperSettings& s) {
  const auto fill = [&](std::optional<TokenId>& to, std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (!to) to = tokenizer.token_to_id(name);
    }
  };
  if (s.no_timestamps == 0) {
    std::optional<TokenId> id;
    fill(id, {"<|notimestamps|>"});
    if (!id) fail(ErrorCode::invalid_model, "neither generation_config.json nor the tokenizer has the token <|notimestamps|>");
    s.no_timestamps = *id;
  }
  if (s.start == 0) s.start = tokenizer.token_to_id("<|startoftranscript|>").value_or(0);
  if (s.end == 0) s.end = tokenizer.token_to_id("<|endoftext|>").value_or(0);
  fill(s.previous, {"<|startofprev|>"});
  fill(s.no_speech, {"<|nospeech|>", "<|nocaptions|>"});
  // English-only vocabularies have these tokens, too, but their models do not know them.
  constexpr TokenId kEnglishOnly = 50257;  // <|startoftranscript|> of those
  if (s.start == kEnglishOnly || !s.languages.empty()) return;
  fill(s.transcribe, {"<|transcribe|>"});
  fill(s.translate, {"<|translate|>"});
  if (!s.translate) return;
  for (TokenId id = s.start + 1; id < *s.translate; ++id) {
    const std::string code = language_of(tokenizer.id_to_token(id).value_or(""));
    if (!code.empty()) s.languages.emplace_back(code, id);
  }
}

void check(const WhisperSettings& s) {
  const auto below = [&](const char* what, std::optional<TokenId> id) {
    if (id && static_cast<std::int64_t>(*id) >= s.vocabulary)
      fail(ErrorCode::invalid_model, "the token {} = {} is not in the vocabulary of {}", what, *id, s.vocabulary);
  };
  below("decoder_start_token_id", s.start);
  below("eos_token_id", s.end);
  below("prev_sot_token_id", s.previous);
  below("transcribe", s.transcribe);
  below("translate", s.translate);
  for (const auto& [code, id] : s.languages) below(code.c_str(), id);
  if (s.start == 0 || s.end == 0) fail(ErrorCode::invalid_model, "config.json names no decoder_start_token_id or eos_token_id");
  if (static_cast<std::int64_t>(s.timestamps()) > s.vocabulary)
    fail(ErrorCode::invalid_model, "the token <|notimestamps|> = {} is not in the vocabulary of {}", s.no_timestamps,
         s.vocabulary);
  if (s.positions < 8)
    fail(ErrorCode::invalid_model, "config.json: max_target_positions = {} leaves no room for text", s.positions);
}

}  // namespace

WhisperSettings read_whisper_settings(const fs::path& folder, const Tokenizer& tokenizer) {
  WhisperSettings s;
  read_config(folder, s);
  read_generation(folder, s);
  read_names(tokenizer, s);
  if (s.alignment_heads.empty()) {
    for (std::int64_t layer = s.layers / 2; layer < s.layers; ++layer) {
      for (std::int64_t head = 0; head < s.heads; ++head) s.alignment_heads.push_back({layer, head});
    }
  }
  if (!s.no_speech && s.no_timestamps > 0) s.no_speech = s.no_timestamps - 1;
  const std::int64_t bins = s.features.bins;
  s.features = read_whisper_features(folder);
  if (s.features.bins != bins) {
    fail(ErrorCode::invalid_model, "config.json: num_mel_bins = {}, preprocessor_config.json: feature_size = {}", bins,
         s.features.bins);
  }
  if (s.features.chunk_frames() != s.window_frames()) {
    fail(ErrorCode::invalid_model,
         "preprocessor_config.json: chunks of {} frames; config.json: max_source_positions = {} need {}",
         s.features.chunk_frames(), s.source_positions, s.window_frames());
  }
  check(s);
  return s;
}

}  // namespace sdx::speech
