#include "base/module/look.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/module/one_file.h"
#include "base/module/places.h"
#include "base/system/child.h"
#include "base/system/dynlib.h"

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

// The child says the failure of each trial with a zero behind it, one by one, so that those before a crash arrive.
void try_all(std::span<const LibraryAsked> asked, std::span<const Trial> trials,
             const std::function<bool(std::string_view)>& say) noexcept {
  for (const Trial& trial : trials) {
    const LibraryAsked& library = asked[trial.library];
    const std::string why = failure(library, library.files[trial.file]);
    if (!say({why.c_str(), why.size() + 1})) break;
  }
}

std::string reason_of(const ChildEnd& end) {
  if (end.too_long) return "loading it takes longer than 20 s";
  if (end.signal != 0) return fmt::format("loading it ended the process: signal {} ({})", end.signal, end.signal_name);
  return fmt::format("loading it ended the process with exit code {}", end.exit_code);
}

// The failure of each trial that was made, at least the first; the last one's is how the child ended, if it did so early.
std::vector<std::string> attempt(std::span<const LibraryAsked> asked, std::span<const Trial> trials) {
  constexpr std::chrono::seconds kMost{20};  // longer than any loader takes
  const ChildEnd end = run_in_child([&](const auto& say) { try_all(asked, trials, say); }, kMost);
  const std::string& said = end.said;
  std::vector<std::string> out;
  for (std::size_t at = 0, to = 0; (to = said.find('\0', at)) != std::string::npos; at = to + 1) {
    out.push_back(said.substr(at, to - at));
  }
  if (out.size() < trials.size()) out.push_back(reason_of(end));
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
  if (is_one_file()) return {};
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
    if (is_linked(asked[i]) || is_one_file()) continue;
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
