#include "text/embed/encoder.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/error.h"
#include "base/suggest.h"
#include "tensor/element.h"

namespace sdx::text {
namespace {

constexpr std::array<std::string_view, 4> kInputs{"input_ids", "attention_mask", "token_type_ids", "position_ids"};

SessionOptions with_plans(SessionOptions options) {
  // Batches differ in length: more of their plans are worth keeping than a session keeps by itself.
  options.plan_cache_size = std::max<std::size_t>(options.plan_cache_size, 64);
  return options;
}

void check_inputs(const Session& session) {
  std::vector<std::string> names;
  for (const ValueSpec& input : session.inputs()) {
    if (!input.has_default) names.push_back(input.name);
  }
  const auto known = [](const std::string& name) { return std::find(kInputs.begin(), kInputs.end(), name) != kInputs.end(); };
  if (std::find(names.begin(), names.end(), kInputs[0]) == names.end() || !std::all_of(names.begin(), names.end(), known)) {
    fail(ErrorCode::invalid_argument,
         "the model is not an encoder: it takes {}; expected input_ids, attention_mask and perhaps token_type_ids, position_ids",
         join(names));
  }
}

std::size_t rank_of(const ValueSpec& output) {
  const bool floating =
      output.dtype == DataType::float32 || output.dtype == DataType::float16 || output.dtype == DataType::bfloat16;
  return output.is_tensor && output.has_shape && floating ? output.shape.size() : 0;
}

const ValueSpec* find_output(const Session& session, std::size_t rank) {
  // Exports name them; without such a name the first of the right rank is meant.
  const std::array<std::string_view, 3> usual =
      rank == 3 ? std::array<std::string_view, 3>{"last_hidden_state", "token_embeddings", "hidden_states"}
                : std::array<std::string_view, 3>{"sentence_embedding", "logits", "text_embeds"};
  const ValueSpec* first = nullptr;
  for (const ValueSpec& output : session.outputs()) {
    if (rank_of(output) != rank) continue;
    if (std::find(usual.begin(), usual.end(), output.name) != usual.end()) return &output;
    if (first == nullptr) first = &output;
  }
  return first;
}

const ValueSpec& choose_output(const Session& session, std::size_t rank) {
  const ValueSpec* chosen = nullptr;
  if (rank != 2) chosen = find_output(session, 3);
  if (chosen == nullptr && rank != 3) chosen = find_output(session, 2);
  if (chosen != nullptr) return *chosen;
  std::vector<std::string> seen;
  for (const ValueSpec& output : session.outputs()) seen.push_back(fmt::format("{} ({})", output.name, output.type));
  fail(ErrorCode::invalid_argument, "the model has no output of {} dimensions and floating-point numbers; it has {}",
       rank == 0   ? "2 or 3"
       : rank == 3 ? "3"
                   : "2",
       join(seen));
}

// Fills an input's row with one text's values, and padding after them.
void fill(std::string_view input, const TokenizedText& text, std::int64_t padding, std::span<std::int64_t> row) {
  const std::size_t count = std::min(row.size(), text.ids.size());
  const auto copy = [&](const auto& from, std::int64_t rest) {
    const auto n = static_cast<std::ptrdiff_t>(std::min(count, from.size()));
    std::fill(std::copy(from.begin(), from.begin() + n, row.begin()), row.end(), rest);
  };
  if (input == "input_ids") {
    copy(text.ids, padding);
  } else if (input == "token_type_ids") {
    copy(text.types, 0);
  } else if (input == "attention_mask") {
    std::fill(std::fill_n(row.begin(), count, 1), row.end(), 0);
  } else {
    std::iota(row.begin(), row.end(), std::int64_t{0});
  }
}

// int64, or int32 if the model declares that.
Tensor input_of(const ValueSpec& spec, std::span<const TokenizedText> texts, std::span<const std::size_t> chosen,
                std::int64_t length, std::int64_t padding) {
  Tensor out(DataType::int64, {static_cast<std::int64_t>(chosen.size()), length});
  const auto width = static_cast<std::size_t>(length);
  const std::span<std::int64_t> all = out.mutable_values<std::int64_t>();
  for (std::size_t row = 0; row < chosen.size(); ++row) {
    fill(spec.name, texts[chosen[row]], padding, all.subspan(row * width, width));
  }
  if (spec.dtype != DataType::int32) return out;
  Tensor narrow(DataType::int32, out.shape());
  std::transform(all.begin(), all.end(), narrow.mutable_values<std::int32_t>().begin(),
                 [](std::int64_t v) { return static_cast<std::int32_t>(v); });
  return narrow;
}

}  // namespace

Encoder::Encoder(const std::filesystem::path& model, const SessionOptions& options, std::size_t rank, std::int64_t padding,
                 const TextHead& head)
    : session_(is_encoder_weights(model) ? open_encoder(model, with_plans(options), head)
                                         : Session::open(model, with_plans(options))),
      padding_(padding) {
  check_inputs(session_);
  const ValueSpec& output = choose_output(session_, rank);
  output_ = output.name;
  rank_ = rank_of(output);
}

Tensor Encoder::run(std::span<const TokenizedText> texts, std::span<const std::size_t> chosen, std::int64_t length) const {
  NamedValues inputs;
  for (const ValueSpec& spec : session_.inputs()) {
    if (std::find(kInputs.begin(), kInputs.end(), spec.name) == kInputs.end()) continue;
    inputs.add(spec.name, input_of(spec, texts, chosen, length, padding_));
  }
  NamedValues outputs = session_.run(inputs, {.timeout = {}, .cancel = {}, .outputs = {output_}, .bound = {}});
  const Tensor& result = outputs[0].value.tensor();
  if (result.rank() != rank_ || result.dim(0) != static_cast<std::int64_t>(chosen.size()) ||
      (rank_ == 3 && result.dim(1) != length)) {
    fail(ErrorCode::invalid_model, "{} is {} for {} texts of {} tokens", output_, result.type_string(), chosen.size(), length);
  }
  return to_float32(result);
}

void Encoder::encode(std::span<const TokenizedText> texts, int batch,
                     const std::function<void(const EncodedBatch&)>& take) const {
  std::vector<std::size_t> order(texts.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return texts[a].ids.size() > texts[b].ids.size(); });
  for (std::size_t at = 0; at < order.size();) {
    const std::size_t count = std::min(order.size() - at, static_cast<std::size_t>(batch));
    const std::span<const std::size_t> chosen = std::span(order).subspan(at, count);
    const auto length = static_cast<std::int64_t>(std::max<std::size_t>(1, texts[chosen.front()].ids.size()));
    take({chosen, length, run(texts, chosen, length)});
    at += count;
  }
}

}  // namespace sdx::text
