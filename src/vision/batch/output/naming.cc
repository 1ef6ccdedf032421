#include "vision/batch/output/naming.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include <sdx/image.hpp>

#include "base/error.h"
#include "base/text/safe_name.h"

namespace sdx::vision::batch {
namespace {

constexpr std::array<std::string_view, 7> kPlaceholders = {"stem", "index", "width", "height", "ext", "quality", "timestamp"};

std::string value_of(std::string_view placeholder, const NameValues& v) {
  if (placeholder == "stem") return v.stem;
  if (placeholder == "index") return fmt::format("{}", v.index);
  if (placeholder == "width") return fmt::format("{}", v.width);
  if (placeholder == "height") return fmt::format("{}", v.height);
  if (placeholder == "ext") return v.extension;
  if (placeholder == "quality") return v.quality;
  return v.timestamp;
}

}  // namespace

NameTemplate::NameTemplate(std::string_view text) {
  std::string literal;
  const auto keep = [&] {
    if (!literal.empty()) parts_.push_back({false, std::exchange(literal, {})});
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '}') fail(ErrorCode::invalid_argument, "name template '{}': a '}}' without '{{'", text);
    if (text[i] != '{') {
      literal += text[i];
      continue;
    }
    const std::size_t end = text.find('}', i);
    if (end == std::string_view::npos) fail(ErrorCode::invalid_argument, "name template '{}': a '{{' is not closed", text);
    const std::string_view word = text.substr(i + 1, end - i - 1);
    if (std::find(kPlaceholders.begin(), kPlaceholders.end(), word) == kPlaceholders.end()) {
      fail(ErrorCode::invalid_argument,
           "name template '{}': there is no {{{}}}; there are {{stem}} {{index}} {{width}} {{height}} {{ext}} {{quality}} "
           "{{timestamp}}",
           text, word);
    }
    keep();
    parts_.push_back({true, std::string(word)});
    i = end;
  }
  keep();
  if (parts_.empty()) fail(ErrorCode::invalid_argument, "the name template is empty; for example {{stem}}_face{{index}}.{{ext}}");
  if (!parts_.back().placeholder && parts_.back().text.ends_with('/')) {
    fail(ErrorCode::invalid_argument, "name template '{}': it ends with a folder; the file name is missing", text);
  }
  if (!uses("ext")) {
    const std::string ending =
        parts_.back().placeholder ? "" : std::filesystem::path("x" + parts_.back().text).extension().string();
    if (!ending.empty() && media::file_format(ending)) {
      ending_ = ending.substr(1);
    } else {
      parts_.push_back({false, "."});
      parts_.push_back({true, "ext"});
    }
  }
  static_cast<void>(make({"a", 1, 1, 1, "jpg", "low", "t"}));  // what no values can mend
}

std::string NameTemplate::filled(const NameValues& values) const {
  std::string name;
  for (const Part& part : parts_) name += part.placeholder ? value_of(part.text, values) : part.text;
  return name;
}

// The stem, so short that no part of the name that holds it is too long.
std::string NameTemplate::fitting_stem(const NameValues& values) const {
  NameValues without = values;
  without.stem = std::string(1, '\0');  // to be counted
  const std::string name = filled(without);
  std::size_t most = values.stem.size();
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t slash = std::min(name.find('/', at), name.size());
    const auto part = std::string_view(name).substr(at, slash - at);
    const auto stems = static_cast<std::size_t>(std::count(part.begin(), part.end(), '\0'));
    const std::size_t others = part.size() - stems;
    if (stems > 0) most = std::min(most, others < kLongestName ? (kLongestName - others) / stems : 0);
    at = slash + 1;
  }
  return shortened_name(values.stem, most);
}

std::string NameTemplate::make(const NameValues& values) const {
  std::string name = filled(values);
  if (const std::string why = unsafe_name(name); !why.empty()) {
    fail(ErrorCode::invalid_argument, "'{}' cannot be the name of an output: {}", name, why);
  }
  return name;
}

std::string NameTemplate::make_fitting(NameValues values) const {
  values.stem = fitting_stem(values);
  return make(values);
}

bool NameTemplate::uses(std::string_view placeholder) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& p) { return p.placeholder && p.text == placeholder; });
}

std::string safe_stem(std::string_view stem) {
  std::string out(stem);
  for (char& c : out) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\\' || c == ':' || c == '/' || byte < 0x20 || byte == 0x7F) c = '_';
  }
  if (out.empty()) return "_";
  if (out[0] == '.') out[0] = '_';
  return out;
}

std::string folded(std::string_view name) {
  constexpr auto kOptions =
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD);
  utf8proc_uint8_t* text = nullptr;
  const utf8proc_ssize_t size = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(name.data()),
                                             static_cast<utf8proc_ssize_t>(name.size()), &text, kOptions);
  const std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owned(text, &std::free);
  if (size >= 0) return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(size)};
  return std::string(name);  // no UTF-8: only file systems that look at bytes have such names
}

std::string Stems::take(const std::string& folder, const std::string& stem) {
  const std::string place = folded(folder) + '\0';
  std::string given = stem;
  int& number = taken_[place + folded(stem)];
  while (number > 0) {
    given = fmt::format("{}-{}", stem, ++number);
    if (taken_.emplace(place + folded(given), 1).second) return given;
  }
  number = 1;
  return given;
}

void Stems::reserve(const std::string& folder, const std::string& stem) {
  taken_.emplace(folded(folder) + '\0' + folded(stem), 1);
}

}  // namespace sdx::vision::batch
