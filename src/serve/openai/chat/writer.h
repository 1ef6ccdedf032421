#pragma once
// Turns the tokens of a chat's answer into the text that its client reads.

#include <string>

#include <sdx/text.hpp>

#include "serve/openai/error.h"

namespace sdx::serve::openai {

// Used by one thread at a time.
class ChatWriter {
 public:
  ChatWriter() = default;
  virtual ~ChatWriter() = default;
  ChatWriter(const ChatWriter&) = delete;
  ChatWriter& operator=(const ChatWriter&) = delete;

  // The beginning of a stream.
  virtual std::string begin() = 0;
  // A token came. Appends the events of a stream to `out`; false ends this answer.
  virtual bool add(const GeneratedToken& token, std::string& out) = 0;
  // The rest of a stream.
  virtual void finish(const Generation& generation, std::string& out) = 0;
  // Or the whole.
  virtual std::string whole(const Generation& generation) = 0;
  // Whether answers ended without add(), because the engine was stopped.
  virtual bool cut_short(const Generation& generation) const = 0;
  // The event that ends a stream with an error; "": that of the interface's ReplyForm.
  virtual std::string failure(const ApiError& /*error*/) { return {}; }
};

}  // namespace sdx::serve::openai
