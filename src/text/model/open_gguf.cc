#include <algorithm>

#include "base/error.h"
#include "text/gguf/gguf_model.h"
#include "text/model/decoder_config.h"
#include "text/model/decoder_graph.h"
#include "text/model/open.h"
#include "text/model/paged_graph.h"

namespace sdx::text {
namespace {

std::optional<TokenId> token_of(const GgufModel& file, std::string_view key, std::int64_t vocabulary) {
  const auto id = file.metadata().number(key);
  if (!id || !(*id >= 0 && *id < static_cast<double>(vocabulary))) return std::nullopt;  // -1: none
  return static_cast<TokenId>(*id);
}

// The model's own, or fewer. What was trained with less before is not used beyond that unasked: its angles differ there.
std::int64_t context_of(const DecoderConfig& c, std::int64_t asked) {
  if (asked > c.context) {
    fail(ErrorCode::invalid_argument, "a context of {} tokens is asked for, the model has {}", asked, c.context);
  }
  if (asked > 0) return asked;
  return c.rope.scaling == RopeScaling::longrope ? std::min(c.context, c.rope.original_context) : c.context;
}

AngleInput angle_input(std::size_t kind, const RopeConfig& rope, std::int64_t rotary, std::int64_t context) {
  const std::string end = "." + std::to_string(kind);
  return {"rope_cos" + end, "rope_sin" + end, rotary / 2,
          [rope, rotary, context](std::int64_t first, std::int64_t count, float* cos, float* sin) {
            rope_rows(rope, rotary, context, first, count, cos, sin);
          }};
}

}  // namespace

OpenedModel open_gguf(const std::filesystem::path& path, const OpenOptions& options) {
  const std::shared_ptr<const GgufModel> file = GgufModel::open(path);
  try {
    DecoderConfig config = read_decoder_config(*file);
    const auto style = weights_in_place(file);
    Model model = build_decoder(file, config, *style, {});
    auto decoder = std::make_shared<Decoder>();
    decoder->why_not_paged = page_attention(model, decoder->names, {options.cache_type, true});
    const MappedModel mapped = map_model(model, *file);
    SessionOptions with = options.session;
    with.plan_cache_size = std::max<std::size_t>(with.plan_cache_size, kPagedPlans);
    decoder->session =
        std::make_unique<Session>(Session::from_bytes(std::as_bytes(std::span<const char>(mapped.bytes)), with, mapped.folder));
    decoder->describe();
    decoder->vocabulary = config.vocabulary;
    decoder->context = context_of(config, options.context);
    decoder->in_place = true;
    check_cache_type(*decoder, options.cache_type);
    decoder->angles.push_back(angle_input(0, config.rope, config.rotary, decoder->context));
    for (const ValueSpec& s : decoder->session->inputs()) {
      if (s.name == "rope_cos.1") {
        decoder->angles.push_back(angle_input(1, config.local_rope, config.rotary, decoder->context));
      }
    }
    OpenedModel m;
    m.format = "gguf";
    m.architecture = config.architecture;
    m.tokenizer = path;
    m.bos = token_of(*file, "tokenizer.ggml.bos_token_id", config.vocabulary);
    m.pad = token_of(*file, "tokenizer.ggml.padding_token_id", config.vocabulary);
    // What ends an answer: the end of the text, and of a turn.
    for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
      const auto id = token_of(*file, key, config.vocabulary);
      if (id && std::find(m.eos.begin(), m.eos.end(), *id) == m.eos.end()) m.eos.push_back(*id);
    }
    m.decoder = std::move(decoder);
    return m;
  } catch (Error& e) {
    throw e.add_context("in '" + path.string() + "'");
  }
}

}  // namespace sdx::text
