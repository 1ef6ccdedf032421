// /v1/embeddings and /v1/rerank

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <numeric>

#include "base/error.h"
#include "base/text/base64.h"
#include "base/text/json_text.h"
#include "base/text/utf8.h"
#include "serve/openai/api_impl.h"
#include "serve/openai/vectors.h"

namespace sdx::serve::openai {
namespace {

// The work between two checks for a client that has gone.
constexpr std::size_t kSlice = 256;           // texts
constexpr std::size_t kSliceBytes = 1 << 20;  // of queries and documents, which are cut into tokens in tenths of a second

void check_client(const Request& request) {
  if (request.gone && *request.gone) fail(ErrorCode::cancelled, "the client has disconnected");
}

// The longest text that a model can read when it truncates: the tokens of megabytes would take a hundred times their memory.
std::string beginning(std::string text) {
  text.resize(end_of_chars(text, 1 << 20));
  return text;
}

// The byte at which this many characters of UTF-8 have ended.
std::size_t end_of_characters(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    if ((static_cast<unsigned char>(text[at]) & 0xC0) != 0x80 && count-- == 0) break;
  }
  return at;
}

// Twice as much of a query as the model can read. The query is tokenized again for each document, so one of several megabytes
// would keep a thread busy for hours.
std::string readable_query(const Reranker& reranker, const std::string& query) {
  std::string text = beginning(query);
  const auto& cut = reranker.tokenizer().truncation();
  if (!cut) return text;
  const Encoding whole = reranker.tokenizer().with_truncation(std::nullopt).encode(text, false);
  const std::size_t most = 2 * cut->max_length;
  if (whole.size() > most) text.resize(end_of_characters(text, whole.offsets[most - 1].end));
  return text;
}

// The number of documents in the next slice, with the query beside each.
std::size_t slice_of(std::span<const std::string> documents, std::size_t query) {
  std::size_t count = 0, bytes = 0;
  while (count < documents.size() && count < kSlice && bytes < kSliceBytes) bytes += query + documents[count++].size();
  return count;
}

// The text of tokens. Clients that cut texts with another model's vocabulary would get the vector of other words, so tokens must
// be those that the model's own tokenizer makes of the text; special ones may stand between them.
std::string text_of(const TokenList& tokens, const Tokenizer& tokenizer, const std::string& param) {
  const auto unknown = std::find_if(tokens.begin(), tokens.end(), [&](TokenId id) { return id > tokenizer.largest_id(); });
  TokenList own;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(own), [&](TokenId id) { return !tokenizer.is_special(id); });
  std::string text;
  if (unknown == tokens.end()) text = tokenizer.decode(own);
  if (unknown == tokens.end() && tokenizer.encode(text, false).ids == own) return text;
  const std::string why = unknown != tokens.end() ? fmt::format("token {} is not in the model's vocabulary of {}", *unknown,
                                                                tokenizer.vocabulary_size())
                                                  : "the model's tokenizer makes other tokens of their text";
  refuse(fmt::format("Invalid '{}': these are tokens of another model: {}. Send texts instead of tokens (with LangChain: "
                     "OpenAIEmbeddings(check_embedding_ctx_length=False)).",
                     param, why),
         param, "invalid_value");
}

struct Texts {
  std::vector<std::string> texts;
  std::int64_t tokens = 0;
};

// Reads the inputs as texts, with their numbers of tokens. Texts that are too long are refused before anything is computed.
Texts read_input(const EmbeddingRequest& r, const TextEmbedder& embedder, const Request& request) {
  const Tokenizer whole = embedder.tokenizer().with_truncation(std::nullopt);
  const std::int64_t most = embedder.max_length();
  Texts out;
  for (const PromptText& input : r.input) {
    check_client(request);
    const auto* tokens = std::get_if<TokenList>(&input);
    out.texts.push_back(tokens != nullptr ? text_of(*tokens, whole, "input") : std::get<std::string>(input));
    if (r.cut) {
      out.texts.back() = beginning(out.texts.back());
    } else {
      check_length(whole, out.texts.back(), PromptKind::embedding, most);
    }
    const auto count = static_cast<std::int64_t>(whole.encode(out.texts.back()).size());
    if (most > 0 && count > most && !r.cut) too_long(PromptKind::embedding, most, count, 0);
    out.tokens += most > 0 ? std::min(count, most) : count;
  }
  return out;
}

// The first values, of length 1 again.
std::vector<float> shortened(std::span<const float> row, std::size_t dimensions) {
  std::vector<float> out(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(dimensions));
  double sum = 0;
  for (const float x : out) sum += static_cast<double>(x) * static_cast<double>(x);
  const double length = std::sqrt(sum);
  if (length > 0) {
    for (float& x : out) x = static_cast<float>(static_cast<double>(x) / length);
  }
  return out;
}

void append_item(std::string& out, std::span<const float> vector, const EmbeddingRequest& r, std::size_t index) {
  fmt::format_to(std::back_inserter(out), R"({}{{"object":"embedding","index":{},"embedding":)", index == 0 ? "" : ",", index);
  if (r.base64) {
    static_assert(std::endian::native == std::endian::little);
    const std::string_view bytes(reinterpret_cast<const char*>(vector.data()), vector.size_bytes());
    out += '"' + encode_base64(bytes) + '"';
  } else {
    append_vector(out, vector);
  }
  out += '}';
}

}  // namespace

std::int64_t embed_texts(const EmbeddingRequest& r, const LoadedModel& model, const Request& request, const OnVector& on_vector) {
  const TextEmbedder& embedder = *model.embedder;
  std::optional<StageTimer> cutting(std::in_place, request.notes.get(), "tokenize");
  const Texts input = read_input(r, embedder, request);
  cutting.reset();
  if (request.notes) {
    request.notes->set_model(r.model).set_ignored(r.ignored.text());
    request.notes->set_tokens(input.tokens, 0);
  }
  for (std::size_t begin = 0; begin < input.texts.size(); begin += kSlice) {
    check_client(request);
    const auto slice = std::span(input.texts).subspan(begin, std::min(kSlice, input.texts.size() - begin));
    std::optional<StageTimer> computing(std::in_place, request.notes.get(), "compute");
    const Tensor vectors = embedder.embed(slice);
    computing.reset();
    const std::span<const float> all = vectors.values<float>();
    const std::size_t width = all.size() / slice.size();
    if (r.dimensions && static_cast<std::size_t>(*r.dimensions) > width) {
      refuse(fmt::format("Invalid value for 'dimensions' = {}. Must be less than or equal to {}.", *r.dimensions, width),
             "dimensions", "invalid_value");
    }
    for (std::size_t i = 0; i < slice.size(); ++i) {
      const std::span<const float> row = all.subspan(i * width, width);
      if (r.dimensions) {
        on_vector(shortened(row, static_cast<std::size_t>(*r.dimensions)), begin + i);
      } else {
        on_vector(row, begin + i);
      }
    }
  }
  return input.tokens;
}

std::vector<float> rank_documents(const Reranker& reranker, const std::string& asked, std::span<const std::string> documents,
                                  const Request& request, std::int64_t& tokens) {
  std::vector<float> logits;
  const std::string query = readable_query(reranker, asked);
  for (std::span<const std::string> left = documents; !left.empty();) {
    check_client(request);
    const std::size_t count = slice_of(left, query.size());
    std::vector<std::string> slice(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(count));
    left = left.subspan(count);
    std::transform(slice.begin(), slice.end(), slice.begin(), beginning);
    std::size_t read = 0;
    const StageTimer computing(request.notes.get(), "compute");
    const std::vector<float> part = reranker.logits(query, slice, &read);
    tokens += static_cast<std::int64_t>(read);
    logits.insert(logits.end(), part.begin(), part.end());
  }
  return logits;
}

void classify_texts(const Reranker& classifier, std::span<const std::string> texts, const Request& request, std::int64_t& tokens,
                    const OnVector& on_text) {
  for (std::size_t begin = 0; begin < texts.size();) {
    check_client(request);
    const std::size_t count = slice_of(texts.subspan(begin), 0);
    std::vector<std::string> slice(count);
    std::transform(texts.begin() + static_cast<std::ptrdiff_t>(begin), texts.begin() + static_cast<std::ptrdiff_t>(begin + count),
                   slice.begin(), beginning);
    std::size_t read = 0;
    std::optional<StageTimer> computing(std::in_place, request.notes.get(), "compute");
    const Tensor shares = classifier.classify(slice, &read);
    computing.reset();
    tokens += static_cast<std::int64_t>(read);
    const std::size_t width = shares.values<float>().size() / count;
    for (std::size_t i = 0; i < count; ++i) on_text(shares.values<float>().subspan(i * width, width), begin + i);
    begin += count;
  }
}

void append_vector(std::string& out, std::span<const float> vector) {
  out += '[';
  for (std::size_t i = 0; i < vector.size(); ++i) {
    if (i != 0) out += ',';
    if (std::isfinite(vector[i])) {
      fmt::format_to(std::back_inserter(out), "{}", vector[i]);
    } else {
      out += "null";
    }
  }
  out += ']';
}

Response Api::Impl::embeddings(const Request& request) {
  const EmbeddingRequest r = read_embedding_request(read_body(request.body));
  const Found found = models.get(r.model, ModelKind::embedding, "v1/embeddings");
  Measured measured(metrics, found.model->name, request.arrived);
  std::string out = R"({"object":"list","data":[)";
  const std::int64_t tokens = embed_texts(r, *found.model, request,
                                          [&](std::span<const float> vector, std::size_t i) { append_item(out, vector, r, i); });
  out += "],\"model\":";
  append_json_string(out, r.model);
  fmt::format_to(std::back_inserter(out), R"(,"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})", tokens, tokens);
  measured.end({.prompt = tokens}, "stop");
  return json_response(std::move(out));
}

Response Api::Impl::rerank(const Request& request) {
  const RerankRequest r = read_rerank_request(read_body(request.body));
  const Found found = models.get(r.model, ModelKind::reranker, "v1/rerank");
  const Reranker& reranker = *found.model->reranker;
  Measured measured(metrics, found.model->name, request.arrived);
  std::int64_t tokens = 0;
  const std::vector<float> logits = rank_documents(reranker, r.query, r.documents, request, tokens);
  if (request.notes) {
    request.notes->set_model(r.model).set_ignored(r.ignored.text());
    request.notes->set_tokens(tokens, 0);
  }
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (r.top_n && static_cast<std::size_t>(*r.top_n) < order.size()) order.resize(static_cast<std::size_t>(*r.top_n));

  std::string out = answer_prefix(new_head("rerank-", r.model, found.facts->fingerprint()), "list") + ",\"results\":[";
  for (std::size_t i = 0; i < order.size(); ++i) {
    fmt::format_to(std::back_inserter(out), R"({}{{"index":{},"relevance_score":)", i == 0 ? "" : ",", order[i]);
    fmt::format_to(std::back_inserter(out), "{}", Reranker::score_of(logits[order[i]]));
    if (r.return_documents) {
      out += ",\"document\":{\"text\":";
      append_json_string(out, r.documents[order[i]]);
      out += '}';
    }
    out += '}';
  }
  fmt::format_to(std::back_inserter(out), R"(],"usage":{{"prompt_tokens":{0},"total_tokens":{0}}}}})", tokens);
  measured.end({.prompt = tokens}, "stop");
  return json_response(std::move(out));
}

}  // namespace sdx::serve::openai
