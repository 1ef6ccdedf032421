#include "serve/server/otlp.h"

#include <httplib.h>
#include <openssl/x509.h>

#include "base/error.h"
#include "hub/authorities.h"

namespace sdx::serve {

std::function<bool(const std::vector<Span>&)> otlp_sender(const std::string& url) {
  const std::size_t slashes = url.find("://");
  const std::string scheme = url.substr(0, slashes);
  if (slashes == std::string::npos || (scheme != "http" && scheme != "https") || url.size() <= slashes + 3) {
    fail(ErrorCode::invalid_argument, "--otlp '{}' must be an address such as http://127.0.0.1:4318", url);
  }
  const std::size_t slash = url.find('/', slashes + 3);
  const std::string host = url.substr(0, slash);
  const std::string given = slash == std::string::npos ? "/" : url.substr(slash);
  const std::string path = given == "/" ? "/v1/traces" : given;
  const auto client = std::make_shared<httplib::Client>(host);
  if (!client->is_valid()) fail(ErrorCode::invalid_argument, "--otlp '{}' is not a valid address", url);
  if (const std::string file = hub::authorities_file(X509_get_default_cert_file(), X509_get_default_cert_dir()); !file.empty()) {
    client->set_ca_cert_path(file.c_str());
  }
  client->set_connection_timeout(2);
  client->set_read_timeout(5);
  client->set_write_timeout(5);
  client->set_keep_alive(true);
  return [client, path](const std::vector<Span>& spans) {
    const auto answer = client->Post(path.c_str(), otlp_json(spans, "sdx serve", SDX_VERSION), "application/json");
    return answer && answer->status >= 200 && answer->status < 300;
  };
}

}  // namespace sdx::serve
