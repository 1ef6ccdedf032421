#include "speech/voice/voice_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace sdx::speech {
namespace {

constexpr std::int64_t kContext = 64;  // samples, from version 5 on
constexpr std::int64_t kMostChunks = 128;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  fail(
      ErrorCode::not_implemented,
      "'{}' is no network for voice activity that is supported: {}; expected Silero's VAD for 16 kHz, with the inputs input, and "
      "state or h and c",
      file.string(), what);
}

Shape state_shape(const std::filesystem::path& file, const ValueSpec& v) {
  constexpr std::int64_t kMost = 1 << 16;
  Shape shape = v.shape;
  std::int64_t size = 1;
  for (std::int64_t& extent : shape) {
    if (extent < 0) extent = 1;  // the batch
    size = extent > kMost ? kMost + 1 : std::min(size * extent, kMost + 1);
  }
  if (!v.has_shape || v.dtype != DataType::float32 || size > kMost) refuse(file, fmt::format("{} is {}", v.name, v.type));
  return shape;
}

}  // namespace

VoiceNetwork::VoiceNetwork(const std::filesystem::path& file, const SessionOptions& options)
    : session_(Session::open(file, options)) {
  const ValueSpec* sound = nullptr;
  for (const ValueSpec& v : session_.inputs()) {
    if (v.name == "input") {
      sound = &v;
    } else if (v.name == "sr") {
      takes_rate_ = true;
    } else if (v.name == "state" || v.name == "h" || v.name == "c") {
      states_.push_back({v.name, v.name + (v.name == "state" ? "N" : "n"), state_shape(file, v)});
    } else {
      refuse(file, "it takes '" + v.name + "'");
    }
  }
  if (sound == nullptr || sound->dtype != DataType::float32) refuse(file, "it has no input 'input' of float32");
  if (states_.empty()) refuse(file, "it keeps no state");
  const bool sequences = sound->shape.size() == 2 && sound->shape[1] == kContext + kVoiceChunk;
  context_ = sequences || states_[0].input == "state" ? kContext : 0;
  chunks_ = sequences && sound->shape[0] < 0 ? kMostChunks : 1;
  for (const State& s : states_) {
    const auto& outputs = session_.outputs();
    const bool there = std::any_of(outputs.begin(), outputs.end(), [&](const ValueSpec& v) { return v.name == s.output; });
    if (!there) refuse(file, "it does not return '" + s.output + "'");
  }
  probabilities_ = session_.outputs().front().name;
}

VoiceStream::VoiceStream(const VoiceNetwork& network, std::optional<CancelToken> cancel)
    : network_(network), held_(static_cast<std::size_t>(network.context_)) {
  options_.cancel = std::move(cancel);
  for (const VoiceNetwork::State& s : network.states_) {
    Tensor zeros(DataType::float32, s.shape);
    std::fill_n(zeros.mutable_values<float>().begin(), zeros.size(), 0.0F);
    states_.add(s.input, std::move(zeros));
  }
}

void VoiceStream::push(std::span<const float> samples) {
  held_.insert(held_.end(), samples.begin(), samples.end());
  while (static_cast<std::int64_t>(held_.size()) >= network_.context_ + network_.chunks_ * kVoiceChunk) run(network_.chunks_);
}

std::vector<float> VoiceStream::finish() {
  const std::int64_t left = static_cast<std::int64_t>(held_.size()) - network_.context_;
  std::int64_t chunks = left / kVoiceChunk + 1;
  held_.resize(static_cast<std::size_t>(network_.context_ + chunks * kVoiceChunk));
  for (; chunks > 0; chunks -= std::min(chunks, network_.chunks_)) run(std::min(chunks, network_.chunks_));
  return std::move(probabilities_);
}

void VoiceStream::run(std::int64_t chunks) {
  const std::int64_t width = network_.context_ + kVoiceChunk;
  Tensor sound(DataType::float32, {chunks, width});
  float* to = sound.mutable_values<float>().data();
  for (std::int64_t i = 0; i < chunks; ++i) to = std::copy_n(held_.begin() + i * kVoiceChunk, width, to);
  held_.erase(held_.begin(), held_.begin() + chunks * kVoiceChunk);
  NamedValues inputs = states_;
  inputs.add("input", std::move(sound));
  if (network_.takes_rate_) inputs.add("sr", Tensor::of<std::int64_t>({}, {kVoiceRate}));
  const NamedValues outputs = network_.session_.run(inputs, options_);
  const Tensor& found = outputs.tensor(network_.probabilities_);
  if (found.dtype() != DataType::float32 || found.size() != chunks) {
    fail(ErrorCode::invalid_model, "the voice network returns {} for {} chunks of sound", found.type_string(), chunks);
  }
  for (const float p : found.values<float>()) probabilities_.push_back(p > 0 ? p : 0);
  states_ = {};
  for (const VoiceNetwork::State& s : network_.states_) states_.add(s.input, outputs.tensor(s.output));
}

}  // namespace sdx::speech
