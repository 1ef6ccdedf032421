#include "ops/generation/decoding.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

namespace sdx::ops {
namespace {

constexpr float kNever = std::numeric_limits<float>::lowest();

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

void penalise_repetition(float penalty, const Tokens& sequence, std::span<float> scores) {
  for (const std::int32_t token : std::set<std::int32_t>(sequence.begin(), sequence.end())) {
    float& s = scores[at(token)];
    s = s < 0 ? s * penalty : s / penalty;
  }
}

void forbid_repeated_runs(std::int64_t n, const Tokens& sequence, std::span<float> scores) {
  const auto length = static_cast<std::int64_t>(sequence.size());
  if (n > length) return;
  const auto tail = sequence.end() - (n - 1);
  for (auto start = sequence.begin(); start + n <= sequence.end(); ++start) {
    if (std::equal(tail, sequence.end(), start)) scores[at(start[n - 1])] = kNever;
  }
}

void forbid_range(std::int64_t from, std::int64_t to, std::span<float> scores) {
  to = std::min<std::int64_t>(to, static_cast<std::int64_t>(scores.size()));
  for (std::int64_t i = std::max<std::int64_t>(0, from); i < to; ++i) scores[at(i)] = kNever;
}

void forbid_token(std::int32_t token, std::span<float> scores) {
  if (token >= 0) forbid_range(token, std::int64_t{token} + 1, scores);
}

// If time stamps together are more likely than any word, one of them must come.
void prefer_timestamps(std::int64_t first, std::span<float> scores) {
  double sum = 0;
  float best_word = kNever;
  const float top = *std::max_element(scores.begin() + first, scores.end());
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(scores.size()); ++i) {
    const float s = scores[at(i)];
    if (i < first) best_word = std::max(best_word, s);
    if (i >= first && s > kNever) sum += std::exp(static_cast<double>(s) - static_cast<double>(top));
  }
  if (sum > 0 && std::log(sum) + static_cast<double>(top) > static_cast<double>(best_word)) forbid_range(0, first, scores);
}

void apply_timestamp_rules(const TimestampRules& rules, std::int32_t eos, const Tokens& sequence, std::span<float> scores) {
  constexpr std::int64_t kLatestFirst = 50;  // time stamps of 20 ms: the first lies within the first second
  const auto vocab = static_cast<std::int64_t>(scores.size());
  if (rules.first < 0 || rules.first >= vocab) return;
  const auto is_time = [&](std::int32_t token) { return token >= rules.first; };
  const auto begin = std::find_if(sequence.begin(), sequence.end(), is_time);
  const bool started = begin != sequence.end() && begin + 1 != sequence.end();  // something follows the first time stamp
  forbid_token(rules.none, scores);
  forbid_token(rules.language_model, scores);
  if (started) {
    for (const std::int32_t token : {rules.transcript, rules.translate, rules.transcribe}) forbid_token(token, scores);
  }
  const bool last = !sequence.empty() && is_time(sequence.back());
  const bool before = !started || is_time(sequence[sequence.size() - 2]);
  if (last && before) forbid_range(rules.first, vocab, scores);
  if (last && !before) forbid_range(0, eos, scores);
  const auto latest = std::find_if(sequence.rbegin(), sequence.rend(), is_time);
  if (latest != sequence.rend()) forbid_range(rules.first, std::int64_t{*latest} + (last && !before ? 0 : 1), scores);
  if (!started) forbid_range(std::int64_t{rules.first} + kLatestFirst + 1, vocab, scores);
  prefer_timestamps(rules.first, scores);
}

void forbid(std::span<const std::int32_t> mask, std::span<float> scores) {
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == 0) scores[i] = kNever;
  }
}

}  // namespace

void apply_rules(const ScoreRules& rules, std::span<const Tokens> sequences, std::int64_t vocab, std::int64_t group, bool first,
                 std::vector<float>& scores) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const std::span<float> row = std::span(scores).subspan(i * at(vocab), at(vocab));
    const std::size_t entry = i / at(group) * at(vocab);
    if (rules.repetition_penalty != 1) penalise_repetition(rules.repetition_penalty, sequences[i], row);
    if (rules.no_repeat_ngram > 0) forbid_repeated_runs(rules.no_repeat_ngram, sequences[i], row);
    forbid(rules.vocab_mask, row);
    if (first && !rules.prefix_vocab_mask.empty()) forbid(std::span(rules.prefix_vocab_mask).subspan(entry, at(vocab)), row);
    if (static_cast<std::int64_t>(sequences[i].size()) < rules.min_length) row[at(rules.eos)] = kNever;
    if (rules.temperature > 0 && rules.temperature != 1) {
      for (float& s : row) s /= rules.temperature;
    }
    if (rules.timestamps.on) apply_timestamp_rules(rules.timestamps, rules.eos, sequences[i], row);
    for (std::size_t k = 0; !rules.presence_mask.empty() && k < row.size(); ++k) {
      row[k] -= static_cast<float>(rules.presence_mask[entry + k]) * rules.presence_penalty;
    }
  }
}

void log_softmax_rows(std::vector<float>& scores, std::int64_t vocab) {
  for (auto row = scores.begin(); row != scores.end(); row += vocab) {
    for (auto s = row; s != row + vocab; ++s) *s = std::isnan(*s) ? kNever : *s;
    const float top = *std::max_element(row, row + vocab);
    double sum = 0;
    for (auto s = row; s != row + vocab; ++s) sum += std::exp(static_cast<double>(*s - top));
    const auto shift = static_cast<float>(std::log(sum));
    for (auto s = row; s != row + vocab; ++s) *s = *s - top - shift;
  }
}

Beams::Beams(const BeamOptions& options, std::vector<Tokens> sequences)
    : options_(options),
      sequences_(std::move(sequences)),
      sums_(sequences_.size()),
      groups_(at(options.batch)),
      next_(sequences_.size()),
      parents_(sequences_.size()) {
  // All beams of a group are alike at first: only one of them may be gone on from.
  for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] = i % at(options_.beams) == 0 ? 0.0F : -1e9F;
}

void Beams::add(Group& group, const Tokens& tokens, float sum) const {
  const float score = sum / std::pow(static_cast<float>(tokens.size()), options_.length_penalty);
  std::vector<Hypothesis>& all = group.finished;
  if (static_cast<std::int64_t>(all.size()) >= options_.beams && !(score > all.back().score)) return;
  const auto place = std::find_if(all.begin(), all.end(), [&](const Hypothesis& h) { return h.score < score; });
  all.insert(place, Hypothesis{tokens, score});
  if (static_cast<std::int64_t>(all.size()) > options_.beams) all.pop_back();
}

bool Beams::is_done(const Group& group, float best_sum, std::size_t length) const {
  if (static_cast<std::int64_t>(group.finished.size()) < options_.beams) return false;
  if (options_.early_stopping) return true;
  return group.finished.back().score >= best_sum / std::pow(static_cast<float>(length), options_.length_penalty);
}

void Beams::advance_group(std::int64_t b, std::span<const float> scores, std::int64_t vocab) {
  const std::int64_t first = b * options_.beams;
  Group& group = groups_[at(b)];
  std::vector<std::int64_t> best(scores.size());
  std::iota(best.begin(), best.end(), 0);
  const auto count = std::min<std::size_t>(best.size(), at(2 * options_.beams));
  std::partial_sort(
      best.begin(), best.begin() + static_cast<std::ptrdiff_t>(count), best.end(),
      [&](std::int64_t i, std::int64_t j) { return scores[at(i)] != scores[at(j)] ? scores[at(i)] > scores[at(j)] : i < j; });
  std::int64_t taken = 0;
  // Each beam ends at most once, so that of twice as many candidates enough go on.
  for (std::size_t rank = 0; rank < count && taken < options_.beams; ++rank) {
    const auto token = static_cast<std::int32_t>(best[rank] % vocab);
    const std::int64_t parent = first + best[rank] / vocab;
    const float sum = scores[at(best[rank])];
    if (token == options_.eos) {
      if (static_cast<std::int64_t>(rank) < options_.beams) add(group, sequences_[at(parent)], sum);
      continue;
    }
    const std::size_t beam = at(first + taken++);
    sums_[beam] = sum, next_[beam] = token, parents_[beam] = parent;
  }
  group.done = is_done(group, scores[at(best.front())], sequences_[at(first)].size());
}

void Beams::advance(std::vector<float>& scores, std::int64_t vocab) {
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] += sums_[i / at(vocab)];
  for (std::int64_t b = 0; b < options_.batch; ++b) {
    if (groups_[at(b)].done) {
      for (std::int64_t i = b * options_.beams; i < (b + 1) * options_.beams; ++i) {
        sums_[at(i)] = 0, next_[at(i)] = options_.pad, parents_[at(i)] = b * options_.beams;
      }
      continue;
    }
    const std::size_t size = at(options_.beams * vocab);
    advance_group(b, std::span<const float>(scores).subspan(at(b) * size, size), vocab);
  }
  std::vector<Tokens> longer(sequences_.size());
  for (std::size_t i = 0; i < longer.size(); ++i) {
    longer[i] = sequences_[at(parents_[i])];
    longer[i].push_back(next_[i]);
  }
  sequences_ = std::move(longer);
}

bool Beams::done() const {
  return std::all_of(groups_.begin(), groups_.end(), [](const Group& g) { return g.done; });
}

void Beams::finish(std::int32_t* tokens, float* scores) {
  std::fill_n(tokens, options_.batch * options_.returned * options_.max_length, options_.pad);
  for (std::int64_t b = 0; b < options_.batch; ++b) {
    Group& group = groups_[at(b)];
    for (std::int64_t i = b * options_.beams; !group.done && i < (b + 1) * options_.beams; ++i) {
      add(group, sequences_[at(i)], sums_[at(i)]);
    }
    for (std::int64_t r = 0; r < options_.returned; ++r) {
      const Hypothesis& h = group.finished[at(r)];
      std::copy(h.tokens.begin(), h.tokens.end(), tokens + (b * options_.returned + r) * options_.max_length);
      if (scores != nullptr) scores[b * options_.returned + r] = h.score;
    }
  }
}

}  // namespace sdx::ops
