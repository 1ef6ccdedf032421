// /v1/audio/transcriptions and /v1/audio/translations

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>

#include "base/error.h"
#include "base/text/json_text.h"
#include "base/words.h"
#include "serve/http/multipart.h"
#include "serve/openai/answer_head.h"
#include "serve/openai/api_impl.h"
#include "serve/openai/fields.h"
#include "serve/openai/reply.h"
#include "speech/tools.h"

namespace sdx::serve::openai {
namespace {

struct SoundRequest {
  std::optional<std::string_view> file;
  std::string model, format = "json";
  bool stream = false, segments = false, words = false;  // the last two: are asked for; neither: segments
  TranscribeSettings settings;
  Ignored ignored;
};

double temperature_of(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size() || !(value >= 0 && value <= 1)) {
    refuse(fmt::format("Invalid value for 'temperature': expected a number from 0 to 1, received '{}'.", text.substr(0, 40)),
           "temperature", "invalid_value");
  }
  return value;
}

bool is_true(std::string_view text) {
  if (text == "true" || text == "True" || text == "1") return true;
  if (text == "false" || text == "False" || text == "0" || text.empty()) return false;
  refuse(fmt::format("Invalid type for 'stream': expected a boolean, received '{}'.", text.substr(0, 40)), "stream",
         "invalid_type");
}

void read_part(SoundRequest& r, const Part& part) {
  if (part.name == "file") {
    r.file = part.body;
    return;
  }
  const std::string text(part.body);
  if (part.name == "model") {
    r.model = text;
  } else if (part.name == "language") {
    r.settings.language = text;
  } else if (part.name == "prompt") {
    r.settings.prompt = text;
  } else if (part.name == "response_format") {
    r.format = text;
  } else if (part.name == "stream") {
    r.stream = is_true(text);
  } else if (part.name == "temperature") {
    // 0 stands for the usual order of temperatures, as with OpenAI.
    if (const double t = temperature_of(text); t > 0) r.settings.temperatures = {t};
  } else if (part.name == "timestamp_granularities[]" || part.name == "timestamp_granularities") {
    r.segments = r.segments || text == "segment";
    r.words = r.words || text == "word";
    if (text != "segment" && text != "word") {
      refuse(fmt::format("Invalid value for 'timestamp_granularities': '{}'. Supported values are: 'segment' and 'word'.",
                         text.substr(0, 40)),
             "timestamp_granularities", "invalid_value");
    }
  } else {
    r.ignored.add(part.name);
  }
}

SoundRequest read_request(const Request& request) {
  const std::string boundary = multipart_boundary(request.header("content-type"));
  if (boundary.empty()) refuse("The request must be multipart/form-data with the parts 'file' and 'model'.");
  SoundRequest r;
  for (const Part& part : parse_multipart(request.body, boundary)) read_part(r, part);
  if (!r.file) refuse("Missing required parameter: 'file'.", "file", "missing_required_parameter");
  if (r.model.empty()) refuse("Missing required parameter: 'model'.", "model", "missing_required_parameter");
  constexpr std::string_view kFormats = "json text srt verbose_json vtt";
  if (!has_word(kFormats, r.format)) {
    refuse(
        fmt::format(
            "Invalid value for 'response_format': '{}'. Supported values are: 'json', 'text', 'srt', 'verbose_json' and 'vtt'.",
            r.format.substr(0, 40)),
        "response_format", "invalid_value");
  }
  r.settings.word_timestamps = r.words;
  return r;
}

// Pieces of text begin with a space, the whole does not.
std::string without_first_spaces(const std::string& text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

std::string segments_of(const Transcript& all, const speech::Tools& tools, bool words) {
  std::string out;
  for (std::size_t i = 0; i < all.segments.size(); ++i) {
    const SpeechSegment& s = all.segments[i];
    fmt::format_to(std::back_inserter(out), R"({}{{"id":{},"seek":{},{}}})", i == 0 ? "" : ",", i,
                   static_cast<std::int64_t>(s.start * 100), tools.segment_members(s, words));
  }
  return out;
}

std::string words_of(const Transcript& all) {
  std::string out;
  for (const SpeechSegment& s : all.segments) {
    for (const SpeechWord& w : s.words) {
      fmt::format_to(std::back_inserter(out), R"({}{{"word":{},"start":{:.3f},"end":{:.3f}}})", out.empty() ? "" : ",",
                     json_string(without_first_spaces(w.text)), w.start, w.end);
    }
  }
  return out;
}

std::string verbose(const SoundRequest& r, const Transcript& all, const speech::Tools& tools) {
  std::string out =
      fmt::format(R"({{"task":"{}","language":{},"duration":{:.3f},"text":{})", r.settings.translate ? "translate" : "transcribe",
                  json_string(all.language), all.duration, json_string(without_first_spaces(all.text)));
  if (r.segments || !r.words) out += R"(,"segments":[)" + segments_of(all, tools, r.words) + "]";
  if (r.words) out += R"(,"words":[)" + words_of(all) + "]";
  return out + "}";
}

std::string usage(const Transcript& all) { return fmt::format(R"({{"type":"duration","seconds":{}}})", all.duration); }

Response plain(std::string text, std::string_view type) { return {200, {{"Content-Type", std::string(type)}}, std::move(text)}; }

Response answer(const SoundRequest& r, const Transcript& all, const speech::Tools& tools) {
  if (r.format == "text") return plain(without_first_spaces(all.text) + "\n", "text/plain; charset=utf-8");
  if (r.format == "srt") return plain(tools.srt(all), "application/x-subrip; charset=utf-8");
  if (r.format == "vtt") return plain(tools.vtt(all), "text/vtt; charset=utf-8");
  if (r.format == "verbose_json") return json_response(verbose(r, all, tools));
  return json_response(fmt::format(R"({{"text":{},"usage":{}}})", json_string(without_first_spaces(all.text)), usage(all)));
}

std::string event(std::string_view type, std::string_view member, const std::string& text, std::string_view more = {}) {
  return fmt::format(R"({}{{"type":"{}","{}":{}{}}}{})", kEventBegin, type, member, json_string(text), more, kEventEnd);
}

// A stream has a piece of text for each segment, as soon as it is known, and ends with the whole.
class SoundStream {
 public:
  explicit SoundStream(const ResponderPtr& responder) : reply_(std::make_shared<Reply>(responder, true)) {}
  const std::shared_ptr<Reply>& reply() const { return reply_; }

  void add(const SpeechSegment& segment) {
    const std::string text = sent_ ? segment.text : without_first_spaces(segment.text);
    sent_ = sent_ || !text.empty();
    reply_->send(event("transcript.text.delta", "delta", text));
    reply_->open("");  // errors before the first segment are a status of their own
  }
  void end(const Transcript& all) {
    reply_->open("");
    reply_->finish(
        event("transcript.text.done", "text", without_first_spaces(all.text), fmt::format(R"(,"usage":{})", usage(all))));
  }

 private:
  std::shared_ptr<Reply> reply_;
  bool sent_ = false;
};

}  // namespace

void Api::Impl::transcribe(const RequestPtr& request, const ResponderPtr& responder, bool translate) {
  SoundRequest r = read_request(*request);
  r.settings.translate = translate;
  const Found found = models.get(r.model, ModelKind::speech, translate ? "v1/audio/translations" : "v1/audio/transcriptions");
  Measured measured(metrics, found.model->name, request->arrived);
  if (request->notes) request->notes->set_model(r.model).set_ignored(r.ignored.text());
  r.settings.cancel.emplace();
  responder->on_gone([cancel = *r.settings.cancel]() mutable { cancel.cancel(); });
  std::optional<SoundStream> stream;
  if (r.stream) heartbeats.watch(stream.emplace(responder).reply());
  const StageTimer computing(request->notes.get(), "compute");
  const speech::Tools& tools = load_module<speech::Tools>();
  std::int64_t tokens = 0;
  const auto on_segment = [&](const SpeechSegment& s) {
    tokens += static_cast<std::int64_t>(s.tokens.size());
    if (stream) stream->add(s);
    return true;
  };
  try {
    const Transcript all =
        tools.transcribe_bytes(*found.model->speech, std::as_bytes(std::span(*r.file)), r.settings, on_segment);
    if (request->notes) request->notes->set_tokens(0, tokens);
    measured.end({.prompt = 0, .completion = tokens}, "stop");
    if (stream) {
      stream->end(all);
    } else {
      responder->respond(answer(r, all, tools));
    }
  } catch (...) {
    if (!stream) throw;
    stream->reply()->fail(current_api_error());
  }
}

}  // namespace sdx::serve::openai
