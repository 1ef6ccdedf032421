#include "text/grammar/properties.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "text/unicode/unicode.h"

namespace sdx::text::grammar {
namespace {

constexpr std::pair<std::string_view, std::string_view> kLongNames[] = {{"Letter", "L"},
                                                                        {"Alphabetic", "L"},
                                                                        {"Uppercase_Letter", "Lu"},
                                                                        {"Uppercase", "Lu"},
                                                                        {"Lowercase_Letter", "Ll"},
                                                                        {"Lowercase", "Ll"},
                                                                        {"Number", "N"},
                                                                        {"Decimal_Number", "Nd"},
                                                                        {"Mark", "M"},
                                                                        {"Punctuation", "P"},
                                                                        {"Symbol", "S"},
                                                                        {"Separator", "Z"},
                                                                        {"Space_Separator", "Zs"},
                                                                        {"Other_Letter", "Lo"},
                                                                        {"Modifier_Letter", "Lm"},
                                                                        {"Titlecase_Letter", "Lt"},
                                                                        {"Nonspacing_Mark", "Mn"},
                                                                        {"Currency_Symbol", "Sc"},
                                                                        {"Math_Symbol", "Sm"},
                                                                        {"Dash_Punctuation", "Pd"},
                                                                        {"Connector_Punctuation", "Pc"}};
constexpr std::string_view kCategories[] = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me", "N", "Nd",
                                            "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm",
                                            "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp", "C",  "Cc", "Cf"};

std::optional<std::string_view> category_named(std::string_view name) {
  for (const std::string_view prefix : {"General_Category=", "gc="}) {
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  for (const auto& [known, category] : kLongNames) {
    if (name == known) return category;
  }
  const auto at = std::find(std::begin(kCategories), std::end(kCategories), name);
  return at == std::end(kCategories) ? std::nullopt : std::optional(*at);
}

// Blocks that have nothing but pictures, without the tones of skin and the letters of flags.
const Characters pictures{{0x1f300, 0x1f3fa}, {0x1f400, 0x1f53d}, {0x1f546, 0x1f64f}, {0x1f680, 0x1f6d7},
                          {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945}, {0x1f947, 0x1f9ff}};

void extend(Characters& set, char32_t c) {
  if (!set.empty() && set.back().last + 1 == c) {
    set.back().last = c;
  } else {
    set.push_back({c, c});
  }
}

// The characters of each category, and under "" those that have none.
const std::map<std::string, Characters, std::less<>>& all_categories() {
  static const std::map<std::string, Characters, std::less<>> all = [] {
    std::map<std::string, Characters, std::less<>> out;
    for (char32_t c = 0; c <= last_character; ++c) {
      const std::string own(general_category(c));
      if (own == "Cn" || own == "Cs") {
        extend(out[""], c);
      } else {
        extend(out[own], c);
        extend(out[own.substr(0, 1)], c);
      }
    }
    return out;
  }();
  return all;
}

Characters of_category(std::string_view category, bool having) {
  const auto& all = all_categories();
  Characters own = all.at(std::string(category));
  if (having) return own;
  const Characters& none = all.at("");
  own.insert(own.end(), none.begin(), none.end());
  return complement(std::move(own));
}

bool is_of_emoji(std::string_view name) {
  return name == "Emoji" || name == "Emoji_Presentation" || name == "Extended_Pictographic";
}

}  // namespace

std::optional<Characters> characters_of_property(std::string_view name) {
  if (is_of_emoji(name)) return pictures;
  if (name == "Emoji_Component") return Characters{{0x200d, 0x200d}, {0xfe0f, 0xfe0f}};
  if (name == "ASCII") return Characters{{0, 0x7f}};
  if (name == "Any") return Characters{{0, last_character}};
  const auto category = category_named(name);
  return category ? std::optional(of_category(*category, true)) : std::nullopt;
}

std::optional<Characters> characters_without_property(std::string_view name) {
  if (is_of_emoji(name)) return Characters{{'A', 'Z'}, {'a', 'z'}};
  if (name == "ASCII") return Characters{{0x80, last_character}};
  const auto category = category_named(name);
  return category ? std::optional(of_category(*category, false)) : std::nullopt;
}

}  // namespace sdx::text::grammar
