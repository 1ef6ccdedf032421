#include "ops/generation/decoder_feeds.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/checked.h"
#include "base/words.h"
#include "ops/control/subgraphs.h"
#include "ops/generation/signatures.h"
#include "ops/math/convert.h"

namespace sdx::ops {
namespace {

// Everything else that a decoder takes is a cache.
constexpr std::string_view kNamed =
    "input_ids position_ids attention_mask encoder_attention_mask encoder_hidden_states past_sequence_length beam_width "
    "num_beams cache_indirection encoder_input_ids decoder_input_ids";

std::string_view input_name(const Node& node, std::size_t graph, std::size_t i) {
  const Graph& g = *node.subgraphs[graph].graph;
  return g.value(g.inputs()[i]).name;
}

bool is_past(const Node& node, std::size_t graph, std::size_t i) { return !has_word(kNamed, input_name(node, graph, i)); }

bool has_graph(const Node& node, std::string_view attribute) {
  return std::any_of(node.subgraphs.begin(), node.subgraphs.end(), [&](const Subgraph& s) { return s.attribute == attribute; });
}

// Entries `which` of an axis, in that order.
Tensor take(const Tensor& t, std::size_t axis, std::span<const std::int64_t> which) {
  if (t.rank() <= axis) fail(ErrorCode::runtime_failure, "a cache has shape {}, too few axes", t.type_string());
  Shape shape = t.shape();
  shape[axis] = static_cast<std::int64_t>(which.size());
  Tensor out(t.dtype(), shape);
  if (out.size() == 0) return out;
  const std::int64_t extent = t.dim(axis);
  std::size_t run = t.bytes() / static_cast<std::size_t>(t.size());
  for (std::size_t i = axis + 1; i < t.rank(); ++i) run *= static_cast<std::size_t>(t.dim(i));
  const std::size_t outer = out.bytes() / run / which.size();
  const auto* from = static_cast<const std::byte*>(t.data());
  auto* to = static_cast<std::byte*>(out.mutable_data());
  for (std::size_t o = 0; o < outer; ++o) {
    for (const std::int64_t i : which) {
      if (i >= extent) fail(ErrorCode::runtime_failure, "a result of the subgraph has {} rows; expected more than {}", extent, i);
      std::memcpy(to, from + (o * static_cast<std::size_t>(extent) + static_cast<std::size_t>(i)) * run, run);
      to += run;
    }
  }
  return out;
}

Tensor repeat(const Tensor& t, std::int64_t beams) {
  std::vector<std::int64_t> which;
  for (std::int64_t i = 0; i < t.dim(0) * beams; ++i) which.push_back(i / beams);
  return take(t, 0, which);
}

// [N, heads, rows, size] with zeros appended up to `rows`.
Tensor with_room(const Tensor& t, std::int64_t rows) {
  if (t.rank() != 4 || t.dim(2) > rows)
    fail(ErrorCode::runtime_failure, "a cache has shape {}; the maximum is {} rows", t.type_string(), rows);
  Tensor out(t.dtype(), {t.dim(0), t.dim(1), rows, t.dim(3)});
  if (out.size() == 0) return out;
  std::memset(out.mutable_data(), 0, out.bytes());
  if (t.size() == 0) return out;
  const std::size_t used = t.bytes() / static_cast<std::size_t>(t.dim(0) * t.dim(1));
  const std::size_t room = out.bytes() / static_cast<std::size_t>(t.dim(0) * t.dim(1));
  for (std::size_t i = 0; i < static_cast<std::size_t>(t.dim(0) * t.dim(1)); ++i) {
    std::memcpy(static_cast<std::byte*>(out.mutable_data()) + i * room, static_cast<const std::byte*>(t.data()) + i * used, used);
  }
  return out;
}

Tensor ints(const Shape& shape, std::span<const std::int32_t> values) {
  Tensor t(DataType::int32, shape);
  std::copy(values.begin(), values.end(), static_cast<std::int32_t*>(t.mutable_data()));
  return t;
}

Tensor rows_of(const std::vector<Tokens>& sequences) {
  const std::size_t length = sequences.empty() ? 0 : sequences.front().size();
  Tensor t(DataType::int32, {static_cast<std::int64_t>(sequences.size()), static_cast<std::int64_t>(length)});
  auto* to = static_cast<std::int32_t*>(t.mutable_data());
  for (const Tokens& s : sequences) to = std::copy(s.begin(), s.end(), to);
  return t;
}

// 1 where a token counts: everything but pads, of an encoder's input only those on the left.
Tensor mask_of(const Tensor& ids, std::int32_t pad, bool left_only) {
  Tensor mask(DataType::int32, ids.shape());
  const auto* id = static_cast<const std::int32_t*>(ids.data());
  auto* to = static_cast<std::int32_t*>(mask.mutable_data());
  const std::int64_t length = ids.dim(1);
  for (std::int64_t b = 0; b < ids.dim(0); ++b) {
    bool seen = false;
    for (std::int64_t i = b * length; i < (b + 1) * length; ++i) {
      to[i] = id[i] == pad && !(left_only && seen) ? 0 : 1;
      seen = seen || to[i] != 0;
    }
  }
  return mask;
}

// The declared type without the extents that may change.
Type known_part(const Type& declared) {
  if (!declared.is_tensor() || !declared.shape) return declared;
  Type t = declared;
  for (Dim& d : *t.shape) {
    if (!d.is_const()) d = Dim::unknown();
  }
  return t;
}

}  // namespace

ModelKind model_kind(const Node& node) {
  const std::int64_t type = parse<SearchAttrs>(node).model_type;
  const bool beams = node.op_type == "BeamSearch" || node.op_type == "WhisperBeamSearch";
  if (type < 0 || type > 2 || (type != 0 && !beams)) {
    fail(ErrorCode::invalid_model, "attribute 'model_type' is {}; {} takes {}", type, node.op_type, beams ? "0, 1 and 2" : "0");
  }
  return static_cast<ModelKind>(type);
}

void infer_decoders(InferContext& c, ModelKind kind) {
  const Node& node = c.node();
  subgraph_index(node, "decoder");
  if (kind != ModelKind::decoder_only) subgraph_index(node, "encoder");
  for (std::size_t g = 0; g < node.subgraphs.size(); ++g) {
    std::vector<Type> formals;
    for (std::size_t i = 0; i < formal_inputs(node, g); ++i) formals.push_back(known_part(subgraph_input_type(node, g, i)));
    c.infer_subgraph(g, formals);
  }
}

DecoderFeeds::DecoderFeeds(OpContext& c, const DecoderOptions& options) : c_(c), options_(options) {
  const Node& node = c.node();
  decoder_ = subgraph_index(node, "decoder");
  first_graph_ = has_graph(node, "init_decoder") ? subgraph_index(node, "init_decoder") : decoder_;
  const std::size_t inputs = formal_inputs(node, decoder_);
  if (formal_inputs(node, first_graph_) != inputs) c.fail("graphs 'init_decoder' and 'decoder' must take the same inputs");
  feeds_.resize(inputs);
  for (std::size_t i = 0; i < inputs; ++i) {
    if (is_past(node, decoder_, i)) pasts_.push_back(i);
  }
  own_pasts_ = options.kind == ModelKind::decoder_only ? pasts_.size() : pasts_.size() / 2;
  for (const std::size_t g : {decoder_, first_graph_}) {
    if (formal_outputs(node, g) < 1 + own_pasts_ || formal_outputs(node, g) == 0) {
      c.fail("graph '{}' must give logits and {} caches, but has {} outputs", node.subgraphs[g].attribute, own_pasts_,
             formal_outputs(node, g));
    }
  }
  shared_ = slot(decoder_, "past_sequence_length").present;
}

DecoderFeeds::Slot DecoderFeeds::slot(std::size_t graph, std::string_view name) const {
  for (std::size_t i = 0; i < formal_inputs(c_.node(), graph); ++i) {
    if (input_name(c_.node(), graph, i) == name) return {i, true};
  }
  return {};
}

void DecoderFeeds::feed(std::string_view name, Tensor value) {
  const Slot s = slot(decoder_, name);
  if (!s.present) return;
  const DataType declared = subgraph_input_type(c_.node(), decoder_, s.index).elem;
  feeds_[s.index] = declared == DataType::undefined || declared == value.dtype() ? std::move(value) : converted(value, declared);
}

Tensor DecoderFeeds::empty_past(std::size_t input, std::int64_t rows) const {
  const Type& declared = subgraph_input_type(c_.node(), decoder_, input);
  const std::size_t rank = options_.kind == ModelKind::decoder_only ? 5 : 4;
  const bool usable = declared.shape && declared.shape->size() == rank && (*declared.shape)[rank - 3].is_const() &&
                      (*declared.shape)[rank - 1].is_const();
  if (!usable) {
    fail(ErrorCode::invalid_model,
         "the decoder's input '{}' must declare its heads and their size as [{}batch,heads,past,size], not {}",
         input_name(c_.node(), decoder_, input), rank == 5 ? "2," : "", declared.str());
  }
  Shape shape{options_.batch * options_.beams, (*declared.shape)[rank - 3].value(), rows, (*declared.shape)[rank - 1].value()};
  if (rank == 5) shape.insert(shape.begin(), 2);
  Tensor t(declared.elem == DataType::undefined ? DataType::float32 : declared.elem, shape);
  if (t.size() > 0) std::memset(t.mutable_data(), 0, t.bytes());
  return t;
}

// The inputs of shared caches: how many rows count, and that every beam's rows are its own (they are reordered after each step).
void DecoderFeeds::feed_steps(std::int64_t past) {
  const auto beams = static_cast<std::int32_t>(options_.beams);
  const std::array<std::int32_t, 1> length{static_cast<std::int32_t>(past)}, width{beams};
  feed("past_sequence_length", ints({1}, length));
  feed("beam_width", ints({1}, width));
  feed("num_beams", ints({1}, width));
  if (!slot(decoder_, "cache_indirection").present) return;
  Tensor t(DataType::int32, {options_.batch, options_.beams, options_.max_length});
  auto* to = static_cast<std::int32_t*>(t.mutable_data());
  for (std::int64_t i = 0; i < t.size(); ++i) to[i] = static_cast<std::int32_t>(i / options_.max_length % options_.beams);
  feed("cache_indirection", std::move(t));
}

void DecoderFeeds::start(const Tensor& prompt, const Tensor* mask) {
  const std::int64_t batch = prompt.dim(0), length = prompt.dim(1);
  if (mask != nullptr && (mask->shape() != prompt.shape() || mask->dtype() != DataType::int32)) {
    c_.fail("attention_mask must be int32{}, received {}", to_string(prompt.shape()), mask->type_string());
  }
  const Tensor counts = mask != nullptr ? *mask : mask_of(prompt, options_.pad, false);
  Tensor position(DataType::int32, prompt.shape());
  const auto* m = static_cast<const std::int32_t*>(prompt.data());
  auto* p = static_cast<std::int32_t*>(position.mutable_data());
  for (std::int64_t b = 0; b < batch; ++b) {
    std::int32_t next = 0;
    for (std::int64_t i = b * length; i < (b + 1) * length; ++i) p[i] = m[i] == options_.pad ? 0 : next++;
    positions_.insert(positions_.end(), static_cast<std::size_t>(options_.beams), next);
  }
  feed("input_ids", repeat(prompt, options_.beams));
  feed("position_ids", repeat(position, options_.beams));
  feed("attention_mask", repeat(counts, options_.beams));
  for (const std::size_t i : pasts_) feeds_[i] = empty_past(i, shared_ ? options_.max_length : 0);
  feed_steps(0);
  results_ = c_.run_subgraph(first_graph_, feeds_);
  ready_ = true;
}

void DecoderFeeds::encode(const Tensor& input, const Tensor* mask, const std::vector<Tokens>& prefix) {
  const Node& node = c_.node();
  const std::size_t encoder = subgraph_index(node, "encoder");
  std::vector<Value> inputs(formal_inputs(node, encoder));
  if (inputs.empty()) c_.fail("graph 'encoder' takes no input");
  inputs[0] = input;
  // For decoders that may point at the input's tokens.
  if (slot(decoder_, "encoder_input_ids").present) feed("encoder_input_ids", repeat(input, options_.beams));
  Tensor held;
  if (const Slot s = slot(encoder, "encoder_attention_mask"); s.present) {
    if (mask != nullptr && mask->shape() != input.shape()) {
      c_.fail("attention_mask must have shape {}, received {}", to_string(input.shape()), mask->type_string());
    }
    held = mask != nullptr ? *mask : mask_of(input, options_.pad, true);
    inputs[s.index] = held;
    feed("encoder_attention_mask", repeat(held, options_.beams));
  }
  const Slot begin = slot(encoder, "decoder_input_ids");
  if (begin.present) inputs[begin.index] = rows_of(prefix);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].empty()) c_.fail("graph 'encoder' has an unknown input '{}'", input_name(node, encoder, i));
  }
  std::vector<Value> results = c_.run_subgraph(encoder, std::move(inputs));
  // With decoder_input_ids the encoder gives logits, its hidden states and all caches; without, the caches of the encoder alone.
  const std::size_t first = begin.present ? 2 : 0, missing = begin.present ? 0 : own_pasts_;
  if (results.size() < first + pasts_.size() - missing) {
    c_.fail("graph 'encoder' gives {} results; the decoder needs {} caches of it", results.size(), pasts_.size() - missing);
  }
  for (const Value& r : results) {
    if (!r.is_tensor() || r.tensor().rank() < 3 || r.tensor().dim(0) != options_.batch) {
      c_.fail("graph 'encoder' must give tensors of 3 or 4 axes for {} sequences", options_.batch);
    }
  }
  if (begin.present) feed("encoder_hidden_states", repeat(results[1].tensor(), options_.beams));
  for (std::size_t k = 0; k < pasts_.size(); ++k) {
    Tensor cache = k < missing ? empty_past(pasts_[k], 0) : repeat(results[first + k - missing].tensor(), options_.beams);
    feeds_[pasts_[k]] = shared_ && k < own_pasts_ ? with_room(cache, options_.max_length) : std::move(cache);
  }
  feed_steps(0);
  if (begin.present) {
    results.resize(1);
    results_ = std::move(results);
    ready_ = true;
  } else {
    feed("input_ids", repeat(rows_of(prefix), options_.beams));
  }
}

std::vector<float> DecoderFeeds::scores(std::int64_t most) {
  if (!ready_) {
    for (std::size_t i = 0; i < feeds_.size(); ++i) {
      if (feeds_[i].empty()) c_.fail("graph 'decoder' has an unknown input '{}'", input_name(c_.node(), decoder_, i));
    }
    c_.stop().check();
    results_ = c_.run_subgraph(decoder_, feeds_);
  }
  ready_ = false;
  const Tensor logits = converted(results_.at(0).tensor(), DataType::float32);
  const std::int64_t rows = options_.batch * options_.beams;
  if (logits.rank() != 3 || logits.dim(1) < 1 || (logits.dim(0) != rows && logits.dim(0) != options_.batch)) {
    c_.fail("the decoder's logits must be [{},tokens,vocabulary], received {}", rows, logits.type_string());
  }
  const std::int64_t width = logits.dim(2);
  vocab_ = most > 0 ? std::min(most, width) : width;
  if (vocab_ < 2 || width > (std::int64_t{1} << 31)) c_.fail("the decoder's logits have {} tokens to choose from", vocab_);
  std::vector<float> out;
  out.reserve(static_cast<std::size_t>(element_count(Shape{rows, vocab_})));
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = logits.dim(0) == rows ? i : i / options_.beams;
    const float* last = static_cast<const float*>(logits.data()) + (row * logits.dim(1) + logits.dim(1) - 1) * width;
    out.insert(out.end(), last, last + vocab_);
  }
  return out;
}

void DecoderFeeds::append(const Tokens& next, const std::vector<std::int64_t>& parents, const std::vector<Tokens>& sequences) {
  const auto rows = static_cast<std::int64_t>(next.size());
  const std::size_t axis = options_.kind == ModelKind::decoder_only ? 1 : 0;
  // After an encoder the caches are in place, alike for all beams.
  for (std::size_t k = 0; results_.size() > own_pasts_ && k < own_pasts_; ++k) {
    feeds_[pasts_[k]] = take(results_[1 + k].tensor(), axis, parents);
  }
  results_.clear();
  const Slot ids = slot(decoder_, "input_ids");
  const Type& declared = ids.present ? subgraph_input_type(c_.node(), decoder_, ids.index) : Type{};
  const bool one =
      declared.shape && declared.shape->size() == 2 && (*declared.shape)[1].is_const() && (*declared.shape)[1].value() == 1;
  const bool whole = options_.kind != ModelKind::decoder_only && !one;
  feed("input_ids", whole ? rows_of(sequences) : ints({rows, 1}, next));
  feed("position_ids", ints({rows, 1}, positions_));
  for (std::int32_t& p : positions_) ++p;
  if (const Slot s = slot(decoder_, "attention_mask"); s.present) {
    const Tensor old = converted(feeds_[s.index].tensor(), DataType::int32);
    const std::int64_t length = old.dim(1);
    Tensor mask(DataType::int32, {rows, length + 1});
    const auto* from = static_cast<const std::int32_t*>(old.data());
    auto* to = static_cast<std::int32_t*>(mask.mutable_data());
    for (std::int64_t i = 0; i < rows; ++i) {
      to = std::copy_n(from + i * length, length, to);
      *to++ = 1;
    }
    feed("attention_mask", std::move(mask));
  }
  feed_steps(static_cast<std::int64_t>(sequences.front().size()) - 1);
}

}  // namespace sdx::ops
