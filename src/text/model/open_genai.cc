// Folders as onnxruntime-genai has them. Every key of genai_config.json (onnxruntime-genai 0.18) is read, known to
// change nothing here, or refused with its name.

#include <algorithm>

#include "base/error.h"
#include "base/words.h"
#include "onnx/reader.h"
#include "text/model/config_object.h"
#include "text/model/open.h"

namespace sdx::text {
namespace {

struct GenaiConfig {
  OpenedModel model;
  DecoderNames names;
  std::string file = "model.onnx";
  std::vector<std::string> providers;
  std::int64_t layers = 0, context = 0, vocabulary = 0, threads = 0;
};

// Language models that take tokens and nothing else.
constexpr std::string_view kTypes =
    "chatglm decoder ernie4_5 gemma gemma2 gemma3_text gemma4_text gpt2 gptoss granite granitemoehybrid hunyuandensev1 internlm2 "
    "lfm2 llama mistral nemotron olmo phi phimoe phi3 phi3small qwen2 qwen3 qwen3_5_moe_text qwen3_5_text smollm3";

void read_session_options(ConfigObject o, GenaiConfig& c) {
  c.threads = o.integer("intra_op_num_threads").value_or(0);
  if (const nlohmann::json* providers = o.take("provider_options")) {
    if (!providers->is_array()) fail(ErrorCode::invalid_model, "{} must be a list", o.shown("provider_options"));
    for (const nlohmann::json& p : *providers) {
      if (!p.is_object()) fail(ErrorCode::invalid_model, "{} must be a list of objects", o.shown("provider_options"));
      for (const auto& [name, options] : p.items()) c.providers.push_back(name);
    }
  }
  // Settings of ONNX Runtime's execution, on which no result depends.
  o.skip({"inter_op_num_threads", "enable_cpu_mem_arena", "enable_mem_pattern", "log_id", "log_severity_level",
          "log_verbosity_level", "enable_profiling", "disable_cpu_ep_fallback", "disable_quant_qdq", "enable_quant_qdq_cleanup",
          "ep_context_enable", "ep_context_embed_mode", "ep_context_file_path", "use_env_allocators", "graph_optimization_level",
          "config_entries", "execution_mode", "providers"});
  for (const char* key : {"custom_ops_library", "custom_ops_libraries"}) o.refuse(key);
  o.finish();
}

void read_inputs(ConfigObject o, DecoderNames& names) {
  names.ids = o.text("input_ids").value_or(names.ids);
  names.mask = o.text("attention_mask").value_or(names.mask);
  names.positions = o.text("position_ids").value_or(names.positions);
  names.past_key = o.text("past_key_names").value_or(names.past_key);
  names.past_value = o.text("past_value_names").value_or(names.past_value);
  o.refuse("past_names", "");
  // Names of inputs: a network that has one of them is refused when it is opened.
  o.skip({"inputs_embeds", "past_sequence_length", "current_sequence_length", "total_sequence_length", "past_key_values_length",
          "cache_indirection", "block_table", "cumulative_sequence_lengths", "past_sequence_lengths", "attention_metadata",
          "logits_indices", "past_key_scale_names", "past_value_scale_names", "past_recurrent_names", "past_conv_names",
          "encoder_hidden_states", "encoder_attention_mask", "cross_past_key_names", "cross_past_value_names"});
  o.finish();
}

void read_outputs(ConfigObject o, DecoderNames& names) {
  names.logits = o.text("logits").value_or(names.logits);
  names.present_key = o.text("present_key_names").value_or(names.present_key);
  names.present_value = o.text("present_value_names").value_or(names.present_value);
  o.refuse("present_names", "");
  o.skip({"hidden_states", "present_key_scale_names", "present_value_scale_names", "present_recurrent_names",
          "present_conv_names", "cross_present_key_names", "cross_present_value_names", "output_cross_qk_names"});
  o.finish();
}

void read_sliding_window(ConfigObject o) {
  // The network's own attention has the window; a cache that forgets is refused.
  if (o.flag("slide_key_value_cache").value_or(true)) {
    fail(ErrorCode::not_implemented, "{} = true is not supported", o.shown("slide_key_value_cache"));
  }
  if (o.flag("slide_inputs").value_or(true))
    fail(ErrorCode::not_implemented, "{} = true is not supported", o.shown("slide_inputs"));
  o.skip({"window_size", "pad_value", "alignment", "layers", "cache_slack"});
  o.finish();
}

void read_decoder(ConfigObject o, GenaiConfig& c) {
  c.file = o.text("filename").value_or(c.file);
  c.layers = o.integer("num_hidden_layers").value_or(0);
  o.skip({"hidden_size", "num_attention_heads", "num_key_value_heads", "head_size", "shared_initializers"});
  if (const nlohmann::json* types = o.take("layer_types")) {
    for (const nlohmann::json& t : *types) {
      if (t != "full_attention" && t != "sliding_attention") {
        fail(ErrorCode::not_implemented, "{}: layers of type {} are not supported", o.shown("layer_types"), t.dump());
      }
    }
  }
  o.refuse("conv_cache_size", 0);
  o.refuse("pipeline");
  o.refuse("run_options");
  if (auto s = o.object("session_options")) read_session_options(std::move(*s), c);
  if (auto s = o.object("sliding_window")) read_sliding_window(std::move(*s));
  if (auto s = o.object("inputs")) read_inputs(std::move(*s), c.names);
  if (auto s = o.object("outputs")) read_outputs(std::move(*s), c.names);
  o.finish();
}

void read_model(ConfigObject o, GenaiConfig& c, const std::filesystem::path& folder) {
  OpenedModel& m = c.model;
  m.architecture = o.text("type").value_or("");
  if (!has_word(kTypes, m.architecture)) {
    fail(ErrorCode::not_implemented, "{} = '{}' is not supported: it is not a language model whose only input is tokens",
         o.shown("type"), m.architecture);
  }
  m.bos = o.token("bos_token_id");
  m.pad = o.token("pad_token_id");
  m.eos = o.tokens("eos_token_id");
  if (m.eos.empty() && m.pad) m.eos = {*m.pad};
  const auto context = o.integer("context_length");
  if (!context || *context < 1) fail(ErrorCode::invalid_model, "{} must be greater than 0", o.shown("context_length"));
  c.context = *context;
  c.vocabulary = o.integer("vocab_size").value_or(0);
  m.tokenizer = folder / o.text("tokenizer_dir").value_or("");
  o.skip({"sep_token_id", "decoder_start_token_id", "bot_token_id", "eot_token_id", "bor_token_id", "eor_token_id",
          "image_token_id", "video_token_id", "vision_start_token_id"});
  for (const char* key : {"encoder", "vision", "speech", "embedding", "encoder_decoder_init", "joiner", "vad", "draft", "mtp"})
    o.refuse(key);
  auto decoder = o.object("decoder");
  if (!decoder) fail(ErrorCode::invalid_model, "{} is missing", o.shown("decoder"));
  read_decoder(std::move(*decoder), c);
  o.finish();
}

void read_search(ConfigObject o, GenaiConfig& c) {
  SamplingDefaults& s = c.model.sampling;
  s.sample = o.flag("do_sample").value_or(false);
  s.temperature = o.floating("temperature");
  s.top_k = o.integer("top_k").value_or(50);
  s.top_p = o.floating("top_p");
  if (s.top_p && *s.top_p <= 0.0F) s.top_p.reset();  // 0 there: none
  s.repetition_penalty = o.floating("repetition_penalty");
  o.refuse("num_beams", 1);
  o.refuse("num_return_sequences", 1);
  o.refuse("batch_size", 1);
  o.refuse("no_repeat_ngram_size", 0);
  if (const auto most = o.integer("max_length"); most && *most > c.context) {
    fail(ErrorCode::invalid_model, "{} = {} exceeds model.context_length = {}", o.shown("max_length"), *most, c.context);
  }
  o.skip({"min_length", "early_stopping", "length_penalty", "diversity_penalty", "past_present_share_buffer", "random_seed",
          "chunk_size"});
  o.finish();
}

// Settings of another engine's batching. Only their keys are checked.
void read_engine(ConfigObject o) {
  if (auto d = o.object("dynamic_batching")) {
    d->skip({"block_size", "num_blocks", "gpu_utilization_factor", "max_batch_size", "max_scheduled_tokens", "prefix_caching"});
    d->finish();
  }
  if (auto s = o.object("static_batching")) {
    s->skip({"max_batch_size"});
    s->finish();
  }
  o.finish();
}

GenaiConfig read_config(const std::filesystem::path& folder) {
  const nlohmann::json json = read_json_file(folder / "genai_config.json");
  ConfigObject root(json, "genai_config.json: ");
  GenaiConfig c;
  auto model = root.object("model");
  if (!model) fail(ErrorCode::invalid_model, "genai_config.json: 'model' is missing");
  read_model(std::move(*model), c, folder);
  if (auto search = root.object("search")) read_search(std::move(*search), c);
  if (auto engine = root.object("engine")) read_engine(std::move(*engine));
  if (auto speculative = root.object("speculative")) {
    speculative->skip({"max_draft_tokens", "ngram_size", "ngram_chained_lookup", "min_adaptive_k", "cooldown"});
    speculative->finish();
  }
  root.finish();
  return c;
}

}  // namespace

OpenedModel open_genai(const std::filesystem::path& folder, const OpenOptions& options) {
  try {
    GenaiConfig c = read_config(folder);
    const std::filesystem::path file = folder / c.file;
    auto decoder = std::make_shared<Decoder>();
    decoder->names = c.names;
    OpenOptions with = options;
    if (with.session.providers.empty()) with.session.providers = c.providers;
    if (with.session.threads == 0 && c.threads > 0)
      with.session.threads = static_cast<int>(std::min<std::int64_t>(c.threads, 1024));
    open_session(*decoder, file, with, c.context, c.model.architecture);
    if (c.vocabulary > 0)
      decoder->vocabulary = decoder->vocabulary > 0 ? std::min(c.vocabulary, decoder->vocabulary) : c.vocabulary;
    if (c.layers > 0 && decoder->layers != c.layers) {
      fail(ErrorCode::invalid_model, "genai_config.json: model.decoder.num_hidden_layers is {}, '{}' has {}", c.layers, c.file,
           decoder->layers);
    }
    c.model.format = "genai";
    c.model.decoder = std::move(decoder);
    return std::move(c.model);
  } catch (Error& e) {
    throw e.add_context("in '" + folder.string() + "'");
  }
}

}  // namespace sdx::text
