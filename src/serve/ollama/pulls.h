#pragma once
// Models that clients fetch into the server's repository, and remove from it: /api/pull, /api/delete.

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "serve/models/catalog.h"
#include "serve/module_api.h"

namespace sdx::serve::ollama {

// Whether clients may, and how much.
struct PullOptions {
  bool allowed = false;
  std::uint64_t most_bytes = 0;  // of all models that were pulled into the repository
  std::function<void(const ClientPull&)> pull{};
};

// Thread-safe. The catalogue must outlive it.
class Pulls {
 public:
  Pulls(Catalog& catalog, PullOptions options);
  ~Pulls();
  Pulls(const Pulls&) = delete;
  Pulls& operator=(const Pulls&) = delete;

  bool allowed() const noexcept { return options_.allowed; }

  // Fetches a model, or waits for another client's fetch of it, and returns when it is served. `tell` gets lines as Ollama
  // writes them, without their ends, and says whether the client still listens; when nobody does, the fetch ends, and the next
  // one goes on from there. Throws openai::ApiError.
  void fetch(const std::string& name, const std::function<bool(std::string_view line)>& tell);

  // Unloads a model that was pulled into the repository and deletes its folder. `name`: the catalogue's. Throws openai::ApiError.
  void remove(const std::string& name);

  // Ends all fetches: the server stops.
  void stop();

 private:
  struct Job;
  std::shared_ptr<Job> join(const std::string& name);
  void run(Job& job);
  std::uint64_t room_for(const std::string& folder) const;

  Catalog& catalog_;
  const PullOptions options_;
  std::mutex mutex_;
  std::list<std::shared_ptr<Job>> jobs_;  // guarded by `mutex_`, as is what follows
  int listeners_ = 0;
  bool stopping_ = false;
};

}  // namespace sdx::serve::ollama
