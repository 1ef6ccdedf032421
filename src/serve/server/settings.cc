#include "serve/server/settings.h"

#include <charconv>

#include <cmath>
#include <filesystem>
#include <optional>
#include <sdx/project.hpp>

#include "base/error.h"

namespace sdx::serve {
namespace {

namespace fs = std::filesystem;

std::optional<ProjectConfig> project_of(const fs::path& path) {
  std::error_code ignored;
  const fs::path file = fs::is_directory(path, ignored) ? path / "sdx.yml" : path;
  const bool is_project = file.extension() == ".yml" || file.extension() == ".yaml";
  if (!is_project || !fs::is_regular_file(file, ignored)) return std::nullopt;
  return Project::open(file).config();
}

std::chrono::microseconds delay_of(double ms) {
  return std::chrono::microseconds(static_cast<std::int64_t>(std::llround(ms * 1000)));
}

}  // namespace

std::string url_of(const std::string& scheme, const std::string& address, int port) {
  const bool six = address.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", scheme, six ? "[" : "", address, six ? "]" : "", port);
}

namespace {

LanguageSettings language_of(const ServeRequest& request) {
  LanguageSettings out;
  out.context = request.context;
  for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16, DataType::int8}) {
    if (name(type) == request.cache_type) out.cache_type = type;
  }
  out.chat_template = request.chat_template;
  out.prompt_cache = request.prompt_cache;
  out.parallel = request.parallel;
  out.accuracy_level = request.accuracy_level;
  out.control_tokens = request.control_tokens;
  return out;
}

// An adapter is the model under another name: requests choose it by that.
void add_adapters(const ServeRequest& request, CatalogOptions& to) {
  if (request.loras.empty()) return;
  if (to.models.size() != 1) {
    fail(ErrorCode::invalid_argument, "--lora needs exactly one MODEL, whose adapters it names; there are {}", to.models.size());
  }
  const std::filesystem::path path = to.models[0].path;
  for (const std::string& text : request.loras) {
    const std::size_t name = text.find('=');
    if (name == std::string::npos || name == 0 || name + 1 == text.size()) {
      fail(ErrorCode::invalid_argument, "--lora {}: expected NAME=PATH or NAME=PATH=SCALE", text);
    }
    LoraAdapter adapter{text.substr(name + 1)};
    const std::size_t scale = text.rfind('=');
    const char* const end = text.data() + text.size();
    if (scale != name) {
      const auto read = std::from_chars(text.data() + scale + 1, end, adapter.scale);
      if (read.ec != std::errc{} || read.ptr != end) {
        fail(ErrorCode::invalid_argument, "--lora {}: '{}' is not a number", text, text.substr(scale + 1));
      }
      adapter.path = text.substr(name + 1, scale - name - 1);
    }
    to.models.push_back({text.substr(0, name), path, {std::move(adapter)}});
  }
}

}  // namespace

Settings settings_of(const ServeRequest& request) {
  if (request.tls_cert.empty() != request.tls_key.empty()) {
    fail(ErrorCode::invalid_argument, "--tls-cert and --tls-key must be given together");
  }
  std::optional<ProjectConfig> project;
  for (const auto& [name, path] : request.models) {
    if (!project) project = project_of(path);
  }
  Settings s;
  if (project) {
    s.host = project->serving.host;
    s.port = project->serving.port;
  }
  if (!request.host.empty()) s.host = request.host;
  if (s.host == "localhost") s.host = "127.0.0.1";
  if (request.port >= 0) s.port = request.port;
  // If HTTP may use any port, so may gRPC.
  s.grpc_port = request.grpc_port != -1 ? request.grpc_port : s.port == 0 ? 0 : 8081;
  CatalogOptions& c = s.catalog;
  for (const auto& [name, path] : request.models) c.models.push_back({name, path, {}});
  add_adapters(request, c);
  c.language = language_of(request);
  c.repository = request.repository;
  c.memory_limit = request.memory_limit;
  c.session = request.session;
  if (request.max_batch_size > 0) c.batch.max_batch_size = request.max_batch_size;
  if (request.max_queue_delay_ms >= 0) c.batch.max_queue_delay = delay_of(request.max_queue_delay_ms);
  if (request.queue > 0) c.batch.queue = request.queue;
  if (request.instances > 0) c.batch.instances = request.instances;
  return s;
}

}  // namespace sdx::serve
