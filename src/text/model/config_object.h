#pragma once
// An object of a configuration file, whose keys are all to be known.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sdx/text.hpp>

#include "base/tools_api.h"

namespace sdx::text {

// Reads a JSON file of at most 64 MiB. Throws Error(io | invalid_model) naming it.
SDX_TOOLS_API nlohmann::json read_json_file(const std::filesystem::path& path);

class SDX_TOOLS_API ConfigObject {
 public:
  // `shown`: "genai_config.json: model.decoder". Throws Error(invalid_model) if it is not an object.
  ConfigObject(const nlohmann::json& json, std::string shown);

  // Whether there is such a key, even if it is null.
  bool has(const std::string& key) const { return json_.contains(key); }
  // Null where there is no such key, or null. Marks the key as known.
  const nlohmann::json* take(const std::string& key);
  std::optional<ConfigObject> object(const std::string& key);
  // nullopt where there is no such key. Throw Error(invalid_model) naming the key where it holds something else.
  std::optional<std::string> text(const std::string& key);
  std::optional<std::int64_t> integer(const std::string& key);
  std::optional<double> number(const std::string& key);
  std::optional<float> floating(const std::string& key);  // the same, rounded
  std::optional<bool> flag(const std::string& key);
  std::optional<TokenId> token(const std::string& key);  // nullopt also for a negative number
  std::vector<TokenId> tokens(const std::string& key);   // a number or a list
  // Keys that say nothing to us.
  void skip(std::initializer_list<const char*> keys);
  // Throws Error(not_implemented) naming the key, where it is there and not `harmless`.
  void refuse(const std::string& key, const nlohmann::json& harmless = nullptr);
  // Throws Error(invalid_model) that names a key which was never read, and the closest known one.
  void finish() const;

  std::string shown(const std::string& key) const { return shown_ + (shown_.ends_with(": ") ? "" : ".") + key; }

 private:
  [[noreturn]] void wrong(const std::string& key, const std::string& expected) const;

  const nlohmann::json& json_;
  std::string shown_;
  std::set<std::string> known_;
};

}  // namespace sdx::text
