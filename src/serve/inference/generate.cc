// Text in, text out, of language models: Triton's generate extension over HTTP, and streams over gRPC with the names of its
// language backends (vLLM's, TensorRT-LLM's).

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/json_text.h"
#include "serve/inference/generate.h"
#include "serve/inference/infer.h"
#include "serve/inference/routes.h"

namespace sdx::serve {
namespace {

using nlohmann::json;

struct GenerateRequest {
  std::string id, text;
  GenerationSettings settings;
};

template <class T>
T number(const json& value, const std::string& key) {
  if (!value.is_number() || (std::is_integral_v<T> && !value.is_number_integer())) {
    fail(ErrorCode::invalid_argument, "\"{}\" must be a {}number", key, std::is_integral_v<T> ? "whole " : "");
  }
  return value.get<T>();
}

void read_stop(const json& value, std::vector<std::string>& out) {
  const json list = value.is_array() ? value : json::array({value});
  for (const json& one : list) {
    if (!one.is_string() || one.get_ref<const std::string&>().empty() || list.size() > 16) {
      fail(ErrorCode::invalid_argument, "\"stop\" must be a text, or a list of at most 16 texts");
    }
    out.push_back(one.get<std::string>());
  }
}

// Names of Triton's language backends. False for one that is not known.
bool read_parameter(const std::string& key, const json& value, GenerationSettings& s) {
  if (key == "max_tokens" || key == "max_new_tokens") {
    s.max_tokens = number<std::int64_t>(value, key);
  } else if (key == "min_tokens" || key == "min_length") {
    s.min_tokens = number<std::int64_t>(value, key);
  } else if (key == "temperature") {
    s.sampling.temperature = number<float>(value, key);
  } else if (key == "top_k" || key == "runtime_top_k") {
    s.sampling.top_k = std::max<std::int64_t>(0, number<std::int64_t>(value, key));
  } else if (key == "top_p" || key == "runtime_top_p") {
    s.sampling.top_p = number<float>(value, key);
  } else if (key == "min_p") {
    s.sampling.min_p = number<float>(value, key);
  } else if (key == "typical_p") {
    s.sampling.typical_p = number<float>(value, key);
  } else if (key == "repetition_penalty") {
    s.sampling.repetition_penalty = number<float>(value, key);
  } else if (key == "presence_penalty") {
    s.sampling.presence_penalty = number<float>(value, key);
  } else if (key == "frequency_penalty") {
    s.sampling.frequency_penalty = number<float>(value, key);
  } else if (key == "seed" || key == "random_seed") {
    s.sampling.seed = number<std::uint64_t>(value, key);
  } else if (key == "stop" || key == "stop_words") {
    read_stop(value, s.stop);
  } else {
    return false;
  }
  return true;
}

// Whether the key belongs to the route, not to the text.
bool is_left_alone(const std::string& key) {
  return key == "stream" || key == "exclude_input_in_output" || key == "return_full_text";
}

void read_named(const std::string& key, const json& value, GenerationSettings& s) {
  if (!read_parameter(key, value, s)) fail(ErrorCode::invalid_argument, "there is no parameter \"{}\"", key);
}

GenerateRequest read_request(std::string_view body, const LanguageModel& model) {
  const json document = json::parse(body, nullptr, false);
  if (!document.is_object()) fail(ErrorCode::invalid_argument, "the request is not a JSON object");
  GenerateRequest out;
  out.settings.sampling = model.info().defaults;
  bool text = false;
  const auto read = [&](const std::string& key, const json& value) {
    if (!value.is_null() && !is_left_alone(key)) read_named(key, value, out.settings);
  };
  for (const auto& [key, value] : document.items()) {
    if (value.is_null()) continue;  // values that clients write for absent settings
    if (key == "id" || key == "text_input") {
      if (!value.is_string()) fail(ErrorCode::invalid_argument, "\"{}\" must be a string", key);
      (key == "id" ? out.id : out.text) = value.get<std::string>();
      text = text || key == "text_input";
    } else if (key == "parameters") {
      if (!value.is_object()) fail(ErrorCode::invalid_argument, "\"parameters\" must be an object");
      for (const auto& [name, inner] : value.items()) read(name, inner);
    } else {
      read(key, value);
    }
  }
  if (!text) fail(ErrorCode::invalid_argument, "\"text_input\" is needed");
  constexpr std::int64_t unknown_context = 4096;
  if (out.settings.max_tokens == -1) {  // as many as fit
    out.settings.max_tokens = model.info().context > 0 ? model.info().context : unknown_context;
  }
  return out;
}

// State that the callbacks of one request share.
struct Running {
  ModelPtr model;
  ResponderPtr responder;
  std::string id;
  bool stream = false, started = false;

  std::string answer(std::string_view text) const {
    json out{{"model_name", model->name}, {"model_version", model->version}, {"text_output", text}};
    if (!id.empty()) out["id"] = id;
    return dump_json(out);
  }
  bool send(const std::string& json_text) {
    if (!started) responder->start({200, {{"Content-Type", "text/event-stream; charset=utf-8"}}, ""});
    started = true;
    return responder->write("data: " + json_text + "\n\n");
  }
  void end(const Generation* result, const std::exception_ptr& error) {
    if (error) {
      const Response response = error_answer(error);
      if (!started) return responder->respond(response);
      send(response.body);
      responder->end();
    } else if (stream) {
      if (!started) send(answer(""));
      responder->end();
    } else if (result != nullptr) {
      responder->respond(json_response(answer(result->choices.at(0).text)));
    }
  }
};

GenerationRequest engine_request(const LanguageModel& model, GenerateRequest& read) {
  const Encoding encoding = model.tokenizer().encode(read.text);
  GenerationRequest asked;
  asked.prompt.assign(encoding.ids.begin(), encoding.ids.end());
  asked.settings = std::move(read.settings);
  model.prepare_answer(asked.settings);
  return asked;
}

void generate(Catalog& catalog, const RequestPtr& request, const ResponderPtr& responder, bool stream) {
  request->notes->set_model(request->part("model"));
  auto running = std::make_shared<Running>();
  running->model = model_of(catalog, *request);
  if (!running->model->language) {
    fail(ErrorCode::invalid_argument, "model '{}' is not a language model: POST …/infer", running->model->name);
  }
  const LanguageService& service = *running->model->language;
  GenerateRequest read = read_request(request->body, service.model);
  running->id = read.id;
  running->responder = responder;
  running->stream = stream;
  std::optional<StageTimer> cutting(std::in_place, request->notes.get(), "tokenize");
  GenerationRequest asked = engine_request(service.model, read);
  cutting.reset();
  if (stream) {
    asked.on_token = [running](const GeneratedToken& token) {
      return token.text.empty() ? !running->responder->gone() : running->send(running->answer(token.text));
    };
  }
  asked.on_end = [running, request, submitted = Notes::Clock::now()](const Generation* result, const std::exception_ptr& error) {
    if (result != nullptr) {
      request->notes->set_tokens(result->prompt_tokens, result->completion_tokens);
      request->notes->add_generation(submitted, result->first_token_ms);
    }
    running->end(result, error);
  };
  const GenerationTask task = service.engine->submit(std::move(asked));
  responder->on_gone([task] { task.cancel(); });
}

// ---- Tensors instead of JSON

// The only element of an input.
json scalar_of(const Tensor& t, const std::string& name) {
  if (t.size() != 1) fail(ErrorCode::invalid_argument, "input '{}' has {} elements; expected one", name, t.size());
  switch (t.dtype()) {
    case DataType::boolean: return t.values<bool>()[0];
    case DataType::int32: return t.values<std::int32_t>()[0];
    case DataType::int64: return t.values<std::int64_t>()[0];
    case DataType::uint32: return t.values<std::uint32_t>()[0];
    case DataType::uint64: return t.values<std::uint64_t>()[0];
    case DataType::float32: return t.values<float>()[0];
    case DataType::float64: return t.values<double>()[0];
    case DataType::string: return t.values<std::string>()[0];
    default: fail(ErrorCode::invalid_argument, "input '{}' is {}, which is not supported", name, t.type_string());
  }
}

// Lists of words. Clients of TensorRT-LLM send empty words for an empty list.
json words_of(const Tensor& t, const std::string& name) {
  if (t.dtype() != DataType::string) fail(ErrorCode::invalid_argument, "input '{}' must be BYTES", name);
  json out = json::array();
  for (const std::string& word : t.values<std::string>()) {
    if (!word.empty()) out.push_back(word);
  }
  return out;
}

// Inputs of TensorRT-LLM's models that change nothing with these values, which its clients send all the time.
bool changes_nothing(const std::string& key, const json& value) {
  if (key == "bad_words") return value.empty();
  if (key == "beam_width" || key == "num_return_sequences" || key == "length_penalty") return value.is_number() && value == 1;
  if (key == "return_log_probs" || key == "return_context_logits" || key == "return_generation_logits") return value == false;
  return false;
}

struct TextRequest : GenerateRequest {
  bool stream = false;
};

void read_sampling(const std::string& text, GenerationSettings& s) {
  const json document = json::parse(text, nullptr, false);
  if (!document.is_object()) fail(ErrorCode::invalid_argument, "\"sampling_parameters\" is not a JSON object");
  for (const auto& [key, value] : document.items()) {
    if (!is_left_alone(key)) read_named(key, value, s);
  }
}

TextRequest read_inputs(const InferRequest& request, const LanguageModel& model) {
  TextRequest out;
  out.settings.sampling = model.info().defaults;
  bool text = false;
  for (const auto& [key, item] : request.inputs) {
    const Tensor& t = item.tensor();
    const bool words = key == "stop" || key == "stop_words" || key == "bad_words";
    const json value = words ? words_of(t, key) : scalar_of(t, key);
    if (key == "text_input" || key == "sampling_parameters") {
      if (!value.is_string()) fail(ErrorCode::invalid_argument, "input '{}' must be BYTES", key);
      if (key == "text_input") {
        out.text = value.get<std::string>();
        text = true;
      } else {
        read_sampling(value.get<std::string>(), out.settings);
      }
    } else if (key == "stream" || key == "streaming") {
      if (!value.is_boolean()) fail(ErrorCode::invalid_argument, "input '{}' must be BOOL", key);
      out.stream = value.get<bool>();
    } else if (!is_left_alone(key) && !changes_nothing(key, value)) {
      read_named(key, value, out.settings);
    }
  }
  if (!text) fail(ErrorCode::invalid_argument, "input 'text_input' is missing");
  for (const RequestedOutput& output : request.outputs) {
    if (output.name == "text_output") continue;
    fail(ErrorCode::invalid_argument, "there is no output '{}': text_output is the only one", output.name);
  }
  return out;
}

InferResult text_result(const ModelPtr& model, std::string text) {
  InferResult out;
  out.model = model;
  Tensor value(DataType::string, {1});
  value.mutable_values<std::string>()[0] = std::move(text);
  out.outputs.push_back({{"text_output", true}, std::move(value)});
  return out;
}

}  // namespace

bool generates(Catalog& catalog, const std::string& name, const std::string& version) {
  return catalog.get(name, version)->language != nullptr;
}

void generate(Catalog& catalog, const InferRequest& request, std::function<bool(const InferResult&, bool last)> answer,
              const std::function<void(std::function<void()>)>& cancel_with) {
  const ModelPtr model = catalog.get(request.model, request.version);
  if (!model->language) fail(ErrorCode::invalid_argument, "model '{}' is not a language model", model->name);
  TextRequest read = read_inputs(request, model->language->model);
  const bool stream = read.stream;
  GenerationRequest asked = engine_request(model->language->model, read);
  if (request.run.timeout) asked.deadline = std::chrono::steady_clock::now() + *request.run.timeout;
  const auto shared = std::make_shared<std::function<bool(const InferResult&, bool)>>(std::move(answer));
  if (stream) {
    asked.on_token = [shared, model](const GeneratedToken& token) {
      return token.text.empty() || (*shared)(text_result(model, token.text), false);
    };
  }
  asked.on_end = [shared, model, stream](const Generation* result, const std::exception_ptr& error) {
    InferResult last;
    last.model = model;
    // Ended by the engine, or because the client does not read: no whole text.
    const bool cut = !error && result->choices.at(0).finish_reason == "cancelled";
    if (!error && !cut && !stream) last = text_result(model, result->choices.at(0).text);
    last.error = cut ? std::make_exception_ptr(Error(ErrorCode::cancelled, "the text was cut short")) : error;
    (*shared)(last, true);
  };
  const GenerationTask task = model->language->engine->submit(std::move(asked));
  cancel_with([task] { task.cancel(); });
}

void add_generate_routes(Router& router, Catalog& catalog) {
  for (const bool stream : {false, true}) {
    add_for_model(router, "POST", stream ? "/generate_stream" : "/generate", 16 << 20,
                  AsyncHandler([&catalog, stream](const RequestPtr& request, const ResponderPtr& responder) {
                    generate(catalog, request, responder, stream);
                  }));
  }
}

}  // namespace sdx::serve
