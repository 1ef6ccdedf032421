// com.microsoft 1: BeamSearch, WhisperBeamSearch, GreedySearch, Sampling: loops over decoder subgraphs that make text.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/control/subgraphs.h"
#include "ops/generation/decoder_feeds.h"
#include "ops/generation/decoding.h"
#include "ops/generation/signatures.h"
#include "ops/math/convert.h"
#include "ops/op.h"
#include "ops/random/random_stream.h"

namespace sdx::ops {
namespace {

enum BeamIn : std::size_t {
  kIds,
  kMaxLength,
  kMinLength,
  kNumBeams,
  kReturned,
  kLengthPenalty,
  kRepetition,
  kVocabMask,
  kPrefixMask,
  kMask,
  kDecoderIds,
  kProcessor,
  kCrossHeads,
  kExtraIds,
  kTemperature
};
enum GreedyIn : std::size_t { kGreedyRepetition = 3, kGreedyVocabMask, kGreedyPrefixMask, kGreedyMask, kPresenceMask, kSeed };

// Generous: a sequence of this length takes as many runs of the decoder.
constexpr std::int64_t kLongest = std::int64_t{1} << 20;
constexpr std::int64_t kMostBeams = 1024;

std::int64_t int_input(OpContext& c, std::size_t i, std::int64_t otherwise, std::int64_t low, std::int64_t high,
                       const char* what) {
  const Tensor* t = c.optional_input(i);
  const std::int64_t value = t != nullptr ? single_int(*t, what) : otherwise;
  if (value < low || value > high) c.fail("{} is {}; expected {} to {}", what, value, low, high);
  return value;
}

float float_input(OpContext& c, std::size_t i, float otherwise, const char* what) {
  const Tensor* t = c.optional_input(i);
  if (t == nullptr) return otherwise;
  if (t->size() != 1) c.fail("{} must be one number, received {}", what, t->type_string());
  return *static_cast<const float*>(converted(*t, DataType::float32).data());
}

std::int32_t checked_token(std::int64_t token, const char* name) {
  if (token < -1 || token >= (std::int64_t{1} << 31))
    fail(ErrorCode::invalid_model, "attribute '{}' is {}, which is not a token", name, token);
  return static_cast<std::int32_t>(token);
}

std::vector<std::int32_t> mask_input(OpContext& c, std::size_t i) {
  const Tensor* t = c.optional_input(i);
  if (t == nullptr) return {};
  const Tensor whole = converted(*t, DataType::int32);
  const auto* data = static_cast<const std::int32_t*>(whole.data());
  return {data, data + whole.size()};
}

// Inputs and attributes that all four operators share.
struct Request {
  DecoderOptions decoder;
  ScoreRules rules;
  std::int64_t vocab = 0;  // 0: as the logits say
  std::int32_t eos = 0;
};

Request request_of(OpContext& c, std::size_t repetition, std::size_t vocab_mask) {
  const auto attr = parse<SearchAttrs>(c);
  Request r;
  const Tensor& ids = c.input(kIds);
  r.decoder.kind = model_kind(c.node());
  const std::size_t rank = r.decoder.kind == ModelKind::speech ? 3 : 2;
  if (ids.rank() != rank || ids.dim(0) < 1 || ids.dim(1) < 1) {
    c.fail("input_ids must have {} axes and hold something, received {}", rank, ids.type_string());
  }
  if (rank == 2 && ids.dtype() != DataType::int32) c.fail("input_ids must be int32, received {}", ids.type_string());
  r.decoder.batch = ids.dim(0);
  r.decoder.pad = checked_token(attr.pad_token_id, "pad_token_id");
  r.decoder.max_length = int_input(c, kMaxLength, 4096, 1, kLongest, "max_length");
  r.eos = r.rules.eos = checked_token(attr.eos_token_id, "eos_token_id");
  r.vocab = attr.vocab_size;
  r.rules.min_length = int_input(c, kMinLength, 0, 0, r.decoder.max_length, "min_length");
  r.rules.repetition_penalty = float_input(c, repetition, 1, "repetition_penalty");
  if (!(r.rules.repetition_penalty > 0)) c.fail("repetition_penalty is {}; it must be positive", r.rules.repetition_penalty);
  r.rules.no_repeat_ngram = attr.no_repeat_ngram_size;
  r.rules.vocab_mask = mask_input(c, vocab_mask);
  r.rules.prefix_vocab_mask = mask_input(c, vocab_mask + 1);
  return r;
}

// The first tokens of the output of every batch entry.
std::vector<Tokens> first_tokens(OpContext& c, const Request& r) {
  const Tensor* given = r.decoder.kind == ModelKind::decoder_only ? &c.input(kIds) : c.optional_input(kDecoderIds);
  if (given == nullptr) {
    const std::int32_t start = checked_token(parse<SearchAttrs>(c).decoder_start_token_id, "decoder_start_token_id");
    if (start < 0) c.fail("an encoder-decoder model needs the attribute 'decoder_start_token_id', or decoder_input_ids");
    return std::vector<Tokens>(static_cast<std::size_t>(r.decoder.batch), Tokens{start});
  }
  if (given->rank() != 2 || given->dim(0) != r.decoder.batch || given->dim(1) < 1 || given->dtype() != DataType::int32) {
    c.fail("decoder_input_ids must be int32[{},tokens], received {}", r.decoder.batch, given->type_string());
  }
  std::vector<Tokens> tokens;
  const auto* data = static_cast<const std::int32_t*>(given->data());
  for (std::int64_t b = 0; b < r.decoder.batch; ++b)
    tokens.emplace_back(data + b * given->dim(1), data + (b + 1) * given->dim(1));
  return tokens;
}

// Checks that need the logits.
void check_vocabulary(OpContext& c, const Request& r, std::int64_t vocab, std::span<const Tokens> sequences) {
  const auto size = static_cast<std::size_t>(vocab);
  if (r.eos >= vocab || r.eos < 0) c.fail("eos_token_id is {}; the vocabulary has {} tokens", r.eos, vocab);
  if (!r.rules.vocab_mask.empty() && r.rules.vocab_mask.size() != size) {
    c.fail("vocab_mask has {} elements; the vocabulary has {}", r.rules.vocab_mask.size(), vocab);
  }
  const std::size_t all = size * static_cast<std::size_t>(r.decoder.batch);
  for (const auto* mask : {&r.rules.prefix_vocab_mask, &r.rules.presence_mask}) {
    if (!mask->empty() && mask->size() != all)
      c.fail("a mask has {} elements; expected {} x {}", mask->size(), r.decoder.batch, vocab);
  }
  if (r.rules.repetition_penalty == 1 && r.rules.no_repeat_ngram <= 0) return;
  for (const Tokens& s : sequences) {
    for (const std::int32_t t : s) {
      if (t < 0 || t >= vocab) c.fail("token {} is outside the vocabulary of {}", t, vocab);
    }
  }
}

// --- BeamSearch ------------------------------------------------------------------------------------------------------------

DataType score_type(InferContext& c) {
  for (const std::size_t i : {kLengthPenalty, kRepetition}) {
    if (c.has_input(i) && c.dtype(i) != DataType::undefined) return c.dtype(i);
  }
  return DataType::float32;
}

Dim number(InferContext& c, std::size_t i) {
  const std::vector<Dim>* values = c.sym(i);
  return values != nullptr && values->size() == 1 ? values->front() : Dim();
}

void infer_beam_search(InferContext& c) {
  infer_decoders(c, model_kind(c.node()));
  const SymShape* ids = c.shape(kIds);
  const Dim batch = ids != nullptr && !ids->empty() ? ids->front() : Dim();
  const Dim returned = number(c, kReturned);
  c.output(0, DataType::int32, {batch, returned, number(c, kMaxLength)});
  c.output(1, score_type(c), {batch, returned});
  c.output(2, score_type(c), {Dim(), batch, number(c, kNumBeams), Dim()});
  c.output(4, score_type(c), {batch});
}

void refuse_unknown(OpContext& c) {
  for (const std::size_t i : {kCrossHeads, kExtraIds}) {
    if (c.has_input(i)) fail(ErrorCode::not_implemented, "{}: input {} is not supported", c.node().op_type, i);
  }
  if (c.wants_output(3)) fail(ErrorCode::not_implemented, "{}: the output cross_qk is not supported", c.node().op_type);
}

// Results have the type of the penalties.
Tensor typed(OpContext& c, Tensor t, std::size_t input) {
  const Tensor* like = c.optional_input(input);
  if (like == nullptr) like = c.optional_input(kRepetition);
  return like == nullptr || like->dtype() == t.dtype() ? std::move(t) : converted(t, like->dtype());
}

// The probability that the first logits give to `token`, per batch entry.
void write_no_speech(OpContext& c, const std::vector<float>& logits, std::int64_t vocab, const DecoderOptions& d) {
  const std::int64_t token = checked_token(parse<WhisperAttrs>(c).no_speech_token_id, "no_speech_token_id");
  if (token < 0 || token >= vocab) c.fail("non_speech_probs needs the attribute 'no_speech_token_id' below {}", vocab);
  std::vector<float> log = logits;
  log_softmax_rows(log, vocab);
  Tensor out(DataType::float32, {d.batch});
  for (std::int64_t b = 0; b < d.batch; ++b) {
    static_cast<float*>(out.mutable_data())[b] = std::exp(log[static_cast<std::size_t>(b * d.beams * vocab + token)]);
  }
  c.set_output(4, typed(c, std::move(out), kLengthPenalty));
}

// Scores of all steps as [max_length - start, batch, beams, vocab]; zeros where the search ended before.
void write_step_scores(OpContext& c, const std::vector<float>& all, std::int64_t steps, const DecoderOptions& d,
                       std::int64_t vocab) {
  Tensor wide(DataType::float32, {steps, d.batch, d.beams, vocab});
  auto* to = static_cast<float*>(wide.mutable_data());
  std::copy(all.begin(), all.end(), to);
  std::fill(to + all.size(), to + wide.size(), 0.0F);
  c.set_output(2, typed(c, std::move(wide), kLengthPenalty));
}

// logits_processor 1: Whisper's rules for time stamps. Only WhisperBeamSearch has attributes for their tokens.
TimestampRules timestamp_rules(OpContext& c, const Request& r) {
  TimestampRules t;
  const std::int64_t processor = int_input(c, kProcessor, 0, 0, 1 << 20, "logits_processor");
  if (processor == 0) return t;
  if (processor != 1 || r.decoder.kind != ModelKind::speech) {
    fail(ErrorCode::not_implemented, "logits_processor {} is not supported; 0 is, and 1 for Whisper", processor);
  }
  const auto attr = parse<WhisperAttrs>(c);
  t.on = true;
  t.first = checked_token(attr.beginning_timestamp_token_id, "beginning_timestamp_token_id");
  if (t.first < 0) c.fail("logits_processor 1 needs the attribute 'beginning_timestamp_token_id' (of WhisperBeamSearch)");
  t.none = checked_token(attr.no_timestamps_token_id, "no_timestamps_token_id");
  t.language_model = checked_token(attr.start_of_lm_token_id, "start_of_lm_token_id");
  t.translate = checked_token(attr.translate_token_id, "translate_token_id");
  t.transcribe = checked_token(attr.transcribe_token_id, "transcribe_token_id");
  t.transcript = checked_token(parse<SearchAttrs>(c).decoder_start_token_id, "decoder_start_token_id");
  return t;
}

void run_beam_search(OpContext& c) {
  refuse_unknown(c);
  Request r = request_of(c, kRepetition, kVocabMask);
  BeamOptions options;
  r.decoder.beams = options.beams = int_input(c, kNumBeams, 1, 1, kMostBeams, "num_beams");
  options.returned = int_input(c, kReturned, 1, 1, options.beams, "num_return_sequences");
  options.batch = r.decoder.batch, options.max_length = r.decoder.max_length;
  options.length_penalty = float_input(c, kLengthPenalty, 1, "length_penalty");
  options.early_stopping = parse<SearchAttrs>(c).early_stopping;
  options.eos = r.eos, options.pad = r.decoder.pad;
  r.rules.temperature = float_input(c, kTemperature, 1, "temperature");
  r.rules.timestamps = timestamp_rules(c, r);
  std::vector<Tokens> sequences;
  const std::vector<Tokens> prefix = first_tokens(c, r);
  for (const Tokens& t : prefix) sequences.insert(sequences.end(), static_cast<std::size_t>(options.beams), t);
  const auto begin = static_cast<std::int64_t>(prefix.front().size());
  if (begin >= options.max_length) c.fail("max_length is {}; the sequences begin with {} tokens", options.max_length, begin);

  DecoderFeeds feeds(c, r.decoder);
  if (r.decoder.kind == ModelKind::decoder_only) {
    feeds.start(c.input(kIds), c.optional_input(kMask));
  } else {
    feeds.encode(c.input(kIds), c.optional_input(kMask), prefix);
  }
  Beams beams(options, std::move(sequences));
  std::vector<float> all;
  for (std::int64_t length = begin; length < options.max_length; ++length) {
    std::vector<float> scores = feeds.scores(r.vocab);
    check_vocabulary(c, r, feeds.vocab(), beams.sequences());
    if (length == begin && c.wants_output(4)) write_no_speech(c, scores, feeds.vocab(), r.decoder);
    log_softmax_rows(scores, feeds.vocab());
    apply_rules(r.rules, beams.sequences(), feeds.vocab(), options.beams, length == begin, scores);
    beams.advance(scores, feeds.vocab());
    if (c.wants_output(2)) all.insert(all.end(), scores.begin(), scores.end());
    if (beams.done() || length + 1 == options.max_length) break;
    feeds.append(beams.next_tokens(), beams.parents(), beams.sequences());
  }
  Tensor& out = c.output(0, DataType::int32, {options.batch, options.returned, options.max_length});
  Tensor best(DataType::float32, {options.batch, options.returned});
  beams.finish(static_cast<std::int32_t*>(out.mutable_data()), static_cast<float*>(best.mutable_data()));
  if (c.wants_output(1)) c.set_output(1, typed(c, std::move(best), kLengthPenalty));
  if (c.wants_output(2)) write_step_scores(c, all, options.max_length - begin, r.decoder, feeds.vocab());
}

// --- GreedySearch and Sampling ---------------------------------------------------------------------------------------------

void infer_greedy(InferContext& c) {
  infer_decoders(c, model_kind(c.node()));
  const SymShape* ids = c.shape(kIds);
  const Dim batch = ids != nullptr && !ids->empty() ? ids->front() : Dim();
  c.output(0, DataType::int32, {batch, number(c, kMaxLength)});
  c.output(1, c.has_input(kGreedyRepetition) ? c.dtype(kGreedyRepetition) : DataType::float32, {batch, Dim()});
}

// Only the likeliest tokens whose probabilities add up to top_p stay (Holtzman et al., arXiv:1904.09751); `custom` counts from
// the likeliest down, the other way counts from the least likely up, which differs for the token at the border.
struct Nucleus {
  float top_p = 0, filter = -1e20F;
  std::int64_t keep = 0;
  bool custom = false;
};

std::vector<double> probabilities(std::span<const float> scores) {
  const double top = static_cast<double>(*std::max_element(scores.begin(), scores.end()));
  std::vector<double> p(scores.size());
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(static_cast<double>(scores[i]) - top);
  for (double& x : p) x /= sum;
  return p;
}

void keep_nucleus(const Nucleus& n, std::span<float> scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return n.custom ? scores[a] > scores[b] : scores[a] < scores[b]; });
  const std::vector<double> p = probabilities(scores);
  double sum = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sum += p[order[i]];
    if (n.custom) {
      if (i + 1 < order.size() && sum > static_cast<double>(n.top_p)) scores[order[i + 1]] = n.filter;
    } else if ((i == 0 || static_cast<std::int64_t>(order.size() - i) > n.keep) && sum <= 1 - static_cast<double>(n.top_p)) {
      scores[order[i]] = n.filter;
    }
  }
}

std::int32_t draw(std::span<const float> scores, double uniform) {
  const std::vector<double> p = probabilities(scores);
  double sum = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i] <= 0) continue;
    last = i;
    sum += p[i];
    if (uniform < sum) break;
  }
  return static_cast<std::int32_t>(last);
}

Nucleus nucleus_of(OpContext& c) {
  const auto attr = parse<SamplingAttrs>(c);
  return {attr.top_p, attr.filter_value, attr.min_tokens_to_keep, attr.custom};
}

void run_greedy(OpContext& c) {
  const bool sampling = c.node().op_type == "Sampling";
  Request r = request_of(c, kGreedyRepetition, kGreedyVocabMask);
  const Nucleus nucleus = nucleus_of(c);
  std::uint64_t seed = 0;
  if (sampling) {
    const auto attr = parse<SamplingAttrs>(c);
    r.rules.temperature = attr.temperature;
    r.rules.presence_penalty = attr.presence_penalty;
    r.rules.presence_mask = mask_input(c, kPresenceMask);
    const Tensor* given = c.optional_input(kSeed);
    seed = given != nullptr ? static_cast<std::uint64_t>(single_int(*given, "seed")) : c.services().next_seed();
  }
  const RandomStream random(seed);
  std::int64_t drawn = 0;
  std::vector<Tokens> sequences = first_tokens(c, r);
  const auto begin = static_cast<std::int64_t>(sequences.front().size());
  if (begin >= r.decoder.max_length) c.fail("max_length is {}; the prompt has {} tokens", r.decoder.max_length, begin);
  DecoderFeeds feeds(c, r.decoder);
  feeds.start(c.input(kIds), c.optional_input(kGreedyMask));
  std::vector<bool> ended(sequences.size());
  std::vector<std::int64_t> parents(sequences.size());
  std::iota(parents.begin(), parents.end(), 0);
  std::vector<float> scores;
  for (std::int64_t length = begin; length < r.decoder.max_length; ++length) {
    scores = feeds.scores(r.vocab);
    const auto vocab = static_cast<std::size_t>(feeds.vocab());
    check_vocabulary(c, r, feeds.vocab(), sequences);
    for (float& s : scores) s = std::isnan(s) ? std::numeric_limits<float>::lowest() : s;
    apply_rules(r.rules, sequences, feeds.vocab(), 1, length == begin, scores);
    Tokens next;
    for (std::size_t i = 0; i < sequences.size(); ++i) {
      const std::span<float> row = std::span(scores).subspan(i * vocab, vocab);
      if (sampling) keep_nucleus(nucleus, row);
      std::int32_t token = sampling ? draw(row, random.uniform(drawn++))
                                    : static_cast<std::int32_t>(std::max_element(row.begin(), row.end()) - row.begin());
      ended[i] = ended[i] || token == r.eos;
      next.push_back(ended[i] ? r.decoder.pad : token);
      sequences[i].push_back(next.back());
    }
    if (std::find(ended.begin(), ended.end(), false) == ended.end() || length + 1 == r.decoder.max_length) break;
    feeds.append(next, parents, sequences);
  }
  Tensor& out = c.output(0, DataType::int32, {r.decoder.batch, r.decoder.max_length});
  auto* to = static_cast<std::int32_t*>(out.mutable_data());
  std::fill_n(to, out.size(), r.decoder.pad);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    std::copy(sequences[i].begin(), sequences[i].end(), to + static_cast<std::int64_t>(i) * r.decoder.max_length);
  }
  if (!c.wants_output(1)) return;
  Tensor filtered(DataType::float32, {r.decoder.batch, feeds.vocab()});
  std::copy(scores.begin(), scores.end(), static_cast<float*>(filtered.mutable_data()));
  const Tensor* like = c.optional_input(kGreedyRepetition);
  c.set_output(1, like == nullptr || like->dtype() == DataType::float32 ? filtered : converted(filtered, like->dtype()));
}

// --- definitions -----------------------------------------------------------------------------------------------------------

constexpr TypeSet kInt = bit(DataType::int32);
constexpr TypeSet kFloat = set_of(DataType::float32, DataType::float16);

OpDef search_def(const char* name) {
  OpDef d("com.microsoft", name, 1);
  d.in("input_ids", "", kInt | kFloat).in("max_length", "", kInt).in("min_length", "", kInt, Arity::optional);
  d.attrs<SearchAttrs>();
  return d.attr("decoder", AttrKind::g, true).attr("init_decoder", AttrKind::g).attr("encoder", AttrKind::g);
}

OpDef beam_def(const char* name) {
  OpDef d = search_def(name);
  d.in("num_beams num_return_sequences", "", kInt);
  d.in("length_penalty repetition_penalty", "T", kFloat, Arity::optional);
  d.in("vocab_mask prefix_vocab_mask attention_mask decoder_input_ids logits_processor", "", kInt, Arity::optional);
  d.out("sequences", "", kInt);
  d.out("sequences_scores scores", "T", kFloat, Arity::optional);
  return d;
}

OpDef greedy_def(const char* name) {
  OpDef d = search_def(name);
  d.in("repetition_penalty", "T", kFloat, Arity::optional);
  d.in("vocab_mask prefix_vocab_mask attention_mask", "", kInt, Arity::optional);
  return d.out("sequences", "", kInt);
}

}  // namespace

void register_generation(OpTable& t) {
  t.add(beam_def("BeamSearch").infer_with(infer_beam_search).run_with(run_beam_search));
  OpDef whisper = beam_def("WhisperBeamSearch");
  whisper.in("cross_qk_layer_head extra_decoding_ids", "", kInt, Arity::optional);
  whisper.in("temperature", "T", kFloat, Arity::optional);
  whisper.out("cross_qk", "", kFloat, Arity::optional).out("non_speech_probs", "T", kFloat, Arity::optional);
  whisper.attrs<WhisperAttrs>();
  t.add(std::move(whisper).infer_with(infer_beam_search).run_with(run_beam_search));
  t.add(greedy_def("GreedySearch").infer_with(infer_greedy).run_with(run_greedy));
  OpDef sampling = greedy_def("Sampling");
  sampling.in("presence_mask seed", "", kInt, Arity::optional);
  sampling.out("filtered_logits", "T", kFloat, Arity::optional);
  sampling.attrs<SamplingAttrs>();
  t.add(std::move(sampling).random().infer_with(infer_greedy).run_with(run_greedy));
}

}  // namespace sdx::ops
