#include "vision/batch/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/system/interrupt.h"
#include "base/text/json_text.h"
#include "base/text/text_table.h"
#include "vision/batch/process.h"
#include "vision/batch/settings.h"

namespace sdx::vision::batch {
namespace {

constexpr std::size_t kStages = 6;
constexpr std::array<const char*, kStages> kNames = {"decode", "preprocess", "inference", "postprocess", "crop", "encode"};

struct Result {
  std::string runtime, provider, why_not;
  std::array<std::vector<double>, kStages> ms;
  std::vector<double> total_ms;
  std::size_t faces = 0;  // of one pass over the pictures
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// Crops like `sdx faces crop` with its defaults, but without files.
void measure(const Context& context, const Input& input, Result& result) {
  const auto start = std::chrono::steady_clock::now();
  const Processed done = process(context, input, std::nullopt);
  const double ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const Record& r = done.record;
  if (!r.error.empty()) fail(ErrorCode::io, "{}: {}", r.file, r.error);
  const Times& t = r.times;
  const std::array<double, kStages> stages = {t.decode, t.preprocess, t.inference, t.postprocess, t.crop, t.encode};
  for (std::size_t i = 0; i < kStages; ++i) result.ms[i].push_back(stages[i]);
  result.total_ms.push_back(ms);
  result.provider = r.provider;
  result.faces += r.faces.size();
}

Result run_one(const Request& r, const std::string& runtime, const std::vector<Input>& inputs) {
  Result result;
  result.runtime = runtime;
  Request request = r;
  request.runtime = runtime;
  try {
    const faces::FaceDetector detector = faces::FaceDetector::load(r.model, parse_detector(request));
    if (detector.runtime() != (runtime == "ort" ? "ort" : "native")) {
      result.why_not = detector.warnings().empty() ? "it is not available" : detector.warnings().front();
      return result;
    }
    const Settings settings = parse(request);
    const Context context{.settings = settings, .detector = detector, .timestamp = timestamp_now(), .discard = true};
    Result warm;
    for (const Input& input : inputs) measure(context, input, warm);
    for (int run = 0; run < r.runs && !Interrupt::requested(); ++run) {
      result.faces = 0;
      for (const Input& input : inputs) measure(context, input, result);
    }
  } catch (const Error& e) {
    result.why_not = e.message();
    result.total_ms.clear();
  }
  return result;
}

double per_second(const Result& r) {
  double sum = 0;
  for (const double ms : r.total_ms) sum += ms;
  return sum > 0 ? 1000 * static_cast<double>(r.total_ms.size()) / sum : 0;
}

std::string json(const Request& r, const std::vector<Result>& results, std::size_t pictures) {
  std::string out = fmt::format("{{\"model\": {}, \"pictures\": {}, \"runs\": {}, \"results\": [", json_string(r.model.string()),
                                pictures, r.runs);
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Result& result = results[k];
    out += fmt::format("{}\n{{\"runtime\": {}, \"provider\": {}, \"error\": {}, \"median_ms\": {{", k == 0 ? "" : ",",
                       json_string(result.runtime), json_or_null(result.provider), json_or_null(result.why_not));
    for (std::size_t i = 0; i < kStages; ++i) out += fmt::format("\"{}\": {:.4f}, ", kNames[i], median(result.ms[i]));
    out += fmt::format("\"total\": {:.4f}}}, \"pictures_per_s\": {:.2f}, \"faces\": {}}}", median(result.total_ms),
                       per_second(result), result.faces);
  }
  return out + "]}\n";
}

std::string table(const std::vector<Result>& results) {
  std::vector<std::vector<std::string>> rows{{"median ms"}};
  for (const char* name : kNames) rows.push_back({name});
  for (const char* name : {"total", "pictures/s", "faces"}) rows.push_back({name});
  for (const Result& r : results) {
    if (!r.why_not.empty()) continue;
    rows[0].push_back(r.runtime + (r.provider.empty() ? "" : " (" + r.provider + ")"));
    for (std::size_t i = 0; i < kStages; ++i) rows[i + 1].push_back(fmt::format("{:.3f}", median(r.ms[i])));
    rows[kStages + 1].push_back(fmt::format("{:.3f}", median(r.total_ms)));
    rows[kStages + 2].push_back(fmt::format("{:.1f}", per_second(r)));
    rows[kStages + 3].push_back(fmt::format("{}", r.faces));
  }
  return text_table(rows);
}

}  // namespace

void check_bench(const Request& request) {
  if (request.paths.empty()) fail(ErrorCode::invalid_argument, "no pictures given: give files, folders or patterns");
  if (std::find(request.paths.begin(), request.paths.end(), "-") != request.paths.end()) {
    fail(ErrorCode::invalid_argument, "'-' cannot be measured, because the pictures are read several times");
  }
  static_cast<void>(parse_detector(request));
}

int bench(const Request& request, const Console& console) {
  check_bench(request);
  const Interrupt interrupt;
  Request crops = request;
  crops.task = Task::crop;
  crops.dry_run = true;  // no folder is needed
  const std::vector<Input> inputs = collect(crops, parse(crops), {}).inputs;
  if (inputs.empty()) fail(ErrorCode::io, "there are no pictures in '{}'", request.paths.front());
  const std::vector<std::string> runtimes =
      request.runtimes.empty() ? std::vector<std::string>{"native", "ort"} : request.runtimes;
  std::vector<Result> results;
  for (const std::string& runtime : runtimes) results.push_back(run_one(crops, runtime, inputs));
  const bool any = std::any_of(results.begin(), results.end(), [](const Result& r) { return !r.total_ms.empty(); });
  for (const Result& r : results) {
    if (!r.why_not.empty()) console.note(fmt::format("{}: {}: {}", any ? "note" : "error", r.runtime, r.why_not));
  }
  if (request.json) {
    console.print(json(request, results, inputs.size()));
  } else if (any) {
    console.print(table(results));
  }
  const bool asked_for = !request.runtimes.empty();
  const bool all = std::all_of(results.begin(), results.end(), [](const Result& r) { return r.why_not.empty(); });
  return any && (all || !asked_for) ? 0 : 1;
}

}  // namespace sdx::vision::batch
