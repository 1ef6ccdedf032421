#pragma once
// Descriptions of server and models for the protocol, as JSON objects: HTTP sends them as they are, gRPC reads its messages from
// them.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "serve/models/catalog.h"

namespace sdx::serve {

nlohmann::json describe_server();
// `versions`: all versions of the model.
nlohmann::json describe_model(const LoadedModel& model, const std::vector<std::string>& versions);
nlohmann::json describe_config(const LoadedModel& model);
// {"model_stats": […]}: of the versions that are loaded; of all models where `name` is "".
nlohmann::json describe_statistics(const Catalog& catalog, std::string_view name, std::string_view version);
// A list. `ready`: models that are, alone.
nlohmann::json describe_repository(const Catalog& catalog, bool ready);

// The versions of a model that the catalogue lists.
std::vector<std::string> versions_of(const Catalog& catalog, std::string_view name);

// The settings in a request to load a model: settings_of_json(), and Error(invalid_argument) for members without a meaning.
ModelSettings settings_of_request(std::string_view config);

}  // namespace sdx::serve
