// sdx serve

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/quantity.h"
#include "base/system/interrupt.h"
#include "base/system/processes/signals.h"
#include "cli/command.h"
#include "cli/commands.h"
#include "cli/registry/pulled.h"
#include "cli/session_flags.h"
#include "hub/pull.h"
#include "project/resolve.h"
#include "serve/module_api.h"

namespace sdx::cli {
namespace {

constexpr const char* kServeExamples =
    "Examples:\n"
    "  sdx serve yolo11n.onnx\n"
    "  sdx serve chat=SmolLM2-135M-Instruct.Q4_1.gguf embed=all-MiniLM-L6-v2/ --port 8000\n"
    "  sdx serve --repository models/ --host 0.0.0.0 --api-keys keys.txt --tls-cert cert.pem --tls-key key.pem\n"
    "MODEL is a file, a folder, a project or a name, NAME the one by which clients ask for it. Ctrl-C ends the server when "
    "requests\n"
    "under way have ended, a second one at once; SIGHUP reads keys and certificates again.\n";

struct ServeCommand {
  std::vector<std::string> models;
  SessionFlags session;
  serve::ServeRequest request;
  std::string memory_limit, prompt_cache, pull_limit;
  std::optional<double> delay;
  int grpc_port = -1;
  bool no_grpc = false, no_page = false;

  int run();
};

// "chat=model.gguf", "model.onnx", or a name of the registry. A path that contains '=' is taken whole where it exists.
std::pair<std::string, std::string> model_of(const std::string& text) {
  std::error_code ignored;
  const std::size_t equals = text.find('=');
  const bool named = equals != std::string::npos && equals > 0 && !std::filesystem::exists(text, ignored);
  std::string name = named ? text.substr(0, equals) : "";
  const std::string path = named ? text.substr(equals + 1) : text;
  if (std::filesystem::exists(path, ignored)) return {name, path};
  if (name.empty()) name = path;
  if (const auto pulled = pulled_model_named(path); pulled && pulled->of_text()) return {name, pulled->folder.string()};
  const project::ResolvedModel found = project::resolve(path);
  const bool is_project = found.project && !found.project->file().empty();
  return {name, is_project ? found.project->file().string() : found.model.string()};
}

// A pull for a client of the server: names of registry and hub alone, into the server's own folder.
void pull_for_client(const serve::ClientPull& wanted, const std::string& repository) {
  hub::PullOptions options;
  options.root = repository;
  options.only_names = true;
  options.network.max_bytes = wanted.most_bytes;
  std::uint64_t before = 0, of_file = 0;
  serve::PullStep step;
  const auto tell = [&] {
    if (!wanted.step(step)) fail(ErrorCode::cancelled, "'{}': no client waits for the model any more", wanted.name);
  };
  options.network.note = [&](const std::string&) { tell(); };
  options.progress = [&](const hub::PullProgress& at) {
    if (at.file != step.file) before += std::exchange(of_file, 0);
    step = {at.file, at.sha256, at.done, at.total};
    of_file = std::max(at.done, at.total);
    if (before + of_file > wanted.most_bytes) {
      fail(ErrorCode::invalid_argument, "'{}' is larger than this server may fetch: {} are left of its limit (--pull-limit)",
           wanted.name, size_text(static_cast<double>(wanted.most_bytes)));
    }
    tell();
  };
  static_cast<void>(hub::pull(wanted.name, options));
}

int ServeCommand::run() {
  request.session = session.asked().session;
  if (!memory_limit.empty()) request.memory_limit = parse_bytes(memory_limit, "--memory-limit");
  if (!prompt_cache.empty()) request.prompt_cache = parse_bytes(prompt_cache, "--prompt-cache");
  if (!pull_limit.empty()) request.pull_limit = parse_bytes(pull_limit, "--pull-limit");
  if (delay && !(*delay >= 0 && *delay <= 60000)) throw UsageError("--max-queue-delay-ms must be 0 to 60000");
  request.max_queue_delay_ms = delay.value_or(-1);
  if (models.empty() && request.repository.empty()) throw UsageError("name a MODEL, or --repository DIR with models");
  for (const std::string& text : models) request.models.push_back(model_of(text));
  request.grpc_port = no_grpc ? -2 : grpc_port;
  if (request.allow_pull && request.repository.empty()) throw UsageError("--allow-pull needs --repository DIR, where models go");
  if (!pull_limit.empty() && !request.allow_pull) throw UsageError("--pull-limit belongs to --allow-pull");
  request.page = !no_page;
  const serve::ServeModule& module = load_module<serve::ServeModule>();
  const Interrupt interrupt;
  const ReloadRequests reloads;
  serve::ServeHost host;
  host.stop = [] { return Interrupt::requested(); };
  host.reload = [] { return ReloadRequests::take(); };
  host.say = [](std::string_view lines) { say(lines); };
  host.pull = [this](const serve::ClientPull& wanted) { pull_for_client(wanted, request.repository); };
  module.serve(request, host);
  return kServed;
}

void add_network_flags(const Command& command, ServeCommand& c) {
  const char* group = "Network";
  serve::ServeRequest& r = c.request;
  command.add_option("--host", r.host, "Address to listen on (default: 127.0.0.1, this machine only)")
      ->type_name("ADDRESS")
      ->group(group);
  command.add_option("--port", r.port, "Port for HTTP (8080; 0: a free one)")->range(0, 65535)->type_name("N")->group(group);
  command.add_option("--grpc-port", c.grpc_port, "Port for gRPC (8081; 0: a free one)")
      ->range(0, 65535)
      ->type_name("N")
      ->group(group);
  command.add_flag("--no-grpc", c.no_grpc, "No gRPC, only HTTP")->group(group);
  command.add_flag("--no-page", c.no_page, "No page at /")->group(group);
  command.add_option("--tls-cert", r.tls_cert, "Certificate, followed by its chain (PEM)")->type_name("FILE")->group(group);
  command.add_option("--tls-key", r.tls_key, "Its private key (PEM)")->type_name("FILE")->group(group);
  command.add_option("--api-keys", r.api_keys, "File of API keys, one per line: docs/serve/serve.md")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--cors", r.cors, "Origin that may send requests, such as https://example.com; * for all")
      ->one_word()
      ->type_name("ORIGIN")
      ->group(group);
  command.add_option("--allow-host", r.hosts, "Additional host name for a server on 127.0.0.1")
      ->one_word()
      ->type_name("NAME")
      ->group(group);
}

void add_model_flags(const Command& command, ServeCommand& c) {
  serve::ServeRequest& r = c.request;
  command.add_option("MODEL", c.models, "MODEL or NAME=MODEL; may be repeated");
  const char* group = "Models";
  command.add_option("--repository", r.repository, "Folder of models, which are loaded on demand")
      ->type_name("DIR")
      ->group(group);
  command
      .add_flag("--allow-pull", r.allow_pull,
                "Clients may fetch models from the registry into the repository, and remove those (/api/pull, /api/delete)")
      ->group(group);
  command.add_option("--pull-limit", c.pull_limit, "Most bytes of all models that were pulled there (100GB)")
      ->type_name("SIZE")
      ->group(group);
  command.add_option("--max-batch-size", r.max_batch_size, "Maximum number of samples per run")
      ->range(1, 1'000'000)
      ->type_name("N")
      ->group(group);
  command.add_option("--max-queue-delay-ms", c.delay, "How long a request waits for others to form a batch")
      ->type_name("MS")
      ->group(group);
  command.add_option("--queue", r.queue, "Maximum number of requests that wait for a model (256)")
      ->range(1, 1'000'000)
      ->type_name("N")
      ->group(group);
  command.add_option("--instances", r.instances, "Concurrent runs of a model (1)")->range(1, 1024)->type_name("N")->group(group);
}

void add_language_flags(const Command& command, ServeCommand& c) {
  const char* group = "Language models";
  serve::ServeRequest& r = c.request;
  command.add_option("--context", r.context, "Maximum number of tokens of prompt and answer; 0: the model's context")
      ->range(0, std::int64_t{1} << 32)
      ->type_name("N")
      ->group(group);
  command
      .add_option("--cache-type", r.cache_type,
                  "Type in which keys and values are stored: float16, bfloat16 and int8 save memory")
      ->one_of({"float32", "float16", "bfloat16", "int8"})
      ->type_name("TYPE")
      ->group(group);
  command
      .add_option(
          "--accuracy-level", r.accuracy_level,
          "Least precise type of activations beside weights in blocks: 1 float32, 2 float16, 3 bfloat16, 4 int8; 0: as the "
          "model's files ask, which is int8 in .gguf files")
      ->range(0, 4)
      ->type_name("N")
      ->group(group);
  command
      .add_option("--lora", r.loras,
                  "Also serve the MODEL with this LoRA adapter and its scale (1), under the name NAME; may be repeated")
      ->type_name("NAME=PATH[=X]")
      ->one_word()
      ->group(group);
  command.add_option("--chat-template", r.chat_template, "Chat template (Jinja) instead of the model's")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--prompt-cache", c.prompt_cache,
                  "Memory per model for keys and values that later prompts may begin with (a tenth of the memory); 0: none")
      ->type_name("SIZE")
      ->group(group);
  command.add_option("--parallel", r.parallel, "Answers of a model that are computed together (16)")
      ->range(1, 1024)
      ->type_name("N")
      ->group(group);
  command.add_flag("--allow-control-tokens", r.control_tokens, "Names of special tokens in messages are these tokens, not text")
      ->group(group);
}

void add_log_flags(const Command& command, ServeCommand& c) {
  const char* group = "Monitoring";
  serve::ServeRequest& r = c.request;
  command.add_option("--log-format", r.log_format, "Log lines as text or as JSON")
      ->one_of({"text", "json"})
      ->type_name("FORMAT")
      ->group(group);
  command.add_flag("--log-prompts", r.log_prompts, "Log prompts, which may be private")->group(group);
  command.add_option("--otlp", r.otlp, "Send traces to this collector: http://127.0.0.1:4318")->type_name("URL")->group(group);
}

}  // namespace

void add_serve(const Command& app, Action& action) {
  const Command command = app.add_subcommand("serve", "Serve models over HTTP and gRPC");
  const auto c = std::make_shared<ServeCommand>();
  add_model_flags(command, *c);
  add_language_flags(command, *c);
  add_network_flags(command, *c);
  add_log_flags(command, *c);
  c->session.add_to(command, false);
  command.remove_option("--dtype");
  command.remove_option("--memory-limit");  // here, of all models together
  command
      .add_option("--memory-limit", c->memory_limit, "Memory limit for all models; the least recently used one is unloaded first")
      ->type_name("SIZE")
      ->group("Models");
  command.footer(kServeExamples);
  command.callback([c, &action] { action = [c] { return c->run(); }; });
}

}  // namespace sdx::cli
