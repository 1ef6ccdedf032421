#pragma once
// Rows of cells that the reports of every format show; the first row is the heading.

#include <cstddef>
#include <string>
#include <vector>

#include <sdx/runner.hpp>

namespace sdx::benchmark {

using Rows = std::vector<std::vector<std::string>>;

Rows summary_rows(const BenchRun& run);
// The requested backend and the one chosen: "auto: cpu".
std::string backend_text(const BenchResult& r);
// Where nodes ran ("openvino 3, cpu 68") if the backend's name does not say it; otherwise "".
std::string places_text(const BenchResult& r);
// The number of columns that identify a row's result.
std::size_t key_columns(const BenchRun& run);
// The `most` most expensive ones, and the sum of the others.
Rows operator_rows(const BenchResult& r, std::size_t most);
Rows node_rows(const BenchResult& r, std::size_t most);
std::string node_heading(const BenchResult& r, std::size_t most);
// "cpu, 2 threads, batch 4"
std::string result_label(const BenchResult& r);
std::string machine_line(const MachineInfo& m);
std::string inputs_line(const BenchRun& run);
// Every note once, with who it is about.
std::vector<std::string> all_notes(const BenchRun& run);

}  // namespace sdx::benchmark
