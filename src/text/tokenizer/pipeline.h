#pragma once
// A tokenizer as it is put together from a file.

#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include <sdx/tokenizer.hpp>

#include "text/tokenizer/added_tokens.h"
#include "text/tokenizer/decoder.h"
#include "text/tokenizer/model/model.h"
#include "text/tokenizer/normalizer.h"
#include "text/tokenizer/post_processor.h"
#include "text/tokenizer/pre_tokenizer.h"

namespace sdx::text {

// Workspaces that wait for the next text.
class WorkspacePool {
 public:
  std::unique_ptr<Workspace> take();
  void give(std::unique_ptr<Workspace> workspace);

 private:
  static constexpr std::size_t kMost = 64;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_;
};

struct TokenizerPipeline {
  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  std::shared_ptr<const TokenModel> model;
  AddedTokens added;
  bool has_post_processor = false, has_decoder = false;
  std::vector<PostProcessorStep> post_processor;
  std::vector<DecoderStep> decoder;
  SpecialTokens special;
  std::optional<Truncation> truncation;  // as the file has them
  std::optional<Padding> padding;

  // Set by finish().
  bool keeps_bytes = false;
  std::unordered_set<std::uint32_t> special_ids;
  mutable WorkspacePool workspaces;

  // After everything else is set.
  void finish();
  // The same with more tokens; as Tokenizer::with_tokens().
  std::shared_ptr<const TokenizerPipeline> with_tokens(const std::vector<AddedToken>& tokens, std::size_t& count) const;
};

}  // namespace sdx::text

namespace sdx {

struct Tokenizer::Impl {
  std::shared_ptr<const text::TokenizerPipeline> pipeline;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;
};

}  // namespace sdx
