// sdx embed, sdx rerank

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sdx/runner.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/text/json_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/registry/pulled.h"
#include "cli/text/generation_flags.h"
#include "cli/values/outputs.h"
#include "tensor/json.h"
#include "text/tools.h"

namespace sdx::cli {
namespace {

constexpr const char* kEmbedExamples =
    "Examples:\n"
    "  sdx embed all-MiniLM-L6-v2/ -i sentences.txt -o vectors.npy\n"
    "  echo \"A feline rests.\" | sdx embed all-MiniLM-L6-v2/\n"
    "  sdx embed model/ -i texts.jsonl -o vectors.jsonl --prompt query\n"
    "One text per line; in a .jsonl file, each line is a JSON string or an object with \"text\".\n";
constexpr const char* kRerankExamples =
    "Examples:\n"
    "  sdx rerank ms-marco-MiniLM/ -q \"the highest mountain\" -i passages.txt --top 3\n"
    "One document per line; in a .jsonl file, each line is a JSON string or an object with \"text\".\n";

// Texts of a file: lines, or the JSON in them.
std::vector<std::string> read_texts(const std::string& path) {
  const std::string all = read_text(path);
  const bool json = path.ends_with(".jsonl");
  std::vector<std::string> texts;
  for (std::size_t at = 0, line_number = 1; at < all.size(); ++line_number) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    std::string line = all.substr(at, end - at);
    at = end + 1;
    if (line.ends_with('\r')) line.pop_back();
    if (!json) {
      texts.push_back(std::move(line));
      continue;
    }
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const nlohmann::json value = parse_json(line, fmt::format("{}, line {}", path, line_number));
    const nlohmann::json* text = value.is_object() && value.contains("text") ? &value["text"] : &value;
    if (!text->is_string()) {
      fail(ErrorCode::invalid_argument, "{}, line {}: expected a JSON text or an object with \"text\"", path, line_number);
    }
    texts.push_back(text->get<std::string>());
  }
  if (texts.empty()) fail(ErrorCode::invalid_argument, "{}: no texts", path == "-" ? "standard input" : path);
  return texts;
}

struct EmbedCommand {
  text::EmbedRequest request;
  std::string model, input = "-", output, pooling, kind = "vector";
  int threads = 0;
  bool no_normalize = false;

  int run();
};

std::string vectors_jsonl(const Tensor& vectors) {
  const auto width = static_cast<std::size_t>(vectors.shape()[1]);
  const std::span<const float> all = vectors.values<float>();
  std::string out;
  for (std::size_t row = 0; row < static_cast<std::size_t>(vectors.shape()[0]); ++row) {
    out += fmt::format("{{\"index\":{},\"embedding\":[{}]}}\n", row, fmt::join(all.subspan(row * width, width), ","));
  }
  return out;
}

// Places of the vocabulary, and their weights.
std::string sparse_jsonl(const std::vector<SparseVector>& vectors) {
  std::string out;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    out += fmt::format("{{\"index\":{},\"indices\":[{}],\"values\":[{}]}}\n", i, fmt::join(vectors[i].tokens, ","),
                       fmt::join(vectors[i].weights, ","));
  }
  return out;
}

std::string tokens_jsonl(const std::vector<Tensor>& texts) {
  std::string out;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::span<const float> all = texts[i].values<float>();
    const auto width = static_cast<std::size_t>(texts[i].dim(1));
    out += fmt::format("{{\"index\":{},\"embeddings\":[", i);
    for (std::size_t t = 0; t < static_cast<std::size_t>(texts[i].dim(0)); ++t)
      out += fmt::format("{}[{}]", t == 0 ? "" : ",", fmt::join(all.subspan(t * width, width), ","));
    out += "]}\n";
  }
  return out;
}

int EmbedCommand::run() {
  const bool npy = output.ends_with(".npy");
  if (!output.empty() && output != "-" && !npy && !output.ends_with(".jsonl")) {
    throw UsageError(fmt::format("-o {}: expected a name that ends in .npy or .jsonl", output));
  }
  request.model = text_model(model);
  request.options.session.threads = threads;
  if (!pooling.empty()) request.options.pooling = {pooling};
  if (no_normalize) request.options.normalize = false;
  request.texts = read_texts(input);
  if (kind != "vector") {
    if (npy) throw UsageError(fmt::format("-o {}: vectors of the kind '{}' are written as .jsonl", output, kind));
    const bool sparse = kind == "sparse";
    request.options.kind = sparse ? EmbeddingKind::sparse : EmbeddingKind::tokens;
    const text::Tools& tools = load_module<text::Tools>();
    const std::string lines = sparse ? sparse_jsonl(tools.embed_sparse(request)) : tokens_jsonl(tools.embed_tokens(request));
    if (output.empty() || output == "-") {
      print(lines);
    } else {
      write_file_atomically(output, lines);
    }
    return kOk;
  }
  const Tensor vectors = load_module<text::Tools>().embed(request);
  if (npy) {
    NamedValues values;
    values.add("embeddings", vectors);
    write_outputs(output, values, Report(), -1, "");
  } else if (output.empty() || output == "-") {
    print(vectors_jsonl(vectors));
  } else {
    write_file_atomically(output, vectors_jsonl(vectors));
  }
  return kOk;
}

struct RerankCommand {
  text::RerankRequest request;
  std::string model, input = "-";
  int top = 0, threads = 0;
  bool json = false;

  int run();
};

// Near the ends six digits would be the same for all.
std::string shown_score(double score) {
  return score > 0.9999 || score < 0.0001 ? fmt::format("{}", score) : fmt::format("{:.6f}", score);
}

int RerankCommand::run() {
  request.model = text_model(model);
  request.options.session.threads = threads;
  request.documents = read_texts(input);
  const text::Tools& tools = load_module<text::Tools>();
  const std::vector<float> logits = tools.rerank(request);
  std::vector<std::size_t> order(logits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  if (top > 0 && static_cast<std::size_t>(top) < order.size()) order.resize(static_cast<std::size_t>(top));
  std::string list;
  for (const std::size_t i : order) {
    const std::string& document = request.documents[i];
    const double score = tools.score_of(logits[i]);
    list += json ? fmt::format("{}{{\"index\":{},\"score\":{},\"document\":{}}}", list.empty() ? "" : ",", i, score,
                               json_string(document))
                 : fmt::format("{}\t{}\t{}\n", shown_score(score), i, document);
  }
  print(json ? fmt::format("{{\"results\":[{}]}}\n", list) : list);
  return kOk;
}

}  // namespace

void add_embed(const Command& app, Action& action) {
  const Command command =
      app.add_subcommand("embed", "Convert texts to embedding vectors: similar meanings have similar vectors");
  const auto c = std::make_shared<EmbedCommand>();
  command->add_option("MODEL", c->model, "Folder that contains an embedding model, or a .gguf file")->required();
  command->add_option("-i,--input", c->input, "Texts, one per line; '-' (default) reads standard input")->type_name("FILE");
  command->add_option("-o,--output", c->output, "A .npy or .jsonl file; default: JSON lines to standard output")
      ->type_name("FILE");
  command->add_option("--pooling", c->pooling, "How to combine the tokens' vectors; default: as the folder specifies")
      ->one_of({"cls", "mean", "max", "last"});
  command->add_option("--kind", c->kind, "One vector (default), weights of the vocabulary, or a vector for each token")
      ->one_of({"vector", "sparse", "tokens"});
  command->add_flag("--no-normalize", c->no_normalize, "Do not normalise vectors to length 1");
  command->add_option("--dimensions", c->request.options.dimensions, "Print only the first N numbers of each vector; 0: all")
      ->type_name("N");
  command->add_option("--prompt", c->request.prompt, "Prepend the folder's prompt of this name to each text")->type_name("NAME");
  command->add_option("--batch", c->request.options.batch, "Texts per run (32)")->type_name("N");
  command->add_option("-t,--threads", c->threads, "Threads; 0: one per core")->type_name("N");
  add_accuracy_level(command, c->request.options.accuracy_level);
  command->footer(kEmbedExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

void add_rerank(const Command& app, Action& action) {
  const Command command = app.add_subcommand("rerank", "Rank documents by how well they answer a query");
  const auto c = std::make_shared<RerankCommand>();
  command->add_option("MODEL", c->model, "Folder that contains a cross-encoder")->required();
  command->add_option("-q,--query", c->request.query, "Query that the documents are compared with")
      ->type_name("TEXT")
      ->required();
  command->add_option("-i,--input", c->input, "Documents, one per line; '-' (default) reads standard input")->type_name("FILE");
  command->add_option("--top", c->top, "Print the N best documents; 0: all")->type_name("N");
  command->add_option("--batch", c->request.options.batch, "Documents per run (32)")->type_name("N");
  command->add_option("-t,--threads", c->threads, "Threads; 0: one per core")->type_name("N");
  add_accuracy_level(command, c->request.options.accuracy_level);
  command->add_flag("--json", c->json, "Print {\"results\": [{\"index\", \"score\", \"document\"}]}");
  command->footer(kRerankExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
