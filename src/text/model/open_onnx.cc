// Folders as optimum and transformers.js export them.

#include <algorithm>

#include "base/error.h"
#include "base/suggest.h"
#include "text/model/config_object.h"
#include "text/model/open.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;

// Whole numbers first, then smaller ones; one network for first and later steps before those that need two.
fs::path find_network(const fs::path& folder) {
  for (const char* end : {"", "_fp16", "_int8", "_uint8", "_quantized", "_q4", "_q4f16", "_bnb4"}) {
    for (const char* stem : {"model", "decoder_model_merged", "decoder_with_past_model", "decoder_model"}) {
      for (const fs::path& place : {folder, folder / "onnx"}) {
        fs::path file = place / (std::string(stem) + end + ".onnx");
        std::error_code error;
        if (fs::is_regular_file(file, error)) return file;
      }
    }
  }
  fail(ErrorCode::io,
       "'{}' holds no language model: neither genai_config.json, nor model.onnx, decoder_model_merged.onnx or "
       "decoder_with_past_model.onnx, there or in onnx/",
       folder.string());
}

// Other programs' keys are many: those that say something to us are read.
void read_config(const fs::path& folder, OpenedModel& m, std::int64_t& context, std::int64_t& vocabulary) {
  std::error_code error;
  if (fs::exists(folder / "config.json", error)) {
    const nlohmann::json json = read_json_file(folder / "config.json");
    ConfigObject c(json, "config.json: ");
    m.architecture = c.text("model_type").value_or("");
    m.bos = c.token("bos_token_id");
    m.pad = c.token("pad_token_id");
    m.eos = c.tokens("eos_token_id");
    vocabulary = c.integer("vocab_size").value_or(0);
    for (const char* key : {"max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length"}) {
      if (context == 0) context = c.integer(key).value_or(0);
    }
  }
  if (fs::exists(folder / "generation_config.json", error)) {
    const nlohmann::json json = read_json_file(folder / "generation_config.json");
    ConfigObject c(json, "generation_config.json: ");
    const auto floating = [&](const char* key) -> std::optional<float> {
      const auto v = c.number(key);
      return v ? std::optional(static_cast<float>(*v)) : std::nullopt;
    };
    if (const auto eos = c.tokens("eos_token_id"); !eos.empty()) m.eos = eos;
    SamplingDefaults& s = m.sampling;
    s.sample = c.flag("do_sample").value_or(false);
    s.temperature = floating("temperature");
    s.top_k = c.integer("top_k");
    s.top_p = floating("top_p");
    s.min_p = floating("min_p");
    s.typical_p = floating("typical_p");
    s.repetition_penalty = floating("repetition_penalty");
  }
}

}  // namespace

OpenedModel open_onnx_folder(const fs::path& folder, const OpenOptions& options) {
  try {
    OpenedModel m;
    std::int64_t context = 0, vocabulary = 0;
    const fs::path network = find_network(folder);
    read_config(folder, m, context, vocabulary);
    auto decoder = std::make_shared<Decoder>();
    open_session(*decoder, network, options, std::max<std::int64_t>(0, context));
    if (decoder->vocabulary == 0) decoder->vocabulary = std::max<std::int64_t>(0, vocabulary);
    m.format = "onnx";
    m.tokenizer = folder;
    m.decoder = std::move(decoder);
    return m;
  } catch (Error& e) {
    throw e.add_context("in '" + folder.string() + "'");
  }
}

}  // namespace sdx::text
