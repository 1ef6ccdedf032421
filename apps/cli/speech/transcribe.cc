// sdx transcribe

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "base/text/json_text.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/registry/pulled.h"
#include "cli/text/generation_flags.h"
#include "media/sound/sound.h"
#include "speech/tools.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples =
    "Examples:\n"
    "  sdx transcribe talk.flac -m whisper-base/\n"
    "  sdx transcribe interview.mp3 -m whisper-base/ --language de --translate --format srt\n"
    "  sdx transcribe recordings/ -m whisper-base/ --format vtt -o subtitles/ --resume\n"
    "  arecord -f S16_LE -r 16000 -d 10 -t raw | sdx transcribe - -m whisper-base/\n"
    "'-' is 16-bit PCM of one channel on standard input (--rate).\n";

struct TranscribeCommand {
  std::vector<std::string> sounds;
  std::string model, timestamps = "segment", format = "txt", output, voice;
  TranscribeSettings settings;
  std::optional<double> temperature;
  double compression_ratio = 2.4, log_probability = -1.0, no_speech = 0.6;
  std::int64_t threads = 0, rate = 16000;
  std::uint64_t seed = 0;
  bool resume = false, json = false, alone = false;

  int run();

 private:
  void check();
  std::vector<std::string> files() const;
  fs::path target(const std::string& sound) const;
  bool one(const std::string& sound);
  Transcript transcribed(const std::string& sound, const OnSegment& on_segment) const;
  std::string shown(const Transcript& transcript, const std::string& sound) const;

  std::unique_ptr<const Transcriber> opened_;
  std::string results_;  // of --json
};

void TranscribeCommand::check() {
  const VoiceSettings& v = settings.voice_settings;
  if (!(v.threshold >= 0 && v.threshold <= 1)) throw UsageError(fmt::format("--vad-threshold {}: expected 0 to 1", v.threshold));
  if (resume && output.empty()) throw UsageError("--resume needs -o: it leaves out what is there");
  if (rate < media::kMinRate || rate > media::kMaxRate) {
    throw UsageError(fmt::format("--rate {}: expected {} to {}", rate, media::kMinRate, media::kMaxRate));
  }
  if (temperature) {
    if (!(*temperature >= 0 && *temperature <= 10))
      throw UsageError(fmt::format("--temperature {}: expected 0 to 10", *temperature));
    settings.temperatures = {*temperature};
  }
  settings.timestamps = timestamps != "none";
  settings.word_timestamps = timestamps == "word";
  settings.condition_on_previous = !alone;
  settings.compression_ratio = compression_ratio;
  settings.log_probability = log_probability;
  settings.no_speech = no_speech;
  settings.seed = seed;
}

// Folders stand for the sound files in them, in the order of their names.
std::vector<std::string> TranscribeCommand::files() const {
  std::vector<std::string> all;
  for (const std::string& sound : sounds) {
    std::error_code error;
    if (sound == "-" || !fs::is_directory(sound, error)) {
      all.push_back(sound);
      continue;
    }
    std::vector<std::string> inside;
    for (const fs::directory_entry& entry : fs::directory_iterator(sound)) {
      if (entry.is_regular_file(error) && media::has_sound_ending(entry.path())) inside.push_back(entry.path().string());
    }
    if (inside.empty()) fail(ErrorCode::io, "'{}' contains no sound files", sound);
    std::sort(inside.begin(), inside.end());
    all.insert(all.end(), inside.begin(), inside.end());
  }
  return all;
}

fs::path TranscribeCommand::target(const std::string& sound) const {
  const std::string stem = sound == "-" ? "stdin" : fs::path(sound).stem().string();
  return fs::path(output) / (stem + "." + format);
}

// PCM as a WAV file of unknown length, which is read in pieces.
std::string wav_of(const std::string& pcm, std::uint32_t rate) {
  std::string head = "RIFF";
  const auto number = [&](std::uint32_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) head += static_cast<char>(value >> (8 * i) & 0xFF);
  };
  number(UINT32_MAX, 4);
  head += "WAVEfmt ";
  number(16, 4);
  number(1, 2);
  number(1, 2);
  number(rate, 4);
  number(rate * 2, 4);
  number(2, 2);
  number(16, 2);
  head += "data";
  number(UINT32_MAX, 4);
  return head + pcm;
}

Transcript TranscribeCommand::transcribed(const std::string& sound, const OnSegment& on_segment) const {
  const speech::Tools& tools = load_module<speech::Tools>();
  if (sound != "-") return tools.transcribe(*opened_, sound, settings, on_segment);
  const std::string wav = wav_of(read_text("-"), static_cast<std::uint32_t>(rate));
  return tools.transcribe_bytes(*opened_, std::as_bytes(std::span(wav.data(), wav.size())), settings, on_segment);
}

std::string TranscribeCommand::shown(const Transcript& transcript, const std::string& sound) const {
  const speech::Tools& tools = load_module<speech::Tools>();
  if (format == "srt") return tools.srt(transcript);
  if (format == "vtt") return tools.vtt(transcript);
  if (format == "json")
    return fmt::format("{{\"file\":{},{}}}\n", json_string(sound), tools.json_members(transcript, settings.word_timestamps));
  return tools.text(transcript);
}

// Returns false where the sound cannot be transcribed.
bool TranscribeCommand::one(const std::string& sound) {
  const fs::path to = output.empty() ? fs::path() : target(sound);
  std::error_code error;
  if (resume && fs::exists(to, error)) return true;
  const bool streams = output.empty() && !json && format == "txt";
  Transcript transcript;
  try {
    transcript = transcribed(sound, [&](const SpeechSegment& segment) {
      Transcript part;
      part.segments.push_back(segment);
      if (streams) print(load_module<speech::Tools>().text(part));
      return true;
    });
  } catch (const Error& e) {
    if (json) {
      results_ +=
          fmt::format("{}{{\"file\":{},\"error\":{}}}", results_.empty() ? "" : ",", json_string(sound), json_string(e.what()));
    }
    note(fmt::format("error: {}: {}", sound, e.what()));
    return false;
  }
  if (json) {
    results_ += fmt::format("{}{{\"file\":{},{},\"error\":null}}", results_.empty() ? "" : ",", json_string(sound),
                            load_module<speech::Tools>().json_members(transcript, settings.word_timestamps));
  }
  if (!output.empty()) {
    write_file_atomically(to, shown(transcript, sound));
  } else if (!streams && !json) {
    print(shown(transcript, sound));
  }
  return true;
}

int TranscribeCommand::run() {
  check();
  const std::vector<std::string> all = files();
  if (!output.empty()) {
    std::map<fs::path, std::string> seen;
    for (const std::string& sound : all) {
      const auto [at, added] = seen.emplace(target(sound), sound);
      if (!added) throw UsageError(fmt::format("{} and {} would both be written to {}", at->second, sound, at->first.string()));
    }
    fs::create_directories(output);
    NewFile::check(target(all.front()));
  }
  SessionOptions options;
  options.threads = static_cast<int>(threads);
  const speech::Tools& tools = load_module<speech::Tools>();
  opened_ = tools.load(text_model(model), options);
  if (!voice.empty()) settings.voice = tools.load_voice(text_model(voice), options);
  std::size_t failed = 0;
  for (const std::string& sound : all) failed += one(sound) ? 0 : 1;
  if (json) print(fmt::format("{{\"files\":[{}]}}\n", results_));
  if (failed > 0 && all.size() > 1) note(fmt::format("error: {} of {} sounds could not be transcribed", failed, all.size()));
  return failed > 0 ? kFailed : kOk;
}

void add_guards(const Command& command, TranscribeCommand& c) {
  const auto option = [&](const char* flag, auto& to, const char* help) {
    return command.add_option(flag, to, help)->type_name("X")->group("Guards against invented text");
  };
  option("--temperature", c.temperature,
         "Decode at this temperature alone (default: 0, up to 1 where a text is repetitive or improbable)");
  option("--compression-ratio", c.compression_ratio, "A text that zlib makes smaller than 1/X is repetitive (2.4)");
  option("--log-probability", c.log_probability, "A text whose tokens have a lower mean is improbable (-1)");
  option("--no-speech", c.no_speech, "An improbable text is silence above this probability of it (0.6)");
  command.add_flag("--no-previous-text", c.alone, "Decode each window of 30 s without the text before it")
      ->group("Guards against invented text");
}

void add_voice(const Command& command, TranscribeCommand& c) {
  const auto option = [&](const char* flag, auto& to, const char* help) {
    return command.add_option(flag, to, help)->group("Speech alone");
  };
  VoiceSettings& s = c.settings.voice_settings;
  option("--vad", c.voice, "Transcribe only where this network (Silero's VAD in ONNX) hears speech")->type_name("FILE");
  option("--vad-threshold", s.threshold, "Its probability from which on somebody speaks (0.5)")->type_name("X");
  option("--vad-min-silence", s.min_silence, "Shorter pauses belong to the speech (2)")->type_name("SECONDS");
  option("--vad-min-speech", s.min_speech, "Shorter speech is left out (0)")->type_name("SECONDS");
  option("--vad-max-speech", s.max_speech, "Longer speech is cut at a short pause (no limit)")->type_name("SECONDS");
  option("--vad-padding", s.padding, "Silence kept on each side (0.4)")->type_name("SECONDS");
}

}  // namespace

void add_transcribe(const Command& app, Action& action) {
  const Command command = app.add_subcommand("transcribe", "Convert speech to text, with times: lines, subtitles or JSON");
  const auto c = std::make_shared<TranscribeCommand>();
  command->add_option("SOUND", c->sounds, "Sound files, folders of them, or '-'")->required();
  command->add_option("-m,--model", c->model, "Folder that contains a Whisper model: ONNX or .safetensors")
      ->required()
      ->type_name("MODEL");
  command->add_option("--language", c->settings.language, "The speech's language: de, en, … (default: heard in the first 30 s)")
      ->type_name("CODE");
  command->add_flag("--translate", c->settings.translate, "Translate into English");
  command->add_option("--timestamps", c->timestamps, "Times of segments (default), also of words, or none")
      ->one_of({"none", "segment", "word"});
  command->add_option("--prompt", c->settings.prompt, "Text that the model takes as said before: names, spelling, style")
      ->type_name("TEXT");
  command->add_option("--format", c->format, "txt (default), srt, vtt or json")->one_of({"txt", "srt", "vtt", "json"});
  command->add_option("-o,--output", c->output, "Folder for a file for each sound; default: standard output")->type_name("DIR");
  command->add_flag("--resume", c->resume, "Leave out sounds whose file is in the folder");
  command->add_flag("--json", c->json, "Print {\"files\": [{\"file\", \"language\", \"text\", \"segments\", …}]}");
  command->add_option("--rate", c->rate, "Samples a second on standard input (16000)")->type_name("HZ");
  command->add_option("--seed", c->seed, "Of sampling at temperatures above 0 (0)")->type_name("N");
  command->add_option("-t,--threads", c->threads, "Threads; 0: one per core")->type_name("N");
  add_guards(command, *c);
  add_voice(command, *c);
  command->footer(kExamples);
  command->callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
