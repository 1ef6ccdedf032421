#include "train/loop/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/error.h"
#include "base/suggest.h"
#include "base/system/interrupt.h"
#include "base/system/mapped_file.h"
#include "base/text/json_text.h"
#include "onnx/reader.h"
#include "train/checkpoint/format.h"
#include "train/loop/prepare.h"
#include "train/loop/progress.h"
#include "train/loop/report.h"
#include "train/loop/settings.h"

namespace sdx::train::loop {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kBetweenReports{10};
constexpr std::chrono::milliseconds kBetweenFlushes{100};  // of lines that a program may wait for

// The output for a person, or for a program with --json.
class Telling {
 public:
  Telling(const Request& request, const Console& console) : r_(request), console_(console), progress_(console) {}

  void note(const std::string& text) {
    progress_.clear();
    console_.note(text);
  }
  void begin(const Prepared& p, std::int64_t done, std::int64_t total);
  void plan(const Prepared& p, std::int64_t total);  // of a dry run
  void step(const FitStep& s);
  void epoch(const FitEpoch& e);
  void saved(const fs::path& path);
  void end(const FitResult& result, const Prepared& p);
  void features(std::int64_t done, std::int64_t total) { progress_.part("features", done, total); }
  void validation(std::int64_t done, std::int64_t total) { progress_.part("validation", done, total); }
  void clear() { progress_.clear(); }

 private:
  void event(const char* name, const Json& fields);

  const Request& r_;
  const Console& console_;
  Progress progress_;
  Clock::time_point last_flush_ = Clock::now();
};

void Telling::event(const char* name, const Json& fields) {
  Json all{{"event", name}};
  all.update(fields);
  progress_.clear();
  console_.print(dump_json(all) + "\n");
}

void Telling::begin(const Prepared& p, std::int64_t done, std::int64_t total) {
  for (const std::string& n : p.notes) note("note: " + n);
  if (r_.json) {
    event("begin", {{"samples", p.data.train->size()},
                    {"validation_samples", p.data.validation ? p.data.validation->size() : 0},
                    {"batch", p.fit.batch},
                    {"batches", total},
                    {"batches_done", done},
                    {"classes", p.data.classes}});
    console_.flush();
  } else {
    std::string line = p.data.kind;
    if (p.data.validation) line += fmt::format(", {} for validation", p.data.validation->size());
    note(line + fmt::format("; batches of {}", p.fit.batch));
    if (done > 0) note(fmt::format("continuing after {} of {} batches", done, total));
  }
  progress_.start(done, total);
}

void Telling::plan(const Prepared& p, std::int64_t total) {
  std::vector<std::string> files{p.fit.checkpoint.string()};
  if (p.data.validation) files.push_back(files.front() + ".best");
  for (const fs::path* f : {&r_.export_model, &r_.labels, &r_.report}) {
    if (!f->empty()) files.push_back(f->string());
  }
  for (const std::string& n : p.notes) note("note: " + n);
  if (r_.json) {
    event("plan", {{"dry_run", true},
                   {"samples", p.data.train->size()},
                   {"validation_samples", p.data.validation ? p.data.validation->size() : 0},
                   {"batch", p.fit.batch},
                   {"batches", total},
                   {"batches_done", p.batches_done},
                   {"classes", p.data.classes},
                   {"files", files}});
    return;
  }
  std::string line = "would train on " + p.data.kind;
  if (p.data.validation) line += fmt::format(", {} for validation", p.data.validation->size());
  console_.print(line + fmt::format("; {}, {} batch{} of {}\n", counted(r_.epochs, "epoch"), total - p.batches_done,
                                    total - p.batches_done == 1 ? "" : "es", p.fit.batch));
  for (const std::string& f : files) console_.print("would write " + f + "\n");
}

void Telling::step(const FitStep& s) {
  if (r_.json) {
    event("step", {{"epoch", s.epoch + 1},
                   {"batch", s.batch + 1},
                   {"batches_done", s.batches_done},
                   {"loss", s.loss},
                   {"accuracy", s.accuracy},
                   {"learning_rate", s.learning_rate}});
    if (Clock::now() - last_flush_ >= kBetweenFlushes) {
      console_.flush();
      last_flush_ = Clock::now();
    }
  }
  progress_.step(s.epoch, r_.epochs, s.batches_done, s.samples, s.loss);
}

void Telling::epoch(const FitEpoch& e) {
  if (r_.json) {
    event("epoch", {{"epoch", e.epoch + 1},
                    {"loss", e.loss},
                    {"accuracy", e.accuracy},
                    {"validation_loss", e.validation_loss},
                    {"validation_accuracy", e.validation_accuracy},
                    {"learning_rate", e.learning_rate},
                    {"best", e.best}});
    console_.flush();
    return;
  }
  progress_.clear();
  std::string line = fmt::format("epoch {}/{}: loss {}", e.epoch + 1, r_.epochs, short_number(e.loss));
  const auto percent = [&](const char* what, double v) {
    if (std::isfinite(v)) line += fmt::format(", {} {:.2f} %", what, 100 * v);
  };
  percent("accuracy", e.accuracy);
  if (std::isfinite(e.validation_loss)) line += ", validation loss " + short_number(e.validation_loss);
  percent("validation accuracy", e.validation_accuracy);
  console_.print(line + (e.best ? " (best)\n" : "\n"));
  console_.flush();
}

void Telling::saved(const fs::path& path) {
  if (r_.json) event("checkpoint", {{"path", path.string()}});
}

void Telling::end(const FitResult& result, const Prepared& p) {
  progress_.clear();
  const char* const why = result.end == FitResult::End::stopped    ? "stopped"
                          : result.end == FitResult::End::patience ? "patience"
                                                                   : "complete";
  if (r_.json) {
    event("end", {{"why", why},
                  {"epochs", result.history.size()},
                  {"batches_done", result.batches},
                  {"best_epoch", result.best_epoch < 0 ? Json(nullptr) : Json(result.best_epoch + 1)},
                  {"checkpoint", p.fit.checkpoint.string()},
                  {"best_checkpoint", result.best.empty() ? Json(nullptr) : Json(result.best.string())},
                  {"model", r_.export_model.empty() || result.end == FitResult::End::stopped ? Json(nullptr)
                                                                                             : Json(r_.export_model.string())}});
    return;
  }
  if (result.end == FitResult::End::patience) {
    note(fmt::format("the validation loss has not fallen for {} epochs: training ends", r_.patience));
  }
  if (console_.terminal && result.curve.losses.size() > 8) {
    const std::vector<PlotLine> lines{{fmt::format("training loss over {} batches", result.batches), result.curve.losses}};
    console_.draw(plot_text(lines, 60, 6));
  }
  console_.print(fmt::format("checkpoint: {}\n", p.fit.checkpoint.string()));
  if (!result.best.empty()) {
    console_.print(fmt::format("best checkpoint: {} (epoch {})\n", result.best.string(), result.best_epoch + 1));
  }
}

Report report_of(const Request& r, const Prepared& p, const FitResult& result) {
  Report report;
  report.title = "Training of " + fs::absolute(r.artifacts).lexically_normal().string();
  const auto fact = [&](const char* name, std::string value) { report.facts.emplace_back(name, std::move(value)); };
  fact("data", p.data.kind + " in " + r.data.string());
  if (p.data.validation) fact("validation", fmt::format("{} samples", p.data.validation->size()));
  fact("epochs", fmt::format("{} of {}", result.history.size(), r.epochs));
  fact("batch", p.fit.accumulate > 1 ? fmt::format("{} x {}", p.fit.accumulate, p.fit.batch) : fmt::format("{}", p.fit.batch));
  fact("optimiser", to_string(p.trainer_options.optimizer.value_or(OptimizerOptions{}).kind));
  fact("learning rate", fmt::format("{}, {}", r.learning_rate, r.schedule));
  fact("seed", fmt::format("{}", r.seed));
  if (!p.data.classes.empty()) {
    const std::size_t shown = std::min<std::size_t>(p.data.classes.size(), 20);
    fact("classes", join(std::span(p.data.classes).first(shown)) + (p.data.classes.size() > shown ? ", …" : ""));
  }
  fact("checkpoint", p.fit.checkpoint.string());
  report.notes = p.notes;
  if (result.end == FitResult::End::stopped)
    report.notes.emplace_back("The training was stopped; it can continue from its checkpoint.");
  report.history = result.history;
  report.curve = result.curve;
  report.batches_per_epoch = updates_per_epoch(p.data.train->size(), p.fit) * p.fit.accumulate;
  return report;
}

// An earlier training's checkpoint of that name is kept under another one: the new training's takes its name.
void keep_old(const fs::path& checkpoint, Telling& tell) {
  std::error_code error;
  if (!fs::exists(checkpoint, error)) return;
  const fs::path old = checkpoint.string() + ".old";
  keep_checkpoint(checkpoint, old);
  tell.note(fmt::format("note: the earlier checkpoint is kept as '{}'", old.string()));
}

void export_model(const Request& r, const Prepared& p, const FitResult& result) {
  if (r.export_model.empty()) return;
  CheckpointState state = result.best.empty() ? *p.state : CheckpointState::load(result.best);
  Module(p.paths.training, state, p.paths.eval).export_model_for_inferencing(r.export_model, p.outputs);
}

std::string quoted_labels(const std::vector<std::string>& classes) {
  std::string out;
  for (const std::string& c : classes) out += c + "\n";
  return out;
}

FitCallbacks callbacks_of(Telling& tell, const std::function<void(const FitEpoch&)>& on_epoch) {
  FitCallbacks c;
  c.step = [&tell](const FitStep& s) { tell.step(s); };
  c.epoch = [&tell, on_epoch](const FitEpoch& e) {
    tell.epoch(e);
    on_epoch(e);
  };
  c.validation = [&tell](std::int64_t done, std::int64_t total) { tell.validation(done, total); };
  c.saved = [&tell](const fs::path& path) { tell.saved(path); };
  c.stop = [] { return Interrupt::requested(); };
  return c;
}

}  // namespace

int run(const Request& request, const Console& console) {
  Telling tell(request, console);
  Prepared p = prepare(request, [&tell](std::int64_t done, std::int64_t total) { tell.features(done, total); });
  const std::int64_t total = updates_per_epoch(p.data.train->size(), p.fit) * p.fit.accumulate * p.fit.epochs;
  if (request.dry_run) {
    tell.plan(p, total);
    return 0;
  }
  if (p.batches_done == 0) keep_old(p.fit.checkpoint, tell);
  tell.begin(p, p.batches_done, total);
  FitResult so_far;
  Clock::time_point last_report = Clock::now();
  const auto on_epoch = [&](const FitEpoch& e) {
    so_far.history.push_back(e);
    if (request.report.empty() || Clock::now() - last_report < kBetweenReports) return;
    last_report = Clock::now();
    write_file_atomically(request.report, report_html(report_of(request, p, so_far)));
  };
  FitResult result;
  bool interrupted = false;
  {
    const Interrupt interrupt;
    try {
      result = fit(*p.trainer, *p.data.train, p.data.validation.get(), p.fit, callbacks_of(tell, on_epoch));
    } catch (...) {
      tell.clear();
      throw;
    }
    interrupted = result.end == FitResult::End::stopped;
  }
  if (!interrupted) export_model(request, p, result);
  if (!request.labels.empty()) write_file_atomically(request.labels, quoted_labels(p.data.classes));
  if (!request.report.empty()) write_file_atomically(request.report, report_html(report_of(request, p, result)));
  tell.end(result, p);
  if (!interrupted) {
    if (!request.export_model.empty() && !request.json) console.print(fmt::format("model: {}\n", request.export_model.string()));
    return 0;
  }
  tell.note(fmt::format("stopped after {} of {} batches; the same command with --resume continues from '{}'", result.batches,
                        total, p.fit.checkpoint.string()));
  return Interrupt::exit_code();
}

}  // namespace sdx::train::loop
