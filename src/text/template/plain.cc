// Prompts in which the names of special tokens that a conversation has stay text: a character that no text has goes behind the
// first one of each name, through the template, and out again.

#include <nlohmann/json.hpp>
#include <sdx/chat_template.hpp>
#include <sdx/tool_calls.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/text/json_text.h"
#include "base/text/utf8.h"
#include "text/calls/constrain.h"

namespace sdx {
namespace {

using Json = nlohmann::ordered_json;

constexpr char32_t kFirstMark = 0xFDD0, kLastMark = 0xFDEF;  // never characters, but valid UTF-8

class Marker {
 public:
  Marker(const Tokenizer& tokenizer, std::string mark, std::unordered_set<std::string> kept)
      : tokenizer_(tokenizer), mark_(std::move(mark)), kept_(std::move(kept)) {}

  // JSON text with marks in it; what is no JSON stays, so that the template's reader says what is wrong.
  std::string marked(const std::string& text, bool messages) const {
    if (text.empty()) return text;
    Json all = Json::parse(text, nullptr, false);
    if (all.is_discarded()) return text;
    if (messages && all.is_array()) {
      for (Json& m : all) {
        const bool own = m.is_object() && m.contains("role") && m["role"] == "assistant";
        if (m.is_object()) mark_values(m, own);
      }
    } else {
      mark_values(all, false);
    }
    return changed_ ? dump_json(all) : text;
  }

 private:
  void mark_values(Json& value, bool own) const {
    if (value.is_string()) {
      mark_text(value.get_ref<std::string&>(), own);
    } else if (value.is_structured()) {
      for (auto& item : value.items()) {
        if (item.key() != "role") mark_values(item.value(), own);
      }
    }
  }

  void mark_text(std::string& text, bool own) const {
    const std::vector<std::size_t> places = tokenizer_.special_places(text);
    for (std::size_t i = places.size(); i-- > 0;) {
      if (own && keeps(std::string_view(text).substr(places[i]))) continue;
      text.insert(places[i] + decode_utf8(text, places[i]).bytes, mark_);
      changed_ = true;
    }
  }

  bool keeps(std::string_view text) const {
    for (const std::string& mark : kept_) {
      if (text.starts_with(mark)) return true;
    }
    return false;
  }

  const Tokenizer& tokenizer_;
  std::string mark_;
  std::unordered_set<std::string> kept_;
  mutable bool changed_ = false;
};

// JSON text whose characters are themselves, not escapes.
std::string unescaped(const std::string& text) {
  if (text.find("\\u") == std::string::npos) return text;
  const Json all = Json::parse(text, nullptr, false);
  return all.is_discarded() ? text : dump_json(all);
}

std::string unused_mark(const ChatInput& input) {
  const std::string texts[] = {unescaped(input.messages), unescaped(input.tools), unescaped(input.documents)};
  for (char32_t c = kFirstMark; c <= kLastMark; ++c) {
    std::string mark;
    append_utf8(mark, c);
    bool used = false;
    for (const std::string& text : texts) used = used || text.find(mark) != std::string::npos;
    if (!used) return mark;
  }
  fail(ErrorCode::invalid_argument, "the conversation has all characters from U+FDD0 to U+FDEF, which are none");
}

// Takes the marks out, and tells where the characters in front of them begin.
PlainPrompt without_marks(std::string_view text, std::string_view mark) {
  PlainPrompt out;
  for (std::size_t at = 0;;) {
    const std::size_t next = text.find(mark, at);
    out.text += text.substr(at, next - at);
    if (next == std::string_view::npos) return out;
    std::size_t begin = out.text.size();
    while (begin > 0 && continues_char(out.text[--begin])) {
    }
    out.plain.push_back(begin);
    at = next + mark.size();
  }
}

}  // namespace

PlainPrompt ChatTemplate::render_plain(const ChatInput& input, const Tokenizer& tokenizer, const ChatLimits& limits) const {
  std::unordered_set<std::string> kept;
  for (const std::uint32_t id : text::kept_tokens(tokenizer, answer_format(*this))) {
    if (auto name = tokenizer.id_to_token(id)) kept.insert(std::move(*name));
  }
  const std::string mark = unused_mark(input);
  ChatInput marked = input;
  const Marker messages(tokenizer, mark, std::move(kept)), others(tokenizer, mark, {});
  marked.messages = messages.marked(input.messages, true);
  marked.tools = others.marked(input.tools, false);
  marked.documents = others.marked(input.documents, false);
  return without_marks(render(marked, limits), mark);
}

}  // namespace sdx
