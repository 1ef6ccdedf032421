#include "text/calls/parser.h"

#include <algorithm>

#include "base/error.h"

namespace sdx::text {
namespace {

using Format = ToolCallFormat;

constexpr std::size_t kMostBlanks = 64;
constexpr std::size_t kMostHeader = 1024;

const std::vector<std::string_view> kClosers{"</tool_call>",         "<|/tool_call|>",
                                             "</tool_calls>",        "```",
                                             "<｜tool▁call▁end｜>",  "<｜tool▁calls▁end｜>",
                                             "<|tool_call_end|>",    "<|tool_calls_section_end|>",
                                             "</function>",          "<|eom_id|>",
                                             "<|eot_id|>",           "<tool_call|>",
                                             "</function_calls>",    "<|python_end|>",
                                             "<|END_ACTION|>",       "</TOOLCALL>",
                                             "</minimax:tool_call>", "</｜DSML｜function_calls>"};

// Whether ids of calls must be short, as Mistral's templates insist.
bool short_ids(Format format) { return format == Format::mistral || format == Format::mistral_args; }

}  // namespace

MarkFound find_mark(std::string_view text, const std::vector<std::string_view>& marks) {
  bool begins[256] = {};
  for (const std::string_view m : marks) begins[static_cast<unsigned char>(m[0])] = true;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!begins[static_cast<unsigned char>(text[at])]) continue;
    const std::string_view tail = text.substr(at);
    bool partly = false;
    // If one mark begins with another, the longer one.
    std::size_t best = marks.size();
    for (std::size_t i = 0; i < marks.size(); ++i) {
      if (tail.starts_with(marks[i])) {
        if (best == marks.size() || marks[i].size() > marks[best].size()) best = i;
      } else if (marks[i].starts_with(tail)) {
        partly = true;
      }
    }
    if (partly) return {at, 0, false};
    if (best < marks.size()) return {at, best, true};
  }
  return {text.size(), 0, false};
}

void AnswerStates::add_marks(Format format, bool tools, std::vector<Mark>& to) {
  const auto mark = [&](std::string_view text, Opener opener) { to.push_back({text, opener}); };
  switch (format) {
    case Format::hermes:
    case Format::qwen_xml:
      mark("<tool_call>", Opener::tool_call);
      mark("<function=", Opener::function_tag);
      break;
    case Format::glm: mark("<tool_call>", Opener::tool_call); break;
    case Format::gemma4: mark("<|tool_call>", Opener::loose); break;
    case Format::llama:
      mark("<|python_tag|>", Opener::python_tag);
      mark("<function=", Opener::function_tag);
      break;
    case Format::mistral:
    case Format::mistral_args: mark("[TOOL_CALLS]", Opener::mistral); break;
    case Format::json_list:
      mark("functools[", Opener::list);
      mark("<|tool_call|>", Opener::list);
      mark("<tool_calls>", Opener::list);
      break;
    case Format::gemma:
      if (!tools) break;
      mark("```tool_code", Opener::fence);
      mark("```json", Opener::fence);
      break;
    case Format::functionary: mark(">>>", Opener::functionary); break;
    case Format::deepseek:
      mark("<｜tool▁calls▁begin｜>", Opener::section);
      mark("<｜tool▁call▁begin｜>", Opener::deepseek);
      break;
    case Format::kimi:
      mark("<|tool_calls_section_begin|>", Opener::section);
      mark("<|tool_call_begin|>", Opener::kimi);
      break;
    case Format::harmony:
      mark("<|channel|>", Opener::channel);
      mark("<|start|>", Opener::channel);
      break;
    case Format::lfm: mark("<|tool_call_start|>", Opener::python); break;
    case Format::olmo: mark("<function_calls>", Opener::python); break;
    case Format::pythonic: mark("<|python_start|>", Opener::python); break;
    case Format::command: mark("<|START_ACTION|>", Opener::list); break;
    case Format::nemotron: mark("<TOOLCALL>", Opener::list); break;
    case Format::minimax: mark("<minimax:tool_call>", Opener::invoke); break;
    case Format::dsml: mark("<｜DSML｜function_calls>", Opener::dsml); break;
    case Format::none: break;
    case Format::detect:
      for (const Format f : {Format::hermes, Format::llama, Format::mistral, Format::json_list, Format::gemma, Format::deepseek,
                             Format::kimi, Format::gemma4, Format::harmony, Format::lfm, Format::olmo, Format::pythonic,
                             Format::command, Format::nemotron, Format::minimax, Format::dsml}) {
        add_marks(f, tools, to);
      }
      break;
  }
}

bool reads_bare_calls(Format format) {
  for (const Format f :
       {Format::detect, Format::llama, Format::gemma, Format::json_list, Format::hermes, Format::mistral, Format::pythonic}) {
    if (f == format) return true;
  }
  return false;
}

std::vector<std::string_view> call_marks(Format format) {
  std::vector<AnswerStates::Mark> marks;
  AnswerStates::add_marks(format, true, marks);
  std::vector<std::string_view> texts;
  for (const AnswerStates::Mark& mark : marks) texts.push_back(mark.text);
  return texts;
}

AnswerStates::AnswerStates(const AnswerFormat& format, std::string_view tools, std::string_view prompt)
    : format_(format), tools_(read_tools(tools)), out_(short_ids(format.calls) ? 9 : 24, short_ids(format.calls) ? "" : "call_") {
  add_marks(format.calls, !tools_.names.empty(), marks_);
  for (const Mark& m : marks_) mark_texts_.push_back(m.text);
  if (format_.reasoning_begin.empty() || format_.reasoning_end.empty()) reasoning_over_ = true;
  while (!prompt.empty() && is_blank(prompt.back())) prompt.remove_suffix(1);
  if (!reasoning_over_ && prompt.ends_with(format_.reasoning_begin)) {
    state_ = State::reasoning;
    out_.skip_blanks();
  }
  if (format.calls == Format::functionary && prompt.ends_with(">>>")) {
    state_ = State::name;
    opener_ = Opener::functionary;
  }
}

void AnswerStates::take_lead(std::size_t bytes) {
  lead_ += rest().substr(0, bytes);
  take(bytes);
}

int AnswerStates::there(std::string_view mark) const {
  const std::string_view text = rest();
  if (text.starts_with(mark)) return 1;
  return !ending_ && mark.starts_with(text) ? 0 : -1;
}

bool AnswerStates::skip_blanks() {
  std::size_t n = 0;
  const std::string_view text = rest();
  while (n < text.size() && is_blank(text[n])) ++n;
  const bool more = n == text.size();
  take_lead(n);
  return !more;
}

// Treats text that looked like a call as plain text.
bool AnswerStates::fail_look() {
  out_.content(lead_);
  lead_.clear();
  in_list_ = bare_ = false;
  return go(State::content);
}

void AnswerStates::add(std::string_view text) {
  pending_ += text;
  while (step()) {
  }
  pending_.erase(0, at_);
  at_ = 0;
}

bool AnswerStates::step() {
  if (at_ == pending_.size() && !ending_) return false;
  switch (state_) {
    case State::start: return start();
    case State::reasoning: return reasoning();
    case State::content: return content();
    case State::look: return look();
    case State::object: return object();
    case State::list: return list();
    case State::after_call: return after_call();
    case State::name: return name();
    case State::arguments: return arguments();
    case State::value: return value();
    case State::xml: return xml();
    case State::xml_text: return xml_text();
    case State::xml_value: return xml_value();
    case State::pairs: return pairs();
    case State::pair: return pair();
    case State::loose: return loose();
    case State::loose_value: return loose_value();
    case State::python: return python();
    case State::header: return header();
    case State::body: return body();
  }
  return false;
}

// The state at the beginning, and after reasoning: reasoning, and calls without any mark, begin only here.
bool AnswerStates::start() {
  const std::string_view text = rest();
  std::size_t blanks = 0;
  while (blanks < text.size() && is_blank(text[blanks])) ++blanks;
  if (blanks == text.size()) return !ending_ && blanks <= kMostBlanks ? false : go(State::content);
  if (!reasoning_over_) {
    const std::string_view mark = format_.reasoning_begin, tail = text.substr(blanks);
    if (tail.starts_with(mark)) {
      take(blanks + mark.size());
      out_.skip_blanks();
      return go(State::reasoning);
    }
    if (!ending_ && mark.starts_with(tail)) return false;
  }
  if (tools_.names.empty() || !reads_bare_calls(format_.calls)) return go(State::content);
  const bool list = text[blanks] == '[';
  const std::size_t brace = list ? std::min(text.size(), text.find_first_not_of(" \t\r\n", blanks + 1)) : blanks;
  if (brace == text.size() && !ending_ && brace <= blanks + kMostBlanks) return false;
  const bool python = list && uses(Format::pythonic) && brace < text.size() && text[brace] != '{';
  if (brace == text.size() || (text[brace] != '{' && !python)) return go(State::content);
  take_lead(brace);
  if (python) {
    opener_ = Opener::python;
    in_list_ = bare_ = true;
    return go(State::python);
  }
  opener_ = Opener::python_tag;  // others may follow behind a semicolon
  in_list_ = list;
  begin_object(true);
  return true;
}

bool AnswerStates::reasoning() {
  const std::vector<std::string_view> marks{format_.reasoning_end};
  const MarkFound found = find_mark(rest(), marks);
  const std::size_t certain = ending_ && !found.whole ? rest().size() : found.at;
  out_.reasoning(rest().substr(0, certain));
  take(certain);
  if (!found.whole) return false;
  take(format_.reasoning_end.size());
  out_.drop_blanks();
  out_.skip_blanks();
  reasoning_over_ = true;
  return go(State::start);
}

bool AnswerStates::content() {
  if (mark_texts_.empty()) {
    out_.content(rest());
    take(rest().size());
    return false;
  }
  const MarkFound found = find_mark(rest(), mark_texts_);
  const std::size_t certain = ending_ && !found.whole ? rest().size() : found.at;
  out_.content(rest().substr(0, certain));
  take(certain);
  if (!found.whole) return false;
  const Mark& mark = marks_[found.which];
  opener_ = mark.opener;
  lead_.clear();
  take_lead(mark.text.size());
  if (mark.text.ends_with('[') && opener_ == Opener::list) {
    in_list_ = true;
    return go(State::list);
  }
  return go(State::look);
}

// The state after a mark: decides whether a call follows.
bool AnswerStates::look() {
  switch (opener_) {
    case Opener::function_tag: return go(State::xml);
    case Opener::deepseek:
    case Opener::kimi:
    case Opener::functionary: return go(State::name);
    case Opener::loose: return go(State::loose);
    case Opener::channel: return go(State::header);
    default: break;
  }
  if (lead_.size() > 4 * kMostBlanks) return fail_look();
  if (!skip_blanks()) return ending_ ? fail_look() : false;
  return look_at(rest().front());
}

bool AnswerStates::look_at(char next) {
  if (opener_ == Opener::section) {
    for (const auto& [mark, opener] : {std::pair<std::string_view, Opener>("<｜tool▁call▁begin｜>", Opener::deepseek),
                                       {"<|tool_call_begin|>", Opener::kimi}}) {
      const int is = there(mark);
      if (is == 0) return false;
      if (is < 0) continue;
      take_lead(mark.size());
      opener_ = opener;
      return go(State::name);
    }
    return fail_look();
  }
  if (opener_ == Opener::invoke || opener_ == Opener::dsml) return next_invoke();
  if (opener_ == Opener::python && next != '[' && next != '{') return go(State::python);
  if (opener_ == Opener::tool_call && next == '<') {
    const int is = there("<function=");
    if (is == 0) return false;
    if (is < 0) return fail_look();
    take_lead(std::string_view("<function=").size());
    return go(State::xml);
  }
  if (next == '{' && opener_ != Opener::mistral) {
    begin_object(opener_ == Opener::fence);
    return true;
  }
  if (next != '[' && opener_ == Opener::tool_call && uses(Format::glm)) return go(State::pairs);
  if (next == '[' && opener_ != Opener::tool_call && opener_ != Opener::python_tag) {
    take_lead(1);
    in_list_ = true;
    bare_ = opener_ == Opener::fence;
    return go(State::list);
  }
  return opener_ == Opener::mistral ? go(State::name) : fail_look();
}

void AnswerStates::begin_object(bool bare) {
  bare_ = bare;
  object_.emplace(out_, bare ? &tools_.names : nullptr, bare);
  state_ = State::object;
}

void AnswerStates::end_call(bool whole) {
  out_.end(whole);
  lead_.clear();
  state_ = State::after_call;
}

bool AnswerStates::object() {
  const std::string_view text = rest();
  for (std::size_t i = 0; i < text.size(); ++i) {
    const ObjectCall::Result result = object_->feed(text[i]);
    if (result == ObjectCall::Result::more) continue;
    const bool done = result == ObjectCall::Result::done;
    take(i + (done ? 1 : 0));
    if (object_->told()) {
      end_call(done || object_->has_arguments());
      return true;
    }
    lead_ += object_->held();
    return fail_look();
  }
  take(text.size());
  return false;
}

bool AnswerStates::list() {
  if (lead_.size() > 4 * kMostBlanks) return fail_look();
  if (!skip_blanks()) return ending_ ? fail_look() : false;
  if (opener_ == Opener::python && rest().front() != '{') return go(State::python);
  if (rest().front() != '{') return fail_look();
  begin_object(bare_);
  return true;
}

// The state after a call: skips its closing mark; another call may begin.
bool AnswerStates::after_call() {
  const std::string_view text = rest();
  std::size_t blanks = 0;
  while (blanks < text.size() && is_blank(text[blanks])) ++blanks;
  take(blanks);
  if (rest().empty()) return false;
  const char next = rest().front();
  if (in_list_ && next == ']') {
    take(1);
    in_list_ = false;
    return true;
  }
  if (next == ',' || next == ';') {
    const bool semicolon = next == ';' && opener_ != Opener::tool_call;
    if (in_list_ || semicolon) {
      take_lead(1);
      return go(State::list);
    }
  }
  if (next == '{' && !in_list_ && (bare_ || opener_ == Opener::python_tag)) {
    begin_object(bare_);
    return true;
  }
  const MarkFound found = find_mark(rest(), kClosers);
  if (found.at == 0 && found.whole) {
    take(kClosers[found.which].size());
    if (opener_ == Opener::python || opener_ == Opener::invoke || opener_ == Opener::dsml) opener_ = Opener::tool_call;
    return true;
  }
  if (opener_ == Opener::python && !in_list_ && !bare_ && next != '<') return go(State::python);
  if ((opener_ == Opener::invoke || opener_ == Opener::dsml) && next == '<' && !(found.at == 0 && !ending_)) return next_invoke();
  if (found.at == 0 && !found.whole && !ending_) return false;
  in_list_ = bare_ = false;
  lead_.clear();
  return go(State::content);
}

void AnswerStates::finish() {
  ending_ = true;
  while (step()) {
    if (at_ == pending_.size()) break;
  }
  end_of_states();
  out_.keep_blanks();
}

void AnswerStates::end_of_states() {
  const std::string left(rest());
  take(left.size());
  switch (state_) {
    case State::reasoning: out_.reasoning(left); return;
    case State::object:
      if (object_->told()) return out_.end(object_->has_arguments());
      return out_.content(lead_ + object_->held() + left);
    case State::header:
      if (left.size() > kMostHeader) break;
      return;  // a header without a message says nothing
    case State::body:
      if (harmony_call_) {
        out_.arguments(left);
        return out_.end(true);  // the token that ends such a call ends the answer
      }
      return harmony_reasoning_ ? out_.reasoning(left) : out_.content(left);
    case State::value:
    case State::loose_value:
    case State::pair:
    case State::xml_text:
    case State::xml_value: return out_.end(false);
    case State::xml:
      if (out_.in_call()) return out_.end(false);
      break;
    default: break;
  }
  out_.content(lead_ + left);
}

}  // namespace sdx::text

namespace sdx {

struct AnswerParser::Impl {
  text::AnswerStates states;
};

AnswerParser::AnswerParser(const AnswerFormat& format, std::string_view tools, std::string_view prompt)
    : impl_(new Impl{text::AnswerStates(format, tools, prompt)}) {}
AnswerParser::~AnswerParser() = default;
AnswerParser::AnswerParser(AnswerParser&&) noexcept = default;
AnswerParser& AnswerParser::operator=(AnswerParser&&) noexcept = default;

std::vector<AnswerEvent> AnswerParser::add(std::string_view text) {
  impl_->states.add(text);
  return impl_->states.out().take();
}

std::vector<AnswerEvent> AnswerParser::finish() {
  impl_->states.finish();
  return impl_->states.out().take();
}

const ParsedAnswer& AnswerParser::answer() const { return impl_->states.out().answer(); }

ParsedAnswer parse_answer(std::string_view text, const AnswerFormat& format, std::string_view tools, std::string_view prompt) {
  AnswerParser parser(format, tools, prompt);
  parser.add(text);
  parser.finish();
  return parser.answer();
}

}  // namespace sdx
