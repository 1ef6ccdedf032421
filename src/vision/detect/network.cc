#include "vision/detect/network.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "tensor/element.h"
#include "vision/detect/finder.h"
#include "vision/detect/shrink.h"
#include "vision/detect/suppress.h"

namespace sdx::vision {
namespace {

using Clock = std::chrono::steady_clock;

double ms_between(Clock::time_point a, Clock::time_point b) { return std::chrono::duration<double, std::milli>(b - a).count(); }

sdx::Runtime engine_of(faces::Runtime runtime, sdx::Runtime otherwise) {
  switch (runtime) {
    case faces::Runtime::native: return sdx::Runtime::native;
    case faces::Runtime::ort: return sdx::Runtime::ort;
    case faces::Runtime::automatic: break;
  }
  return otherwise;
}

SessionOptions session_options(const faces::DetectorOptions& options) {
  SessionOptions out = options.session;
  out.runtime = engine_of(options.runtime, out.runtime);
  return out;
}

// The model without what its file says about extents: for families whose graphs take any.
std::string without_extents(Model& model) {
  Graph& graph = model.graph;
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    ValueInfo& info = graph.value(v);
    if (info.constant) continue;
    const bool input = info.is_input;
    for (Type* type : {&info.type, &info.declared}) {
      if (!type->is_tensor()) continue;
      if (!input) type->shape.reset();
      if (!input || !type->shape || type->shape->size() != 4) continue;
      for (Dim& d : *type->shape) {
        const bool channels = d.is_const() && d.value() == 3;
        if (!channels) d = Dim::unknown();
      }
      type->shape->front() = Dim(1);
    }
  }
  return write_model(model);
}

Session open_any_extents(const std::filesystem::path& path, const SessionOptions& options) {
  Model model = read_model(path);
  const std::string bytes = without_extents(model);
  return Session::from_bytes(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())), options, path.parent_path());
}

bool fixed_extents(const ValueSpec& input) {
  return input.has_shape && input.shape.size() == 4 && (input.shape[0] > 1 || input.shape[2] >= 0 || input.shape[3] >= 0);
}

}  // namespace

Network Network::open(const std::filesystem::path& path, const faces::DetectorOptions& options) {
  const Recognised found = recognise(path, options.decoder);
  Network network;
  network.traits_ = &traits(found.family);
  const SessionOptions session = session_options(options);
  const bool frees = network.traits_->any_extents && fixed_extents(found.input);
  network.session_ = std::make_shared<const Session>(frees ? open_any_extents(path, session) : Session::open(path, session));
  network.input_ = found.input.name;
  network.dtype_ = found.input.dtype;
  const std::vector<std::int64_t>& shape = found.input.shape;
  if (found.input.has_shape) {
    network.channels_last_ = shape[3] == 3 && shape[1] != 3;
    const auto fixed = [&](std::size_t axis) { return frees || shape[axis] < 0 ? 0 : static_cast<int>(shape[axis]); };
    network.height_ = fixed(network.channels_last_ ? 1 : 2);
    network.width_ = fixed(network.channels_last_ ? 2 : 3);
  }
  if (network.width_ == 0) network.width_ = network.traits_->input.width;
  if (network.height_ == 0) network.height_ = network.traits_->input.height;
  const Report report = network.session_->report();
  network.runtime_ = report.runtime;
  network.warnings_ = report.fallbacks;
  return network;
}

std::pair<std::string, std::string> Network::ran() const {
  const Report report = session_->report();
  std::string providers;
  for (const std::string& p : report.providers) providers += (providers.empty() ? "" : ",") + p;
  return {report.runtime, providers};
}

std::vector<faces::Face> Network::look(const media::Image& picture, float score, float nms, int top_k,
                                       faces::StageTimes& times) const {
  const int multiple = traits_->input.multiple;
  const auto padded = [&](int side) { return (side + multiple - 1) / multiple * multiple; };
  const InputSize input{width_ > 0 ? width_ : padded(picture.width), height_ > 0 ? height_ : padded(picture.height)};
  if (picture.width > input.width || picture.height > input.height) {
    fail(ErrorCode::internal, "a picture of {}x{} for an input of {}x{}", picture.width, picture.height, input.width,
         input.height);
  }
  const Clock::time_point start = Clock::now();
  Tensor tensor = input_of(picture, traits_->input, input.width, input.height, {dtype_, channels_last_});
  const Clock::time_point ready = Clock::now();
  const NamedValues outputs = session_->run({{input_, std::move(tensor)}});
  const Clock::time_point ran = Clock::now();
  std::vector<faces::Face> faces = suppress(decoded(outputs, input, score), traits_->overlap, score, nms, top_k);
  times.preprocess += ms_between(start, ready);
  times.inference += ms_between(ready, ran);
  times.decode += ms_between(ran, Clock::now());
  return faces;
}

std::vector<faces::Face> Network::decoded(const NamedValues& outputs, InputSize input, float score) const {
  std::vector<std::vector<float>> converted(outputs.size());
  std::vector<Output> seen;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].value.is_tensor()) {
      fail(ErrorCode::runtime_failure, "the detector's output '{}' is {}, not a tensor", outputs[i].name,
           outputs[i].value.type_string());
    }
    const Tensor& tensor = outputs[i].value.tensor();
    if (tensor.dtype() == DataType::float32 && tensor.is_aligned()) {
      seen.push_back({outputs[i].name, tensor.shape(), tensor.values<float>()});
    } else if (tensor.dtype() == DataType::float16 || tensor.dtype() == DataType::float32 ||
               tensor.dtype() == DataType::float64) {
      converted[i] = to_floats(tensor);
      seen.push_back({outputs[i].name, tensor.shape(), converted[i]});
    } else {
      fail(ErrorCode::runtime_failure, "the detector's output '{}' is {}; decoders take floats", outputs[i].name,
           tensor.type_string());
    }
  }
  return decode(traits_->family, seen, input, score);
}

}  // namespace sdx::vision
