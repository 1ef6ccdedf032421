#pragma once
// The interface of libsdx_serve.so for the command `sdx`, which loads it when `sdx serve` is called. Both are of one build: C++
// types cross the border.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/module/module.h"
#include "session/options/option_table.h"

namespace sdx::serve {

// The flags of `sdx serve`. A flag that is not given is 0, "" or nothing; its value then comes from the project file's
// `serving:`, else from the defaults.
struct ServeRequest {
  std::vector<std::pair<std::string, std::string>> models;  // name ("": the file's), path
  std::string repository;
  bool allow_pull = false;       // clients may fetch models into the repository and remove those
  std::uint64_t pull_limit = 0;  // bytes of all models that were fetched; 0: the default
  std::string host;              // "127.0.0.1"
  int port = -1;                 // 0: a free one; -1: not given (8080)
  int grpc_port = -1;            // the same (8081); -2: no gRPC
  std::string api_keys, tls_cert, tls_key;
  std::vector<std::string> cors;   // origins that browsers may call from
  std::vector<std::string> hosts;  // names by which the server may be called, besides its address
  std::int64_t max_batch_size = 0;
  double max_queue_delay_ms = -1;
  int queue = 0, instances = 0;
  std::uint64_t memory_limit = 0;
  // Of language models.
  std::int64_t context = 0;
  std::string cache_type, chat_template;
  std::vector<std::string> loras;  // NAME=PATH or NAME=PATH=SCALE: also the only model with this adapter, under this name
  std::optional<std::uint64_t> prompt_cache;
  int parallel = 0, accuracy_level = 0;
  bool control_tokens = false;
  std::string log_format = "text";  // or "json"
  bool log_prompts = false;
  std::string otlp;  // "http://host:4318"
  bool page = true;
  session::TypedOptions session;
};

// Of a model's file that is being fetched.
struct PullStep {
  std::string file, sha256;           // "": not known before
  std::uint64_t done = 0, total = 0;  // bytes; total 0: not known
};

// A model that a client asks for.
struct ClientPull {
  std::string name;                           // as the client wrote it; only names of registry and hub may be fetched
  std::uint64_t most_bytes = 0;               // of all its files
  std::function<bool(const PullStep&)> step;  // called often; false ends the fetch
};

// The functions with which the module talks to the command. They are called from any thread.
struct ServeHost {
  std::function<bool()> stop;                      // asked some times a second: SIGTERM or Ctrl-C came
  std::function<bool()> reload;                    // SIGHUP came since the last call
  std::function<void(std::string_view line)> say;  // to standard error, with a newline behind it
  // Fetches a model into the repository. Throws sdx::Error.
  std::function<void(const ClientPull&)> pull;
};

struct ServeModule {
  static constexpr ModuleName kModule{"sardonyx/libsdx_serve.so", "sdx_serve_module", "SDX_SERVE_LIB", "sdx serve"};

  ModuleHead head;
  // Serves until it is stopped, then ends requests under way (30 s at most). Throws sdx::Error.
  void (*serve)(const ServeRequest& request, const ServeHost& host);
};

}  // namespace sdx::serve
