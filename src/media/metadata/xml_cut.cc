#include "media/metadata/xml_cut.h"

#include <algorithm>
#include <utility>

namespace sdx::media {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

bool is_space(char c) { return kSpace.find(c) != std::string_view::npos; }

// A tag from its '<' to its '>': "<name attributes>", "</name>", "<name/>".
struct Tag {
  std::string_view text, name;
  bool closes = false, empty = false;
};

class Cutter {
 public:
  Cutter(std::string_view in, const std::function<bool(std::string_view)>& unwanted) : in_(in), unwanted_(unwanted) {}

  bool run() {
    while (at_ < in_.size()) {
      const std::size_t from = at_;
      if (!skip_text()) return false;
      out_ += in_.substr(from, at_ - from);
      if (at_ >= in_.size()) break;
      const std::optional<Tag> tag = next_tag();
      if (!tag) return false;
      if (!unwanted_(tag->name)) {
        const std::optional<std::string> rest = kept(*tag);
        if (!rest) return false;
        out_ += *rest;
      } else if (tag->closes || (!tag->empty && !skip_element())) {
        return false;
      }
    }
    return true;
  }
  std::string take() { return std::move(out_); }

 private:
  bool skip_past(std::string_view end) {
    const std::size_t found = in_.find(end, at_);
    at_ = found == std::string_view::npos ? in_.size() : found + end.size();
    return found != std::string_view::npos;
  }

  // Moves to the next tag, past comments, CDATA, instructions and declarations. False: one of these does not end.
  bool skip_text() {
    while (true) {
      at_ = std::min(in_.find('<', at_), in_.size());
      const std::string_view rest = in_.substr(at_);
      const char* end = rest.starts_with("<!--") ? "-->" : rest.starts_with("<![CDATA[") ? "]]>" : nullptr;
      if (end == nullptr && rest.starts_with("<?")) end = "?>";
      if (end == nullptr && rest.starts_with("<!")) end = ">";
      if (end == nullptr) return true;
      if (!skip_past(end)) return false;
    }
  }

  std::optional<Tag> next_tag() {
    Tag tag;
    char quote = 0;
    std::size_t end = at_ + 1;
    for (; end < in_.size() && (quote != 0 || in_[end] != '>'); ++end) {
      if (quote != 0) {
        quote = in_[end] == quote ? '\0' : quote;
      } else if (in_[end] == '"' || in_[end] == '\'') {
        quote = in_[end];
      }
    }
    if (end >= in_.size()) return std::nullopt;
    tag.text = in_.substr(at_, end + 1 - at_);
    tag.closes = tag.text.starts_with("</");
    tag.empty = tag.text.ends_with("/>");
    const std::string_view from = tag.text.substr(tag.closes ? 2 : 1);
    tag.name = from.substr(0, from.find_first_of(" \t\r\n/>"));
    at_ = end + 1;
    return tag;
  }

  // Skips from the end of a start tag to the end of its end tag.
  bool skip_element() {
    for (std::size_t depth = 1; depth > 0;) {
      if (!skip_text() || at_ >= in_.size()) return false;
      const std::optional<Tag> tag = next_tag();
      if (!tag) return false;
      if (tag->closes) {
        --depth;
      } else if (!tag->empty) {
        ++depth;
      }
    }
    return true;
  }

  // The tag without unwanted attributes. Empty where a value does not end.
  std::optional<std::string> kept(const Tag& tag) const {
    const std::string_view text = tag.text;
    std::string out;
    std::size_t at = (tag.closes ? 2 : 1) + tag.name.size(), from = 0;
    while (at < text.size()) {
      const std::size_t gap = at;
      while (at < text.size() && is_space(text[at])) ++at;
      const std::size_t name = at;
      at = std::min(text.find_first_of("=/> \t\r\n", at), text.size());
      const std::string_view attribute = text.substr(name, at - name);
      const std::size_t open = text.find_first_not_of("= \t\r\n", at);
      const bool valued = !attribute.empty() && open != std::string_view::npos && (text[open] == '"' || text[open] == '\'');
      if (!valued) {
        at = std::max(at, name + 1);
        continue;
      }
      const std::size_t close = text.find(text[open], open + 1);
      if (close == std::string_view::npos) return std::nullopt;
      at = close + 1;
      if (!unwanted_(attribute)) continue;
      out += text.substr(from, gap - from);
      from = at;
    }
    return out + std::string(text.substr(from));
  }

  std::string_view in_;
  const std::function<bool(std::string_view)>& unwanted_;
  std::string out_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::string> prefixes_of(std::string_view xml, std::string_view space) {
  std::vector<std::string> out;
  for (std::size_t at = xml.find(space); at != std::string_view::npos; at = xml.find(space, at + 1)) {
    const std::size_t behind = at + space.size();
    if (at == 0 || behind >= xml.size() || (xml[at - 1] != '"' && xml[at - 1] != '\'') || xml[behind] != xml[at - 1]) continue;
    std::string_view before = xml.substr(0, at - 1);
    before = before.substr(0, before.find_last_not_of("= \t\r\n") + 1);
    const std::string_view name = before.substr(before.find_last_of(" \t\r\n\"'<") + 1);
    if (name == "xmlns") out.emplace_back();
    if (name.starts_with("xmlns:")) out.emplace_back(name.substr(6));
  }
  return out;
}

std::optional<std::string> cut_out(std::string_view xml, const std::function<bool(std::string_view name)>& unwanted) {
  Cutter cutter(xml, unwanted);
  if (!cutter.run()) return std::nullopt;
  return cutter.take();
}

}  // namespace sdx::media
