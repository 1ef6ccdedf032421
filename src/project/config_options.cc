#include "project/config_options.h"

#include <fmt/format.h>

#include "base/error.h"
#include "project/config_keys.h"
#include "providers/interface/provider.h"
#include "session/options/option_table.h"

namespace sdx {
namespace {

void read_text(const session::SessionOption& option, const YamlValue& value, SessionOptions& options) {
  const std::string text = value.string();
  at_place(value, [&] { session::set_from_text(option, options, text); });
}

// One overload for each type of member that YAML has a form of its own for; the others read the scalar's text.

void read(const session::SessionOption& option, const YamlValue& value, SessionOptions& options, bool SessionOptions::*member) {
  if (option.words.empty()) {
    options.*member = value.boolean();
  } else {
    read_text(option, value, options);
  }
}

void read(const session::SessionOption&, const YamlValue& value, SessionOptions& options,
          session::ProviderOptions SessionOptions::*member) {
  for (const auto& entry : value.entries()) {
    const YamlValue& own = entry.second;
    std::string provider = at_place(own, [&] { return canonical_provider(entry.first); });
    auto& list = (options.*member).emplace_back(std::move(provider), session::TextPairs{}).second;
    if (own.is_null()) continue;
    for (const auto& [key, text] : own.entries()) list.emplace_back(key, text.text());
  }
}

void read(const session::SessionOption& option, const YamlValue& value, SessionOptions& options,
          session::DimensionValues SessionOptions::*member) {
  for (const auto& [symbol, extent] : value.entries()) (options.*member).emplace_back(symbol, extent.integer(0, option.most));
}

void read(const session::SessionOption& option, const YamlValue& value, SessionOptions& options, int SessionOptions::*member) {
  options.*member = static_cast<int>(value.integer(0, option.most));
}

template <class T>
void read(const session::SessionOption& option, const YamlValue& value, SessionOptions& options, T SessionOptions::*) {
  if (value.is_scalar()) {
    read_text(option, value, options);
    return;
  }
  if (!session::takes_items(option)) value.fail(fmt::format("expected {}, found {}", expected(option), value.found()));
  for (const YamlValue& item : value.list()) read_text(option, item, options);
}

}  // namespace

std::vector<std::string_view> runtime_keys() {
  std::vector<std::string_view> keys(config_keys::kRuntimeOwn.begin(), config_keys::kRuntimeOwn.end());
  for (const session::SessionOption& option : session::session_options()) {
    if (!option.project.name.empty()) keys.push_back(option.project.name);
  }
  return keys;
}

void read_session_options(const YamlValue& section, SessionOptions& options) {
  for (const session::SessionOption& option : session::session_options()) {
    if (!option.project.present()) continue;
    const YamlValue value = section.get(option.project.name);
    if (value) std::visit([&](auto member) { read(option, value, options, member); }, option.member);
  }
}

}  // namespace sdx
