#pragma once
// The states of an AnswerParser. Each step takes something from the text that has come, changes the state, or waits for more.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/calls/builder.h"
#include "text/calls/json_scan.h"
#include "text/calls/loose_scan.h"

namespace sdx::text {

// The functions that were offered: names, and the schemas of their parameters.
struct OfferedTools {
  std::vector<std::string> names;
  std::vector<nlohmann::ordered_json> parameters;  // an object each; null: none was given
};
// Throws Error(invalid_argument) for text that is not a list of functions. "" gives none.
OfferedTools read_tools(std::string_view json);

// The position of a mark in a text, or of the end of the text if that may begin one.
struct MarkFound {
  std::size_t at = 0;     // how much of the text is before it
  std::size_t which = 0;  // of the marks
  bool whole = false;     // false: a beginning at most, at the end; `at` is the text's size where there is none
};
MarkFound find_mark(std::string_view text, const std::vector<std::string_view>& marks);

// The marks that a format's calls begin with, and whether calls may stand at the beginning of an answer without any.
std::vector<std::string_view> call_marks(ToolCallFormat format);
bool reads_bare_calls(ToolCallFormat format);

// Marks of parameters in tags.
struct TagWords {
  std::string_view parameter, value_end, call_end;
  bool attributes = false;  // names are attributes in quotes, and line ends belong to values
};

class AnswerStates {
 public:
  AnswerStates(const AnswerFormat& format, std::string_view tools, std::string_view prompt);
  AnswerStates(const AnswerStates&) = delete;  // parts point to others
  void add(std::string_view text);
  void finish();
  AnswerBuilder& out() { return out_; }

 private:
  enum class State {
    start,
    reasoning,
    content,
    look,
    object,
    list,
    after_call,
    name,
    arguments,
    value,
    xml,
    xml_text,
    xml_value,
    pairs,
    pair,
    loose,
    loose_value,
    python,
    header,
    body
  };

 public:
  // The kind of text that a mark announces.
  enum class Opener {
    tool_call,
    function_tag,
    python_tag,
    mistral,
    list,
    fence,
    deepseek,
    kimi,
    section,
    functionary,
    loose,
    python,
    invoke,
    dsml,
    channel
  };
  struct Mark {
    std::string_view text;
    Opener opener;
  };
  // Adds the marks of a format. `tools`: some were offered.
  static void add_marks(ToolCallFormat format, bool tools, std::vector<Mark>& to);

 private:
  bool step();
  bool start();
  bool reasoning();
  bool content();
  bool look();
  bool look_at(char next);
  bool object();
  bool list();
  bool after_call();
  bool name();
  bool mistral_name();
  bool named(std::string_view name, std::string_view id, std::size_t taken);
  bool arguments();
  bool value();
  bool xml();
  bool xml_text();
  bool xml_value();
  bool pairs();
  bool pair();
  bool loose();
  bool loose_value();
  bool python();
  bool next_invoke();
  void begin_tagged(std::string_view name);
  // `text`: whether the value is one, where the call says so.
  void begin_tagged_value(const std::string& key, std::optional<bool> text = {});
  bool header();
  bool body();
  void end_of_states();

  bool uses(ToolCallFormat format) const { return format_.calls == format || format_.calls == ToolCallFormat::detect; }
  std::string_view rest() const { return std::string_view(pending_).substr(at_); }
  void take(std::size_t bytes) { at_ += bytes; }
  // The same, but remembered: it becomes content if there is no call.
  void take_lead(std::size_t bytes);
  // Is `mark` there (1), perhaps its beginning (0: wait), or not (-1)?
  int there(std::string_view mark) const;
  bool skip_blanks();  // into the lead; false: wait for more
  bool fail_look();
  bool go(State state) {
    state_ = state;
    return true;
  }
  void begin_object(bool bare);
  void end_call(bool whole);

  AnswerFormat format_;
  OfferedTools tools_;
  AnswerBuilder out_;
  std::vector<Mark> marks_;
  std::vector<std::string_view> mark_texts_;
  std::string pending_;
  std::size_t at_ = 0;
  State state_ = State::start;
  Opener opener_ = Opener::tool_call;
  std::string lead_;
  bool ending_ = false, reasoning_over_ = false, in_list_ = false, bare_ = false, harmony_call_ = false,
       harmony_reasoning_ = false;
  std::optional<ObjectCall> object_;
  ValueScan scan_;
  std::string name_, id_;
  LooseScan loose_;
  // Parameters in tags.
  const nlohmann::ordered_json *properties_ = nullptr, *schema_ = nullptr;
  std::string xml_value_;
  std::string_view value_end_;
  const TagWords* words_ = nullptr;
  std::size_t members_ = 0;
  bool text_value_ = false, at_value_start_ = false;
};

// A value that a model wrote as plain text, as the JSON that its schema (or null) asks for.
std::string json_of_text(std::string_view text, const nlohmann::ordered_json* schema);
// Whether the schema demands a text, so that any value is one.
bool wants_text(const nlohmann::ordered_json* schema);

}  // namespace sdx::text
