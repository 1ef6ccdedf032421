#pragma once
// Results for people, programs and files.

#include <cstdint>
#include <string>
#include <vector>

#include <sdx/session.hpp>

namespace sdx::cli {

// One label a line. Throws Error(io).
std::vector<std::string> read_labels(const std::string& path);
// {"model", "runtime", "providers", "fallbacks", "warnings", "load_ms", "init_ms", "peak_bytes"}, and "run_ms" where >= 0.
std::string report_json(const Report& report, double run_ms);
// "[\"a\",\"b\"]"

// {"outputs": {NAME: value}, ["top": …,] "report": {…}} and a newline; `extra` is inserted as it is (",\"top\":…").
std::string outputs_json(const NamedValues& outputs, const Report& report, double run_ms, const std::string& extra = "");
// A few lines for each output.
std::string outputs_text(const NamedValues& outputs);

// By the name's ending: .json, .npz, .npy (a single output) or .pb (a single output). Throws UsageError for others.
void write_outputs(const std::string& path, const NamedValues& outputs, const Report& report, double run_ms,
                   const std::string& extra);
void check_output_name(const std::string& path);

}  // namespace sdx::cli
