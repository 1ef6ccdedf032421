#include "speech/output.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/text/json_text.h"

namespace sdx::speech {
namespace {

// Without spaces around it; an empty line would end a cue.
std::string line_of(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\r' || c == '\t';
    if (!space) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  if (line.ends_with(' ')) line.pop_back();
  return line;
}

// "-->" would make a line one of times; WebVTT reads "<" and "&" as markup.
std::string escaped(const std::string& text, bool markup) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (markup && text[i] == '&') {
      out += "&amp;";
    } else if (markup && text[i] == '<') {
      out += "&lt;";
    } else if (markup && text[i] == '>') {
      out += "&gt;";
    } else if (!markup && text.compare(i, 3, "-->") == 0) {
      out += "->";
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// A cue's text, in which each word but the first has its time before it.
std::string cue_words(const SpeechSegment& s) {
  std::string out = escaped(line_of(s.words.front().text), true);
  for (std::size_t i = 1; i < s.words.size(); ++i) {
    const SpeechWord& word = s.words[i];
    out += fmt::format("<{}>{}{}", clock_time(word.start, '.'), word.text.starts_with(' ') ? " " : "",
                       escaped(line_of(word.text), true));
  }
  return out;
}

std::string cue_times(const SpeechSegment& s, char mark) {
  return clock_time(s.start, mark) + " --> " + clock_time(s.end, mark) + "\n";
}

std::string words_of(const SpeechSegment& s) {
  std::string out;
  for (const SpeechWord& w : s.words) {
    fmt::format_to(std::back_inserter(out), "{}{{\"word\":{},\"start\":{:.3f},\"end\":{:.3f},\"probability\":{:.6f}}}",
                   out.empty() ? "" : ",", json_string(w.text), w.start, w.end, w.probability);
  }
  return ",\"words\":[" + out + "]";
}

}  // namespace

std::string clock_time(double seconds, char mark) {
  const auto ms = static_cast<std::int64_t>(std::llround(std::max(0.0, seconds) * 1000));
  return fmt::format("{:02}:{:02}:{:02}{}{:03}", ms / 3'600'000, ms / 60'000 % 60, ms / 1000 % 60, mark, ms % 1000);
}

std::string as_text(const Transcript& transcript) {
  std::string out;
  for (const SpeechSegment& s : transcript.segments) out += line_of(s.text) + "\n";
  return out;
}

std::string as_srt(const Transcript& transcript) {
  std::string out;
  std::size_t number = 0;
  for (const SpeechSegment& s : transcript.segments) {
    out += fmt::format("{}\n{}{}\n\n", ++number, cue_times(s, ','), escaped(line_of(s.text), false));
  }
  return out;
}

std::string as_vtt(const Transcript& transcript) {
  std::string out = "WEBVTT\n\n";
  for (const SpeechSegment& s : transcript.segments) {
    out += cue_times(s, '.') + (s.words.empty() ? escaped(line_of(s.text), true) : cue_words(s)) + "\n\n";
  }
  return out;
}

std::string segment_members(const SpeechSegment& s, bool words) {
  return fmt::format(
      "\"start\":{:.3f},\"end\":{:.3f},\"text\":{},\"tokens\":[{}],\"temperature\":{},\"avg_logprob\":{:.6f},"
      "\"compression_ratio\":{:.4f},\"no_speech_prob\":{:.6f}{}",
      s.start, s.end, json_string(s.text), fmt::join(s.tokens, ","), s.temperature, s.log_probability, s.compression_ratio,
      s.no_speech, words ? words_of(s) : "");
}

std::string json_members(const Transcript& transcript, bool words) {
  std::string segments;
  for (const SpeechSegment& s : transcript.segments)
    segments += (segments.empty() ? "{" : ",{") + segment_members(s, words) + "}";
  return fmt::format("\"duration_s\":{:.3f},\"language\":{},\"text\":{},\"segments\":[{}]", transcript.duration,
                     json_string(transcript.language), json_string(transcript.text), segments);
}

}  // namespace sdx::speech
