#include <algorithm>
#include <utility>

#include <sdx/session.hpp>
#include <sdx/train/artifacts.hpp>
#include <sdx/train/checkpoint.hpp>

#include "base/error.h"
#include "base/log.h"
#include "base/suggest.h"
#include "base/system/new_file.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "ops/infer.h"
#include "ops/op.h"
#include "session/graphs/convert_opset.h"
#include "session/pipeline.h"
#include "train/artifacts/backward.h"
#include "train/artifacts/lora.h"
#include "train/artifacts/loss_graph.h"
#include "train/artifacts/model_edit.h"
#include "train/artifacts/optimizer_model.h"
#include "train/artifacts/transfer.h"

namespace sdx::train {
namespace {

// Makes every constant a true constant: inputs with a default get their default for good.
void fix_defaults(Graph& graph) {
  for (std::size_t i = graph.inputs().size(); i-- > 0;) {
    ValueInfo& info = graph.value(graph.inputs()[i]);
    if (!info.constant) continue;
    info.is_input = false;
    graph.remove_input(i);
  }
}

// One opset for all nodes, as the file will have it: functions may have brought others, and losses need 12.
void settle_opset(Model& model, const ArtifactOptions& options) {
  int& opset = model.opsets.try_emplace("", kTrainingOpset).first->second;
  const auto differs = [&](const Node& n) { return !n.removed && n.domain.empty() && n.version != opset; };
  const bool mixed = std::any_of(model.graph.nodes().begin(), model.graph.nodes().end(), differs);
  constexpr int kCrossEntropy = 12;
  const bool too_old = options.loss == Loss::cross_entropy && opset < kCrossEntropy;
  if (!mixed && !too_old && opset <= kTrainingOpset) return;
  Graph copy = model.graph;
  try {
    session::convert_opset(copy, kTrainingOpset);
    opset = kTrainingOpset;
  } catch (const Error& e) {
    if (opset <= kTrainingOpset) throw;
    log::warning("the artifacts have opset {}, which ONNX Runtime 1.19 does not read: {}", opset, e.what());
    copy = model.graph;
    session::convert_opset(copy, opset);
  }
  ops::infer_in_place(copy);
  model.graph = std::move(copy);
}

Model prepared(Model model, const ArtifactOptions& options) {
  SessionOptions session;
  session.custom_ops = options.custom_ops;
  session::prepare(model, session);
  for (const std::string& w : model.warnings) log::warning("{}", w);
  model.functions.clear();
  fix_defaults(model.graph);
  settle_opset(model, options);
  model.ir_version = std::min(model.ir_version == 0 ? kTrainingIrVersion : model.ir_version, kTrainingIrVersion);
  return model;
}

// Parameters that no gradient reaches stay constants.
Model training_model_of(LossModel& from, const ArtifactOptions& options) {
  for (;;) {
    std::vector<std::string> unreached;
    Model model = training_model(from, options, unreached);
    if (unreached.empty()) return model;
    const bool globs = !options.requires_grad.empty();
    if (globs) log::warning("no gradient reaches {}: not trained", join(unreached));
    std::erase_if(from.parameters, [&](const ChosenParameter& p) {
      return std::find(unreached.begin(), unreached.end(), p.name) != unreached.end();
    });
    const auto trained = [](const ChosenParameter& p) { return p.trained; };
    if (std::none_of(from.parameters.begin(), from.parameters.end(), trained)) {
      fail(ErrorCode::invalid_argument, "no gradient reaches any parameter: '{}' depends on none of them",
           from.model.graph.value(from.loss).name);
    }
  }
}

CheckpointState checkpoint_of(const std::vector<ChosenParameter>& parameters) {
  CheckpointState state;
  for (const ChosenParameter& p : parameters) state.parameters.push_back({p.name, p.value, p.trained});
  return state;
}

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span(s.data(), s.size())); }

class Files {
 public:
  Files(std::filesystem::path directory, std::string prefix, bool dry_run)
      : directory_(std::move(directory)), prefix_(std::move(prefix)), dry_run_(dry_run) {
    if (prefix_.find('/') != std::string::npos) {
      fail(ErrorCode::invalid_argument, "prefix '{}' names a folder; expected the beginning of files' names", prefix_);
    }
    if (dry_run_) return;
    std::error_code error;
    std::filesystem::create_directories(directory_, error);
    if (error) fail(ErrorCode::io, "cannot create the folder '{}': {}", directory_.string(), error.message());
  }

  std::filesystem::path add(const char* name, std::span<const std::byte> content) {
    std::filesystem::path path = directory_ / (prefix_ + name);
    std::error_code none;
    const auto there = std::filesystem::status(path, none);
    if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
      fail(ErrorCode::io, "'{}' exists and is not a file", path.string());
    }
    if (dry_run_) {
      NewFile::check_with_folders(path);
      return path;
    }
    files_.push_back(std::make_unique<NewFile>(path));
    files_.back()->append(content);
    return path;
  }

  // All are written when the first gets its name.
  void publish() {
    for (const auto& file : files_) file->publish();
  }

 private:
  std::filesystem::path directory_;
  std::string prefix_;
  bool dry_run_;
  std::vector<std::unique_ptr<NewFile>> files_;
};

struct Artifacts {
  std::string training, eval, optimizer;
  CheckpointState state;
};

Artifacts make(Model forward, const ArtifactOptions& options) {
  LossModel from;
  from.model = prepared(std::move(forward), options);
  std::vector<std::string> added;
  if (options.head_classes) {
    added = replace_head(from.model.graph, scores_of(from.model.graph, options), *options.head_classes, options.seed);
  }
  if (options.lora) {
    const std::vector<std::string> pairs = add_lora(from.model, *options.lora, options.seed, added);
    added.insert(added.end(), pairs.begin(), pairs.end());
  }
  from.loss = add_loss(from.model, options);
  from.parameters = choose_parameters(from.model.graph, options, added);
  Artifacts out;
  const Model training = training_model_of(from, options);
  out.training = write_model(training);
  out.eval = write_model(eval_model(from, options));
  if (options.optimizer)
    out.optimizer = write_model(optimizer_model(*options.optimizer, training.opsets.at(""), number_after(options.loss)));
  out.state = checkpoint_of(from.parameters);
  return out;
}

ArtifactFiles write(const Artifacts& artifacts, const std::filesystem::path& directory, const ArtifactOptions& options) {
  Files files(directory, options.prefix, options.dry_run);
  ArtifactFiles out;
  for (const Parameter& p : artifacts.state.parameters) {
    (p.requires_grad ? out.trained : out.frozen) += 1;
    (p.requires_grad ? out.trained_elements : out.frozen_elements) += p.value.size();
  }
  out.training_model = files.add("training_model.onnx", bytes_of(artifacts.training));
  out.eval_model = files.add("eval_model.onnx", bytes_of(artifacts.eval));
  if (options.optimizer) out.optimizer_model = files.add("optimizer_model.onnx", bytes_of(artifacts.optimizer));
  out.checkpoint = files.add("checkpoint", artifacts.state.bytes());
  if (options.nominal_checkpoint) {
    CheckpointState nominal = artifacts.state;
    nominal.nominal = true;
    out.nominal_checkpoint = files.add("nominal_checkpoint", nominal.bytes());
  }
  files.publish();
  return out;
}

}  // namespace

ArtifactFiles generate_artifacts(const std::filesystem::path& model, const std::filesystem::path& directory,
                                 const ArtifactOptions& options) {
  try {
    return write(make(read_model(model), options), directory, options);
  } catch (Error& e) {
    e.add_context("while making training artifacts of '" + model.string() + "'");
    throw;
  }
}

ArtifactFiles generate_artifacts(std::span<const std::byte> model, const std::filesystem::path& directory,
                                 const ArtifactOptions& options) {
  try {
    return write(make(read_model(model, nullptr, {}), options), directory, options);
  } catch (Error& e) {
    e.add_context("while making training artifacts of a model in memory");
    throw;
  }
}

}  // namespace sdx::train
