// GGUF files into folders that onnxruntime-genai opens as well.

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sdx/text.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "onnx/writer.h"
#include "text/gguf/gguf_model.h"
#include "text/model/decoder_config.h"
#include "text/model/decoder_graph.h"
#include "text/model/file_weights.h"

namespace sdx {

using namespace text;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

FileWeights style_of(const std::string& dtype) {
  if (dtype.empty()) return FileWeights::as_stored;
  if (dtype == "float32") return FileWeights::float32;
  if (dtype == "int8") return FileWeights::int8;
  if (dtype == "int4") return FileWeights::int4;
  fail(ErrorCode::invalid_argument,
       "the weights' type must be float32, int8 or int4, or left out (as in the file), received '{}'", dtype);
}

std::string genai_type(const std::string& architecture) { return architecture == "gemma3" ? "gemma3_text" : architecture; }

std::vector<std::int64_t> end_tokens(const GgufFile& meta, std::int64_t vocabulary) {
  std::vector<std::int64_t> ends;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    const double id = meta.number(key).value_or(-1);
    if (!(id >= 0 && id < static_cast<double>(vocabulary))) continue;
    const auto token = static_cast<std::int64_t>(id);
    if (std::find(ends.begin(), ends.end(), token) == ends.end()) ends.push_back(token);
  }
  return ends;
}

std::string genai_config(const GgufFile& meta, const DecoderConfig& c, std::int64_t context) {
  const std::vector<std::int64_t> ends = end_tokens(meta, c.vocabulary);
  const auto token = [&](const char* key, std::int64_t otherwise) {
    const double id = meta.number(key).value_or(-1);
    return id >= 0 && id < static_cast<double>(c.vocabulary) ? static_cast<std::int64_t>(id) : otherwise;
  };
  const std::int64_t first_end = ends.empty() ? 0 : ends[0];
  const json decoder{
      {"session_options", {{"log_id", "onnxruntime-genai"}, {"provider_options", json::array()}}},
      {"filename", "model.onnx"},
      {"head_size", c.head_size},
      {"hidden_size", c.width},
      {"inputs",
       {{"input_ids", "input_ids"},
        {"attention_mask", "attention_mask"},
        {"past_key_names", "past_key_values.%d.key"},
        {"past_value_names", "past_key_values.%d.value"}}},
      {"outputs", {{"logits", "logits"}, {"present_key_names", "present.%d.key"}, {"present_value_names", "present.%d.value"}}},
      {"num_attention_heads", c.heads},
      {"num_hidden_layers", c.layers},
      {"num_key_value_heads", c.kv_heads}};
  const json model{{"type", genai_type(c.architecture)},
                   {"bos_token_id", token("tokenizer.ggml.bos_token_id", first_end)},
                   {"eos_token_id", ends.size() == 1 ? json(ends[0]) : json(ends)},
                   {"pad_token_id", token("tokenizer.ggml.padding_token_id", first_end)},
                   {"vocab_size", c.vocabulary},
                   {"context_length", context},
                   {"decoder", decoder}};
  const json search{{"do_sample", false},
                    {"early_stopping", true},
                    {"max_length", context},
                    {"min_length", 0},
                    {"num_beams", 1},
                    {"num_return_sequences", 1},
                    {"repetition_penalty", 1.0},
                    {"temperature", 1.0},
                    {"top_k", 50},
                    {"top_p", 1.0},
                    {"past_present_share_buffer", true}};
  return json{{"model", model}, {"search", search}}.dump(2) + "\n";
}

}  // namespace

LanguageConversion convert_language_model(const fs::path& model, const fs::path& folder, const LanguageConvertOptions& options) {
  const FileWeights style = style_of(options.dtype);
  const auto file = GgufModel::open(model);
  try {
    DecoderConfig config = read_decoder_config(*file);
    if (options.max_context < 0 || options.max_context > config.context) {
      fail(ErrorCode::invalid_argument, "max_context must be from 1 to the model's {}, or 0, received {}", config.context,
           options.max_context);
    }
    const bool longer = config.rope.scaling == RopeScaling::longrope && options.max_context == 0;
    const std::int64_t own = longer ? std::min(config.context, config.rope.original_context) : config.context;
    const std::int64_t context = options.max_context > 0 ? options.max_context : own;
    const auto weights = weights_for_file(file, style);
    const Model graph = build_decoder(file, config, *weights, {true, context});
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) fail(ErrorCode::io, "cannot make the folder '{}': {}", folder.string(), error.message());
    WriteOptions write;
    write.external_above = 1024;
    write_model(graph, folder / "model.onnx", write);
    write_file_atomically(folder / "genai_config.json", genai_config(file->metadata(), config, context));
    LanguageConversion done;
    done.architecture = config.architecture;
    done.context = context;
    for (const char* name : {"model.onnx", "model.onnx.data"}) done.bytes += fs::file_size(folder / name, error);
    return done;
  } catch (Error& e) {
    throw e.add_context("in '" + model.string() + "'");
  }
}

}  // namespace sdx
