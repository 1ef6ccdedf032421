#include "train/loop/settings.h"

#include <array>
#include <charconv>
#include <sdx/project.hpp>

#include "base/error.h"
#include "base/quantity.h"
#include "base/words.h"
#include "media/preprocess.h"
#include "train/loop/data/texts.h"

namespace sdx::train::loop {
namespace {

// Runs `read`; its errors get the name of the flag.
template <class F>
auto of_flag(const char* flag, F&& read) {
  try {
    return read();
  } catch (const Error& e) {
    fail(e.code(), "{}: {}", flag, e.message());
  }
}

void check_range(const char* flag, double value, double least, double most, const char* what) {
  if (value >= least && value <= most) return;
  fail(ErrorCode::invalid_argument, "{} {}: expected {}", flag, value, what);
}

void read_size(const std::string& text, Preprocessing& p) {
  const std::size_t x = text.find('x');
  std::int64_t width = 0, height = 0;
  const auto number = [](std::string_view part, std::int64_t& to) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), to);
    return error == std::errc{} && end == part.data() + part.size() && to >= 1 && to <= 65535;
  };
  const std::string_view all = text;
  if (x == std::string::npos || !number(all.substr(0, x), width) || !number(all.substr(x + 1), height)) {
    fail(ErrorCode::invalid_argument, "--resize {}: expected WIDTHxHEIGHT, such as 224x224", text);
  }
  p.width = static_cast<int>(width);
  p.height = static_cast<int>(height);
}

std::vector<float> numbers(const char* flag, const std::vector<std::string>& words) {
  std::vector<float> out;
  for (const std::string& word : words) {
    double v = 0;
    if (!finite_number(word, v)) fail(ErrorCode::invalid_argument, "{} {}: expected a number for each channel", flag, word);
    out.push_back(static_cast<float>(v));
  }
  return out;
}

Preprocessing preprocessing_of(const Request& r) {
  Preprocessing p;
  if (!r.project.empty()) {
    const ProjectConfig config = Project::open(r.project).config();
    p = config.inputs.empty() ? config.preprocessing : config.inputs[0].preprocessing;
  }
  if (!r.resize.empty()) read_size(r.resize, p);
  if (!r.normalize.empty()) {
    of_flag("--normalize", [&] { return media::normalization(r.normalize, media::Color::rgb).scale; });
    p.normalize = r.normalize;
  }
  if (!r.mean.empty()) p.mean = numbers("--mean", r.mean);
  if (!r.deviation.empty()) p.deviation = numbers("--std", r.deviation);
  // Like the commands that run models: only these lists are for pixels from 0 to 1.
  if (p.normalize.empty() && !p.scale && (!r.mean.empty() || !r.deviation.empty())) p.normalize = "0-1";
  return p;
}

void read_training(const Request& r, Settings& s) {
  constexpr std::array<std::string_view, 3> schedules{"constant", "linear", "cosine"};
  s.trainer.schedule.kind = of_flag("--schedule", [&] { return parse_word<ScheduleKind>(schedules, r.schedule); });
  s.trainer.schedule.warmup = r.warmup;
  s.trainer.learning_rate = static_cast<float>(r.learning_rate);
  s.trainer.accumulate = r.accumulate;
  s.trainer.threads = r.threads;
  s.trainer.seed = mixed(r.seed, {kLayers}) | 1;  // 0 would be the clock's
  s.trainer.bfloat16 = r.bfloat16;
  if (!r.optimizer.empty()) s.kind = of_flag("--optimizer", [&] { return optimizer_named(r.optimizer); });
  if (r.weight_decay) s.weight_decay = static_cast<float>(*r.weight_decay);
  if (r.clip) s.clip = static_cast<float>(*r.clip);
  s.fit.epochs = r.epochs;
  s.fit.batch = r.batch;
  s.fit.accumulate = r.accumulate;
  s.fit.seed = r.seed;
  s.fit.shuffle = !r.no_shuffle;
  s.fit.drop_last = r.drop_last;
  s.fit.patience = r.patience;
  s.fit.save_every = r.save_every;
  s.fit.checkpoint = r.output;
  s.fit.resume = r.resume;
}

void check_numbers(const Request& r) {
  constexpr double kMost = 1e15;
  check_range("--epochs", static_cast<double>(r.epochs), 1, kMost, "at least 1");
  check_range("--batch", static_cast<double>(r.batch), 0, kMost, "at least 1");
  check_range("--accumulate", static_cast<double>(r.accumulate), 1, kMost, "at least 1");
  check_range("--warmup", static_cast<double>(r.warmup), 0, kMost, "a number of updates");
  check_range("--patience", static_cast<double>(r.patience), 0, kMost, "a number of epochs");
  check_range("--save-every", static_cast<double>(r.save_every), 0, kMost, "a number of updates");
  check_range("--max-length", static_cast<double>(r.max_length), 0, 1e9, "a number of tokens");
  check_range("--lr", r.learning_rate, 1e-30, 1e30, "a number above 0");
  check_range("--validation-split", r.validation_split, 0, 0.999999, "a share between 0 and 1, such as 0.1");
  check_range("--weight-decay", r.weight_decay.value_or(0), 0, 1e30, "0 or more");
  check_range("--clip", r.clip.value_or(0), 0, 1e30, "0 or more");
  check_range("--threads", r.threads, 0, 4096, "0 to 4096");
  check_range("--workers", r.workers, 0, 4096, "0 to 4096");
}

}  // namespace

Settings settings_of(const Request& r) {
  check_numbers(r);
  if (r.cache_features && !r.augment.empty()) {
    fail(ErrorCode::invalid_argument,
         "--cache-features computes frozen layers once for each sample, but --augment changes samples in each epoch: use one of "
         "them");
  }
  if (r.validation_split > 0 && !r.eval.empty()) {
    fail(ErrorCode::invalid_argument,
         "--validation-split takes samples from the training data, and --eval names others: use one of them");
  }
  if (!r.outputs.empty() && r.export_model.empty()) {
    fail(ErrorCode::invalid_argument, "--outputs names those of the model that --export writes: name that file too");
  }
  Settings s;
  read_training(r, s);
  DataSettings& d = s.data;
  d.data = r.data;
  d.eval = r.eval;
  d.validation_split = r.validation_split;
  d.seed = r.seed;
  d.label = r.label;
  d.text = r.text;
  d.tokenizer = r.tokenizer;
  d.max_length = r.max_length;
  d.augmentation = of_flag("--augment", [&] { return augmentation_of(r.augment); });
  d.workers = r.workers;
  constexpr std::array<std::string_view, 2> kinds{"stop", "skip"};
  d.skip_bad = of_flag("--on-bad", [&] { return find_word(kinds, r.on_bad); }) == 1;
  const std::optional<std::uint64_t> memory = size_from_text(r.memory);
  if (!memory) fail(ErrorCode::invalid_argument, "--memory {}: expected a size, such as 4GiB", r.memory);
  d.memory = *memory;
  d.preprocessing = preprocessing_of(r);
  return s;
}

}  // namespace sdx::train::loop
