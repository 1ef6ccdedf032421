// Models of weights into folders that onnxruntime-genai opens as well.

#include <nlohmann/json.hpp>
#include <sdx/text.hpp>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "base/words.h"
#include "onnx/writer.h"
#include "text/model/network/decoder_graph.h"
#include "text/model/network/file_weights.h"
#include "text/model/weights_model.h"
#include "text/tokenizer/load/gguf_to_json.h"

namespace sdx {

using namespace text;

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

FileWeights style_of(const std::string& dtype) {
  if (dtype.empty()) return FileWeights::as_stored;
  if (dtype == "float32") return FileWeights::float32;
  if (dtype == "float16") return FileWeights::float16;
  if (dtype == "int8") return FileWeights::int8;
  if (dtype == "int4") return FileWeights::int4;
  fail(ErrorCode::invalid_argument,
       "the weights' type must be float32, float16, int8 or int4, or omitted (as in the file), received '{}'", dtype);
}

std::string genai_type(const std::string& architecture) {
  if (architecture == "gemma3") return "gemma3_text";
  if (architecture == "gpt-oss") return "gptoss";
  if (architecture == "hunyuan-dense") return "hunyuandensev1";
  // There are no names for others; "decoder" is what any network with these inputs is called.
  constexpr std::string_view kNamed = "ernie4_5 gemma gemma2 granite llama mistral nemotron phi3 qwen2 qwen3 smollm3";
  return has_word(kNamed, architecture) ? architecture : "decoder";
}

std::string genai_config(const WeightsModel& m, std::int64_t context) {
  const DecoderConfig& c = m.config;
  const TokenId first_end = m.eos.empty() ? 0 : m.eos[0];
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
                   {"bos_token_id", m.bos.value_or(first_end)},
                   {"eos_token_id", m.eos.size() == 1 ? json(m.eos[0]) : json(m.eos)},
                   {"pad_token_id", m.pad.value_or(first_end)},
                   {"vocab_size", c.vocabulary},
                   {"context_length", context},
                   {"decoder", decoder}};
  const SamplingDefaults& d = m.sampling;
  const json search{{"do_sample", d.sample.value_or(false)},
                    {"early_stopping", true},
                    {"max_length", context},
                    {"min_length", 0},
                    {"num_beams", 1},
                    {"num_return_sequences", 1},
                    {"repetition_penalty", d.repetition_penalty.value_or(1.0F)},
                    {"temperature", d.temperature.value_or(1.0F)},
                    {"top_k", d.top_k.value_or(50)},
                    {"top_p", d.top_p.value_or(1.0F)},
                    {"past_present_share_buffer", true}};
  return json{{"model", model}, {"search", search}}.dump(2) + "\n";
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail(ErrorCode::io, "cannot create the folder '{}': {}", folder.string(), error.message());
}

}  // namespace

LanguageConversion convert_language_model(const fs::path& model, const fs::path& folder, const LanguageConvertOptions& options) {
  const FileWeights style = style_of(options.dtype);
  WeightsModel m = read_weights_model(model);
  try {
    const std::int64_t context = used_context(m.config, options.max_context);
    const auto weights = weights_for_file(m.files, style);
    const Model graph = build_decoder(m.files, m.config, *weights, {.for_file = true, .context = context, .answers = {}});
    WriteOptions write;
    write.external_above = 1024;
    write.dry_run = options.dry_run;
    if (options.dry_run) {
      NewFile::check_with_folders(folder / "model.onnx");
    } else {
      make_folder(folder);
    }
    LanguageConversion done;
    done.bytes = write_model(graph, folder / "model.onnx", write);
    done.files = {"model.onnx", "model.onnx.data"};
    TokenizerFiles more = m.gguf ? tokenizer_files(m.gguf->metadata(), context) : tokenizer_files(m.source);
    more.files.emplace(more.files.begin(), "genai_config.json", genai_config(m, context));
    for (const auto& [name, content] : more.files) {
      if (!options.dry_run) write_file_atomically(folder / name, content);
      done.files.push_back(name);
    }
    done.without_tokenizer = more.missing;
    done.architecture = m.config.architecture;
    done.context = context;
    return done;
  } catch (Error& e) {
    throw e.add_context("in '" + model.string() + "'");
  }
}

}  // namespace sdx
