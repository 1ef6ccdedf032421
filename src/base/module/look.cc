#include "base/module/look.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/module/places.h"
#include "base/system/dynlib.h"
#include "base/system/fork.h"
#include "base/system/new_file.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

// One file of one library, by their positions.
struct Trial {
  std::size_t library, file;
};

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string failure(const LibraryAsked& asked, const fs::path& path) {
  if (asked.symbol != nullptr) return module_problem(path, asked.symbol, asked.expected);
  std::string why;
  return DynamicLibrary::open_for_good(path, why) != nullptr ? "" : why;
}

// The child: the failure of each trial with a zero behind it, one by one, so that those before a crash arrive.
[[noreturn]] void try_all(std::span<const LibraryAsked> asked, std::span<const Trial> trials, int to) noexcept {
  for (const Trial& trial : trials) {
    const LibraryAsked& library = asked[trial.library];
    const std::string why = failure(library, library.files[trial.file]);
    if (!write_all(to, why.c_str(), why.size() + 1)) break;
  }
  ::_exit(0);
}

// All that arrives until the child ends, which is ended if that takes longer than any loader does.
std::string read_all(int from, pid_t child, bool& too_long) {
  constexpr auto kMost = std::chrono::seconds(20);
  const auto end = std::chrono::steady_clock::now() + kMost;
  std::string all;
  too_long = false;
  for (char piece[4096];;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
    pollfd waiting{from, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) {
      too_long = true;
      ::kill(child, SIGKILL);
      return all;
    }
    const ssize_t got = ::read(from, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return all;
    all.append(piece, static_cast<std::size_t>(got));
  }
}

std::string end_of(int status, bool too_long) {
  if (too_long) return "loading it takes longer than 20 s";
  if (WIFSIGNALED(status)) {
    return fmt::format("loading it ended the process: signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("loading it ended the process with exit code {}", WEXITSTATUS(status));
}

// The failure of each trial that was made, at least the first; the last one's is how the child ended, if it did so early.
std::vector<std::string> attempt(std::span<const LibraryAsked> asked, std::span<const Trial> trials) {
  int ends[2];
  if (::pipe(ends) != 0) fail(ErrorCode::runtime_failure, "cannot make a pipe: {}", std::strerror(errno));
  const pid_t child = fork_worker();
  if (child == 0) {
    ::close(ends[0]);
    try_all(asked, trials, ends[1]);
  }
  const int forked = errno;
  ::close(ends[1]);
  if (child < 0) {
    ::close(ends[0]);
    fail(ErrorCode::runtime_failure, "cannot start a process: {}", std::strerror(forked));
  }
  bool too_long = false;
  const std::string said = read_all(ends[0], child, too_long);
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  std::vector<std::string> out;
  for (std::size_t at = 0, end = 0; (end = said.find('\0', at)) != std::string::npos; at = end + 1) {
    out.push_back(said.substr(at, end - at));
  }
  if (out.size() < trials.size()) out.push_back(end_of(status, too_long));
  return out;
}

// "/x/libsdx_tiff.so: of release 0.0.1" without the path.
std::string without_path(const std::string& why, const fs::path& path) {
  const std::string start = path.string() + ": ";
  return why.starts_with(start) ? why.substr(start.size()) : why;
}

// What an installation of Sardonyx does not bring: that may be missing.
bool only_packages_missing(const LibraryFinding& finding) {
  return std::all_of(finding.missing.begin(), finding.missing.end(), [](const MissingLibrary& m) {
    return m.chain.size() > 1 && m.why == "not found" && !m.chain.back().starts_with("libsdx");
  });
}

bool is_named(const LibraryAsked& asked) {
  const char* const named = asked.named_by.empty() ? nullptr : std::getenv(asked.named_by.c_str());
  return named != nullptr && *named != '\0';
}

std::string advice(const LibraryAsked& asked) {
  return is_named(asked) ? "correct or unset " + asked.named_by : "install all files of this release again";
}

LibraryLook explained(const LibraryAsked& asked, const fs::path& path, const std::string& why) {
  LibraryLook look{LibraryLook::State::fails, path, without_path(why, path), advice(asked)};
  const LibraryFinding finding = explain_library(path);
  if (finding.loadable) return look;
  look.reason = without_path(finding.reason, path);
  if (asked.package != nullptr && only_packages_missing(finding)) {
    look.state = LibraryLook::State::absent;
    look.hint = fmt::format("install Debian's package {}", asked.package);
  } else if (!finding.hint.empty()) {
    look.hint = finding.hint;
  }
  return look;
}

bool is_linked(const LibraryAsked& asked) {
  return asked.linked || (asked.symbol != nullptr && LinkedModule::find(asked.symbol) != nullptr);
}

LibraryLook first_of(const LibraryAsked& asked) {
  if (is_linked(asked)) {
    const std::string why = asked.symbol == nullptr ? "" : linked_problem(asked.symbol, asked.expected);
    return {why.empty() ? LibraryLook::State::works : LibraryLook::State::fails, {}, why, ""};
  }
  if (!can_load_libraries()) return {};
  if (!is_named(asked) || asked.files.empty()) return {};
  return {LibraryLook::State::fails, asked.files.front(), "not there", advice(asked)};
}

}  // namespace

LibraryAsked ask_for(const ModuleName& name, std::size_t table_bytes, std::size_t types_bytes) {
  return {module_files(name), name.variable, name.symbol, {kModuleMagic, SDX_VERSION, table_bytes, types_bytes}, name.package};
}

LibraryAsked ask_for_library(const char* file) { return {module_files({file, nullptr, "", ""}), "", nullptr, {}, nullptr}; }

std::vector<LibraryLook> look_at_libraries(std::span<const LibraryAsked> asked) {
  std::vector<Trial> trials;
  std::vector<LibraryLook> looks;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    looks.push_back(first_of(asked[i]));
    if (is_linked(asked[i]) || !can_load_libraries()) continue;
    for (std::size_t k = 0; k < asked[i].files.size(); ++k) {
      if (is_there(asked[i].files[k])) trials.push_back({i, k});
    }
  }
  // The failure of the first file of each library is what counts, unless another file works.
  std::vector<std::pair<std::size_t, std::string>> failures(asked.size(), {SIZE_MAX, ""});
  for (std::size_t done = 0; done < trials.size();) {
    for (const std::string& why : attempt(asked, std::span(trials).subspan(done))) {
      const Trial& trial = trials[done++];
      LibraryLook& look = looks[trial.library];
      if (look.state == LibraryLook::State::works) continue;
      if (why.empty()) look = {LibraryLook::State::works, asked[trial.library].files[trial.file], "", ""};
      if (!why.empty() && failures[trial.library].first == SIZE_MAX) failures[trial.library] = {trial.file, why};
    }
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto& [file, why] = failures[i];
    if (file != SIZE_MAX && looks[i].state != LibraryLook::State::works)
      looks[i] = explained(asked[i], asked[i].files[file], why);
  }
  return looks;
}

}  // namespace sdx
