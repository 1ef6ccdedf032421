#pragma once
// Handlers of routes that report errors in the form of their interface.

#include <utility>

#include "serve/http/router.h"
#include "serve/openai/error.h"

namespace sdx::serve::openai {

using ErrorForm = Response (*)(const ApiError& error);

template <class Answer>
Handler at_once(Answer answer, ErrorForm form = error_response) {
  return [answer = std::move(answer), form](const Request& request) {
    try {
      return answer(request);
    } catch (...) {
      return form(current_api_error());
    }
  };
}

template <class Answer>
AsyncHandler later(Answer answer, ErrorForm form = error_response) {
  return [answer = std::move(answer), form](const RequestPtr& request, const ResponderPtr& responder) {
    try {
      answer(request, responder);
    } catch (...) {
      responder->respond(form(current_api_error()));
    }
  };
}

// A route that runs on the pool and takes a body.
inline Route pool_route(const char* method, const char* pattern, std::uint64_t body_bytes, ErrorShape shape = api_error_shape) {
  Route out;
  out.method = method;
  out.pattern = pattern;
  out.body_bytes = body_bytes;
  out.shape = shape;
  return out;
}

// A route that answers at once.
inline Route quick_route(const char* method, const char* pattern, ErrorShape shape = api_error_shape) {
  Route out;
  out.method = method;
  out.pattern = pattern;
  out.runs = Runs::at_once;
  out.shape = shape;
  return out;
}

}  // namespace sdx::serve::openai
