// The compiled half of sardonyx.text: models.

#include "text_model.h"

#include <algorithm>
#include <sdx/embedding.hpp>
#include <sdx/text.hpp>

#include "arrays.h"
#include "callback.h"
#include "entry.h"
#include "options.h"
#include "signals.h"

namespace sdx::python {
namespace {

TokenId to_token(PyObject* object) {
  const std::int64_t id = to_integer(object);
  if (id < 0 || id > 0xFFFFFFFFLL) fail(ErrorCode::invalid_argument, "{} is not a token's number", id);
  return static_cast<TokenId>(id);
}

// load_model(path, options of the session, max_context, adapters: (path, scale), accuracy_level)
Object load_model(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 5);
  const std::string path = to_text(argument(arguments, 0));
  LanguageModelOptions options;
  options.session = to_options(argument(arguments, 1));
  options.max_context = to_integer(argument(arguments, 2));
  options.loras = to_list(argument(arguments, 3), [](PyObject* pair) {
    const auto [adapter, scale] = to_pair(pair, to_text, to_double);
    return LoraAdapter{adapter, static_cast<float>(scale)};
  });
  options.accuracy_level = to_int(argument(arguments, 4));
  return instance_of(unlocked([&] { return LanguageModel::load(path, options); }));
}

// The named setting; borrowed, or null if it is missing or None.
PyObject* item(PyObject* settings, const char* name) {
  PyObject* found = PyDict_GetItemString(settings, name);
  return found == Py_None ? nullptr : found;
}

void read_sampling(PyObject* settings, SamplingSettings& to) {
  const auto real = [&](const char* name, float& value) {
    if (PyObject* x = item(settings, name)) value = static_cast<float>(to_double(x));
  };
  real("temperature", to.temperature);
  real("top_p", to.top_p);
  real("min_p", to.min_p);
  real("typical_p", to.typical_p);
  real("repetition_penalty", to.repetition_penalty);
  real("presence_penalty", to.presence_penalty);
  real("frequency_penalty", to.frequency_penalty);
  if (PyObject* x = item(settings, "top_k")) to.top_k = to_integer(x);
  for (const char* name : {"temperature", "top_p", "min_p", "typical_p", "top_k"}) {
    if (item(settings, name) != nullptr) to.greedy = false;  // settings of sampling turn greedy decoding off
  }
  if (PyObject* x = item(settings, "greedy")) to.greedy = to_truth(x);
  if (PyObject* x = item(settings, "seed")) to.seed = static_cast<std::uint64_t>(to_integer(x));
  if (PyObject* x = item(settings, "logit_bias")) {
    to.logit_bias = to_list(
        x, [](PyObject* pair) { return to_pair(pair, to_token, [](PyObject* v) { return static_cast<float>(to_double(v)); }); });
  }
}

GenerationSettings read_settings(const LanguageModel& model, PyObject* settings) {
  GenerationSettings s;
  s.sampling = model.info().defaults;
  read_sampling(settings, s.sampling);
  if (PyObject* x = item(settings, "max_tokens")) s.max_tokens = to_integer(x);
  if (PyObject* x = item(settings, "min_tokens")) s.min_tokens = to_integer(x);
  if (PyObject* x = item(settings, "n")) s.n = to_int(x);
  if (PyObject* x = item(settings, "logprobs")) s.logprobs = to_int(x);
  if (PyObject* x = item(settings, "stop")) s.stop = to_list(x, to_text);
  if (PyObject* x = item(settings, "stop_tokens")) s.stop_tokens = to_list(x, to_token);
  if (PyObject* x = item(settings, "ignore_end")) s.ignore_end = to_truth(x);
  const auto small = [](std::int64_t v) { return static_cast<int>(std::clamp<std::int64_t>(v, -(1 << 20), 1 << 20)); };
  if (PyObject* x = item(settings, "lookup")) s.lookup = small(to_integer(x));
  if (PyObject* x = item(settings, "draft")) s.draft = std::make_shared<const LanguageModel>(value_of<LanguageModel>(x));
  if (PyObject* x = item(settings, "draft_tokens")) s.draft_tokens = small(to_integer(x));
  if (PyObject* x = item(settings, "beams")) s.beams = small(to_integer(x));
  if (PyObject* x = item(settings, "length_penalty")) s.length_penalty = static_cast<float>(to_double(x));
  if (PyObject* x = item(settings, "early_stopping")) s.early_stopping = to_truth(x);
  if (PyObject* x = item(settings, "keep")) s.keep = to_integer(x);
  if (PyObject* x = item(settings, "overflow")) {
    const std::string overflow = to_text(x);
    if (overflow != "error" && overflow != "slide") {
      fail(ErrorCode::invalid_argument, "overflow must be 'error' or 'slide', received '{}'", overflow);
    }
    s.overflow = overflow == "slide" ? ContextOverflow::slide : ContextOverflow::error;
  }
  const std::pair<const char*, OutputFormat> formats[] = {
      {"json_schema", OutputFormat::json_schema}, {"grammar", OutputFormat::gbnf}, {"regex", OutputFormat::regex}};
  for (const auto& [name, format] : formats) {
    PyObject* const x = item(settings, name);
    if (x == nullptr) continue;
    if (s.mask) fail(ErrorCode::invalid_argument, "only one of json_schema, grammar and regex can be kept to");
    s.mask = model.constrain(format, to_text(x));
  }
  return s;
}

Object logprob(const TokenLogprob& p) { return tuple(whole(p.id), number(static_cast<double>(p.logprob))); }

Object choice(const Choice& c) {
  Object dict = new_dict();
  set(dict, "text", text(c.text));
  set(dict, "tokens", list_of(c.tokens, whole<TokenId>));
  set(dict, "finish_reason", text(c.finish_reason));
  set(dict, "stop", text(c.stop));
  set(dict, "logprobs", list_of(c.logprobs, logprob));
  set(dict, "score", number(c.score));
  set(dict, "top_logprobs", list_of(c.top_logprobs, [](const std::vector<TokenLogprob>& top) { return list_of(top, logprob); }));
  return dict;
}

// generate(text, special tokens are added, settings, function or None, tools or None: marks of calls stay in the text)
Object generate(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 5);
  const LanguageModel model = value_of<LanguageModel>(self);  // a copy: another thread may unload
  const std::string prompt = to_text(argument(arguments, 0));
  const bool special = to_truth(argument(arguments, 1));
  GenerationSettings settings = read_settings(model, argument(arguments, 2));
  Callback callback(argument(arguments, 3));
  OnToken on_token;
  if (callback.wanted()) {
    on_token = [&](const GeneratedToken& token) {
      return callback.go_on([&](const Object& f) { return f.call(whole(token.choice), whole(token.id), text(token.text)); });
    };
  }
  if (to_truth(argument(arguments, 4))) model.prepare_answer(settings, answer_format(model.chat_template()));
  model.prepare_answer(settings);
  const Generation g = interruptible([&] {
    return model.generate(std::span<const TokenId>(model.tokenizer().encode(prompt, special).ids), settings, on_token);
  });
  callback.check();
  Object dict = new_dict();
  set(dict, "choices", list_of(g.choices, choice));
  set(dict, "prompt_tokens", number(g.prompt_tokens));
  set(dict, "completion_tokens", number(g.completion_tokens));
  set(dict, "drafted_tokens", number(g.drafted_tokens));
  set(dict, "accepted_tokens", number(g.accepted_tokens));
  set(dict, "first_token_ms", number(g.first_token_ms));
  set(dict, "prompt_tokens_per_s", number(g.prompt_tokens_per_s));
  set(dict, "tokens_per_s", number(g.tokens_per_s));
  return dict;
}

Object unload(PyObject* self, PyObject*) {
  LanguageModel last = value_of<LanguageModel>(self);
  value_of<LanguageModel>(self).unload();
  unlocked([&] { return last.unload(), 0; });  // freeing takes a while
  return Object::none();
}

Object state(PyObject* self, PyObject*) {
  return text(value_of<LanguageModel>(self).state() == ModelState::loaded ? "loaded" : "unloaded");
}

// embed_texts(texts)
Object embed_texts(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const LanguageModel model = value_of<LanguageModel>(self);
  const std::vector<std::string> given = to_list(argument(arguments, 0), to_text);
  return to_python(Value(interruptible([&] { return model.embed(given); })));
}

AnswerFormat read_format(PyObject* name, PyObject* source) {
  AnswerFormat format = source == Py_None ? AnswerFormat() : answer_format(to_text(source));
  if (name != Py_None) format.calls = tool_call_format(to_text(name));
  return format;
}

Object event(const AnswerEvent& e) {
  constexpr const char* kinds[] = {"content", "reasoning", "call_begin", "arguments", "call_end"};
  Object dict = new_dict();
  set(dict, "kind", text(kinds[static_cast<int>(e.kind)]));
  set(dict, "index", number(static_cast<std::int64_t>(e.index)));
  set(dict, "text", text(e.text));
  set(dict, "id", text(e.id));
  set(dict, "name", text(e.name));
  set(dict, "complete", truth(e.complete));
  return dict;
}

// make_parser(name of a format or None, a template's text or None, tools, prompt)
Object make_parser(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  const AnswerFormat format = read_format(argument(arguments, 0), argument(arguments, 1));
  const std::string tools = to_text(argument(arguments, 2)), prompt = to_text(argument(arguments, 3));
  return instance_of(AnswerParser(format, tools, prompt));
}

Object add_to_answer(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  return list_of(value_of<AnswerParser>(self).add(to_text(argument(arguments, 0))), event);
}

Object finish_answer(PyObject* self, PyObject*) { return list_of(value_of<AnswerParser>(self).finish(), event); }

Object parsed(PyObject* self, PyObject*) {
  const ParsedAnswer& answer = value_of<AnswerParser>(self).answer();
  Object dict = new_dict();
  set(dict, "content", text(answer.content));
  set(dict, "reasoning", text(answer.reasoning));
  set(dict, "calls", list_of(answer.calls, [](const ToolCall& c) {
        return tuple(text(c.id), text(c.name), text(c.arguments), truth(c.complete));
      }));
  return dict;
}

// perplexity(text or tokens, window, stride)
Object perplexity(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 3);
  const LanguageModel model = value_of<LanguageModel>(self);
  PyObject* const given = argument(arguments, 0);
  const bool is_text = PyUnicode_Check(given) != 0;
  const std::string words = is_text ? to_text(given) : std::string();
  const std::vector<TokenId> ids = is_text ? std::vector<TokenId>() : to_list(given, to_token);
  PerplexitySettings settings;
  settings.window = to_integer(argument(arguments, 1));
  settings.stride = to_integer(argument(arguments, 2));
  const Perplexity p = interruptible([&] {
    return is_text ? model.perplexity(std::string_view(words), settings)
                   : model.perplexity(std::span<const TokenId>(ids), settings);
  });
  Object dict = new_dict();
  set(dict, "perplexity", number(p.perplexity));
  set(dict, "nll", number(p.nll));
  set(dict, "tokens", number(p.tokens));
  set(dict, "scored", number(p.scored));
  set(dict, "windows", number(p.windows));
  set(dict, "seconds", number(p.seconds));
  set(dict, "tokens_per_s", number(p.tokens_per_s));
  return dict;
}

Object info(PyObject* self, PyObject*) {
  const LanguageModel& model = value_of<LanguageModel>(self);
  const LanguageModelInfo& i = model.info();
  Object dict = new_dict();
  set(dict, "format", text(i.format));
  set(dict, "architecture", text(i.architecture));
  set(dict, "context", number(i.context));
  set(dict, "vocabulary", number(i.vocabulary));
  set(dict, "layers", number(i.layers));
  set(dict, "eos", list_of(i.eos, whole<TokenId>));
  set(dict, "load_ms", number(i.load_ms));
  const Report report = model.report();
  set(dict, "providers", texts(report.providers));
  return dict;
}

// load_embedder(path, options of the session, pooling, normalize or None, max_length, batch, dimensions, accuracy_level)
Object load_embedder(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 8);
  const std::string path = to_text(argument(arguments, 0));
  EmbedderOptions options;
  options.session = to_options(argument(arguments, 1));
  options.pooling = to_list(argument(arguments, 2), to_text);
  if (argument(arguments, 3) != Py_None) options.normalize = to_truth(argument(arguments, 3));
  options.max_length = to_int(argument(arguments, 4));
  options.batch = to_int(argument(arguments, 5));
  options.dimensions = to_int(argument(arguments, 6));
  options.accuracy_level = to_int(argument(arguments, 7));
  return instance_of(unlocked([&] { return TextEmbedder::load(path, options); }));
}

// embed(texts, name of a prompt)
Object embed(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const TextEmbedder& embedder = value_of<TextEmbedder>(self);
  const std::vector<std::string> given = to_list(argument(arguments, 0), to_text);
  const std::string prompt = to_text(argument(arguments, 1));
  return to_python(Value(interruptible([&] { return embedder.embed(std::span(given), prompt); })));
}

// load_reranker(path, options of the session, max_length, batch, accuracy_level)
Object load_reranker(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 5);
  const std::string path = to_text(argument(arguments, 0));
  EmbedderOptions options;
  options.session = to_options(argument(arguments, 1));
  options.max_length = static_cast<int>(std::min<std::int64_t>(to_integer(argument(arguments, 2)), 1 << 30));
  options.batch = static_cast<int>(std::min<std::int64_t>(to_integer(argument(arguments, 3)), 1 << 30));
  options.accuracy_level = to_int(argument(arguments, 4));
  return instance_of(unlocked([&] { return Reranker::load(path, options); }));
}

// score(query, documents)
Object score(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const Reranker& reranker = value_of<Reranker>(self);
  const std::string query = to_text(argument(arguments, 0));
  const std::vector<std::string> documents = to_list(argument(arguments, 1), to_text);
  const std::vector<double> scores = interruptible([&] { return reranker.score(query, std::span(documents)); });
  return list_of(scores, [](double x) { return number(x); });
}

PyMethodDef parser_methods[] = {{"add", &entry<add_to_answer>, METH_VARARGS, "add($self, text, /)\n--\n\n"},
                                {"finish", &entry<finish_answer>, METH_NOARGS, "finish($self, /)\n--\n\n"},
                                {"answer", &entry<parsed>, METH_NOARGS, "answer($self, /)\n--\n\n"},
                                {nullptr, nullptr, 0, nullptr}};
PyMethodDef reranker_methods[] = {{"score", &entry<score>, METH_VARARGS, "score($self, query, documents, /)\n--\n\n"},
                                  {nullptr, nullptr, 0, nullptr}};
PyMethodDef model_methods[] = {
    {"generate", &entry<generate>, METH_VARARGS, "generate($self, prompt, special, settings, on_token, calls, /)\n--\n\n"},
    {"unload", &entry<unload>, METH_NOARGS, "unload($self, /)\n--\n\n"},
    {"state", &entry<state>, METH_NOARGS, "state($self, /)\n--\n\n"},
    {"embed", &entry<embed_texts>, METH_VARARGS, "embed($self, texts, /)\n--\n\n"},
    {"perplexity", &entry<perplexity>, METH_VARARGS, "perplexity($self, text, window, stride, /)\n--\n\n"},
    {"info", &entry<info>, METH_NOARGS, "info($self, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};
PyMethodDef embedder_methods[] = {{"embed", &entry<embed>, METH_VARARGS, "embed($self, texts, prompt, /)\n--\n\n"},
                                  {nullptr, nullptr, 0, nullptr}};
PyMethodDef functions[] = {
    {"load_model", &entry<load_model>, METH_VARARGS,
     "load_model($module, path, session, max_context, adapters, accuracy_level, /)\n--\n\n"},
    {"make_parser", &entry<make_parser>, METH_VARARGS, "make_parser($module, format, template, tools, prompt, /)\n--\n\n"},
    {"load_reranker", &entry<load_reranker>, METH_VARARGS,
     "load_reranker($module, path, session, max_length, batch, accuracy_level, /)\n--\n\n"},
    {"load_embedder", &entry<load_embedder>, METH_VARARGS,
     "load_embedder($module, path, session, pooling, normalize, max_length, batch, dimensions, accuracy_level, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

void add_text_models(const Object& module) {
  check(PyModule_AddFunctions(module.get(), functions));
  add_class<LanguageModel>(module, "LanguageModel", "sardonyx._sardonyx.LanguageModel", model_methods);
  add_class<AnswerParser>(module, "AnswerParser", "sardonyx._sardonyx.AnswerParser", parser_methods);
  add_class<Reranker>(module, "Reranker", "sardonyx._sardonyx.Reranker", reranker_methods);
  add_class<TextEmbedder>(module, "TextEmbedder", "sardonyx._sardonyx.TextEmbedder", embedder_methods);
}

}  // namespace sdx::python
