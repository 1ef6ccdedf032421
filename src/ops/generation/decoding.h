#pragma once
// Processing of the next token's scores in BeamSearch, GreedySearch and Sampling (com.microsoft 1): rules that change them, and
// the choice among beams. Source of beam search with length penalty: Wu et al., arXiv:1609.08144; of the repetition penalty:
// Keskar et al., arXiv:1909.05858.

#include <cstdint>
#include <span>
#include <vector>

#include <sdx/tensor.hpp>

namespace sdx::ops {

using Tokens = std::vector<std::int32_t>;

// Whisper's rules for time stamps (tokens from `first` on): they come in pairs, never go back, and the text before the first one
// is short. Source: Radford et al., arXiv:2212.04356, and its published decoder. Tokens below 0 do not exist.
struct TimestampRules {
  bool on = false;
  std::int32_t first = -1, none = -1, language_model = -1, transcript = -1, translate = -1, transcribe = -1;
};

// Rules that change scores [sequences, vocab] in this order. Empty masks do nothing.
struct ScoreRules {
  float repetition_penalty = 1;                 // for tokens that occur already: negative scores are multiplied, others divided
  std::int64_t no_repeat_ngram = 0;             // > 0: no such run of tokens twice
  std::vector<std::int32_t> vocab_mask;         // [vocab]: 0 forbids
  std::vector<std::int32_t> prefix_vocab_mask;  // [batch, vocab], for the first new token only
  std::int64_t min_length = 0;                  // shorter sequences must not end
  std::int32_t eos = 0;
  float temperature = 1;
  float presence_penalty = 0;
  std::vector<std::int32_t> presence_mask;  // [batch, vocab]
  TimestampRules timestamps;
};

// Changes scores[sequences.size() * vocab] in place; `first`: these are for the first new token; `group`: sequences per batch
// entry. All tokens lie in [0, vocab). Masks have the extents above.
void apply_rules(const ScoreRules& rules, std::span<const Tokens> sequences, std::int64_t vocab, std::int64_t group, bool first,
                 std::vector<float>& scores);

// log(softmax(row)) for every row of `vocab` scores, in place. NaN becomes the lowest number, so that scores stay ordered.
void log_softmax_rows(std::vector<float>& scores, std::int64_t vocab);

struct BeamOptions {
  std::int64_t batch = 0, beams = 1, returned = 1, max_length = 0;
  float length_penalty = 1;
  bool early_stopping = false;
  std::int32_t eos = 0, pad = 0;
};

// The beams of all batch entries.
class Beams {
 public:
  // `sequences`: batch * beams; those of one batch entry are equal.
  Beams(const BeamOptions& options, std::vector<Tokens> sequences);

  // Goes one token on. `scores` [batch * beams, vocab]: for each beam the log-probabilities of its next token, after the rules;
  // the beams' own scores are added here (in place). vocab is at least 2.
  void advance(std::vector<float>& scores, std::int64_t vocab);
  bool done() const;

  const std::vector<Tokens>& sequences() const { return sequences_; }
  const Tokens& next_tokens() const { return next_; }                    // [batch * beams]: what was appended
  const std::vector<std::int64_t>& parents() const { return parents_; }  // [batch * beams]: which beam each goes on from

  // Finishes the open beams and returns the best: `tokens` [batch, returned, max_length], padded, and `scores` [batch, returned].
  void finish(std::int32_t* tokens, float* scores);

 private:
  struct Hypothesis {
    Tokens tokens;
    float score;
  };
  struct Group {                       // of one batch entry
    std::vector<Hypothesis> finished;  // best first, at most `beams`
    bool done = false;
  };

  void add(Group& group, const Tokens& tokens, float sum) const;
  bool is_done(const Group& group, float best_sum, std::size_t length) const;
  void advance_group(std::int64_t b, std::span<const float> scores, std::int64_t vocab);

  BeamOptions options_;
  std::vector<Tokens> sequences_;
  std::vector<float> sums_;
  std::vector<Group> groups_;
  Tokens next_;
  std::vector<std::int64_t> parents_;
};

}  // namespace sdx::ops
