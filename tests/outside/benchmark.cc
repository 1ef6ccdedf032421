// Measures a model through the second library.
#include <cstdio>
#include <fstream>
#include <sdx/runner.hpp>

#include "model.h"

int main() {
  const std::filesystem::path model = std::filesystem::temp_directory_path() / "sdx_outside_benchmark.onnx";
  std::ofstream(model, std::ios::binary).write(reinterpret_cast<const char*>(kModel), sizeof kModel);
  sdx::BenchOptions options;
  options.model = model;
  options.backends = {"cpu"};
  options.runs = 3;
  options.warmup = 1;
  options.isolate = false;
  const sdx::BenchRun run = sdx::Runner(options).run();
  std::puts(sdx::to_text(run).c_str());
  std::filesystem::remove(model);
  return run.results.size() == 1 && run.results[0].statistics.latencies_ms.size() == 3 ? 0 : 1;
}
