#include "serve/inference/grpc_host.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text/json_text.h"
#include "serve/inference/describe.h"
#include "serve/inference/generate.h"
#include "serve/inference/infer.h"

namespace sdx::serve {
namespace {

void check_control(const InferenceOptions& options) {
  if (!options.control) fail(ErrorCode::invalid_argument, "this server does not load or unload models on request");
}

}  // namespace

GrpcHost grpc_host(Catalog& catalog, const InferenceOptions& options) {
  GrpcHost host;
  host.infer = [&catalog](InferRequest request, std::function<void(InferResult)> done) {
    infer(catalog, std::move(request), std::move(done));
  };
  host.generates = [&catalog](const std::string& name, const std::string& version) { return generates(catalog, name, version); };
  host.generate = [&catalog](const InferRequest& request, std::function<bool(const InferResult&, bool)> answer,
                             const std::shared_ptr<LateCancel>& cancel) {
    generate(catalog, request, std::move(answer), [&](std::function<void()> call) { cancel->set(std::move(call)); });
  };
  host.meaning = [](const std::exception_ptr& error) {
    const ErrorMeaning meaning = meaning_of(error);
    return GrpcError{meaning.status, meaning.message};
  };
  host.ready = [&catalog] { return catalog.ready(); };
  host.need_model = [&catalog](const std::string& name, const std::string& version) { catalog.get(name, version); };
  host.server = [] { return dump_json(describe_server()); };
  host.model = [&catalog](const std::string& name, const std::string& version) {
    return dump_json(describe_model(*catalog.get(name, version), versions_of(catalog, name)));
  };
  host.config = [&catalog](const std::string& name, const std::string& version) {
    return dump_json(describe_config(*catalog.get(name, version)));
  };
  host.statistics = [&catalog](const std::string& name, const std::string& version) {
    if (!name.empty()) catalog.get(name, version);
    return dump_json(describe_statistics(catalog, name, version));
  };
  host.index = [&catalog](bool ready) { return dump_json(describe_repository(catalog, ready)); };
  host.load = [&catalog, options](const std::string& name, const std::optional<std::string>& config) {
    check_control(options);
    catalog.load(name, config ? std::optional(settings_of_request(*config)) : std::nullopt);
  };
  host.unload = [&catalog, options](const std::string& name) {
    check_control(options);
    catalog.unload(name);
  };
  return host;
}

}  // namespace sdx::serve
