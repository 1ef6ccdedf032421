#include "cli/run_batch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <set>

#include "base/counted.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/quantity.h"
#include "base/system/file.h"
#include "base/system/interrupt.h"
#include "base/system/mapped_file.h"
#include "base/system/new_file.h"
#include "base/text/json_text.h"
#include "base/text/safe_name.h"
#include "cli/command.h"
#include "cli/values/file_list.h"
#include "cli/values/outputs.h"
#include "cli/values/stack.h"
#include "tensor/json.h"

namespace sdx::cli {
namespace {

namespace fs = std::filesystem;

// One sample's result, or why there is none.
struct Result {
  std::int64_t index = 0;
  std::string name;
  std::string error;
  Shown shown;
};

std::string outputs_part(const Shown& shown) {
  std::string out = "\"outputs\":{";
  bool first = true;
  for (const NamedValue& item : shown.outputs) {
    if (!std::exchange(first, false)) out += ',';
    append_json_string(out, item.name);
    out += ':';
    append_json(out, item.value);
  }
  return out + "}" + shown.json;
}

std::string line_json(const Result& r) {
  if (!r.error.empty()) return fmt::format("{{\"sample\":{},\"error\":{}}}", json_string(r.name), json_string(r.error));
  return fmt::format("{{\"sample\":{},{}}}", json_string(r.name), outputs_part(r.shown));
}

// The destinations of results. Every file that has its final name is complete.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual bool done(std::int64_t) { return false; }  // by an earlier, interrupted run
  virtual void put(const Result& result) = 0;
  virtual void finish() {}
};

class TextSink : public Sink {
 public:
  explicit TextSink(bool json) : json_(json) {}
  void put(const Result& r) override {
    if (json_) {
      print(line_json(r) + "\n");
    } else if (r.error.empty()) {
      print(fmt::format("{}:\n{}", r.name, r.shown.text.empty() ? outputs_text(r.shown.outputs) : r.shown.text));
    }
    flush_output();  // the sender of the samples waits for the answer
  }

 private:
  bool json_;
};

File locked(File file, const fs::path& path) {
  if (!file) fail(ErrorCode::io, "cannot open '{}': {}", path.string(), std::strerror(errno));
  if (!file.lock(File::Lock::exclusive, false)) fail(ErrorCode::io, "another run writes to '{}'", path.string());
  return file;
}

// The path of one sample's results in the output folder.
fs::path result_path(const BatchRun& run, std::int64_t index) {
  const std::string name = run.samples.name(index);
  return fs::path(run.output) / (run.samples.files ? result_name(name) : name + ".json");
}

// A file for each sample. Those that are there are kept.
class FolderSink : public Sink {
 public:
  FolderSink(const fs::path& folder, const BatchRun& run) : folder_(folder), run_(run) {
    std::error_code error;
    fs::create_directories(folder_, error);
    if (error) fail(ErrorCode::io, "cannot create the folder '{}': {}", folder_.string(), error.message());
    lock_ = locked(open_folder_lock(folder_), folder_);
    drop_leftovers();
  }

  bool done(std::int64_t index) override {
    std::error_code ignored;
    return !run_.overwrite && fs::is_regular_file(result_path(run_, index), ignored);
  }
  void put(const Result& r) override {
    if (!r.error.empty()) return;  // nothing to keep: the next run tries again
    const fs::path path = result_path(run_, r.index);
    std::error_code error;
    if (path.parent_path() != folder_) fs::create_directories(path.parent_path(), error);
    if (error) fail(ErrorCode::io, "cannot create the folder '{}': {}", path.parent_path().string(), error.message());
    write_file_atomically(path, outputs_json(r.shown.outputs, run_.session.report(), -1, r.shown.json));
  }

 private:
  // Temporary files of a killed run: the names are ours, and the lock shows that no process writes them any more.
  void drop_leftovers() const {
    constexpr std::string_view kEnding = ".json.tmp.";
    std::vector<fs::path> old;
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder_, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      const std::size_t at = name.rfind(kEnding);
      if (at != std::string::npos && name.size() == at + kEnding.size() + 6) old.push_back(it->path());
    }
    for (const fs::path& path : old) fs::remove(path, error);
  }

  fs::path folder_;
  const BatchRun& run_;
  File lock_;
};

// Writes JSON Lines to a hidden file that is renamed when it is complete. With the same samples and model, an interrupted run
// continues after the last complete line.
class LinesSink : public Sink {
 public:
  LinesSink(const fs::path& path, const BatchRun& run) : path_(path) {
    constexpr std::size_t kMore = 23;  // letters of ".NAME.part-" and the hash
    const std::string stem = "." + shortened_name(path.filename().string(), kLongestName - kMore) + ".part-";
    const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
    const bool resumable = !run.samples.identity.empty();
    part_ = folder / (stem + (resumable ? hash_text(run.identity + "\n" + run.samples.identity).substr(0, 16) : "stream"));
    file_ = locked(File::open(part_, File::For::making), part_);
    for (const auto& entry : fs::directory_iterator(folder)) {  // of other samples or another model
      std::error_code ignored;
      if (entry.path().filename().string().starts_with(stem) && entry.path().filename() != part_.filename()) {
        fs::remove(entry.path(), ignored);
      }
    }
    if (resumable) count_lines();
    if (!file_.resize(complete_)) io("cut");
    if (lines_ > 0) note(fmt::format("note: continuing after {} of an earlier run", counted(lines_, "sample")));
  }
  bool done(std::int64_t index) override { return index < lines_; }
  void put(const Result& r) override {
    const std::string line = line_json(r) + "\n";
    if (!file_.write_at(line.data(), line.size(), complete_)) io("write");
    complete_ += line.size();
  }
  void finish() override {
    if (!file_.sync()) io("sync");
    if (!rename_over(part_, path_)) io("rename");
  }

 private:
  [[noreturn]] void io(const char* what) const {
    fail(ErrorCode::io, "cannot {} '{}': {}", what, part_.string(), std::strerror(errno));
  }

  void count_lines() {
    std::string piece(std::size_t{1} << 20, '\0');
    std::uint64_t at = 0;
    for (std::ptrdiff_t n = 0; (n = file_.read(piece.data(), piece.size())) > 0; at += static_cast<std::uint64_t>(n)) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        if (piece[i] != '\n') continue;
        ++lines_;
        complete_ = at + i + 1;
      }
    }
  }

  fs::path path_, part_;
  File file_;
  std::int64_t lines_ = 0;
  std::uint64_t complete_ = 0;  // bytes
};

// {"results": […], "report": {…}}
class ListSink : public Sink {
 public:
  ListSink(const fs::path& path, const Session& session) : path_(path), session_(session) {}
  void put(const Result& r) override { items_ += (items_.empty() ? "" : ",\n") + line_json(r); }
  void finish() override {
    write_file_atomically(path_,
                          fmt::format("{{\"results\":[\n{}\n],\"report\":{}}}\n", items_, report_json(session_.report(), -1)));
  }

 private:
  fs::path path_;
  const Session& session_;
  std::string items_;
};

std::unique_ptr<Sink> make_sink(const BatchRun& run) {
  if (run.output.empty() || run.output == "-") return std::make_unique<TextSink>(run.json || run.output == "-");
  const fs::path path = run.output;
  if (goes_to_folder(run.output)) return std::make_unique<FolderSink>(path, run);
  if (path.extension() == ".jsonl") return std::make_unique<LinesSink>(path, run);
  return std::make_unique<ListSink>(path, run.session);
}

class Batch {
 public:
  explicit Batch(const BatchRun& run) : run_(run), sink_(make_sink(run)), stack_(run.session.inputs()) {}

  int work() {
    const auto start = std::chrono::steady_clock::now();
    const std::int64_t total = run_.samples.total;
    std::optional<Interrupt> interrupt;
    if (total >= 0) interrupt.emplace();  // who waits for standard input is ended at once
    {
      Progress bar("running", run_.samples.unit + "s");
      run_all(bar, total);
    }
    if (Interrupt::requested()) return interrupted();
    fatal([&] { sink_->finish(); });
    if (const std::string idle = run_.without_effect(); run_count_ > 0 && !idle.empty()) note("warning: " + idle);
    if (run_.samples.files && kept_ > 0) {
      note(fmt::format("note: {} already exist{} (--overwrite recomputes {})", counted(kept_, "result"), kept_ == 1 ? "s" : "",
                       kept_ == 1 ? "it" : "them"));
    }
    if (failed_ > 0) note(fmt::format("{} of {} failed", failed_, counted(kept_ + run_count_, "sample")));
    conclude(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    return failed_ == 0 ? kOk : kFailed;
  }

 private:
  struct Waiting {
    std::int64_t index;
    NamedValues values;
  };

  void run_all(Progress& bar, std::int64_t total) {
    for (std::int64_t i = 0; (total < 0 || i < total) && !Interrupt::requested(); ++i) {
      if (total > 0) bar.show(i, total);
      if (sink_->done(i)) {
        ++kept_;
        continue;
      }
      if (!take(i)) break;
      if (static_cast<std::int64_t>(waiting_.size()) >= run_.batch_size) flush();
    }
    flush();
  }

  bool to_output() const { return run_.output.empty() || run_.output == "-"; }

  // "300 pictures in 2.1 s -> results/"
  void conclude(double seconds) const {
    const std::int64_t done = run_count_ - failed_;
    std::error_code ignored;
    const bool folder = !to_output() && fs::is_directory(run_.output, ignored);
    note(fmt::format("{} in {}{}", counted(done, run_.samples.unit), time_text(seconds),
                     to_output() ? "" : fmt::format(" -> {}{}", run_.output, folder && !run_.output.ends_with('/') ? "/" : "")));
  }

  // Existing results are kept if the next run can use them.
  int interrupted() const {
    const bool resumable = !to_output() && fs::path(run_.output).extension() != ".json";
    note(fmt::format("error: interrupted, {} of {} done{}", kept_ + run_count_ - failed_,
                     run_.samples.total < 0 ? run_.samples.unit + "s" : counted(run_.samples.total, run_.samples.unit),
                     resumable ? "; the same command continues from there" : ""));
    return Interrupt::exit_code();
  }

  // Reads a sample; false at the end.
  bool take(std::int64_t index) {
    ++run_count_;
    try {
      std::optional<NamedValues> values = run_.samples.read(index);
      if (!values) {
        --run_count_;
        return false;
      }
      run_.check(*values);
      waiting_.push_back({index, std::move(*values)});
    } catch (const Error& e) {
      flush();  // results stay in order
      failure(index, e.message());
    }
    return true;
  }

  void failure(std::int64_t index, const std::string& why) {
    ++failed_;
    const std::string name = run_.samples.name(index);
    note(fmt::format("error: {}: {}", name, why));
    deliver({index, name, why, {}});
  }

  void flush() {
    if (waiting_.size() > 1 && run_together()) return waiting_.clear();
    for (const Waiting& w : waiting_) {
      try {
        put(w.index, run_.session.run(w.values, run_.options));
      } catch (const Error& e) {
        failure(w.index, e.message());
      }
    }
    waiting_.clear();
  }

  void put(std::int64_t index, NamedValues outputs) {
    deliver({index, run_.samples.name(index), "", run_.post(std::move(outputs))});
  }

  // A destination that accepts no more output accepts none of the following samples either.
  void deliver(const Result& result) {
    fatal([&] { sink_->put(result); });
  }
  template <class F>
  static void fatal(F&& write) {
    try {
      write();
    } catch (const Error& e) {
      if (e.code() != ErrorCode::io) throw;
      throw OutputError(e.message());
    }
  }

  // All waiting samples in one run; false where that does not work, and then they run one by one.
  bool run_together() {
    if (!stackable_) return false;
    std::vector<const NamedValues*> samples;
    for (const Waiting& w : waiting_) samples.push_back(&w.values);
    const std::optional<NamedValues> stacked = stack_.stacked(samples);
    if (!stacked) return unstackable("the samples' shapes do not allow stacking them");
    std::vector<NamedValues> parts;
    try {
      const std::optional<std::vector<NamedValues>> split =
          Stack::split(run_.session.run(*stacked, run_.options), waiting_.size());
      if (!split) return unstackable("the model's outputs do not have one row for each sample");
      parts = *split;
    } catch (const Error&) {
      return false;  // one by one, so that only the guilty one fails
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      try {
        put(waiting_[i].index, std::move(parts[i]));
      } catch (const Error& e) {
        failure(waiting_[i].index, e.message());
      }
    }
    return true;
  }

  bool unstackable(const char* why) {
    note(fmt::format("note: batch size {} has no effect: {}", run_.batch_size, why));
    stackable_ = false;
    return false;
  }

  const BatchRun& run_;
  std::unique_ptr<Sink> sink_;
  Stack stack_;
  std::vector<Waiting> waiting_;
  bool stackable_ = true;
  std::int64_t kept_ = 0, run_count_ = 0, failed_ = 0;
};

}  // namespace

namespace {

// A name like "r.csv" is that of a file; "v1.2" may be that of a folder.
bool has_file_ending(const std::string& output) {
  const std::string ending = fs::path(output).extension().string();
  return ending.size() >= 3 && ending.size() <= 6 &&
         std::all_of(ending.begin() + 1, ending.end(), [](unsigned char c) { return std::isalnum(c) != 0; }) &&
         std::isalpha(static_cast<unsigned char>(ending[1])) != 0;
}

int say_plan(const BatchRun& run) {
  constexpr std::int64_t kShown = 10;
  const Samples& samples = run.samples;
  const bool folder = goes_to_folder(run.output);
  std::error_code ignored;
  std::int64_t there = 0, open = 0;
  for (std::int64_t i = 0; i < samples.total; ++i) {
    if (folder && !run.overwrite && fs::is_regular_file(result_path(run, i), ignored)) {
      ++there;
    } else if (open++ < kShown) {
      print(samples.name(i) + "\n");
    }
  }
  if (open > kShown) print(fmt::format("and {} more\n", open - kShown));
  print(fmt::format("{} would run{}{}\n", samples.total < 0 ? "all " + samples.unit + "s" : counted(open, samples.unit),
                    there > 0 ? fmt::format(" ({} {} done)", there, there == 1 ? "is" : "are") : "",
                    run.output.empty() || run.output == "-" ? "" : " -> " + run.output));
  return kOk;
}

}  // namespace

void check_batch_output(const std::string& output) {
  const fs::path ending = fs::path(output).extension();
  std::error_code ignored;
  if (ending == ".json" || ending == ".jsonl" || output.ends_with('/') || fs::is_directory(output, ignored)) return;
  if (has_file_ending(output)) {
    throw UsageError(fmt::format(
        "-o {0}: for several results, give a folder, a .jsonl or a .json file; a folder of that name is {0}/", output));
  }
}

int run_batch(const BatchRun& run) { return run.dry_run ? say_plan(run) : Batch(run).work(); }

}  // namespace sdx::cli
