#include "text/generation/beams.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "text/model/answer_text.h"
#include "text/model/sampler.h"

namespace sdx::text {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();

struct Beam {
  std::vector<TokenId> tokens;
  double sum = 0;  // of logarithms
  std::optional<DecoderState> state;
  Tensor logits;
};

struct Ended {
  std::vector<TokenId> tokens;
  double score = 0;
  bool stopped = false;
};

struct Candidate {
  std::size_t beam = 0;
  TokenId id = 0;
  double sum = 0;
};

bool better(const Candidate& a, const Candidate& b) {
  if (a.sum != b.sum) return a.sum > b.sum;
  return a.beam != b.beam ? a.beam < b.beam : a.id < b.id;
}

class Search {
 public:
  Search(const LanguageModelInfo& info, const GenerationSettings& settings)
      : settings_(settings), beams_(static_cast<std::size_t>(settings.beams)), ends_(settings.stop_tokens) {
    if (!settings.ignore_end) ends_.insert(ends_.end(), info.eos.begin(), info.eos.end());
  }

  std::vector<Ended> run(const TextBody& body, const Tensor& logits, std::int64_t most) {
    std::vector<Beam> beams(1);
    beams[0].state = body.state.fork();
    beams[0].logits = logits;
    for (std::int64_t length = 1; length <= most; ++length) {
      const std::vector<Candidate> candidates = best(beams, length);
      std::vector<Candidate> next = sort_out(beams, candidates, length);
      const double top = candidates.empty() ? kNever : candidates[0].sum;
      if (is_done(top, length) || next.empty()) return std::move(ended_);
      grow(beams, next, length < most);
    }
    for (Beam& b : beams) add({std::move(b.tokens), score(b.sum, most), false});
    return std::move(ended_);
  }

 private:
  double score(double sum, std::int64_t length) const {
    return sum / std::pow(static_cast<double>(length), static_cast<double>(settings_.length_penalty));
  }
  bool ends(TokenId id) const { return std::find(ends_.begin(), ends_.end(), id) != ends_.end(); }

  // Twice as many as there are beams: as many may end.
  std::vector<Candidate> best(const std::vector<Beam>& beams, std::int64_t length) const {
    std::vector<Candidate> all;
    for (std::size_t b = 0; b < beams.size(); ++b) {
      const std::span<const float> row = beams[b].logits.values<float>();
      const Logprobs shares(row);
      std::vector<Candidate> own;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const auto id = static_cast<TokenId>(i);
        if (std::isnan(row[i]) || (length <= settings_.min_tokens && ends(id))) continue;
        own.push_back({b, id, beams[b].sum + shares.precise(id)});
      }
      keep(own);
      all.insert(all.end(), own.begin(), own.end());
    }
    keep(all);
    return all;
  }
  void keep(std::vector<Candidate>& candidates) const {
    const std::size_t count = std::min(candidates.size(), 2 * beams_);
    std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(count), candidates.end(), better);
    candidates.resize(count);
  }

  // Beams that end are stored if they are among the best; the others continue.
  std::vector<Candidate> sort_out(const std::vector<Beam>& beams, const std::vector<Candidate>& candidates, std::int64_t length) {
    std::vector<Candidate> next;
    for (std::size_t rank = 0; rank < candidates.size() && next.size() < beams_; ++rank) {
      const Candidate& c = candidates[rank];
      if (!ends(c.id)) {
        next.push_back(c);
      } else if (rank < beams_) {
        std::vector<TokenId> tokens = beams[c.beam].tokens;
        tokens.push_back(c.id);
        add({std::move(tokens), score(c.sum, length), true});
      }
    }
    return next;
  }

  void add(Ended e) {
    const auto at =
        std::upper_bound(ended_.begin(), ended_.end(), e, [](const Ended& a, const Ended& b) { return a.score > b.score; });
    ended_.insert(at, std::move(e));
    if (ended_.size() > beams_) ended_.pop_back();
  }

  bool is_done(double top, std::int64_t length) const {
    if (ended_.size() < beams_) return false;
    return settings_.early_stopping || ended_.back().score >= score(top, length);
  }

  // The last beam that needs a state takes it; the others get copies.
  void grow(std::vector<Beam>& beams, const std::vector<Candidate>& next, bool computed) const {
    std::vector<std::size_t> uses(beams.size());
    for (const Candidate& c : next) ++uses[c.beam];
    std::vector<Beam> grown;
    for (const Candidate& c : next) {
      Beam& from = beams[c.beam];
      Beam b;
      b.tokens = from.tokens;
      b.tokens.push_back(c.id);
      b.sum = c.sum;
      if (computed) b.state = --uses[c.beam] == 0 ? std::move(*from.state) : from.state->fork();
      grown.push_back(std::move(b));
    }
    if (computed) {
      for (Beam& b : grown) b.logits = b.state->append(std::span(&b.tokens.back(), 1), false, settings_.run);
    }
    beams = std::move(grown);
  }

  const GenerationSettings& settings_;
  std::size_t beams_;
  std::vector<TokenId> ends_;
  std::vector<Ended> ended_;  // best first
};

}  // namespace

std::vector<Choice> beam_search(const LanguageModelInfo& info, const TextBody& body, const Tensor& logits,
                                const GenerationSettings& settings, const OnToken& on_token, std::int64_t most) {
  std::vector<Ended> ended = Search(info, settings).run(body, logits, most);
  std::vector<Choice> out;
  for (std::size_t i = 0; i < ended.size() && i < static_cast<std::size_t>(settings.n); ++i) {
    Choice c;
    c.score = ended[i].score;
    c.finish_reason = ended[i].stopped ? "stop" : "length";
    AnswerText text(settings.detokenize, settings.stop);
    for (std::size_t k = 0; k < ended[i].tokens.size(); ++k) {
      GeneratedToken token;
      token.choice = static_cast<int>(i);
      token.id = ended[i].tokens[k];
      c.tokens.push_back(token.id);
      const bool last = k + 1 == ended[i].tokens.size();
      if (!last || !ended[i].stopped) token.text = text.add(token.id);
      if (last) token.text += text.finish();
      if (on_token && !on_token(token)) {
        if (!last) c.finish_reason = "cancelled";
        break;
      }
    }
    c.text = text.text();
    const bool cancelled = c.finish_reason == "cancelled";
    out.push_back(std::move(c));
    if (cancelled) break;
  }
  return out;
}

}  // namespace sdx::text
