#include "serve/vllm/api.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>

#include "base/text/json_text.h"
#include "serve/openai/chat/handlers.h"
#include "serve/openai/vectors.h"
#include "serve/vllm/requests.h"

namespace sdx::serve::vllm {
namespace {

using openai::Found;
using openai::Json;
using openai::Shared;

// A reranker, or else an embedding model.
Found find_scorer(Shared& shared, const std::string& name) {
  try {
    return shared.models.get(name, ModelKind::reranker, "v1/score");
  } catch (const openai::ApiError& error) {
    if (error.code) throw;  // without a code: a model of another kind
  }
  return shared.models.get(name, ModelKind::embedding, "v1/score");
}

// What a reranker thinks of each pair.
std::vector<double> judged(const Reranker& reranker, const ScoreRequest& r, const Request& request, std::int64_t& tokens) {
  std::vector<float> logits;
  if (r.first.size() == 1) {
    logits = openai::rank_documents(reranker, r.first.front(), r.second, request, tokens);
  } else {
    for (std::size_t i = 0; i < r.second.size(); ++i) {
      const std::vector<float> one =
          openai::rank_documents(reranker, r.first[i], std::span(r.second).subspan(i, 1), request, tokens);
      logits.push_back(one.front());
    }
  }
  std::vector<double> out(logits.size());
  std::transform(logits.begin(), logits.end(), out.begin(), Reranker::score_of);
  return out;
}

double cosine(std::span<const float> a, std::span<const float> b) {
  double both = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    both += x * y;
    of_a += x * x;
    of_b += y * y;
  }
  const double lengths = std::sqrt(of_a * of_b);
  return lengths > 0 ? both / lengths : 0;
}

// How near the vectors of each pair are.
std::vector<double> compared(const LoadedModel& model, const ScoreRequest& r, const Request& request, std::int64_t& tokens) {
  openai::EmbeddingRequest texts;
  texts.model = r.model;
  texts.ignored = r.ignored;
  texts.cut = r.cut;
  for (const std::vector<std::string>* side : {&r.first, &r.second})
    texts.input.insert(texts.input.end(), side->begin(), side->end());
  std::vector<std::vector<float>> vectors(texts.input.size());
  tokens = openai::embed_texts(texts, model, request, [&](std::span<const float> vector, std::size_t i) {
    vectors[i].assign(vector.begin(), vector.end());
  });
  std::vector<double> out;
  for (std::size_t i = 0; i < r.second.size(); ++i) {
    out.push_back(cosine(vectors[r.first.size() == 1 ? 0 : i], vectors[r.first.size() + i]));
  }
  return out;
}

std::string answer_begin(std::string_view prefix, const std::string& model, const Found& found) {
  return openai::answer_prefix(openai::new_head(prefix, model, found.facts->fingerprint()), "list") + ",\"data\":[";
}

std::string answer_end(std::int64_t tokens) {
  return fmt::format(R"(],"usage":{{"prompt_tokens":{0},"total_tokens":{0},"completion_tokens":0}}}})", tokens);
}

void note(const Request& request, const std::string& model, const openai::Ignored& ignored, std::int64_t tokens) {
  if (!request.notes) return;
  request.notes->set_model(model).set_ignored(ignored.text());
  request.notes->set_tokens(tokens, 0);
}

Response score(Shared& shared, const Request& request) {
  const ScoreRequest r = read_score(openai::read_body(request.body));
  const Found found = find_scorer(shared, r.model);
  openai::Measured measured(shared.metrics, found.model->name, request.arrived);
  std::int64_t tokens = 0;
  const std::vector<double> scores =
      found.model->reranker ? judged(*found.model->reranker, r, request, tokens) : compared(*found.model, r, request, tokens);
  note(request, r.model, r.ignored, tokens);
  std::string out = answer_begin("score-", r.model, found);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    fmt::format_to(std::back_inserter(out), R"({}{{"index":{},"object":"score","score":{}}})", i == 0 ? "" : ",", i,
                   std::isfinite(scores[i]) ? fmt::format("{}", scores[i]) : "null");
  }
  measured.end({.prompt = tokens}, "stop");
  return json_response(out + answer_end(tokens));
}

Response classify(Shared& shared, const Request& request) {
  const ClassifyRequest r = read_classify(openai::read_body(request.body));
  const Found found = shared.models.get(r.model, ModelKind::reranker, "classify");
  const Reranker& model = *found.model->reranker;
  openai::Measured measured(shared.metrics, found.model->name, request.arrived);
  std::string out = answer_begin("classify-", r.model, found);
  std::int64_t tokens = 0;
  openai::classify_texts(model, r.texts, request, tokens, [&](std::span<const float> shares, std::size_t i) {
    const std::size_t best = static_cast<std::size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
    fmt::format_to(std::back_inserter(out), R"({}{{"index":{},"label":)", i == 0 ? "" : ",", i);
    append_json_string(out, best < model.labels().size() ? model.labels()[best] : fmt::format("LABEL_{}", best));
    out += ",\"probs\":";
    openai::append_vector(out, shares);
    out += fmt::format(",\"num_classes\":{}}}", shares.size());
  });
  note(request, r.model, r.ignored, tokens);
  measured.end({.prompt = tokens}, "stop");
  return json_response(out + answer_end(tokens));
}

}  // namespace

void add_routes(Router& router, Shared& shared) {
  Shared* const all = &shared;
  const auto add = [&](const char* pattern, Response (*answer)(Shared&, const Request&)) {
    router.add(openai::pool_route("POST", pattern, all->body_bytes),
               openai::at_once([all, answer](const Request& request) { return answer(*all, request); }));
  };
  add("/v1/score", score);
  add("/score", score);
  add("/classify", classify);
}

}  // namespace sdx::serve::vllm
