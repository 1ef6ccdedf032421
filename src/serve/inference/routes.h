#pragma once
// Shared by the files of this folder, which add routes.

#include <string_view>

#include "serve/inference/http_routes.h"

namespace sdx::serve {

void add_generate_routes(Router& router, Catalog& catalog);
void add_repository_routes(Router& router, Catalog& catalog, const InferenceOptions& options);
void add_predict_routes(Router& router, Catalog& catalog, const InferenceOptions& options);

// The answer to an exception.
Response error_answer(const std::exception_ptr& error);
// Whatever `handler` throws becomes error_answer().
Handler answering(Handler handler);
AsyncHandler answering(AsyncHandler handler);
// {model} and {version} of the path.
ModelPtr model_of(Catalog& catalog, const Request& request);
// A run that ends when its client goes.
CancelToken cancel_with(Responder& responder);

// Adds the stages of a request that was submitted at `begin`: where its time went.
void add_stages(Notes& notes, Notes::Clock::time_point begin, const BatchTimes& times);

// A route of the protocol: GET or POST, errors in its shape.
Route protocol_route(std::string_view method, std::string_view pattern, Runs runs = Runs::on_pool, std::uint64_t body = 1 << 20);
// The same pattern for a model and for one of its versions: `behind` is "/infer", for example.
template <class H>
void add_for_model(Router& router, std::string_view method, std::string_view behind, std::uint64_t body, const H& handler) {
  for (const char* pattern : {"/v2/models/{model}", "/v2/models/{model}/versions/{version}"}) {
    router.add(protocol_route(method, std::string(pattern) + std::string(behind), Runs::on_pool, body), answering(handler));
  }
}

}  // namespace sdx::serve
