#pragma once
// Requests for messages, parsed, checked and translated to a chat. docs/serve/interfaces.md lists their fields.

#include "serve/openai/requests.h"

namespace sdx::serve::anthropic {

struct MessageRequest {
  openai::ChatRequest chat;
  bool thinking = false;       // the client wants to see it
  bool omit_thinking = false;  // its blocks are there, but empty
};

// All throw openai::ApiError. `counting`: the answer's fields may be missing.
MessageRequest read_message_request(const openai::Json& body, bool counting = false);

// Its fields `system` and `messages`.
void read_conversation(openai::Fields& fields, openai::ChatRequest& to);

}  // namespace sdx::serve::anthropic
