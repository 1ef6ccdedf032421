#pragma once
// The networks of a Whisper model: the encoder of a window of sound, and the decoder of tokens with its keys and values.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "speech/whisper/settings.h"
#include "tensor/gguf/tensor_files.h"

namespace sdx::speech {

// A decoder's session, by the names of its inputs and outputs.
struct DecoderSession {
  explicit DecoderSession(Session opened);

  Session session;
  std::vector<std::string> pasts, presents;  // names; the present of each past
  std::vector<std::string> all_presents;
  bool hidden = false, branches = false, positions = false;  // the inputs encoder_hidden_states, use_cache_branch, cache_position
};

struct WhisperFiles;

// A window of sound as the decoder takes it.
struct EncodedSound {
  Tensor hidden;                                       // undefined where the decoder does not take it
  std::vector<std::pair<std::string, Tensor>> caches;  // its keys and values, by the names of pasts, where the encoder has them
};

// Immutable, so safe to share between threads.
class WhisperNetwork {
 public:
  // The files of `folder`, or of onnx/ in it: encoder_model.onnx with decoder_model_merged.onnx, or with decoder_model.onnx and,
  // where it is there, decoder_with_past_model.onnx; or else the weights in model.safetensors. Throws Error(io | invalid_model)
  // naming what is missing.
  WhisperNetwork(const std::filesystem::path& folder, const WhisperSettings& settings, const SessionOptions& options);

  // `features`: float32[1, bins, frames].
  EncodedSound encode(const Tensor& features, const std::optional<CancelToken>& cancel) const;

 private:
  friend class DecoderText;
  void open_files(const WhisperFiles& files, const SessionOptions& options);
  void open_weights(const std::filesystem::path& listing, const SessionOptions& options);
  // The decoder that also returns its attention; it is opened when first asked for.
  const DecoderSession& aligner() const;

  const WhisperSettings& settings_;
  std::filesystem::path decoder_file_;          // of ONNX
  std::shared_ptr<const TensorFiles> weights_;  // null: the network is in ONNX
  SessionOptions decoder_options_;
  std::unique_ptr<Session> encoder_;
  std::unique_ptr<DecoderSession> first_;  // also of later steps, where it is merged or there is no other
  std::unique_ptr<DecoderSession> later_;
  mutable std::once_flag aligner_asked_for_;
  mutable std::unique_ptr<DecoderSession> aligner_;
};

struct AlignedText {
  Tensor logits;     // float32[tokens, vocabulary]
  Tensor attention;  // float32[heads, tokens, positions of the sound], of the settings' alignment heads
};

// One text being decoded. Not thread-safe.
class DecoderText {
 public:
  DecoderText(const WhisperNetwork& network, const EncodedSound& sound, std::optional<CancelToken> cancel);

  // Takes the tokens in; float32 logits of each: [tokens, vocabulary].
  Tensor append(std::span<const TokenId> tokens);
  // A whole text at once, with the attention that says when its tokens are said. Forgets all tokens. Throws
  // Error(not_implemented) where the model's operators keep their attention to themselves.
  AlignedText align(std::span<const TokenId> tokens);
  // Forgets all tokens; the sound stays.
  void clear();
  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }

 private:
  NamedValues inputs(const DecoderSession& d, std::span<const TokenId> tokens) const;
  void keep(const DecoderSession& d, const NamedValues& outputs);
  const DecoderSession& next() const;

  const WhisperNetwork& network_;
  Tensor hidden_;
  std::optional<CancelToken> cancel_;
  std::vector<TokenId> tokens_;
  // By the names of pasts. Those of the sound are kept from the first step on.
  std::vector<std::pair<std::string, Tensor>> cache_;
};

}  // namespace sdx::speech
