#include "quantize/weights/activations.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/system/temporary.h"
#include "graph/edit.h"
#include "onnx/writer.h"

namespace sdx::quantize {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostElements = std::int64_t{1} << 28;  // of all products at a time: 1 GiB
constexpr std::size_t kInMemory = std::size_t{1} << 30;        // larger models go through a file

// Adds a node of ai.onnx whose output is new.
ValueId add(Graph& g, int opset, const char* op, std::vector<ValueId> inputs, Attributes attributes = {}) {
  return add_node(g, make_node({}, op, opset, std::move(inputs), std::move(attributes)), "observed");
}

// The value as float32 [rows, extent].
ValueId rows_of(Graph& g, int opset, ValueId value, std::int64_t extent) {
  const ValueId plain = add(g, opset, "Cast", {value}, attributes_of({{"to", std::int64_t{1}}}));
  const ValueId shape = g.add_constant("observed_shape", Tensor::of<std::int64_t>({2}, {-1, extent}));
  return add(g, opset, "Reshape", {plain, shape});
}

ValueId products_of(Graph& g, int opset, ValueId value, std::int64_t extent) {
  const ValueId rows = rows_of(g, opset, value, extent);
  const ValueId turned = add(g, opset, "Transpose", {rows}, attributes_of({{"perm", std::vector<std::int64_t>{1, 0}}}));
  return add(g, opset, "MatMul", {turned, rows});
}

ValueId magnitudes_of(Graph& g, int opset, ValueId value, std::int64_t extent) {
  const ValueId sizes = add(g, opset, "Abs", {rows_of(g, opset, value, extent)});
  Attributes attributes = attributes_of({{"keepdims", std::int64_t{0}}});
  std::vector<ValueId> operands{sizes};
  if (opset >= 18) {
    operands.push_back(g.add_constant("observed_axis", Tensor::of<std::int64_t>({1}, {0})));
  } else {
    attributes.set("axes", std::vector<std::int64_t>{0});
  }
  return add(g, opset, "ReduceMax", std::move(operands), std::move(attributes));
}

using Observe = ValueId (*)(Graph&, int, ValueId, std::int64_t);

// A model that computes only the observed values.
class Probe {
 public:
  Probe(const Model& model, Observe observe, std::span<const ValueId> values, std::span<const std::int64_t> extents,
        const SessionOptions& options) {
    Model probe = model;
    Graph& g = probe.graph;
    const auto known = probe.opsets.find("");
    const int opset = known == probe.opsets.end() ? 13 : known->second;
    while (!g.outputs().empty()) g.remove_output(g.outputs().size() - 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const ValueId out = observe(g, opset, values[i], extents[i]);
      g.value(out).type = Type::tensor(DataType::float32);
      outputs_.push_back("sdx_observed_" + std::to_string(i));
      g.add_output(out, outputs_.back());
    }
    g.compact();
    open(probe, options);
  }
  ~Probe() {
    session_.reset();
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // The observed values may not need all inputs that the session knows.
  template <class Use>
  void run(const std::vector<NamedValues>& inputs, const Use& use) {
    for (const NamedValues& given : inputs) {
      const NamedValues results = session_->run(given);
      for (std::size_t i = 0; i < outputs_.size(); ++i) use(i, results.tensor(outputs_[i]).values<float>());
    }
  }

 private:
  void open(const Model& probe, const SessionOptions& options) {
    std::size_t bytes = 0;
    for (const ValueInfo& v : probe.graph.values()) bytes += v.constant ? v.constant->bytes() : 0;
    if (bytes < kInMemory) {
      const std::string written = write_model(probe);
      session_.emplace(Session::from_bytes(std::as_bytes(std::span(written)), options));
      return;
    }
    folder_ = make_temporary_folder("sdx-quantize-");
    WriteOptions write;
    write.external_above = 4096;
    write_model(probe, folder_ / "model.onnx", write);
    session_.emplace(Session::open(folder_ / "model.onnx", options));
  }

  std::vector<std::string> outputs_;
  std::optional<Session> session_;
  fs::path folder_;
};

}  // namespace

std::vector<NamedValues> all_batches(CalibrationDataReader* data) {
  std::vector<NamedValues> out;
  if (data != nullptr) {
    while (std::optional<NamedValues> given = data->get_next()) out.push_back(*std::move(given));
  }
  if (out.empty())
    fail(ErrorCode::invalid_argument, "no calibration data: expected inputs of the model to run it on, received none");
  return out;
}

void input_products(const Model& model, std::span<const ValueId> values, std::span<const std::int64_t> extents,
                    const std::vector<NamedValues>& inputs, const SessionOptions& options,
                    const std::function<void(std::size_t, std::vector<float>)>& done) {
  std::size_t first = 0;
  while (first < values.size()) {
    std::size_t last = first;
    std::int64_t elements = 0;
    do {
      elements += extents[last] * extents[last];
      ++last;
    } while (last < values.size() && elements + extents[last] * extents[last] <= kMostElements);
    std::vector<std::vector<float>> sums(last - first);
    Probe probe(model, &products_of, values.subspan(first, last - first), extents.subspan(first, last - first), options);
    probe.run(inputs, [&](std::size_t i, std::span<const float> products) {
      std::vector<float>& sum = sums[i];
      sum.resize(products.size(), 0.0F);
      for (std::size_t j = 0; j < sum.size(); ++j) sum[j] += products[j];
    });
    for (std::size_t i = 0; i < sums.size(); ++i) done(first + i, std::move(sums[i]));
    first = last;
  }
}

std::vector<std::vector<float>> largest_magnitudes(const Model& model, std::span<const ValueId> values,
                                                   std::span<const std::int64_t> extents, const std::vector<NamedValues>& inputs,
                                                   const SessionOptions& options) {
  std::vector<std::vector<float>> most(values.size());
  Probe probe(model, &magnitudes_of, values, extents, options);
  probe.run(inputs, [&](std::size_t i, std::span<const float> sizes) {
    most[i].resize(sizes.size(), 0.0F);
    for (std::size_t j = 0; j < sizes.size(); ++j) most[i][j] = std::max(most[i][j], sizes[j]);
  });
  return most;
}

}  // namespace sdx::quantize
