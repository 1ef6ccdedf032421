#include "speech/whisper/network.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "base/suggest.h"
#include "onnx/reader.h"
#include "session/open.h"
#include "speech/whisper/attention.h"
#include "speech/whisper/cache_names.h"
#include "speech/whisper/weights_network.h"
#include "tensor/element.h"
#include "text/model/network/safetensors_files.h"

namespace sdx::speech {

namespace fs = std::filesystem;

// A network's files in ONNX.
struct WhisperFiles {
  fs::path encoder, first;
  std::optional<fs::path> later;
};

namespace {

std::optional<fs::path> find(const fs::path& folder, std::string_view stem, std::string_view end) {
  for (const fs::path& place : {folder, folder / "onnx"}) {
    fs::path file = place / (std::string(stem) + std::string(end) + ".onnx");
    std::error_code error;
    if (fs::is_regular_file(file, error)) return file;
  }
  return std::nullopt;
}

// Whole numbers first, then smaller ones.
std::optional<WhisperFiles> find_files(const fs::path& folder) {
  for (const char* end : {"", "_fp16", "_int8", "_uint8", "_quantized", "_q4", "_q4f16", "_bnb4"}) {
    const auto encoder = find(folder, "encoder_model", end);
    if (!encoder) continue;
    if (const auto merged = find(folder, "decoder_model_merged", end)) return WhisperFiles{*encoder, *merged, std::nullopt};
    if (const auto first = find(folder, "decoder_model", end))
      return WhisperFiles{*encoder, *first, find(folder, "decoder_with_past_model", end)};
  }
  return std::nullopt;
}

// A tensor of float32 in the type that an input declares.
Tensor as_type(const Tensor& t, DataType type) {
  if (t.dtype() == type || type == DataType::undefined) return t;
  Tensor out(type, t.shape());
  for (std::int64_t i = 0; i < t.size(); ++i) set_element(out, i, element_as_double(t, i));
  return out;
}

const ValueSpec* find_input(const Session& s, std::string_view name) {
  for (const ValueSpec& v : s.inputs()) {
    if (v.name == name) return &v;
  }
  return nullptr;
}

template <class Open>
auto named(const fs::path& file, const Open& open) {
  try {
    return open();
  } catch (Error& e) {
    throw e.add_context("in '" + file.string() + "'");
  }
}

RunOptions run_options(const std::optional<CancelToken>& cancel) {
  RunOptions o;
  o.cancel = cancel;
  return o;
}

}  // namespace

DecoderSession::DecoderSession(Session opened) : session(std::move(opened)) {
  for (const ValueSpec& v : session.outputs()) {
    if (v.name.starts_with(kPresent)) all_presents.push_back(v.name);
  }
  for (const ValueSpec& v : session.inputs()) {
    if (v.name.starts_with(kPast)) {
      const std::string present = std::string(kPresent) + v.name.substr(kPast.size());
      pasts.push_back(v.name);
      presents.push_back(std::find(all_presents.begin(), all_presents.end(), present) == all_presents.end() ? "" : present);
    } else if (v.name == "encoder_hidden_states") {
      hidden = true;
    } else if (v.name == "use_cache_branch") {
      branches = true;
    } else if (v.name == "cache_position") {
      positions = true;
    } else if (v.name != "input_ids" && !v.has_default) {
      fail(ErrorCode::not_implemented,
           "the decoder takes '{}'; expected input_ids, encoder_hidden_states, past_key_values.*, use_cache_branch and "
           "cache_position",
           v.name);
    }
  }
  if (find_input(session, "input_ids") == nullptr) fail(ErrorCode::invalid_model, "the decoder has no input 'input_ids'");
}

WhisperNetwork::WhisperNetwork(const fs::path& folder, const WhisperSettings& settings, const SessionOptions& options)
    : settings_(settings), decoder_options_(options) {
  // Each step has a length of its own.
  decoder_options_.plan_cache_size = std::max<std::size_t>(decoder_options_.plan_cache_size, 16);
  if (const auto files = find_files(folder)) {
    open_files(*files, options);
  } else if (const auto listing = text::find_safetensors(folder)) {
    open_weights(*listing, options);
  } else {
    fail(ErrorCode::io,
         "'{}' contains no Whisper model: expected model.safetensors, or in ONNX encoder_model.onnx with "
         "decoder_model_merged.onnx or decoder_model.onnx, there or in onnx/",
         folder.string());
  }
}

void WhisperNetwork::open_files(const WhisperFiles& files, const SessionOptions& options) {
  decoder_file_ = files.first;
  encoder_ = std::make_unique<Session>(Session::open(files.encoder, options));
  const ValueSpec* features = find_input(*encoder_, "input_features");
  if (features == nullptr || encoder_->outputs().empty()) {
    fail(ErrorCode::invalid_model, "'{}' is no encoder of Whisper: it has no input 'input_features'", files.encoder.string());
  }
  first_ = std::make_unique<DecoderSession>(Session::open(files.first, decoder_options_));
  if (files.later) later_ = std::make_unique<DecoderSession>(Session::open(*files.later, decoder_options_));
  if (!first_->hidden) {
    fail(ErrorCode::invalid_model, "'{}' has no input 'encoder_hidden_states'", files.first.string());
  }
}

void WhisperNetwork::open_weights(const fs::path& listing, const SessionOptions& options) {
  weights_ = open_whisper_weights(listing);
  named(listing, [&] {
    encoder_ = std::make_unique<Session>(session::open(whisper_encoder(weights_, settings_), options));
    first_ = std::make_unique<DecoderSession>(session::open(whisper_decoder(weights_, settings_), decoder_options_));
  });
}

EncodedSound WhisperNetwork::encode(const Tensor& features, const std::optional<CancelToken>& cancel) const {
  const ValueSpec& input = *find_input(*encoder_, "input_features");
  RunOptions options = run_options(cancel);
  if (!weights_) options.outputs = {encoder_->outputs().front().name};
  const NamedValues outputs = encoder_->run({{input.name, as_type(features, input.dtype)}}, options);
  EncodedSound sound;
  for (const NamedValue& output : outputs) {
    if (output.name.starts_with(kPresent)) {
      sound.caches.emplace_back(std::string(kPast) + output.name.substr(kPresent.size()), output.value.tensor());
    }
  }
  if (const ValueSpec* hidden = find_input(first_->session, "encoder_hidden_states")) {
    sound.hidden = as_type(outputs[0].value.tensor(), hidden->dtype);
  }
  return sound;
}

const DecoderSession& WhisperNetwork::aligner() const {
  std::call_once(aligner_asked_for_, [&] {
    aligner_ = named(decoder_file_, [&] {
      Model model = weights_ ? whisper_decoder(weights_, settings_) : read_model(decoder_file_);
      model = with_attention_outputs(std::move(model), settings_);
      return std::make_unique<DecoderSession>(session::open(std::move(model), decoder_options_));
    });
  });
  return *aligner_;
}

DecoderText::DecoderText(const WhisperNetwork& network, const EncodedSound& sound, std::optional<CancelToken> cancel)
    : network_(network), hidden_(sound.hidden), cancel_(std::move(cancel)), cache_(sound.caches) {}

void DecoderText::clear() {
  tokens_.clear();
  std::erase_if(cache_, [](const auto& c) { return !is_encoder_cache(c.first); });
}

// The session of the next step. Keys and values of the sound alone do not make a later step.
const DecoderSession& DecoderText::next() const {
  const bool begun = !tokens_.empty();
  return begun && network_.later_ ? *network_.later_ : *network_.first_;
}

NamedValues DecoderText::inputs(const DecoderSession& d, std::span<const TokenId> tokens) const {
  const auto count = static_cast<std::int64_t>(tokens.size());
  const bool begun = !tokens_.empty();
  NamedValues in;
  Tensor ids(DataType::int64, {1, count});
  std::copy(tokens.begin(), tokens.end(), ids.mutable_values<std::int64_t>().begin());
  const ValueSpec& spec = *find_input(d.session, "input_ids");
  in.add("input_ids", as_type(ids, spec.dtype));
  if (d.hidden) in.add("encoder_hidden_states", hidden_);
  if (d.branches) in.add("use_cache_branch", Tensor::of<bool>({1}, {begun}));
  if (d.positions) {
    Tensor at(DataType::int64, {count});
    std::iota(at.mutable_values<std::int64_t>().begin(), at.mutable_values<std::int64_t>().end(), size());
    in.add("cache_position", std::move(at));
  }
  const WhisperSettings& s = network_.settings_;
  for (const std::string& past : d.pasts) {
    const auto held = std::find_if(cache_.begin(), cache_.end(), [&](const auto& c) { return c.first == past; });
    // Before the first token, an exported decoder reads no pasts; one that does not take the hidden states needs the sound's.
    const bool read = begun || (!d.hidden && is_encoder_cache(past));
    if (read && held == cache_.end()) fail(ErrorCode::invalid_model, "no decoder returns '{}', which later steps take", past);
    const DataType type = find_input(d.session, past)->dtype;
    in.add(past, read ? held->second : Tensor(type, {1, s.heads, 0, s.width / s.heads}));
  }
  return in;
}

void DecoderText::keep(const DecoderSession& d, const NamedValues& outputs) {
  const bool begun = !tokens_.empty();
  for (const std::string& present : d.all_presents) {
    const std::string past = std::string(kPast) + present.substr(kPresent.size());
    // Later steps of merged networks return nothing in place of the sound's keys and values.
    if (begun && is_encoder_cache(past)) continue;
    const auto held = std::find_if(cache_.begin(), cache_.end(), [&](const auto& c) { return c.first == past; });
    if (held == cache_.end()) {
      cache_.emplace_back(past, outputs.tensor(present));
    } else {
      held->second = outputs.tensor(present);
    }
  }
}

AlignedText DecoderText::align(std::span<const TokenId> tokens) {
  clear();
  const DecoderSession& d = network_.aligner();
  const NamedValues outputs = d.session.run(inputs(d, tokens), run_options(cancel_));
  const WhisperSettings& s = network_.settings_;
  const auto count = static_cast<std::int64_t>(tokens.size()), heads = static_cast<std::int64_t>(s.alignment_heads.size());
  const Tensor logits = to_float32(outputs.tensor("logits"));
  if (logits.rank() != 3 || logits.dim(0) != 1 || logits.dim(1) != count || logits.dim(2) < s.vocabulary) {
    fail(ErrorCode::invalid_model, "the decoder's logits are {}; expected [1,{},{}]", logits.type_string(), count, s.vocabulary);
  }
  AlignedText out{logits.reshaped({count, logits.dim(2)}), outputs.tensor(kAttentionOutput)};
  if (out.attention.shape() != Shape{heads, count, s.source_positions}) {
    fail(ErrorCode::invalid_model, "the decoder's attention to the sound is {}; expected [{},{},{}]", out.attention.type_string(),
         heads, count, s.source_positions);
  }
  return out;
}

Tensor DecoderText::append(std::span<const TokenId> tokens) {
  const DecoderSession& d = next();
  const bool whole = !tokens_.empty() && d.pasts.empty();  // without pasts, each step computes all again
  std::vector<TokenId> all;
  if (whole) {
    all = tokens_;
    all.insert(all.end(), tokens.begin(), tokens.end());
  }
  RunOptions options = run_options(cancel_);
  options.outputs = {"logits"};
  const bool keeps = !network_.first_->pasts.empty() || network_.later_;
  if (keeps) options.outputs.insert(options.outputs.end(), d.all_presents.begin(), d.all_presents.end());
  const NamedValues outputs = d.session.run(inputs(d, whole ? std::span<const TokenId>(all) : tokens), options);
  if (keeps) keep(d, outputs);
  const Tensor logits = to_float32(outputs.tensor("logits"));
  const auto computed = static_cast<std::int64_t>(whole ? all.size() : tokens.size());
  if (logits.rank() != 3 || logits.dim(0) != 1 || logits.dim(1) != computed || logits.dim(2) < 1) {
    fail(ErrorCode::invalid_model, "the decoder's logits are {}; expected [1,{},vocabulary]", logits.type_string(), computed);
  }
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  const std::int64_t vocabulary = logits.dim(2), wanted = static_cast<std::int64_t>(tokens.size());
  const float* rows = logits.values<float>().data() + (computed - wanted) * vocabulary;
  return Tensor::of<float>({wanted, vocabulary}, std::span(rows, static_cast<std::size_t>(wanted * vocabulary)));
}

}  // namespace sdx::speech
