#include "vision/batch/batch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "base/counted.h"
#include "base/error.h"
#include "base/system/control_group.h"
#include "base/system/interrupt.h"
#include "base/system/printable.h"
#include "base/system/terminal.h"
#include "vision/batch/input/feed.h"
#include "vision/batch/output/journal.h"
#include "vision/batch/output/report.h"
#include "vision/batch/pool.h"
#include "vision/batch/progress.h"

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kSyncEvery = 256;

// ".txt, 3 .mov, no ending": the most frequent first.
std::string endings_text(const std::map<std::string, std::size_t>& endings) {
  constexpr std::size_t kMost = 10;
  std::vector<std::pair<std::string, std::size_t>> all(endings.begin(), endings.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> words;
  for (const auto& [ending, count] : all) {
    if (words.size() == kMost) {
      words.push_back(counted(static_cast<std::int64_t>(all.size() - kMost), "other ending"));
      break;
    }
    const std::string name = ending.empty() ? "without ending" : one_line(ending);
    words.push_back(count == 1 ? name : fmt::format("{} {}", count, name));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

class Batch {
 public:
  Batch(const Request& request, const Console& console) : r_(request), console_(console), s_(parse(request)) {}

  int run() {
    const Interrupt interrupt;
    gather();
    load_detector();
    open_outputs();
    give_names();
    const int count = workers();  // before the feed takes the inputs
    Pool pool(count, take_feed(), [this](Next next) { return work(std::move(next)); });
    return deliver(pool);
  }

 private:
  bool frames() const { return !r_.paths.empty() && r_.paths.front() == "-"; }
  bool endless() const { return frames() || r_.watch; }

  std::vector<fs::path> output_folders() const {
    std::vector<fs::path> out;
    for (const std::string& folder : {r_.output, r_.annotate}) {
      if (!folder.empty()) out.emplace_back(folder);
    }
    return out;
  }

  void gather() {
    if (frames()) return;
    if (r_.watch) {
      std::vector<fs::path> folders;
      std::error_code ignored;
      std::copy_if(r_.paths.begin(), r_.paths.end(), std::back_inserter(folders),
                   [&](const std::string& p) { return fs::is_directory(p, ignored); });
      if (folders.empty()) fail(ErrorCode::invalid_argument, "--watch needs a folder to watch; none of the paths is one");
      watched_ = folders.size();
      watch_ = watch_folders(folders, output_folders());  // first: what comes while the list is made is not missed
    }
    Collected found = collect(r_, s_, output_folders());
    if (s_.writes()) leave_out_repeated(found.inputs);
    inputs_ = std::move(found.inputs);
    if (found.hidden + found.others > 0) {
      std::vector<std::string> kinds;
      if (found.hidden > 0) kinds.push_back(counted(static_cast<std::int64_t>(found.hidden), "hidden file"));
      if (found.others > 0)
        kinds.push_back(counted(static_cast<std::int64_t>(found.others), "file") + " of other kinds (" +
                        endings_text(found.endings) + ")");
      console_.note(fmt::format("note: left out {}", fmt::join(kinds, " and ")));
    }
    if (inputs_.empty() && !r_.watch) {
      fail(ErrorCode::io, "there are no pictures in {}",
           r_.map.empty() ? fmt::format("'{}'", r_.paths.front()) : "'" + r_.map + "'");
    }
    if (!r_.watch && inputs_.size() < 2) return;
    if (s_.writes() && s_.name_typed && !s_.name.uses("stem")) {
      fail(ErrorCode::invalid_argument, "--name {}: several pictures would get one name; put {{stem}} into it", r_.name);
    }
  }

  // A file that was named twice would have two outputs of the same content.
  static void leave_out_repeated(std::vector<Input>& inputs) {
    std::unordered_set<std::string> seen;
    std::erase_if(inputs, [&](const Input& input) {
      std::error_code ignored;
      return !seen.insert(fs::absolute(input.path, ignored).lexically_normal().string() + '\0' + input.label).second;
    });
  }

  int workers() const {
    const int cores = usable_cpus();
    const int wanted = r_.workers > 0 ? r_.workers : cores;
    return endless() ? wanted : std::clamp(wanted, 1, std::max(1, static_cast<int>(inputs_.size())));
  }

  void load_detector() {
    faces::DetectorOptions options = s_.detector;
    // Pictures side by side keep the cores busy better than the parts of a small model do.
    if (options.session.threads == 0 && workers() > 1) options.session.threads = 1;
    detector_.emplace(faces::FaceDetector::load(r_.model, options));
    for (const std::string& warning : detector_->warnings()) console_.note("warning: " + warning);
    if (s_.task == Task::align && detector_->decoder() == "ultraface") {
      fail(ErrorCode::invalid_argument,
           "'{}' returns only boxes; aligning needs a detector that returns five points, such as YuNet", r_.model.string());
    }
  }

  void open_outputs() {
    for (const Input& input : inputs_) protected_.add(input.path);
    if (!r_.map.empty()) protected_.add(r_.map);
    if (!r_.report.empty() && protected_.has(r_.report)) {
      fail(ErrorCode::invalid_argument, "--report {}: this run reads that file and would replace it; choose another name",
           r_.report);
    }
    const fs::path kept = r_.output.empty() ? r_.annotate : r_.output;
    const bool journal = !kept.empty() && (!r_.dry_run || r_.resume) && !frames();
    if (s_.writes() && !r_.output.empty()) outputs_.emplace(r_.output, r_.overwrite, r_.dry_run, protected_);
    if (!r_.annotate.empty()) marked_.emplace(r_.annotate, r_.overwrite, r_.dry_run, protected_);
    if (journal) journal_.emplace(kept, settings_hash(r_), r_.resume, r_.dry_run);
    if (journal && r_.resume) go_on();
    if (s_.report != ReportKind::none) report_.emplace(r_.report, s_.report, with_outputs());
    context_.emplace(Context{.settings = s_,
                             .detector = *detector_,
                             .outputs = outputs_ ? &*outputs_ : nullptr,
                             .marked = marked_ ? &*marked_ : nullptr,
                             .timestamp = journal_ ? journal_->timestamp() : timestamp_now(),
                             .dry = r_.dry_run,
                             .thumbnails = s_.report == ReportKind::html});
  }

  void go_on() {
    if (journal_->begun()) {
      if (outputs_) outputs_->permit_replacing();
      if (marked_) marked_->permit_replacing();
    } else if (journal_->existed()) {
      console_.note(
          "note: no earlier run here had these settings and this model: nothing counts as done, and nothing is replaced "
          "(--overwrite does that)");
    }
  }

  bool with_outputs() const { return s_.writes() || !r_.annotate.empty(); }

  void give_names() {
    if (journal_) {
      for (Input& input : inputs_) {
        if (const JournalEntry* known = known_entry(input)) {
          stems_.reserve(input.folder, known->stem);
          input.stem = known->stem;
          input.named = true;
        }
      }
    }
    for (Input& input : inputs_) {
      if (!input.named) input.stem = stems_.take(input.folder, input.stem);
      input.named = true;
    }
  }

  const JournalEntry* known_entry(const Input& input) const {
    std::error_code ignored;
    const std::string path = fs::absolute(input.path, ignored).lexically_normal().string();
    const JournalEntry* known = journal_->known(path, input.label);
    return known != nullptr && known->folder == input.folder ? known : nullptr;
  }

  Feed take_feed() {
    total_ = endless() ? 0 : static_cast<std::int64_t>(inputs_.size());
    if (frames()) {
      stream_ = interruptible_stream(kInput);
      return frame_feed(*stream_);
    }
    Feed list = list_feed(std::move(inputs_));
    if (!r_.watch) return list;
    console_.note(fmt::format("watching {}; Ctrl-C ends", counted(static_cast<std::int64_t>(watched_), "folder")));
    Feed all = watch_feed(std::move(watch_), std::move(list));
    return [this, all = std::move(all), named = std::unordered_map<std::string, std::string>()]() mutable -> std::optional<Next> {
      std::optional<Next> next = all();
      if (!next) return next;
      const std::string key = next->input.path.string();
      const auto known = named.find(key);
      if (known != named.end()) {
        next->input.stem = known->second;
      } else if (!next->input.named) {
        protected_.add(next->input.path);
        next->input.stem = stems_.take(next->input.folder, next->input.stem);
      }
      named[key] = next->input.stem;
      return next;
    };
  }

  bool hopeless() const { return (outputs_ && outputs_->hopeless()) || (marked_ && marked_->hopeless()); }

  Finished work(Next next) {
    Finished out;
    if (journal_ && r_.resume) {
      const std::optional<Identity> identity = identity_of(next.input.path);
      const JournalEntry* done = identity ? journal_->done(*identity, next.input.label) : nullptr;
      if (done != nullptr) {
        try {
          out.processed.record = record_from_json(done->record);
          out.processed.record.file = next.input.shown;
          out.done_before = true;
        } catch (const Error&) {  // then it is done again
        }
      }
    }
    // The state that is read, not a later one: a change meanwhile makes the picture be done again.
    out.identity = identity_of(next.input.path);
    if (refuse_repeated(next.input, out)) {
      out.next = std::move(next);
      return out;
    }
    if (!out.done_before) out.processed = process(*context_, next.input, std::exchange(next.frame, std::nullopt));
    out.next = std::move(next);
    return out;
  }

  // A second run without --resume and --overwrite ends as it would anyway, but does not decode and search a hundred thousand
  // pictures before it says so.
  bool refuse_repeated(const Input& input, Finished& out) const {
    if (!journal_ || r_.resume || r_.overwrite || !out.identity) return false;
    const JournalEntry* done = journal_->finished_earlier(*out.identity, input.label);
    if (done == nullptr || done->outputs.empty()) return false;
    out.processed.record.file = input.shown;
    out.processed.record.error = AlreadyThere(shown_output(done->outputs.front().first)).message();
    out.processed.already_there = true;
    return true;
  }

  // The output's name as the present command line gives it: the journal has absolute paths.
  fs::path shown_output(const fs::path& file) const {
    std::error_code ignored;
    for (const fs::path& folder : output_folders()) {
      const fs::path below = file.lexically_relative(fs::absolute(folder, ignored).lexically_normal());
      if (!below.empty() && *below.begin() != "..") return folder / below;
    }
    return file;
  }

  int deliver(Pool& pool) {
    Progress progress(console_, total_);
    if (r_.json) console_.print("{\"pictures\": [");
    std::exception_ptr failure;
    try {
      while (!pool.ended()) {
        std::optional<Finished> finished = pool.take(std::chrono::milliseconds(200));
        if (finished) take_in(*finished, progress);
        progress.show(pictures_);
        if (hopeless()) pool.stop();
      }
    } catch (const Error&) {
      failure = std::current_exception();  // the document is finished first
    }
    progress.clear();
    if (r_.json) console_.print("]}\n");
    console_.flush();
    if (journal_) journal_->sync();
    if (report_) report_->finish(progress.seconds());
    if (failure) std::rethrow_exception(failure);
    return conclude(progress.seconds());
  }

  void take_in(Finished& finished, Progress& progress) {
    Record& record = finished.processed.record;
    ++pictures_;
    faces_ += static_cast<std::int64_t>(record.faces.size());
    before_ += finished.done_before ? 1 : 0;
    if (!record.error.empty()) {
      ++failed_;
      there_ += finished.processed.already_there ? 1 : 0;
      if (!finished.processed.already_there || there_ == 1) {
        progress.clear();
        console_.note(fmt::format("error: {}: {}", one_line(record.file), printable(record.error)));
      }
    }
    if (!record.warning.empty() && ++warned_ == 1) {
      progress.clear();
      console_.note(fmt::format("warning: {}: {}", one_line(record.file), printable(record.warning)));
    }
    if (r_.json) {
      console_.print((pictures_ == 1 ? "\n" : ",\n") + record_json(record, with_outputs()));
    } else if (record.error.empty() && !finished.done_before) {
      progress.clear();
      console_.print(record_text(record));
    }
    if (endless()) console_.flush();
    if (report_) report_->add(record, finished.processed.thumbnails);
    if (journal_ && record.error.empty() && !finished.done_before && finished.identity) {
      const Input& input = finished.next.input;
      journal_->add(
          {*finished.identity, input.folder, input.stem, input.label, finished.processed.outputs, record_json(record, true)});
      if (pictures_ % kSyncEvery == 0) journal_->sync();
    }
  }

  int conclude(double seconds) {
    std::string line =
        fmt::format("{} in {:.1f} s, {}", counted(pictures_, frames() ? "frame" : "picture"), seconds, counted(faces_, "face"));
    if (!r_.output.empty() && s_.writes()) line += fmt::format(" -> {}", (fs::path(r_.output) / "").string());
    if (before_ > 0) line += fmt::format("; {} of them done before", before_);
    if (r_.dry_run) line += "; nothing was written";
    console_.note(line);
    if (warned_ > 1)
      console_.note(fmt::format("warning: the same of {} in all; --json and --report name them", counted(warned_, "picture")));
    if (there_ > 1) console_.note(fmt::format("error: the results of {} in all already exist", counted(there_, "picture")));
    if (failed_ > 0) console_.note(fmt::format("{} of {} failed", failed_, counted(pictures_, frames() ? "frame" : "picture")));
    if (total_ > pictures_) {
      const char* why = hopeless() ? "nothing more can be written" : "interrupted";
      console_.note(fmt::format("stopped after {} of {}: {}{}", pictures_, counted(total_, "picture"), why,
                                journal_ ? "; the same command with --resume continues" : ""));
    }
    if (Interrupt::requested() && !endless() && total_ > pictures_) return Interrupt::exit_code();
    return failed_ > 0 || total_ > pictures_ ? 1 : 0;
  }

  const Request& r_;
  const Console& console_;
  Settings s_;
  std::shared_ptr<Watch> watch_;
  std::size_t watched_ = 0;
  std::vector<Input> inputs_;
  std::optional<faces::FaceDetector> detector_;
  Protected protected_;
  std::optional<OutputFolder> outputs_, marked_;
  std::optional<Journal> journal_;
  std::optional<Report> report_;
  std::optional<Context> context_;
  std::unique_ptr<std::istream> stream_;
  Stems stems_;
  std::int64_t total_ = 0, pictures_ = 0, faces_ = 0, failed_ = 0, before_ = 0, warned_ = 0, there_ = 0;
};

}  // namespace

int run(const Request& request, const Console& console) { return Batch(request, console).run(); }

}  // namespace sdx::vision::batch
