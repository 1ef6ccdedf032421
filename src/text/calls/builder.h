#pragma once
// The results of a parser, as events and as a whole.

#include <sdx/tool_calls.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sdx::text {

inline constexpr std::size_t kMostCalls = 128;
inline constexpr std::size_t kMostName = 256;  // bytes

class AnswerBuilder {
 public:
  explicit AnswerBuilder(std::size_t id_length, std::string id_prefix)
      : id_length_(id_length), id_prefix_(std::move(id_prefix)) {}

  // White space at the end waits: in front of a call, or at the end of reasoning, it goes.
  void content(std::string_view text) { say(AnswerEvent::Kind::content, text); }
  void reasoning(std::string_view text) { say(AnswerEvent::Kind::reasoning, text); }
  // White space that comes next in this part is left out.
  void skip_blanks() { at_start_ = true; }
  void drop_blanks() { blanks_.clear(); }
  // Adds the blanks that were held back.
  void keep_blanks();

  bool can_begin() const { return answer_.calls.size() < kMostCalls; }
  // Id "": one is made up.
  void begin(std::string_view name, std::string_view id);
  void arguments(std::string_view text);
  // `whole`: the call's closing mark was seen, if its format has one. Arguments that never came are {}.
  void end(bool whole);
  bool in_call() const { return in_call_; }

  std::vector<AnswerEvent> take() { return std::exchange(events_, {}); }
  const ParsedAnswer& answer() const { return answer_; }

 private:
  void say(AnswerEvent::Kind kind, std::string_view text);
  void append(AnswerEvent::Kind kind, std::string_view text);
  std::string made_up_id() const;

  std::size_t id_length_;
  std::string id_prefix_;
  ParsedAnswer answer_;
  std::vector<AnswerEvent> events_;
  std::string blanks_;
  AnswerEvent::Kind blanks_of_ = AnswerEvent::Kind::content;
  bool at_start_ = false, in_call_ = false;
};

inline constexpr std::string_view kBlanks = " \n\r\t";
inline bool is_blank(char c) { return kBlanks.find(c) != std::string_view::npos; }

// May a call have this name? At most 256 bytes of UTF-8, no blanks, quotes, brackets or control characters.
bool good_name(std::string_view name);

}  // namespace sdx::text
