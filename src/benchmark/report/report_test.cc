#include <gtest/gtest.h>

#include <filesystem>

#include <sdx/runner.hpp>

#include "base/system/mapped_file.h"
#include "base/system/process.h"
#include "benchmark/statistics.h"

namespace sdx {
namespace {

using namespace benchmark;

BenchRun example() {
  BenchRun run;
  run.model = "folder/m.onnx";
  run.created = "2026-01-31T12:00:00Z";
  run.model_hash = "0123";
  run.inputs = {{"x", "float32", {1, 2}, "given"}};
  BenchResult& r = run.results.emplace_back();
  r.backend = "cpu";
  r.provider = "cpu";
  r.statistics = summarize({1, 2, 3, 2, 1});
  for (int i = 0; i < 5; ++i) r.iterations.push_back({i, i * 1000000, i * 1000000 + 1, 1, false, 0, i / 3, 0});
  r.processes = {{1, 1, 2, 3, 4, 5, 0.5, 0.25}, {2, 1, 2, 3, 4, 5, 0.5, 0.25}};
  r.between_processes_cv = 0.25;
  r.measure_iterations = 5;
  r.operators = {{"Conv", "gemm", "cpu", 1, 0.5, 1, 2, 3}};
  r.limits = {1, 4, 12};
  r.nodes = {{"conv<1>", "Conv", "gemm", "cpu", 0.5, 1, 1e-3, 1.5e-3, 2, 3}};
  BenchResult& bad = run.results.emplace_back();
  bad.backend = "cuda";
  bad.error = "no <device> & no driver";
  bad.error_code = "provider_unavailable";
  return run;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(Report, FileKeepsEverything) {
  const BenchRun run = example();
  const auto path = std::filesystem::temp_directory_path() / ("sdx_report_test_" + std::to_string(process_id()) + ".json");
  write_file_atomically(path, to_json(run));
  const BenchRun again = read_benchmark(path);
  std::filesystem::remove(path);
  EXPECT_EQ(again.model_hash, run.model_hash);
  EXPECT_EQ(again.inputs, run.inputs);
  ASSERT_EQ(again.results.size(), 2U);
  EXPECT_EQ(again.results[0].processes, run.results[0].processes);
  EXPECT_EQ(again.results[0].nodes, run.results[0].nodes);
  EXPECT_EQ(again.results[0].operators, run.results[0].operators);
  EXPECT_EQ(again.results[0].limits, run.results[0].limits);
  EXPECT_EQ(again.results[0].iterations, run.results[0].iterations);
  EXPECT_EQ(again.results[0].between_processes_cv, 0.25);
  EXPECT_EQ(again.results[1].error, run.results[1].error);
}

// A report opens without a network, and whatever text is in it shows as text.
TEST(Report, PageNeedsNothingElse) {
  const std::string page = to_html(example());
  for (const char* outside : {"://", "src=", "href=", "url(", "@import", "fetch(", "XMLHttpRequest", "import("}) {
    EXPECT_FALSE(has(page, outside)) << outside;
  }
  EXPECT_TRUE(has(page, "default-src 'none'"));
  EXPECT_TRUE(has(page, "<h1>m.onnx</h1>"));
  EXPECT_TRUE(has(page, "conv&lt;1&gt;"));
  EXPECT_TRUE(has(page, "no &lt;device&gt; &amp; no driver"));
  EXPECT_FALSE(has(page, "no <device>"));
}

TEST(Report, PageKeepsItsScriptsWhatTheModelIsCalled) {
  BenchRun run = example();
  run.model = "</script><img onerror=alert(1)>.onnx";
  run.results[0].backend = "</script><b>";
  run.results[0].notes = {"<i>note</i>"};
  const std::string page = to_html(run);
  EXPECT_FALSE(has(page, "<img"));
  EXPECT_FALSE(has(page, "<i>note"));
  std::size_t ends = 0;
  for (std::size_t at = 0; (at = page.find("</script>", at)) != std::string::npos; ++at) ++ends;
  EXPECT_EQ(ends, 2U);
}

TEST(Report, TablesNameTheNodes) {
  const std::string text = to_text(example());
  EXPECT_TRUE(has(text, "conv<1>"));
  EXPECT_TRUE(has(text, "cpu: gemm"));
  EXPECT_TRUE(has(to_markdown(example()), "conv<1>"));
}

}  // namespace
}  // namespace sdx
