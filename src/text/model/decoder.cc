#include "text/model/decoder.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/suggest.h"
#include "base/system/pages.h"
#include "tensor/element.h"
#include "text/model/paged/paged_graph.h"
#include "text/model/paged_step.h"

namespace sdx::text {
namespace {

constexpr std::int64_t kChunk = 512;  // tokens of a prompt that are computed at once
constexpr std::int64_t kLeastCapacity = 64;
constexpr std::int64_t kMostExtent = std::int64_t{1} << 20;  // of a cache's heads and their sizes: bytes are counted in 64 bits

const ValueSpec* find(const std::vector<ValueSpec>& specs, const std::string& name) {
  for (const ValueSpec& s : specs) {
    if (s.name == name) return &s;
  }
  return nullptr;
}

Tensor zeros(DataType type, Shape shape) {
  Tensor t(type, std::move(shape));
  if (t.bytes() != 0) std::memset(t.mutable_data(), 0, t.bytes());
  return t;
}

// The first `rows` of each head, in a cache with room for `capacity`.
Tensor resized(const Tensor& cache, std::int64_t rows, std::int64_t capacity, bool fill) {
  const Shape& s = cache.shape();
  const Shape to{s[0], s[1], capacity, s[3]};
  Tensor out = fill ? zeros(cache.dtype(), to) : Tensor(cache.dtype(), to);
  const std::size_t row = byte_size(cache.dtype(), s[3]);
  for (std::int64_t h = 0; h < s[0] * s[1]; ++h) {
    if (rows == 0) continue;
    std::memcpy(static_cast<char*>(out.mutable_data()) + static_cast<std::size_t>(h * capacity) * row,
                static_cast<const char*>(cache.data()) + static_cast<std::size_t>(h * s[2]) * row,
                static_cast<std::size_t>(rows) * row);
  }
  return out;
}

}  // namespace

std::string of_layer(const std::string& pattern, std::int64_t layer) {
  const std::size_t at = pattern.find("%d");
  if (at == std::string::npos) return pattern;
  return pattern.substr(0, at) + std::to_string(layer) + pattern.substr(at + 2);
}

void Decoder::describe() {
  const std::vector<ValueSpec>&in = session->inputs(), &out = session->outputs();
  const auto missing = [&](const std::string& what, const std::vector<ValueSpec>& specs) {
    std::vector<std::string> all;
    for (const ValueSpec& s : specs) all.push_back(s.name);
    fail(ErrorCode::invalid_model, "a language model must have {}; this model has: {}", what, join(all));
  };
  if (find(in, names.ids) == nullptr) missing("the input '" + names.ids + "'", in);
  const ValueSpec* scores = find(out, names.logits);
  if (scores == nullptr) missing("the output '" + names.logits + "'", out);
  for (std::string* optional : {&names.mask, &names.positions, &names.use_cache, &names.wanted}) {
    if (find(in, *optional) == nullptr) optional->clear();
  }
  if (scores->has_shape && !scores->shape.empty() && scores->shape.back() > 0) vocabulary = scores->shape.back();
  layers = 0;
  while (find(in, of_layer(names.past_key, layers)) != nullptr &&
         (layers == 0 || names.past_key.find("%d") != std::string::npos)) {
    for (const auto& [name, specs] :
         {std::pair(of_layer(names.past_value, layers), &in), std::pair(of_layer(names.present_key, layers), &out),
          std::pair(of_layer(names.present_value, layers), &out)}) {
      if (find(*specs, name) == nullptr) missing("'" + name + "' beside '" + of_layer(names.past_key, layers) + "'", *specs);
    }
    ++layers;
  }
  caches = {};
  for (std::int64_t i = 0; i < layers; ++i) {
    caches.pasts.push_back(of_layer(names.past_key, i));
    caches.pasts.push_back(of_layer(names.past_value, i));
    caches.presents.push_back(of_layer(names.present_key, i));
    caches.presents.push_back(of_layer(names.present_value, i));
  }
  find_states();
  has_cache = layers > 0 || has_states();
  refuse_other_inputs();
  if (layers == 0) return;
  const ValueSpec& key = *find(in, of_layer(names.past_key, 0));
  if (!key.has_shape || key.shape.size() != 4 || key.shape[1] < 1 || key.shape[3] < 1) {
    fail(ErrorCode::invalid_model, "input '{}' must be [batch,heads,past,size] with both heads and size fixed, it is {}",
         key.name, key.type);
  }
  if (key.shape[1] > kMostExtent || key.shape[3] > kMostExtent) {
    fail(ErrorCode::invalid_model, "input '{}' is {}: more than {} heads or elements of a head are not supported", key.name,
         key.type, kMostExtent);
  }
  kv_heads = key.shape[1], head_size = key.shape[3];
  cache_type = key.dtype;
}

void Decoder::find_states() {
  states = {};
  for (const ValueSpec& s : session->inputs()) {
    if (!s.name.starts_with(kPastStates)) continue;
    const bool fixed = s.has_shape && s.shape.size() > 1 &&
                       std::all_of(s.shape.begin() + 1, s.shape.end(), [](std::int64_t n) { return n >= 0 && n <= kMostExtent; });
    if (!fixed || s.dtype != DataType::float32)
      fail(ErrorCode::invalid_model, "input '{}' must be float32 [slots, ...] with all else fixed, it is {}", s.name, s.type);
    states.pasts.push_back(s.name);
    states.presents.push_back(kPresentStates + s.name.substr(std::string_view(kPastStates).size()));
    states.shapes.emplace_back(s.shape.begin() + 1, s.shape.end());
  }
}

void Decoder::refuse_other_inputs() const {
  std::vector<std::string> known{names.ids, names.mask, names.positions, names.use_cache, names.wanted};
  for (const char* paged : {kStarts, kPastLengths, kTable, kSlots}) known.emplace_back(paged);
  known.insert(known.end(), states.pasts.begin(), states.pasts.end());
  for (const std::string& past : caches.pasts) {
    known.push_back(past);
    known.push_back(past + kScales);
  }
  for (const ValueSpec& s : session->inputs()) {
    const bool angle = s.name.starts_with("rope_cos.") || s.name.starts_with("rope_sin.");
    if (s.has_default || angle || std::find(known.begin(), known.end(), s.name) != known.end()) continue;
    fail(ErrorCode::not_implemented, "the network has an unsupported input '{}' ({})", s.name, s.type);
  }
}

void DecoderState::check(std::span<const TokenId> tokens) const {
  const Decoder& d = *decoder_;
  if (tokens.empty()) fail(ErrorCode::invalid_argument, "there are no tokens to continue from");
  for (const TokenId id : tokens) {
    if (d.vocabulary > 0 && static_cast<std::int64_t>(id) >= d.vocabulary)
      fail(ErrorCode::invalid_argument, "token {} is not in the model's vocabulary of {}", id, d.vocabulary);
  }
  const std::int64_t total = length_ + static_cast<std::int64_t>(tokens.size());
  if (d.context > 0 && total > d.context) {
    fail(ErrorCode::invalid_argument, "{} tokens exceed the model's context of {}", total, d.context);
  }
}

// Makes room for this many tokens. It at least doubles, so that the cost of copying stays proportional to the used part.
void DecoderState::reserve(std::int64_t tokens) {
  const Decoder& d = *decoder_;
  if (tokens <= capacity_) return;
  std::int64_t capacity = std::max({kLeastCapacity, 2 * capacity_, (tokens + 63) / 64 * 64});
  if (d.context > 0) capacity = std::min(capacity, std::max(tokens, d.context));
  std::vector<Tensor> grown;
  for (std::int64_t i = 0; i < 2 * d.layers; ++i) {
    grown.push_back(cache_.empty() ? zeros(d.cache_type, {1, d.kv_heads, capacity, d.head_size})
                                   : resized(cache_[static_cast<std::size_t>(i)], length_, capacity, true));
    if (!cache_.empty()) cache_[static_cast<std::size_t>(i)] = grown.back();  // the old one goes now
  }
  cache_ = std::move(grown);
  capacity_ = capacity;
}

const std::shared_ptr<BlockPool>& Decoder::pool() const {
  const std::lock_guard lock(mutex_);
  if (!pool_) {
    const std::uint64_t memory = machine_memory() > 0 ? machine_memory() : std::uint64_t{1} << 36;
    std::shared_ptr<BlockPool> slots;
    if (has_states())
      slots = std::make_shared<BlockPool>(state_layout(), static_cast<std::int64_t>(memory / state_layout().block_bytes()));
    const std::uint64_t block = std::max<std::uint64_t>(layout().block_bytes(), 1);
    pool_ = std::make_shared<BlockPool>(layout(), static_cast<std::int64_t>(memory / block), std::move(slots));
  }
  return pool_;
}

// Twice as many as before at least; runs that use the old ones keep them.
std::shared_ptr<const Decoder::AngleTables> Decoder::angle_tables(std::int64_t positions) const {
  const std::lock_guard lock(mutex_);
  if (tables_ && (tables_->positions >= positions || angles.empty())) return tables_;
  const std::int64_t before = tables_ ? tables_->positions : 0;
  auto grown = std::make_shared<AngleTables>();
  grown->positions = std::max({positions, 2 * before, std::int64_t{256}});
  if (context > 0) grown->positions = std::min(grown->positions, std::max(positions, context));
  for (std::size_t i = 0; i < angles.size(); ++i) {
    const AngleInput& a = angles[i];
    Tensor cos(DataType::float32, {grown->positions, a.half}), sin(DataType::float32, {grown->positions, a.half});
    float *c = cos.mutable_values<float>().data(), *s = sin.mutable_values<float>().data();
    if (before > 0) {
      std::copy_n(tables_->cos[i].values<float>().data(), before * a.half, c);
      std::copy_n(tables_->sin[i].values<float>().data(), before * a.half, s);
    }
    a.rows(before, grown->positions - before, c + before * a.half, s + before * a.half);
    grown->cos.push_back(std::move(cos));
    grown->sin.push_back(std::move(sin));
  }
  tables_ = std::move(grown);
  return tables_;
}

DecoderState::DecoderState(std::shared_ptr<const Decoder> decoder, const std::shared_ptr<BlockPool>& pool)
    : decoder_(std::move(decoder)), blocks_(decoder_->paged() && !pool ? decoder_->pool() : pool) {
  keeps_ = !pool;
  if (decoder_->has_states()) state_.slot = next_ = BlockList(blocks_.pool()->states());
}

void DecoderState::share_blocks(std::span<const std::int32_t> blocks) {
  blocks_.resize(static_cast<std::size_t>(length_ / CacheLayout::kBlockTokens));  // of a step that failed
  blocks_.add_shared(blocks);
  length_ += static_cast<std::int64_t>(blocks.size()) * CacheLayout::kBlockTokens;
}

Tensor DecoderState::append(std::span<const TokenId> tokens, bool all_logits, const RunOptions& options) {
  check(tokens);
  const Decoder& d = *decoder_;
  const std::int64_t before = length_, total = before + static_cast<std::int64_t>(tokens.size());
  if (d.in_place && !d.paged()) reserve(total);
  try {
    return run(tokens, all_logits, options);
  } catch (...) {
    length_ = std::max(length_, before);
    rewind(before);
    throw;
  }
}

Tensor DecoderState::run(std::span<const TokenId> tokens, bool all_logits, const RunOptions& options) {
  const Decoder& d = *decoder_;
  if (!d.has_cache) return run_again(tokens, all_logits, options);
  const auto count = static_cast<std::int64_t>(tokens.size());
  if (!d.in_place || count <= kChunk) return one_step(tokens, all_logits, options);
  Tensor last, all;
  for (std::int64_t at = 0; at < count; at += kChunk) {
    const auto part = tokens.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(std::min(kChunk, count - at)));
    last = one_step(part, all_logits, options);
    if (!all_logits) continue;
    if (!all.defined()) all = Tensor(DataType::float32, {count, last.dim(1)});
    std::copy_n(last.values<float>().data(), last.size(), all.mutable_values<float>().data() + at * last.dim(1));
  }
  return all_logits ? all : last;
}

// Without a cache all tokens are computed each time.
Tensor DecoderState::run_again(std::span<const TokenId> tokens, bool all_logits, const RunOptions& options) {
  history_.resize(static_cast<std::size_t>(length_));
  std::vector<TokenId> all = history_;
  all.insert(all.end(), tokens.begin(), tokens.end());
  length_ = 0;
  Tensor logits = one_step(all, all_logits, options);
  history_ = std::move(all);
  const std::int64_t width = logits.dim(1), before = logits.dim(0) - static_cast<std::int64_t>(tokens.size());
  if (!all_logits || before == 0) return logits;
  Tensor fresh(DataType::float32, {logits.dim(0) - before, width});
  std::copy_n(logits.values<float>().data() + before * width, fresh.size(), fresh.mutable_values<float>().data());
  return fresh;
}

Tensor DecoderState::one_step(std::span<const TokenId> tokens, bool all_logits, const RunOptions& options) {
  const Decoder& d = *decoder_;
  if (d.paged()) {
    const StepPart part{this, tokens, all_logits ? StepPart::Logits::all : StepPart::Logits::last};
    return run_together(std::span(&part, 1), options);
  }
  const auto count = static_cast<std::int64_t>(tokens.size());
  const std::int64_t total = length_ + count;
  const auto ints = [](Shape shape, auto value) {
    Tensor t(DataType::int64, std::move(shape));
    auto to = t.mutable_values<std::int64_t>();
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = value(static_cast<std::int64_t>(i));
    return t;
  };
  NamedValues in;
  in.add(d.names.ids, ints({1, count}, [&](std::int64_t i) { return std::int64_t{tokens[static_cast<std::size_t>(i)]}; }));
  if (!d.names.mask.empty()) {
    in.add(d.names.mask,
           ints({1, d.in_place ? capacity_ : total}, [&](std::int64_t i) { return std::int64_t{i < total ? 1 : 0}; }));
  }
  if (!d.names.positions.empty()) in.add(d.names.positions, ints({1, count}, [&](std::int64_t i) { return length_ + i; }));
  if (!d.names.use_cache.empty()) in.add(d.names.use_cache, Tensor::of<bool>({1}, {length_ > 0}));
  if (!d.names.wanted.empty()) {
    in.add(d.names.wanted, ints({all_logits ? count : 1}, [&](std::int64_t i) { return all_logits ? i : count - 1; }));
  }
  const auto angles = d.angle_tables(total);
  for (std::size_t i = 0; i < d.angles.size(); ++i) {
    in.add(d.angles[i].cos, angles->cos[i]);
    in.add(d.angles[i].sin, angles->sin[i]);
  }
  RunOptions run = options;
  if (!d.in_place && cache_.empty()) {
    for (std::int64_t i = 0; i < 2 * d.layers; ++i) cache_.emplace_back(d.cache_type, Shape{1, d.kv_heads, 0, d.head_size});
  }
  for (std::size_t i = 0; i < cache_.size(); ++i) {
    in.add(d.caches.pasts[i], cache_[i]);
    if (d.in_place) run.bound.emplace_back(d.caches.presents[i], cache_[i]);
  }
  const NamedValues out = d.session->run(in, run);
  for (std::size_t i = 0; i < cache_.size() && !d.in_place; ++i) cache_[i] = out.tensor(d.caches.presents[i]);
  length_ = total;
  const Tensor& logits = out.tensor(d.names.logits);
  const std::int64_t width = logits.shape().back(), rows = logits.size() / std::max<std::int64_t>(1, width);
  if (all_logits || rows <= 1) return to_float32(logits.reshaped({rows, width}));
  Tensor last(logits.dtype(), {1, width});
  const std::size_t bytes = byte_size(logits.dtype(), width);
  std::memcpy(last.mutable_data(), static_cast<const char*>(logits.data()) + static_cast<std::size_t>(rows - 1) * bytes, bytes);
  return to_float32(last);
}

void DecoderState::rewind(std::int64_t count) {
  if (count < 0 || count > length_) {
    fail(ErrorCode::invalid_argument, "the state holds only {} tokens, so {} cannot be kept", length_, count);
  }
  if (decoder_->paged()) {
    blocks_.resize(static_cast<std::size_t>((count + CacheLayout::kBlockTokens - 1) / CacheLayout::kBlockTokens));
  } else if (!decoder_->in_place && count < length_) {
    for (Tensor& t : cache_) t = resized(t, count, count, false);
  }
  if (decoder_->has_states() && count < length_) rewind_states(count);
  length_ = count;
}

DecoderState DecoderState::fork() const {
  DecoderState other = *this;
  // Caches that steps write in place are copied; others are never changed, only replaced.
  if (decoder_->in_place) {  // nothing is in `cache_` where there are blocks
    for (Tensor& t : other.cache_) t = t.clone();
  }
  other.next_.resize(0);
  return other;
}

std::size_t DecoderState::cache_bytes() const {
  std::size_t bytes = blocks_.ids().size() * static_cast<std::size_t>(decoder_->layout().block_bytes()) + state_bytes();
  for (const Tensor& t : cache_) bytes += t.bytes();
  return bytes;
}

}  // namespace sdx::text
