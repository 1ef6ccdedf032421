#pragma once
// An encoder's session: token numbers in, the model's output out, with texts of similar length together.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "text/embed/encoder_network.h"

namespace sdx::text {

// A text, or a pair of texts, as the model takes it.
struct TokenizedText {
  std::vector<std::int64_t> ids;
  std::vector<std::int64_t> types;  // token_type_ids; as many, or empty: all 0
};

// The result for a batch of texts: `values` is float32[texts, length, width] or float32[texts, width].
struct EncodedBatch {
  std::span<const std::size_t> texts;  // indices into what encode() received
  std::int64_t length = 0;             // tokens of the longest: texts are padded behind their own
  Tensor values;
};

class Encoder {
 public:
  // `rank`: that of the output, 3 for vectors of tokens, 2 for one of each text; 0: either, 3 first. Throws
  // Error(invalid_argument) for a model that has other inputs than input_ids, attention_mask, token_type_ids and position_ids, or
  // that has no such output.
  // `head`: of networks that are made from weights.
  Encoder(const std::filesystem::path& model, const SessionOptions& options, std::size_t rank, std::int64_t padding,
          const TextHead& head = {});

  // Every text once, in batches of at most `batch`; `take` is called on this thread.
  void encode(std::span<const TokenizedText> texts, int batch, const std::function<void(const EncodedBatch&)>& take) const;

  std::size_t rank() const { return rank_; }
  const Session& session() const { return session_; }

 private:
  Tensor run(std::span<const TokenizedText> texts, std::span<const std::size_t> chosen, std::int64_t length) const;

  Session session_;
  std::string output_;
  std::size_t rank_ = 0;
  std::int64_t padding_ = 0;
};

}  // namespace sdx::text
