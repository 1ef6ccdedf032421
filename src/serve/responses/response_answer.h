#pragma once
// Turns tokens into a response, in the form that clients of /v1/responses read.

#include <functional>
#include <string>

#include "serve/openai/chat/single_answer.h"
#include "serve/responses/requests.h"

namespace sdx::serve::responses {

struct ResponseOptions {
  std::string id;
  std::int64_t created = 0;  // seconds since 1970
  std::set<std::string> custom_tools;
  openai::Json echo;                                   // fields that the response repeats
  std::function<void(const openai::Json&)> completed;  // gets the whole response, to store it
};

// Used by one thread at a time.
class ResponseAnswer final : public openai::SingleAnswer {
 public:
  ResponseAnswer(const openai::PreparedChat& prepared, const openai::ChatRequest& request, ResponseOptions options);

  std::string begin() override;
  void finish(const Generation& generation, std::string& out) override;
  std::string whole(const Generation& generation) override;
  std::string failure(const openai::ApiError& error) override;

 private:
  enum class Open { none, reasoning, message, call };
  void write(const AnswerEvent& event, std::string& out) override;
  void open(Open kind, openai::Json item, std::string& out);
  void close(std::string_view status, std::string& out);
  void close_text(std::string& out);
  void close_call(std::string& out);
  void add_delta(std::string_view event, const std::string& text, std::string& out);
  void event(std::string_view type, openai::Json fields, std::string& out);
  openai::Json place() const;
  openai::Json call_item(const ToolCall& call, bool whole) const;
  openai::Json response(std::string_view status) const;
  openai::Json ended(const Generation& generation, openai::Json output) const;

  ResponseOptions options_;
  std::string model_;
  Open open_ = Open::none;
  openai::Json item_;                           // that is open in the stream
  std::string text_, scores_;                   // of it
  std::string place_text_;                      // its fields in the events of its parts
  openai::Json items_ = openai::Json::array();  // that are whole
  std::int64_t sequence_ = 0;
};

}  // namespace sdx::serve::responses
