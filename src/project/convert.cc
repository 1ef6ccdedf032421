// Models in another precision

#include <fmt/format.h>
#include <sdx/convert.hpp>
#include <sdx/provider.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/system/new_file.h"
#include "base/system/temporary.h"
#include "cache/entry.h"
#include "cache/fingerprint.h"
#include "cache/folder.h"
#include "graph/sizes.h"
#include "onnx/external_names.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "passes/narrow.h"
#include "passes/pass.h"
#include "project/converted.h"
#include "session/pipeline.h"

namespace sdx {
namespace {

namespace fs = std::filesystem;

using namespace project;

constexpr std::size_t kExternalTensor = 4096;  // smaller constants stay in the model file

}  // namespace

ConvertReport convert_model(const fs::path& path, const fs::path& output, const ConvertOptions& options) {
  ConvertReport report;
  Model model = read_model(path);
  report.bytes_before = model_file_bytes(path);
  SessionOptions session;
  session.custom_ops = options.custom_ops;
  session::prepare(model, session, true);
  sink_constants(model.graph);
  const auto opset = model.opsets.find("");
  const NarrowReport done = narrow(model.graph, opset == model.opsets.end() ? 13 : opset->second,
                                   {options.dtype, options.keep_io, options.keep_ops, options.keep_nodes});
  if (done.converted == 0 && !done.kept.empty()) {
    fail(ErrorCode::invalid_argument, "no node of '{}' can compute in {}: {}: {}", path.string(), name(options.dtype),
         done.kept.front().node, done.kept.front().why);
  }
  session::check_and_infer(model.graph, true);
  WriteOptions write;
  if (constant_bytes(model.graph) > options.external_above) write.external_above = kExternalTensor;
  write.dry_run = options.dry_run;
  if (write.dry_run) NewFile::check(output);
  report.bytes_after = write_model(model, output, write);
  report.nodes = count_nodes(model.graph);
  report.converted = done.converted;
  for (const NarrowReport::Kept& k : done.kept) report.kept.push_back({k.node, k.op, k.why});
  report.casts = done.casts;
  report.constants = done.constants;
  report.clipped = done.clipped;
  report.raised = done.raised;
  report.clipped_in = done.clipped_in;
  report.raised_in = done.raised_in;
  report.warnings = std::move(model.warnings);
  return report;
}

}  // namespace sdx

namespace sdx::project {

ConvertedModel::ConvertedModel(const fs::path& model, DataType dtype, bool keep_io, const SessionOptions& options) {
  const auto convert = [&](const fs::path& output) {
    ConvertOptions o;
    o.dtype = dtype;
    o.keep_io = keep_io;
    o.custom_ops = options.custom_ops;
    convert_model(model, output, o);
    made_ = true;
    path_ = output;
  };
  const std::string file = model.stem().string() + "." + std::string(name(dtype)) + ".onnx";
  if (const fs::path cache = cache::cache_folder(options.cache_folder); options.cache && !cache.empty()) {
    std::string identity = fmt::format("{}\n{}\n{}\n", version(), name(dtype), keep_io);
    for (const cache::Fingerprint& f : cache::fingerprints(model)) identity += f.name + f.hash + "\n";
    entry_ = cache::CacheEntry::open(cache / "convert", hash_text(identity), model.filename().string());
  }
  if (!entry_) {
    temporary_ = make_temporary_folder("sdx-convert-");
    try {
      convert(temporary_ / file);
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(temporary_, ignored);
      throw;
    }
    return;
  }
  path_ = entry_->folder() / file;
  std::error_code ignored;
  if (fs::exists(path_, ignored)) return;
  convert(path_);
  entry_->seal();
}

ConvertedModel::~ConvertedModel() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

}  // namespace sdx::project
