#pragma once
// Measured times of kernels, kept between runs: which of several kernels is the fastest for a shape.

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sdx::cache {

// The measured time of one run of a kernel.
struct KernelTime {
  std::string kernel;
  double ms = 0;
  friend bool operator==(const KernelTime&, const KernelTime&) = default;
};

// One file for all models of a machine. Keys say all that a time depends on: operator, attributes, types, processor, threads,
// version. Not thread-safe: a session's compiling uses one alone. Processes may share the file: each adds to what is there.
class TunedChoices {
 public:
  // Empty `file`: nothing is kept. A file that is missing, torn, or something else counts as empty.
  explicit TunedChoices(std::filesystem::path file);
  // Writes the new entries. A folder that cannot be written costs only this memory (info in the log).
  ~TunedChoices();
  TunedChoices(const TunedChoices&) = delete;
  TunedChoices& operator=(const TunedChoices&) = delete;

  // Null: not measured yet.
  const std::vector<KernelTime>* find(const std::string& key) const;
  void add(const std::string& key, std::vector<KernelTime> times);

 private:
  using Entries = std::map<std::string, std::vector<KernelTime>>;
  static Entries read(const std::filesystem::path& file);

  std::filesystem::path file_;
  Entries entries_, added_;
};

}  // namespace sdx::cache
