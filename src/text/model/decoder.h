#pragma once
// A language model's session, and the state of one text in it: tokens and their keys and values.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <sdx/session.hpp>
#include <sdx/text.hpp>
#include <span>
#include <string>
#include <vector>

#include "text/model/block_pool.h"

namespace sdx::text {

using sdx::TokenId;

// The names of a decoder's inputs and outputs; "" if there is none.
struct DecoderNames {
  std::string ids = "input_ids", mask = "attention_mask", positions = "position_ids", use_cache = "use_cache_branch",
              logits = "logits", wanted = "logits_indices";
  // Patterns with %d for the layer.
  std::string past_key = "past_key_values.%d.key", past_value = "past_key_values.%d.value", present_key = "present.%d.key",
              present_value = "present.%d.value";
};

// A pattern's %d as a number.
std::string of_layer(const std::string& pattern, std::int64_t layer);

// Cosines and sines for one pair of inputs, made as positions are needed.
struct AngleInput {
  std::string cos, sin;
  std::int64_t half = 0;  // columns
  std::function<void(std::int64_t first, std::int64_t count, float* cos, float* sin)> rows;
};

// The names of all layers' pasts and presents, in the order of BlockPool::caches().
struct CacheNames {
  std::vector<std::string> pasts, presents;
};

// The same of states, with the shape of one text's.
struct StateNames : CacheNames {
  std::vector<Shape> shapes;
};

// Immutable once made; shared by all states. Any number of states may run at once.
struct Decoder {
  std::unique_ptr<Session> session;
  DecoderNames names;
  std::vector<AngleInput> angles;
  std::int64_t layers = 0, kv_heads = 0, head_size = 0, vocabulary = 0, context = 0;
  DataType cache_type = DataType::float32;
  bool has_cache = true;
  // Keys and values stay in place, in buffers with room for more tokens, and GroupQueryAttention appends new ones. Otherwise each
  // step returns the whole cache, which the next one takes.
  bool in_place = false;
  // Why caches are not in blocks of a pool, with steps for several texts (text/model/paged/paged_graph.h); "" if they are.
  std::string why_not_paged = "its network is not written for blocks";
  CacheNames caches;
  StateNames states;  // recurrent ones and those of convolutions, of paged decoders alone

  // Reads inputs and outputs of `session` (names, layers, sizes of heads, types); `in_place` is the caller's to know. Throws
  // Error(invalid_model) naming what a decoder must have and the model lacks.
  void describe();

  bool paged() const { return why_not_paged.empty(); }
  CacheLayout layout() const { return {layers, kv_heads, head_size, cache_type, {}}; }
  bool has_states() const { return !states.shapes.empty(); }
  CacheLayout state_layout() const { return {0, 0, 0, DataType::float32, states.shapes}; }
  // The pool for texts without a pool of their own: as many blocks as the machine has memory for. Made on first use.
  const std::shared_ptr<BlockPool>& pool() const;

  // Tables in the order of `angles`: [positions, half], with at least as many positions as requested.
  struct AngleTables {
    std::int64_t positions = 0;
    std::vector<Tensor> cos, sin;
  };
  std::shared_ptr<const AngleTables> angle_tables(std::int64_t positions) const;

 private:
  void find_states();
  void refuse_other_inputs() const;

  mutable std::mutex mutex_;
  mutable std::shared_ptr<BlockPool> pool_;            // guarded by `mutex_`
  mutable std::shared_ptr<const AngleTables> tables_;  // guarded by `mutex_`
};

// Not thread-safe.
class DecoderState {
 public:
  // `pool`: of decoder->layout(), for paged decoders; null: decoder->pool().
  explicit DecoderState(std::shared_ptr<const Decoder> decoder, const std::shared_ptr<BlockPool>& pool = nullptr);

  // Takes the tokens in, and returns float32 logits: [1, vocabulary] of the last one, or [tokens, vocabulary]. Throws
  // Error(invalid_argument) where there are none, one is not in the vocabulary, or the context is exceeded, and
  // Error(out_of_memory). After an error the state is as it was.
  Tensor append(std::span<const TokenId> tokens, bool all_logits = false, const RunOptions& options = {});
  // Forgets all tokens but the first `count`. A state is only known behind the tokens of some steps; from the last of these that
  // is left on, the next step computes the tokens again.
  void rewind(std::int64_t count);
  // Returns a copy that continues independently. Blocks are shared until one of the two writes.
  DecoderState fork() const;

  std::int64_t size() const { return length_; }
  const Decoder* decoder() const { return decoder_.get(); }
  std::size_t cache_bytes() const;

  // For paged decoders: makes room for more tokens, and for the state behind them; false if the pool has none.
  bool reserve_blocks(std::int64_t more);
  const BlockList& blocks() const { return blocks_; }
  // Goes on with full blocks of its pool that hold the keys and values of the next tokens. Only where its own are full.
  void share_blocks(std::span<const std::int32_t> blocks);

  // Throws as append() does.
  void check(std::span<const TokenId> tokens) const;

 private:
  friend class PagedStep;
  void reserve(std::int64_t tokens);
  // text_states.cc
  void catch_up(const RunOptions& options);
  void took(std::span<const TokenId> tokens);
  void keep(std::int64_t weight);
  void rewind_states(std::int64_t count);
  std::size_t state_bytes() const;
  Tensor run(std::span<const TokenId> tokens, bool all_logits, const RunOptions& options);
  Tensor run_again(std::span<const TokenId> tokens, bool all_logits, const RunOptions& options);
  Tensor one_step(std::span<const TokenId> tokens, bool all_logits, const RunOptions& options);

  std::shared_ptr<const Decoder> decoder_;
  std::int64_t length_ = 0, capacity_ = 0;
  std::vector<Tensor> cache_;     // keys and values of layer 0, of layer 1, …: [1, kv_heads, capacity, head]
  std::vector<TokenId> history_;  // without a cache
  BlockList blocks_;              // of paged decoders

  // Of decoders with states. A state lies in a slot: a list with one block. Steps read one slot and write another, so that a step
  // that fails changes nothing, and forks share states.
  struct State {
    std::int64_t at = 0;      // the tokens that it stands behind; 0: there is none
    std::int64_t weight = 0;  // of kept ones: the tokens of the step before it
    BlockList slot;
  };
  State state_;                  // may stand behind fewer tokens than the text has, after rewind()
  BlockList next_;               // for the next step
  std::vector<State> kept_;      // for rewind(), by their places
  std::vector<TokenId> tokens_;  // all
  bool keeps_ = false;
};

}  // namespace sdx::text
