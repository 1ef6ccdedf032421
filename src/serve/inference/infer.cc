#include "serve/inference/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "serve/http/message.h"
#include "serve/models/datatypes.h"

namespace sdx::serve {
namespace {

const TensorService& tensors_of(const LoadedModel& model) {
  if (model.tensors) return *model.tensors;
  const char* instead = "";
  switch (model.kind) {
    case ModelKind::language:
      instead = "a language model: POST /v1/chat/completions, /v1/completions or …/generate, or gRPC's ModelStreamInfer";
      break;
    case ModelKind::embedding: instead = "a model for embeddings: POST /v1/embeddings"; break;
    case ModelKind::reranker: instead = "a reranker: POST /v1/rerank"; break;
    case ModelKind::speech: instead = "a speech model: POST /v1/audio/transcriptions"; break;
    case ModelKind::tensors: break;
  }
  fail(ErrorCode::invalid_argument, "model '{}' takes no tensors; it is {}", model.name, instead);
}

const std::vector<std::string>& labels_of(const TensorService& service, const std::string& output) {
  static const std::vector<std::string> none;
  for (const auto& [name, labels] : service.labels) {
    if (name == output || name.empty()) return labels;
  }
  return none;
}

void take_outputs(InferResult& result, const std::vector<RequestedOutput>& asked, const NamedValues& outputs) {
  const TensorService& service = *result.model->tensors;
  for (const NamedValue& item : outputs) {
    InferOutput out;
    out.asked.name = item.name;
    const auto at = std::find_if(asked.begin(), asked.end(), [&](const RequestedOutput& o) { return o.name == item.name; });
    if (at != asked.end()) out.asked = *at;
    if (!item.value.is_tensor() || protocol_name(item.value.tensor().dtype()).empty()) {
      fail(ErrorCode::not_implemented, "output '{}' is a {}: the protocol has no such values; request other outputs", item.name,
           item.value.type_string());
    }
    out.tensor = item.value.tensor();
    if (out.asked.classes > 0) {
      out.tensor = classify(out.tensor, out.asked.classes, service.has_batch, labels_of(service, item.name));
    }
    result.outputs.push_back(std::move(out));
  }
}

template <class T>
void read_scores(const Tensor& t, std::vector<double>& out) {
  for (const T value : t.values<T>()) out.push_back(static_cast<double>(value));
}

std::vector<double> scores_of(const Tensor& t) {
  std::vector<double> out;
  out.reserve(static_cast<std::size_t>(t.size()));
  switch (t.dtype()) {
    case DataType::float32: read_scores<float>(t, out); break;
    case DataType::float64: read_scores<double>(t, out); break;
    case DataType::int8: read_scores<std::int8_t>(t, out); break;
    case DataType::uint8: read_scores<std::uint8_t>(t, out); break;
    case DataType::int16: read_scores<std::int16_t>(t, out); break;
    case DataType::uint16: read_scores<std::uint16_t>(t, out); break;
    case DataType::int32: read_scores<std::int32_t>(t, out); break;
    case DataType::uint32: read_scores<std::uint32_t>(t, out); break;
    case DataType::int64: read_scores<std::int64_t>(t, out); break;
    case DataType::uint64: read_scores<std::uint64_t>(t, out); break;
    default: fail(ErrorCode::invalid_argument, "classification needs an output of numbers, not {}", t.type_string());
  }
  return out;
}

}  // namespace

void check_batch(const LoadedModel& model, const NamedValues& inputs) {
  const TensorService& service = *model.tensors;
  if (!service.has_batch || !model.settings.max_batch_size) return;
  for (const NamedValue& item : inputs) {
    const Tensor& t = item.value.tensor();
    if (t.rank() > 0 && t.dim(0) > *model.settings.max_batch_size) {
      fail(ErrorCode::invalid_argument, "input '{}': {} samples, model '{}' takes at most {} (max_batch_size)", item.name,
           t.dim(0), model.name, *model.settings.max_batch_size);
    }
  }
}

void infer(Catalog& catalog, InferRequest request, std::function<void(InferResult)> done) {
  const ModelPtr model = catalog.get(request.model, request.version);  // stays until submit() has returned
  const TensorService& service = tensors_of(*model);
  check_batch(*model, request.inputs);
  std::vector<std::string> wanted;
  for (const RequestedOutput& output : request.outputs) wanted.push_back(output.name);
  Batcher& batcher = *service.batcher;
  batcher.submit(std::move(request.inputs), std::move(wanted), request.run,
                 [model, asked = std::move(request.outputs), done = std::move(done)](BatchResult&& got) {
                   InferResult result;
                   result.model = model;
                   result.times = got.times;
                   result.error = got.error;
                   try {
                     if (!result.error) take_outputs(result, asked, got.outputs);
                   } catch (...) {
                     result.error = std::current_exception();
                   }
                   done(std::move(result));
                 });
}

Tensor classify(const Tensor& scores, std::int64_t classes, bool has_batch, const std::vector<std::string>& labels) {
  const std::vector<double> values = scores_of(scores);
  const std::size_t rows = has_batch && scores.rank() > 0 ? static_cast<std::size_t>(scores.dim(0)) : 1;
  const std::size_t width = rows == 0 ? 0 : values.size() / rows;
  const std::size_t best = std::min(static_cast<std::size_t>(classes), width);
  Shape shape{static_cast<std::int64_t>(best)};
  if (has_batch) shape.insert(shape.begin(), static_cast<std::int64_t>(rows));
  Tensor out(DataType::string, shape);
  std::vector<std::size_t> order(width);
  for (std::size_t row = 0; row < rows; ++row) {
    const double* of = values.data() + row * width;
    std::iota(order.begin(), order.end(), std::size_t{0});
    // NaN last, so that there is an order.
    const auto better = [&](std::size_t a, std::size_t b) {
      if (std::isnan(of[a]) || std::isnan(of[b])) return !std::isnan(of[a]) && std::isnan(of[b]);
      return of[a] != of[b] ? of[a] > of[b] : a < b;
    };
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(best), order.end(), better);
    for (std::size_t i = 0; i < best; ++i) {
      std::string text = fmt::format("{:f}:{}", of[order[i]], order[i]);
      if (order[i] < labels.size()) text += ":" + labels[order[i]];
      out.mutable_values<std::string>()[row * best + i] = std::move(text);
    }
  }
  return out;
}

ErrorMeaning meaning_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const UnknownModel& e) {
    return {404, 0, "Request for unknown model: " + e.message()};  // programs look for these words, which are Triton's
  } catch (const Overloaded& e) {
    return {503, 1, e.message()};
  } catch (const Error& e) {
    // Our own paths and models' insides are for the log; a client can use the message alone.
    return {e.code() == ErrorCode::invalid_model ? 500 : status_of(e.code()), 0, e.message()};
  } catch (const std::bad_alloc&) {
    return {413, 0, "out of memory"};
  } catch (const std::exception& e) {
    return {500, 0, e.what()};
  }
}

}  // namespace sdx::serve
