#pragma once
// Transcripts as text and as files of subtitles.

#include <string>
#include <string_view>

#include <sdx/speech.hpp>

namespace sdx::speech {

// "00:01:02,345"; `mark` stands before the milliseconds.
std::string clock_time(double seconds, char mark);

// A line for each segment.
std::string as_text(const Transcript& transcript);
// SubRip.
std::string as_srt(const Transcript& transcript);
// WebVTT; words whose times are known have these before them.
std::string as_vtt(const Transcript& transcript);
// The members of a segment's JSON object without its braces: "start", "end", "text", "tokens", "temperature", "avg_logprob",
// "compression_ratio", "no_speech_prob", and `words`: "words".
std::string segment_members(const SpeechSegment& segment, bool words);
// The members of a JSON object without its braces: "duration_s", "language", "text", "segments".
std::string json_members(const Transcript& transcript, bool words);

}  // namespace sdx::speech
