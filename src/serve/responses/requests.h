#pragma once
// Requests for responses, parsed, checked and translated to a chat. docs/serve/interfaces.md lists their fields.

#include <set>
#include <string>

#include "serve/openai/requests.h"
#include "serve/responses/store.h"

namespace sdx::serve::responses {

struct ResponseRequest {
  openai::ChatRequest chat;
  std::set<std::string> custom_tools;          // whose input is a text, not an object
  openai::Json input = openai::Json::array();  // this turn's items, with ids
  openai::Json echo = openai::Json::object();  // fields of the request that the response repeats
  TurnPtr previous;
  std::set<std::string> hosted_tools;  // types of tools that OpenAI's servers run, and this one does not
  bool store = true;
};

// Throws ApiError. `owner`: the name of the request's key.
ResponseRequest read_response_request(const openai::Json& body, const Store& store, const std::string& owner);

// Parts of it: the messages of items, and the tools.
openai::Json messages_of(const openai::Fields& fields, const openai::Json& items, const std::string& instructions);
void read_tools(openai::Fields& fields, ResponseRequest& to);

}  // namespace sdx::serve::responses
