#include "cli/registry/running.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/quantity.h"
#include "base/system/printable.h"
#include "base/text/json_text.h"
#include "base/text/text_table.h"
#include "cli/command.h"
#include "hub/download.h"
#include "hub/url.h"

namespace sdx::cli {
namespace {

using Json = nlohmann::ordered_json;

Json ask(const std::string& address) {
  hub::Url url = hub::parse_url(address.find("://") == std::string::npos ? "http://" + address : address);
  while (url.path.ends_with('/')) url.path.pop_back();
  hub::NetworkOptions network;
  network.timeout = std::chrono::seconds(10);
  network.retries = 0;
  if (const char* key = std::getenv("SDX_API_KEY"); key != nullptr && *key != '\0') {
    network.token = key;
    network.token_host = url.origin();
  }
  url.path += "/api/ps";
  const Json answer = Json::parse(hub::get_text(url, "the models of " + address, network), nullptr, false);
  if (!answer.is_object() || !answer.contains("models") || !answer["models"].is_array()) {
    fail(ErrorCode::io, "{} does not answer like `sdx serve`", url.text());
  }
  return answer["models"];
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string number_of(const Json& object, const char* key, bool bytes) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_number_unsigned()) return "-";
  return bytes ? size_text(found->get<double>()) : std::to_string(found->get<std::uint64_t>());
}

}  // namespace

int show_running(const std::string& address, bool json) {
  const Json models = ask(address);
  if (json) {
    print("{\"server\":" + json_string(address) + ",\"models\":" + dump_json(models) + "}\n");
    return kOk;
  }
  if (models.empty())
    note(fmt::format("note: {} has loaded no models of language; it loads them when they are asked for", address));
  std::vector<std::vector<std::string>> rows{{"NAME", "SIZE", "CONTEXT", "FAMILY"}};
  for (const Json& model : models) {
    const Json details = model.is_object() ? model.value("details", Json::object()) : Json::object();
    const std::string family = text_of(details, "family");
    rows.push_back({one_line(text_of(model, "name")), number_of(model, "size", true), number_of(model, "context_length", false),
                    family.empty() ? "-" : one_line(family)});
  }
  if (!models.empty()) print(text_table(rows));
  return kOk;
}

}  // namespace sdx::cli
