#pragma once
// Networks that say how probable speech is in each 32 ms of sound: Silero's VAD, versions 4 to 6, in all forms in which it is
// published.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sdx/session.hpp>

namespace sdx::speech {

inline constexpr int kVoiceRate = 16000;
inline constexpr std::int64_t kVoiceChunk = 512;  // samples

// Immutable, so safe to share between threads.
class VoiceNetwork {
 public:
  // Throws Error(io | invalid_model | not_implemented) naming the file.
  VoiceNetwork(const std::filesystem::path& file, const SessionOptions& options);

 private:
  friend class VoiceStream;
  struct State {
    std::string input, output;
    Shape shape;
  };

  Session session_;
  std::string probabilities_;  // name of the output
  std::vector<State> states_;  // "state", or "h" and "c"
  bool takes_rate_ = false;    // the input "sr"
  std::int64_t context_ = 0;   // samples before a chunk that the network also sees
  std::int64_t chunks_ = 1;    // of a run, at most
};

// The chunks of one sound. Not thread-safe.
class VoiceStream {
 public:
  VoiceStream(const VoiceNetwork& network, std::optional<CancelToken> cancel);

  void push(std::span<const float> samples);  // at kVoiceRate
  // The rest, with zeros behind it. All probabilities: of each chunk that has begun, and of one chunk of silence more where the
  // last one is whole.
  std::vector<float> finish();

 private:
  void run(std::int64_t chunks);

  const VoiceNetwork& network_;
  RunOptions options_;
  NamedValues states_;       // by the names of inputs
  std::vector<float> held_;  // the context, then samples of chunks to come
  std::vector<float> probabilities_;
};

}  // namespace sdx::speech
