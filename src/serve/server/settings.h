#pragma once
// The settings of a server: flags win over project files, these over defaults.

#include <string>

#include "serve/models/catalog.h"
#include "serve/module_api.h"

namespace sdx::serve {

struct Settings {
  std::string host = "127.0.0.1";
  int port = 8080;
  int grpc_port = 8081;  // -2: none
  CatalogOptions catalog;
};

// If a flag is missing, the first project file among the models decides. Throws Error(invalid_argument), and the errors of
// reading a project file.
Settings settings_of(const ServeRequest& request);

// "http://127.0.0.1:8080", "https://[::1]:8080"
std::string url_of(const std::string& scheme, const std::string& address, int port);

}  // namespace sdx::serve
