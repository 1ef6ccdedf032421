#pragma once
// What sdx_conformance runs: which cases, in which ways, and which of them may fail.

#include <filesystem>
#include <istream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/case.h"
#include "conformance/readers.h"

namespace sdx::testing {

// `path` itself when it is a case; else every case in it or in the folders right below it, sorted by path.
std::vector<std::filesystem::path> find_cases(const std::filesystem::path& path);

// Cases that may fail, with the reason.
using Ignored = std::map<std::string, std::string>;
// Lines "name reason", or "name@release reason" for what only that release's data get wrong; '#' starts a comment. Throws
// Error(invalid_argument) for a line without a reason and for a name that is listed twice.
Ignored read_ignored(std::istream& text, std::string_view release);
// An ignored case that passes has failed; one that fails or is skipped is skipped with the listed reason.
Outcome judge(const Ignored& ignored, const std::string& name, Outcome outcome);

// A way to run a case; all must give the expected answers.
struct Way {
  std::string name;
  std::string isa;  // value of SDX_CPU_ISA; empty: as it is
  bool optimize = true;
  bool reference = false;    // SDX_CPU_KERNEL=reference
  bool interpreter = false;  // node by node, without a session
  int threads = 0;
  bool vulkan = false;  // nodes with a shader on a driver that computes on the CPU, the others on cpu
  Readers readers = Readers::none;
};
// "default", "no-passes", "reference", "two-threads", "interpreter", "readers-kept", "readers-alone", "vulkan", or an instruction
// set: "avx2". Throws Error(invalid_argument) for another name.
Way way(std::string_view name);
// Whether this machine can: false for instruction sets that it lacks, and for drivers that are not installed.
bool possible(const Way& way);
// Every name, whether or not this machine can.
std::vector<std::string> way_names();

// Runs the case in a process of its own, so that neither a crash nor a hang ends the run. `timeout` in seconds.
Outcome run_in_child(const std::filesystem::path& path, const Way& way, unsigned timeout);
// In this process. The environment is changed for as long as it lives: for one way per process.
Outcome run_here(const std::filesystem::path& path, const Way& way);

}  // namespace sdx::testing
