#include "serve/models/language_settings.h"

#include <charconv>

#include "base/error.h"
#include "base/quantity.h"
#include "serve/models/model_files.h"

namespace sdx::serve {
namespace {

namespace fs = std::filesystem;

std::int64_t whole(const std::string& name, const std::string& text, std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > most) {
    fail(ErrorCode::invalid_argument, "the configuration's parameter '{}' must be a whole number from 1 to {}, received '{}'",
         name, most, text.substr(0, 80));
  }
  return value;
}

// Clients may send a configuration: its files must not be others than the model's own.
fs::path own_file(const std::string& name, const std::string& file, const fs::path& folder) {
  if (folder.empty()) {
    fail(ErrorCode::invalid_argument, "the configuration's parameter '{}' is for models that have a folder in the repository",
         name);
  }
  if (file.empty() || file.starts_with('.') || file.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos) {
    fail(ErrorCode::invalid_argument,
         "the configuration's parameter '{}' must name a file or folder beside config.pbtxt, "
         "received '{}'",
         name, file.substr(0, 80));
  }
  fs::path path = folder / file;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    fail(ErrorCode::io, "there is no '{}' beside config.pbtxt, which its parameter '{}' names", file, name);
  }
  check_inside(path, folder.parent_path());
  return path;
}

LoraAdapter lora_of(const std::string& text, const fs::path& folder) {
  const std::size_t equals = text.rfind('=');
  LoraAdapter out;
  if (equals != std::string::npos) {
    const char* end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data() + equals + 1, end, out.scale);
    if (error != std::errc{} || read != end) {
      fail(ErrorCode::invalid_argument, "the configuration's parameter 'lora': '{}' has no number behind '='",
           text.substr(0, 80));
    }
  }
  out.path = own_file("lora", text.substr(0, equals), folder);
  return out;
}

DataType cache_type_of(const std::string& text) {
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16, DataType::int8}) {
    if (name(type) == text) return type;
  }
  fail(ErrorCode::invalid_argument,
       "the configuration's parameter 'cache_type' must be float32, float16, bfloat16 or int8, received '{}'",
       text.substr(0, 80));
}

std::uint64_t size_of(const std::string& name, const std::string& text) {
  const auto bytes = size_from_text(text);
  if (!bytes) {
    fail(ErrorCode::invalid_argument, "the configuration's parameter '{}' must be a size such as 512MB, received '{}'", name,
         text.substr(0, 80));
  }
  return *bytes;
}

bool truth(const std::string& name, const std::string& text) {
  if (text == "true") return true;
  if (text == "false") return false;
  fail(ErrorCode::invalid_argument, "the configuration's parameter '{}' must be true or false, received '{}'", name,
       text.substr(0, 80));
}

}  // namespace

LanguageSettings language_settings(LanguageSettings s, const std::vector<std::pair<std::string, std::string>>& parameters,
                                   const fs::path& folder) {
  for (const auto& [name, value] : parameters) {
    if (name == "context") s.context = whole(name, value, std::int64_t{1} << 32);
    if (name == "cache_type") s.cache_type = cache_type_of(value);
    if (name == "lora") s.loras = {lora_of(value, folder)};
    if (name == "chat_template") s.chat_template = own_file(name, value, folder);
    if (name == "prompt_cache") s.prompt_cache = size_of(name, value);
    if (name == "parallel") s.parallel = static_cast<int>(whole(name, value, 1024));
    if (name == "accuracy_level") s.accuracy_level = static_cast<int>(whole(name, value, 4));
    if (name == "allow_control_tokens") s.control_tokens = truth(name, value);
  }
  return s;
}

}  // namespace sdx::serve
