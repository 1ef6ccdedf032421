#include "text/embed/pair_template.h"

#include <nlohmann/json.hpp>
#include <sdx/chat_template.hpp>
#include <string_view>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "tensor/json.h"

namespace sdx::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t kMostJson = std::size_t{16} << 20;

const json* member(const json* object, const char* name) {
  if (object == nullptr || !object->is_object()) return nullptr;
  const auto at = object->find(name);
  return at == object->end() ? nullptr : &*at;
}

json settings_of(const fs::path& folder) {
  const fs::path file = folder / "sentence_bert_config.json";
  std::error_code none;
  return fs::is_regular_file(file, none) ? parse_json(read_file(file, kMostJson), file.string()) : json::object();
}

json message(const char* role, const std::string& text, bool parts) {
  json content = text;
  if (parts) content = json::array({{{"type", "text"}, {"text", text}}});
  return {{"role", role}, {"content", std::move(content)}};
}

bool occurs_once(std::string_view text, std::string_view part) {
  const std::size_t at = text.find(part);
  return at != std::string_view::npos && text.find(part, at + 1) == std::string_view::npos;
}

}  // namespace

std::string pair_template_of(const fs::path& folder, const std::string& prompt) {
  if (!ChatTemplate::has(folder)) return {};
  const json settings = settings_of(folder);
  const json* format = member(member(member(&settings, "modality_config"), "message"), "format");
  const bool parts = format != nullptr && *format == "structured";
  json messages = json::array();
  if (!prompt.empty()) messages.push_back(message("system", prompt, parts));
  messages.push_back(message("query", "{query}", parts));
  messages.push_back(message("document", "{document}", parts));
  ChatInput input;
  input.messages = messages.dump();
  const json* chosen = member(member(&settings, "processing_kwargs"), "chat_template");
  if (const json* begin = member(chosen, "add_generation_prompt")) input.add_generation_prompt = *begin == true;
  const ChatTemplate chat = ChatTemplate::load(folder);
  try {
    std::string out = chat.render(input);
    // A template for chats alone drops such messages.
    if (occurs_once(out, "{query}") && occurs_once(out, "{document}") && out.find("{query}") < out.find("{document}")) return out;
  } catch (const Error&) {  // it takes no other roles
  }
  return {};
}

}  // namespace sdx::text
