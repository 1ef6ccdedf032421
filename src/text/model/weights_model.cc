#include "text/model/weights_model.h"

#include <algorithm>

#include "base/error.h"
#include "session/open.h"
#include "text/adapters/lora.h"
#include "text/model/accuracy.h"
#include "text/model/config_object.h"
#include "text/model/network/decoder_graph.h"
#include "text/model/network/hf_tensors.h"
#include "text/model/network/latent_weights.h"
#include "text/model/network/safetensors_files.h"
#include "text/model/paged/paged_graph.h"
#include "text/model/tokenizer_end.h"
#include "text/tokenizer/load/gguf_source.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;

std::optional<TokenId> token_of(const GgufFile& meta, std::string_view key) {
  const auto id = meta.number(key);
  if (!id || !(*id >= 0 && *id < 4294967296.0)) return std::nullopt;  // -1: none
  return static_cast<TokenId>(*id);
}

// The ends of a text, of a turn, and of a message, which end an answer. Files name few of them, so their texts count as well.
std::vector<TokenId> ends_of(const GgufFile& meta) {
  std::vector<TokenId> ends;
  const auto add = [&](TokenId id) {
    if (std::find(ends.begin(), ends.end(), id) == ends.end()) ends.push_back(id);
  };
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    if (const auto id = token_of(meta, key)) add(*id);
  }
  const auto tokens = meta.texts("tokenizer.ggml.tokens");
  if (!tokens) return ends;
  const GgufSource source{meta, *tokens, meta.numbers("tokenizer.ggml.token_type").value_or(std::vector<double>())};
  for (const TokenId id : end_tokens_of(source)) add(id);
  return ends;
}

// Metadata that llama.cpp's converter copies from generation_config.json.
SamplingDefaults sampling_of(const GgufFile& meta) {
  const auto number = [&](const char* key, double least, double most) -> std::optional<float> {
    const auto value = meta.number(key);
    if (!value) return std::nullopt;
    if (!(*value >= least && *value <= most)) {
      fail(ErrorCode::invalid_model, "key '{}' must be from {} to {}, received {}", key, least, most, *value);
    }
    return static_cast<float>(*value);
  };
  SamplingDefaults s;
  s.temperature = number("general.sampling.temp", -1e6, 1e6);
  if (s.temperature && *s.temperature <= 0) s.temperature = 0;
  if (const auto k = number("general.sampling.top_k", -1e9, 1e9))
    s.top_k = std::max<std::int64_t>(0, static_cast<std::int64_t>(*k));
  s.top_p = number("general.sampling.top_p", 0, 1e6);
  // A share of 0 leaves the likeliest token alone; of 1 or more, all.
  if (s.top_p && *s.top_p <= 0) s.top_p.reset(), s.top_k = 1;
  if (s.top_p) s.top_p = std::min(*s.top_p, 1.0F);
  s.min_p = number("general.sampling.min_p", 0, 1);
  s.repetition_penalty = number("general.sampling.penalty_repeat", 1e-6, 1e6);
  return s;
}

WeightsModel read_gguf(const fs::path& path) {
  WeightsModel m;
  m.gguf = GgufModel::open(path);
  m.files = m.gguf;
  m.config = read_decoder_config(*m.gguf);
  if (lacks_latent_parts(m.config, *m.files)) {
    auto files = std::make_shared<TensorFiles>(*m.files);
    add_latent_parts(m.config, *files);
    m.files = files;
  }
  const GgufFile& meta = m.gguf->metadata();
  m.bos = token_of(meta, "tokenizer.ggml.bos_token_id");
  m.pad = token_of(meta, "tokenizer.ggml.padding_token_id");
  m.eos = ends_of(meta);
  m.sampling = sampling_of(meta);
  return m;
}

WeightsModel read_folder(const fs::path& folder, const fs::path& listing) {
  WeightsModel m;
  const HfNetwork network = read_hf_network(read_json_file(folder / "config.json"));
  HfSettings settings = read_hf_settings(folder);
  m.files = open_safetensors(listing, network);
  m.config = network.decoder;
  m.bos = settings.bos;
  m.pad = settings.pad;
  m.eos = std::move(settings.eos);
  const auto end = read_tokenizer_end(folder);
  if (end && end->id && std::find(m.eos.begin(), m.eos.end(), *end->id) == m.eos.end()) m.eos.push_back(*end->id);
  m.sampling = settings.sampling;
  return m;
}

Session session_of(sdx::Model model, const TensorFiles& files, const SessionOptions& options) {
  // Weights that are in memory, too, are not copied into a model's bytes.
  if (std::any_of(files.paths().begin(), files.paths().end(), [](const fs::path& p) { return p.empty(); }))
    return session::open(std::move(model), options);
  const MappedModel mapped = map_model(model, files);
  return Session::from_bytes(std::as_bytes(std::span<const char>(mapped.bytes)), options, mapped.folder);
}

// Numbers beyond the embedding name nothing.
void drop_unknown_tokens(WeightsModel& m) {
  const StoredTensor* embedding = m.files->find_tensor("token_embd.weight");
  const std::int64_t count = embedding != nullptr && !embedding->shape.empty() ? embedding->shape[0] : 0;
  const auto unknown = [&](TokenId id) { return static_cast<std::int64_t>(id) >= count; };
  if (m.bos && unknown(*m.bos)) m.bos.reset();
  if (m.pad && unknown(*m.pad)) m.pad.reset();
  std::erase_if(m.eos, unknown);
}

AngleInput angle_input(std::size_t kind, const RopeConfig& rope, std::int64_t rotary, std::int64_t context) {
  const std::string end = "." + std::to_string(kind);
  return {"rope_cos" + end, "rope_sin" + end, rotary / 2,
          [rope, rotary, context](std::int64_t first, std::int64_t count, float* cos, float* sin) {
            rope_rows(rope, rotary, context, first, count, cos, sin);
          }};
}

}  // namespace

bool has_weights_alone(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "config.json", error) && find_safetensors(folder).has_value();
}

WeightsModel read_weights_model(const fs::path& given) {
  const fs::path path = model_place(given);
  try {
    std::error_code error;
    WeightsModel m;
    if (!fs::is_directory(path, error)) {
      m = read_gguf(path);
    } else {
      const auto listing = find_safetensors(path);
      if (!listing) {
        fail(ErrorCode::io,
             "there is neither model.safetensors nor model.safetensors.index.json; weights in other formats "
             "(pytorch_model.bin) are not read");
      }
      m = read_folder(path, *listing);
    }
    drop_unknown_tokens(m);
    m.source = path;
    return m;
  } catch (Error& e) {
    throw e.add_context("in '" + path.string() + "'");
  }
}

// A model that was first trained with a shorter context is not used beyond that by default, because its angles differ there.
std::int64_t used_context(const DecoderConfig& c, std::int64_t asked) {
  if (asked < 0 || asked > c.context) {
    fail(ErrorCode::invalid_argument, "a context of {} tokens is requested; the model has {}", asked, c.context);
  }
  if (asked > 0) return asked;
  return c.rope.scaling == RopeScaling::longrope ? std::min(c.context, c.rope.original_context) : c.context;
}

OpenedModel open_weights(const fs::path& path, const OpenOptions& options) {
  WeightsModel w = read_weights_model(path);
  try {
    const auto style = with_adapters(weights_in_place(w.files), read_adapters(options.loras, w.config));
    sdx::Model model = build_decoder(w.files, w.config, *style, {});
    style->check_used();
    set_accuracy_level(model.graph, options.accuracy_level);
    auto decoder = std::make_shared<Decoder>();
    decoder->why_not_paged = page_attention(model, decoder->names, {options.cache_type, true});
    SessionOptions with = options.session;
    with.plan_cache_size = std::max<std::size_t>(with.plan_cache_size, kPagedPlans);
    decoder->session = std::make_unique<Session>(session_of(std::move(model), *w.files, with));
    decoder->describe();
    decoder->vocabulary = w.config.vocabulary;
    decoder->context = used_context(w.config, options.context);
    decoder->in_place = true;
    check_cache_type(*decoder, options.cache_type);
    decoder->angles.push_back(angle_input(0, w.config.rope, w.config.rotary, decoder->context));
    for (const ValueSpec& s : decoder->session->inputs()) {
      if (s.name != "rope_cos.1") continue;
      decoder->angles.push_back(angle_input(1, w.config.local_rope, w.config.rotary, decoder->context));
    }
    OpenedModel m;
    m.format = w.gguf ? "gguf" : "safetensors";
    m.architecture = w.config.architecture;
    m.tokenizer = path;
    m.bos = w.bos;
    m.pad = w.pad;
    m.eos = std::move(w.eos);
    m.sampling = w.sampling;
    m.decoder = std::move(decoder);
    return m;
  } catch (Error& e) {
    throw e.add_context("in '" + path.string() + "'");
  }
}

}  // namespace sdx::text
