#include "base/text/model_name.h"

#include <algorithm>
#include <cctype>

namespace sdx {

bool is_model_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-' || c == '+';
}

std::string model_folder_name(std::string_view name) {
  constexpr std::string_view latest = ":latest";
  constexpr std::size_t most = 128;
  if (name.ends_with(latest)) name.remove_suffix(latest.size());
  std::string text(name);
  for (char& c : text) c = is_model_name_character(c) ? c : '-';
  while (!text.empty() && (text.front() == '.' || text.front() == '-')) text.erase(0, 1);
  text.resize(std::min(text.size(), most));
  return text.empty() ? "model" : text;
}

}  // namespace sdx
