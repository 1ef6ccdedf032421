// Triton's generate extension: text in, text out, of language models.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "serve/inference/infer.h"
#include "serve/inference/routes.h"

namespace sdx::serve {
namespace {

using nlohmann::json;

struct GenerateRequest {
  std::string id, text;
  GenerationSettings settings;
};

std::string dumped(const json& document) { return document.dump(-1, ' ', false, json::error_handler_t::replace); }

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
      fail(ErrorCode::invalid_argument, "\"stop\" is a text, or a list of at most 16 texts");
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

GenerateRequest read_request(std::string_view body, const LanguageModel& model) {
  const json document = json::parse(body, nullptr, false);
  if (!document.is_object()) fail(ErrorCode::invalid_argument, "the request is no JSON object");
  GenerateRequest out;
  out.settings.sampling = model.info().defaults;
  bool text = false;
  const auto read = [&](const std::string& key, const json& value) {
    if (key == "stream" || key == "exclude_input_in_output" || key == "return_full_text") return;  // the route decides
    if (!read_parameter(key, value, out.settings)) fail(ErrorCode::invalid_argument, "there is no parameter \"{}\"", key);
  };
  for (const auto& [key, value] : document.items()) {
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
  return out;
}

// What one request's callbacks share.
struct Running {
  ModelPtr model;
  ResponderPtr responder;
  std::string id;
  bool stream = false, started = false;

  std::string answer(std::string_view text) const {
    json out{{"model_name", model->name}, {"model_version", model->version}, {"text_output", text}};
    if (!id.empty()) out["id"] = id;
    return dumped(out);
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
    } else {
      responder->respond(json_response(answer(result->choices.at(0).text)));
    }
  }
};

void generate(Catalog& catalog, const RequestPtr& request, const ResponderPtr& responder, bool stream) {
  request->notes->set_model(request->part("model"));
  auto running = std::make_shared<Running>();
  running->model = model_of(catalog, *request);
  if (!running->model->language) {
    fail(ErrorCode::invalid_argument, "model '{}' is no language model: POST …/infer", running->model->name);
  }
  const LanguageService& service = *running->model->language;
  GenerateRequest read = read_request(request->body, service.model);
  running->id = read.id;
  running->responder = responder;
  running->stream = stream;
  const Tokenizer& words = service.model.tokenizer();
  const Encoding encoding = words.encode(read.text);
  GenerationRequest asked;
  asked.prompt.assign(encoding.ids.begin(), encoding.ids.end());
  asked.settings = std::move(read.settings);
  asked.settings.detokenize = [&words](std::span<const TokenId> ids) { return words.decode(ids); };
  if (stream) {
    asked.on_token = [running](const GeneratedToken& token) {
      return token.text.empty() ? !running->responder->gone() : running->send(running->answer(token.text));
    };
  }
  asked.on_end = [running, request](const Generation* result, const std::exception_ptr& error) {
    if (result != nullptr) request->notes->set_tokens(result->prompt_tokens, result->completion_tokens);
    running->end(result, error);
  };
  const GenerationTask task = service.engine->submit(std::move(asked));
  responder->on_gone([task] { task.cancel(); });
}

}  // namespace

void add_generate_routes(Router& router, Catalog& catalog) {
  for (const bool stream : {false, true}) {
    add_for_model(router, "POST", stream ? "/generate_stream" : "/generate", 16 << 20,
                  AsyncHandler([&catalog, stream](const RequestPtr& request, const ResponderPtr& responder) {
                    generate(catalog, request, responder, stream);
                  }));
  }
}

}  // namespace sdx::serve
