#include "train/loop/data/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sdx/tokenizer.hpp>

#include "base/error.h"
#include "base/suggest.h"
#include "base/text/ascii.h"
#include "tensor/element.h"
#include "train/loop/data/labels.h"

namespace sdx::train::loop {
namespace {

constexpr std::int64_t kUsualLength = 512;
// Lengths of batches are this and its doubles: each has a program of its own.
constexpr std::int64_t kShortest = 16;

// The meaning of an input of whole numbers, by its name.
enum class Meaning { ids, mask, types, positions };

Meaning meaning_of(const std::string& name) {
  if (name.find("mask") != std::string::npos) return Meaning::mask;
  if (name.find("type") != std::string::npos || name.find("segment") != std::string::npos) return Meaning::types;
  if (name.find("position") != std::string::npos) return Meaning::positions;
  return Meaning::ids;
}

struct TextSample {
  std::vector<std::uint32_t> ids, types;
};

class TextData : public Dataset {
 public:
  // `longest`: the limit for a text; a model may not have more positions.
  TextData(const Task& task, std::vector<TextSample> samples, Tensor labels, std::uint32_t pad, std::int64_t longest)
      : task_(task), samples_(std::move(samples)), labels_(std::move(labels)), pad_(pad), longest_(longest) {}
  std::int64_t size() const override { return static_cast<std::int64_t>(samples_.size()); }
  std::vector<Tensor> batch(std::span<const std::int64_t> samples, std::int64_t epoch) override;

 private:
  Tensor column(const ValueSpec& spec, std::span<const std::int64_t> samples, std::int64_t length) const;

  const Task task_;
  const std::vector<TextSample> samples_;
  const Tensor labels_;
  const std::uint32_t pad_;
  const std::int64_t longest_;
};

Tensor TextData::column(const ValueSpec& spec, std::span<const std::int64_t> samples, std::int64_t length) const {
  const Meaning meaning = meaning_of(spec.name);
  const bool narrow = spec.dtype == DataType::int32;
  Tensor out(narrow ? DataType::int32 : DataType::int64, {static_cast<std::int64_t>(samples.size()), length});
  std::int64_t at = 0;
  for (const std::int64_t s : samples) {
    const TextSample& t = samples_[static_cast<std::size_t>(s)];
    for (std::size_t i = 0; i < static_cast<std::size_t>(length); ++i, ++at) {
      const bool inside = i < t.ids.size();
      std::int64_t v = 0;
      switch (meaning) {
        case Meaning::ids: v = inside ? t.ids[i] : pad_; break;
        case Meaning::mask: v = inside ? 1 : 0; break;
        case Meaning::types: v = inside ? t.types[i] : 0; break;
        case Meaning::positions: v = static_cast<std::int64_t>(i); break;
      }
      if (narrow) {
        static_cast<std::int32_t*>(out.mutable_data())[at] = static_cast<std::int32_t>(v);
      } else {
        static_cast<std::int64_t*>(out.mutable_data())[at] = v;
      }
    }
  }
  if (spec.dtype == DataType::float32) return to_float32(out);  // masks
  return out;
}

std::int64_t declared_length(const Task& task) {
  for (const std::size_t i : task.features()) {
    const ValueSpec& s = task.inputs[i];
    if (s.has_shape && s.shape.size() == 2 && s.shape[1] > 0) return s.shape[1];
  }
  return 0;
}

std::vector<Tensor> TextData::batch(std::span<const std::int64_t> samples, std::int64_t) {
  std::size_t longest = 1;
  for (const std::int64_t s : samples) longest = std::max(longest, samples_[static_cast<std::size_t>(s)].ids.size());
  std::int64_t length = declared_length(task_);
  if (length == 0) {
    length = kShortest;
    while (length < static_cast<std::int64_t>(longest)) length *= 2;
    length = std::min(length, std::max(longest_, static_cast<std::int64_t>(longest)));
  }
  std::vector<Tensor> out;
  for (std::size_t i = 0; i < task_.inputs.size(); ++i) {
    if (i != task_.label) {
      out.push_back(column(task_.inputs[i], samples, length));
      continue;
    }
    Shape shape = labels_.shape();
    shape[0] = static_cast<std::int64_t>(samples.size());
    Tensor rows(labels_.dtype(), std::move(shape));
    const std::size_t bytes = labels_.bytes() / static_cast<std::size_t>(labels_.dim(0));
    for (std::size_t k = 0; k < samples.size(); ++k) {
      std::copy_n(static_cast<const std::byte*>(labels_.data()) + static_cast<std::size_t>(samples[k]) * bytes, bytes,
                  static_cast<std::byte*>(rows.mutable_data()) + k * bytes);
    }
    out.push_back(std::move(rows));
  }
  return out;
}

void check_inputs(const Task& task) {
  for (const std::size_t i : task.features()) {
    const ValueSpec& s = task.inputs[i];
    const bool integers = s.dtype == DataType::int64 || s.dtype == DataType::int32;
    const bool mask = s.dtype == DataType::float32 && meaning_of(s.name) == Meaning::mask;
    if ((integers || mask) && (!s.has_shape || s.shape.size() == 2)) continue;
    fail(ErrorCode::invalid_argument, "the model's input '{}' takes {}: no tokens of texts, which are int64[batch, length]",
         s.name, s.type);
  }
}

Tokenizer tokenizer_for(const SourceRequest& r) {
  if (!r.settings.tokenizer.empty()) return Tokenizer::load(r.settings.tokenizer);
  std::error_code ignored;
  const std::filesystem::path beside = r.path.parent_path() / "tokenizer.json";
  if (std::filesystem::exists(beside, ignored)) return Tokenizer::load(beside);
  fail(ErrorCode::invalid_argument, "'{}' contains texts: name the model's tokenizer with --tokenizer", r.path.string());
}

}  // namespace

bool finite_number(const std::string& text, double& number) {
  std::string_view t = trimmed_text(text, " ");
  if (t.starts_with('+')) t.remove_prefix(1);
  const auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), number);
  return error == std::errc{} && end == t.data() + t.size() && !t.empty() && std::isfinite(number);
}

std::string column_named(const std::vector<std::string>& names, const std::string& wanted, const char* flag,
                         std::span<const char* const> usual, const std::string& where) {
  const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (!wanted.empty() && !has(wanted)) {
    const std::string near = closest(wanted, names);
    fail(ErrorCode::invalid_argument, "{} {}: {} has no such column{}; it has {}", flag, wanted, where,
         near.empty() ? "" : ", did you mean '" + near + "'?", join(names));
  }
  if (!wanted.empty()) return wanted;
  const auto it = std::find_if(usual.begin(), usual.end(), has);
  return it == usual.end() ? "" : *it;
}

Tensor labels_of_words(const SourceRequest& r, const std::vector<std::string>& words, const std::vector<std::string>& where,
                       std::vector<std::string>& names) {
  const ValueSpec& spec = r.task.label_input();
  Shape shape{static_cast<std::int64_t>(words.size())};
  for (std::size_t i = 1; i < spec.shape.size(); ++i) shape.push_back(1);
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].empty()) fail(ErrorCode::invalid_argument, "{}: the label is missing", where[i]);
  }
  Tensor out(spec.dtype == DataType::undefined ? DataType::int64 : spec.dtype, std::move(shape));
  if (is_floating(out.dtype())) {
    for (std::size_t i = 0; i < words.size(); ++i) {
      double v = 0;
      if (!finite_number(words[i], v)) {
        fail(ErrorCode::invalid_argument, "{}: the target '{}' is not a finite number", where[i], words[i]);
      }
      set_element(out, static_cast<std::int64_t>(i), v);
    }
    return out;
  }
  const Classes classes(words, r.known);
  names = classes.names();
  check_class_count(r.task, names, "'" + r.path.string() + "'");
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::int64_t number = 0;
    try {
      number = classes.number_of(words[i]);
    } catch (const Error& e) {
      fail(e.code(), "{}: {}", where[i], e.message());
    }
    check_label(r.task, number, where[i]);
    set_element_int(out, static_cast<std::int64_t>(i), number);
  }
  return out;
}

void open_texts(const SourceRequest& r, LabelledTexts rows, Source& source) {
  check_inputs(r.task);
  const Tokenizer tokenizer = tokenizer_for(r);
  const std::int64_t declared = declared_length(r.task);
  const std::int64_t longest = r.settings.max_length > 0 ? r.settings.max_length : declared > 0 ? declared : kUsualLength;
  const Tokenizer cutting = tokenizer.with_padding(std::nullopt).with_truncation(Truncation{static_cast<std::size_t>(longest)});
  std::vector<TextSample> samples;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < rows.texts.size(); ++i) {
    try {
      const Encoding e = cutting.encode(rows.texts[i]);
      samples.push_back({e.ids, e.type_ids});
    } catch (const Error& e) {
      fail(e.code(), "{}: {}", rows.where[i], e.message());
    }
    bytes += 8 * samples.back().ids.size() + sizeof(TextSample);
    if (bytes > r.settings.memory) {
      fail(ErrorCode::out_of_memory,
           "'{}': the tokens need more than {} bytes of memory; raise --memory, or cut the texts shorter "
           "with --max-length",
           r.path.string(), r.settings.memory);
    }
  }
  std::uint32_t pad = 0;
  if (tokenizer.padding()) {
    pad = tokenizer.padding()->id;
  } else if (const auto& token = tokenizer.special_tokens().pad) {
    pad = tokenizer.token_to_id(*token).value_or(0);
  }
  Tensor labels = labels_of_words(r, rows.labels, rows.where, source.classes);
  source.data = std::make_unique<TextData>(r.task, std::move(samples), std::move(labels), pad, longest);
  source.kind = fmt::format("{} texts", source.data->size());
}

}  // namespace sdx::train::loop
