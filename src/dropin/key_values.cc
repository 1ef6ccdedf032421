#include "dropin/objects.h"
#include "dropin/table.h"

namespace sdx::dropin {

void OrtKeyValuePairs::list() {
  keys.clear();
  values.clear();
  for (const auto& [key, value] : entries) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
}
void OrtKeyValuePairs::set(std::string key, std::string value) {
  entries.insert_or_assign(std::move(key), std::move(value));
  list();
}
void OrtKeyValuePairs::erase(std::string_view key) {
  if (const auto it = entries.find(key); it != entries.end()) entries.erase(it);
  list();
}

namespace {

void create(OrtKeyValuePairs** out) noexcept { *out = new OrtKeyValuePairs(); }
void add(OrtKeyValuePairs* pairs, const char* key, const char* value) noexcept {
  if (pairs != nullptr && key != nullptr && *key != '\0' && value != nullptr) pairs->set(key, value);
}
const char* find(const OrtKeyValuePairs* pairs, const char* key) noexcept {
  if (pairs == nullptr || key == nullptr) return nullptr;
  const auto it = pairs->entries.find(std::string_view(key));
  return it == pairs->entries.end() ? nullptr : it->second.c_str();
}
void get(const OrtKeyValuePairs* pairs, const char* const** keys, const char* const** values, std::size_t* count) noexcept {
  const bool some = pairs != nullptr && !pairs->keys.empty();
  *keys = some ? pairs->keys.data() : nullptr;
  *values = some ? pairs->values.data() : nullptr;
  *count = some ? pairs->keys.size() : 0;
}
void remove(OrtKeyValuePairs* pairs, const char* key) noexcept {
  if (pairs != nullptr && key != nullptr) pairs->erase(key);
}
void release(OrtKeyValuePairs* pairs) noexcept { delete pairs; }

}  // namespace

void fill_key_values(Table& table) {
  table.set(Slot::CreateKeyValuePairs, &create);
  table.set(Slot::AddKeyValuePair, &add);
  table.set(Slot::GetKeyValue, &find);
  table.set(Slot::GetKeyValuePairs, &get);
  table.set(Slot::RemoveKeyValuePair, &remove);
  table.set(Slot::ReleaseKeyValuePairs, &release);
}

}  // namespace sdx::dropin
