#include "speech.h"

#include <sdx/speech.hpp>
#include <span>

#include "arrays.h"
#include "callback.h"
#include "entry.h"
#include "options.h"
#include "signals.h"
#include "speech/output.h"

namespace sdx::python {
namespace {

// load(path, options of the session), load_voice(…)
template <class Model>
Object load(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const std::string path = to_text(argument(arguments, 0));
  const SessionOptions options = to_options(argument(arguments, 1));
  return instance_of(unlocked([&] { return Model::load(path, options); }));
}

std::optional<double> to_limit(PyObject* object) {
  return object == Py_None ? std::nullopt : std::optional<double>(to_double(object));
}

auto items_of(PyObject* settings) {
  return [settings](const char* name) {
    PyObject* const found = PyDict_GetItemString(settings, name);
    if (found == nullptr) fail(ErrorCode::invalid_argument, "the setting '{}' is missing", name);
    return found;
  };
}

VoiceSettings read_voice_settings(PyObject* settings) {
  const auto item = items_of(settings);
  VoiceSettings s;
  s.threshold = to_double(item("threshold"));
  s.silence_threshold = to_limit(item("silence_threshold"));
  s.min_speech = to_double(item("min_speech"));
  s.max_speech = to_double(item("max_speech"));
  s.min_silence = to_double(item("min_silence"));
  s.padding = to_double(item("padding"));
  return s;
}

TranscribeSettings read_settings(PyObject* settings) {
  const auto item = items_of(settings);
  TranscribeSettings s;
  s.language = to_text(item("language"));
  s.translate = to_truth(item("translate"));
  s.timestamps = to_truth(item("timestamps"));
  s.word_timestamps = to_truth(item("word_timestamps"));
  s.prompt = to_text(item("prompt"));
  s.condition_on_previous = to_truth(item("condition_on_previous"));
  s.temperatures = to_list(item("temperatures"), to_double);
  s.compression_ratio = to_limit(item("compression_ratio"));
  s.log_probability = to_limit(item("log_probability"));
  s.no_speech = to_limit(item("no_speech"));
  s.seed = static_cast<std::uint64_t>(to_integer(item("seed")));
  if (PyObject* const voice = item("voice"); voice != Py_None) s.voice = value_of<VoiceDetector>(voice);
  s.voice_settings = read_voice_settings(item("voice_settings"));
  return s;
}

Object word(const SpeechWord& w) { return tuple(number(w.start), number(w.end), text(w.text), number(w.probability)); }

Object segment(const SpeechSegment& s) {
  return tuple(number(s.start), number(s.end), text(s.text), list_of(s.tokens, [](std::uint32_t id) { return whole(id); }),
               number(s.temperature), number(s.log_probability), number(s.compression_ratio), number(s.no_speech),
               list_of(s.words, word));
}

// The samples of an array float32[samples].
std::span<const float> samples_of(const Value& value) {
  if (!value.is_tensor() || value.tensor().dtype() != DataType::float32 || value.tensor().rank() != 1) {
    fail(ErrorCode::invalid_argument,
         "sound is the path or the bytes of a file, or an array float32[samples] of one channel; received {}",
         value.is_tensor() ? value.tensor().type_string() : "no array");
  }
  const Tensor& t = value.tensor();
  return t.values<float>();
}

// What `of_path`, `of_bytes` and `of_samples` make of a path, bytes or an array; none of them holds the interpreter.
template <class OfPath, class OfBytes, class OfSamples>
auto heard(PyObject* sound, const OfPath& of_path, const OfBytes& of_bytes, const OfSamples& of_samples) {
  if (PyUnicode_Check(sound) != 0) {
    const std::string path = to_text(sound);
    return interruptible([&] { return of_path(path); });
  }
  if (PyBytes_Check(sound) != 0) {
    const std::span<const char> bytes(PyBytes_AsString(sound), static_cast<std::size_t>(PyBytes_Size(sound)));
    return interruptible([&] { return of_bytes(std::as_bytes(bytes)); });
  }
  Buffers buffers;
  const Value value = to_value(sound, {"sound", DataType::float32}, buffers);
  const std::span<const float> samples = samples_of(value);
  return interruptible([&] { return of_samples(samples); });
}

// transcribe(path, bytes or array, rate of an array, settings, function or None)
Object transcribe(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 4);
  const Transcriber model = value_of<Transcriber>(self);
  PyObject* const sound = argument(arguments, 0);
  const int rate = to_int(argument(arguments, 1));
  const TranscribeSettings settings = read_settings(argument(arguments, 2));
  Callback callback(argument(arguments, 3));
  OnSegment on_segment;
  if (callback.wanted()) {
    on_segment = [&](const SpeechSegment& s) { return callback.go_on([&](const Object& f) { return f.call(segment(s)); }); };
  }
  const Transcript all = heard(
      sound, [&](const std::string& path) { return model.transcribe(path, settings, on_segment); },
      [&](std::span<const std::byte> bytes) { return model.transcribe_bytes(bytes, settings, on_segment); },
      [&](std::span<const float> samples) { return model.transcribe(samples, rate, settings, on_segment); });
  callback.check();
  Object dict = new_dict();
  set(dict, "text", text(all.text));
  set(dict, "language", text(all.language));
  set(dict, "language_probability", number(all.language_probability));
  set(dict, "duration", number(all.duration));
  set(dict, "segments", list_of(all.segments, segment));
  return dict;
}

// detect(path, bytes or array, rate of an array, settings): [(start, end)]
Object detect(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 3);
  const VoiceDetector detector = value_of<VoiceDetector>(self);
  const int rate = to_int(argument(arguments, 1));
  const VoiceSettings settings = read_voice_settings(argument(arguments, 2));
  const std::vector<SpeechInterval> found = heard(
      argument(arguments, 0), [&](const std::string& path) { return detector.detect(path, settings); },
      [&](std::span<const std::byte> bytes) { return detector.detect_bytes(bytes, settings); },
      [&](std::span<const float> samples) { return detector.detect(samples, rate, settings); });
  return list_of(found, [](const SpeechInterval& i) { return tuple(number(i.start), number(i.end)); });
}

Object languages(PyObject* self, PyObject*) { return texts(value_of<Transcriber>(self).languages()); }
Object rate(PyObject* self, PyObject*) { return whole(value_of<Transcriber>(self).rate()); }

// A piece of speech from a tuple that begins with start, end and text.
template <class Piece>
Piece piece_of(PyObject* given) {
  Piece piece;
  piece.start = to_double(argument(given, 0));
  piece.end = to_double(argument(given, 1));
  piece.text = to_text(argument(given, 2));
  return piece;
}

// subtitles("srt" or "vtt", segments: (start, end, text, words: (start, end, text)))
Object subtitles(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const std::string format = to_text(argument(arguments, 0));
  Transcript all;
  all.segments = to_list(argument(arguments, 1), [](PyObject* given) {
    expect_arguments(given, 4);
    SpeechSegment s = piece_of<SpeechSegment>(given);
    s.words = to_list(argument(given, 3), piece_of<SpeechWord>);
    return s;
  });
  return text(format == "srt" ? speech::as_srt(all) : speech::as_vtt(all));
}

PyMethodDef transcriber_methods[] = {
    {"transcribe", &entry<transcribe>, METH_VARARGS, "transcribe($self, sound, rate, settings, on_segment, /)\n--\n\n"},
    {"languages", &entry<languages>, METH_NOARGS, "languages($self, /)\n--\n\n"},
    {"rate", &entry<rate>, METH_NOARGS, "rate($self, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef detector_methods[] = {{"detect", &entry<detect>, METH_VARARGS, "detect($self, sound, rate, settings, /)\n--\n\n"},
                                  {nullptr, nullptr, 0, nullptr}};
PyMethodDef speech_functions[] = {
    {"load", &entry<load<Transcriber>>, METH_VARARGS, "load($module, path, session, /)\n--\n\n"},
    {"load_voice", &entry<load<VoiceDetector>>, METH_VARARGS, "load_voice($module, path, session, /)\n--\n\n"},
    {"subtitles", &entry<subtitles>, METH_VARARGS, "subtitles($module, format, segments, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

Object make_speech(PyObject*, PyObject*) {
  Object module = new_module<speech_functions>("sardonyx._sardonyx.speech");
  add_class<Transcriber>(module, "Transcriber", "sardonyx._sardonyx.Transcriber", transcriber_methods);
  add_class<VoiceDetector>(module, "VoiceDetector", "sardonyx._sardonyx.VoiceDetector", detector_methods);
  return module;
}

}  // namespace sdx::python
