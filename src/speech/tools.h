#pragma once
// The functions of libsdx_speech.so for the command of the same build, which loads it when `sdx transcribe` runs. They throw
// sdx::Error.

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include <sdx/speech.hpp>

#include "base/module/module.h"

namespace sdx::speech {

struct Tools {
  static constexpr ModuleName kModule{"libsdx_speech.so.0", "sdx_speech_tools", "SDX_SPEECH_LIB", "transcribing"};
  static constexpr std::size_t kTypesBytes = sizeof(TranscribeSettings) + sizeof(Transcript) + sizeof(SpeechSegment);

  ModuleHead head;

  std::unique_ptr<const Transcriber> (*load)(const std::filesystem::path& folder, const SessionOptions& options);
  Transcript (*transcribe)(const Transcriber& model, const std::filesystem::path& sound, const TranscribeSettings& settings,
                           const OnSegment& on_segment);
  Transcript (*transcribe_bytes)(const Transcriber& model, std::span<const std::byte> sound, const TranscribeSettings& settings,
                                 const OnSegment& on_segment);
  const std::vector<std::string>& (*languages)(const Transcriber& model);
  int (*rate)(const Transcriber& model);
  VoiceDetector (*load_voice)(const std::filesystem::path& file, const SessionOptions& options);
  std::string (*text)(const Transcript&);
  std::string (*srt)(const Transcript&);
  std::string (*vtt)(const Transcript&);
  std::string (*json_members)(const Transcript&, bool words);
  std::string (*segment_members)(const SpeechSegment&, bool words);
};

}  // namespace sdx::speech
