#include <chrono>
#include <cstdio>
#include <thread>

#include "base/error.h"
#include "serve/http/access.h"
#include "vision/page/module_api.h"
#include "vision/page/page.h"
#include "vision/page/real_backend.h"

namespace sdx::faces::page {

namespace {

using std::chrono::milliseconds;

void serve_until_stopped(const ModuleOptions& options) {
  Backend backend = real_backend(*options.request);
  Runtime runtime = options.request->runtime == "ort" ? Runtime::ort : Runtime::native;
  try {
    // Reports problems before anyone opens the page.
    Opened probe;
    probe.image = std::make_shared<media::Image>(media::Image::blank(64, 64));
    backend.detect(probe, runtime);
  } catch (const Error& e) {
    if (runtime == Runtime::native || e.code() != ErrorCode::provider_unavailable) throw;
    options.warning(options.context, e.what());
    runtime = Runtime::native;
  }
  const PageLimits limits;
  const std::string token = serve::random_token();
  Page page(std::move(backend), token, limits, runtime);
  serve::ServerOptions server_options;
  server_options.port = options.port;
  server_options.hosts.assign(std::begin(Page::kHosts), std::end(Page::kHosts));
  server_options.limits.all_bodies_bytes = 4 * limits.upload_bytes;
  server_options.limits.transfer_time = milliseconds(120000);
  serve::Server server(
      server_options, [&page](const serve::Request& request) { return page.handle(request); },
      [&page](serve::Request& request) { return page.admit(request); });
  const std::string url = fmt::format("http://127.0.0.1:{}/?token={}", server.port(), token);
  options.listening(options.context, url.c_str());
  while (!options.stopped(options.context)) std::this_thread::sleep_for(milliseconds(50));
  server.stop(milliseconds(1000));
}

bool serve_page(const ModuleOptions* options, char* error, std::size_t error_size) {
  try {
    serve_until_stopped(*options);
    return true;
  } catch (const std::exception& e) {
    std::snprintf(error, error_size, "%s", e.what());
  } catch (...) {
    std::snprintf(error, error_size, "the page's server failed");
  }
  return false;
}

constexpr Module kModule{module_head<Module>(SDX_VERSION), serve_page};

}  // namespace
}  // namespace sdx::faces::page

extern "C" __attribute__((visibility("default"))) const sdx::ModuleHead* sdx_faces_page_module() {
  return &sdx::faces::page::kModule.head;
}
