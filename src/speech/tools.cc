#include "speech/tools.h"

#include "speech/output.h"

namespace sdx::speech {
namespace {

std::unique_ptr<const Transcriber> load(const std::filesystem::path& folder, const SessionOptions& options) {
  return std::make_unique<const Transcriber>(Transcriber::load(folder, options));
}
Transcript transcribe(const Transcriber& model, const std::filesystem::path& sound, const TranscribeSettings& settings,
                      const OnSegment& on_segment) {
  return model.transcribe(sound, settings, on_segment);
}
Transcript transcribe_bytes(const Transcriber& model, std::span<const std::byte> sound, const TranscribeSettings& settings,
                            const OnSegment& on_segment) {
  return model.transcribe_bytes(sound, settings, on_segment);
}
const std::vector<std::string>& languages(const Transcriber& model) { return model.languages(); }
int rate(const Transcriber& model) { return model.rate(); }

constexpr Tools kTools{
    .head = module_head<Tools>(SDX_VERSION),
    .load = load,
    .transcribe = transcribe,
    .transcribe_bytes = transcribe_bytes,
    .languages = languages,
    .rate = rate,
    .load_voice = VoiceDetector::load,
    .text = as_text,
    .srt = as_srt,
    .vtt = as_vtt,
    .json_members = json_members,
    .segment_members = segment_members,
};

}  // namespace
}  // namespace sdx::speech

extern "C" SDX_API const sdx::ModuleHead* sdx_speech_tools() { return &sdx::speech::kTools.head; }
