// What a run through the ONNX Runtime bridge takes more than ONNX Runtime's own C interface: sdx_bench_bridge [RUNS].
// The library is searched for as docs/providers.md says. Both run the same model of one Add with one thread, in turns, so that
// both see the same machine; the median of the differences of neighbouring runs is what the bridge costs.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <sdx/session.hpp>

#include "base/error.h"
#include "graph/graph.h"
#include "onnx/writer.h"
#include "providers/ort/library.h"

namespace sdx {
namespace {

using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

std::string add_model(std::int64_t count) {
  Model model;
  model.ir_version = 8;
  model.opsets[""] = 17;
  Graph& g = model.graph;
  const Type type = Type::tensor(DataType::float32, {Dim(count)});
  Node node;
  node.op_type = "Add";
  node.version = 17;
  node.inputs = {g.add_input("a", type), g.add_input("b", type)};
  node.outputs = {g.add_value("c", type)};
  g.add_node(node);
  g.add_output(node.outputs[0]);
  for (const ValueId v : {node.inputs[0], node.inputs[1], node.outputs[0]}) g.value(v).declared = type;
  return write_model(model);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// ONNX Runtime as a program of its own would use it: inputs made once, outputs by the library.
class Plain {
 public:
  Plain(const ort::Library& library, const std::string& model, std::vector<float>& data) : library_(library), f_(library.f()) {
    ort::c::SessionOptions* options = nullptr;
    library.check(f_.create_session_options(&options), ErrorCode::internal);
    library.check(f_.set_intra_threads(options, 1), ErrorCode::internal);
    library.check(f_.create_session_from_array(library.env(), model.data(), model.size(), options, &session_),
                  ErrorCode::internal);
    f_.release_session_options(options);
    const auto count = static_cast<std::int64_t>(data.size());
    for (ort::c::Value*& v : inputs_) {
      library.check(f_.wrap_tensor(library.cpu(), data.data(), data.size() * sizeof(float), &count, 1, 1, &v),
                    ErrorCode::internal);
    }
  }
  ~Plain() {
    for (ort::c::Value* v : inputs_) f_.release_value(v);
    f_.release_session(session_);
  }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  void run() {
    static const char* const names[] = {"a", "b"};
    static const char* const results[] = {"c"};
    ort::c::Value* out = nullptr;
    library_.check(f_.run(session_, nullptr, names, inputs_, 2, results, 1, &out), ErrorCode::internal);
    f_.release_value(out);
  }

 private:
  const ort::Library& library_;
  const ort::Functions& f_;
  ort::c::Session* session_ = nullptr;
  ort::c::Value* inputs_[2] = {};
};

void measure(const ort::Library& library, std::int64_t count, std::size_t runs) {
  const std::string model = add_model(count);
  std::vector<float> data(static_cast<std::size_t>(count), 1.0F);
  Plain plain(library, model, data);
  SessionOptions options;
  options.providers = {"ort:cpu"};
  options.strict = true;
  options.threads = 1;
  const Session session = Session::from_bytes(std::as_bytes(std::span(model.data(), model.size())), options);
  const NamedValues inputs{{"a", Tensor::view(data.data(), DataType::float32, {count})},
                           {"b", Tensor::view(data.data(), DataType::float32, {count})}};
  std::vector<double> direct(runs), bridged(runs), difference(runs);
  for (std::size_t i = 0; i < runs + runs / 10; ++i) {
    auto start = Clock::now();
    plain.run();
    const double d = us_since(start);
    start = Clock::now();
    { const NamedValues results = session.run(inputs); }
    const double b = us_since(start);
    if (i < runs / 10) continue;  // warm-up
    direct[i - runs / 10] = d;
    bridged[i - runs / 10] = b;
    difference[i - runs / 10] = b - d;
  }
  fmt::print("{:>9} {:>12.2f} {:>12.2f} {:>12.2f}\n", count, median(direct), median(bridged), median(difference));
}

}  // namespace
}  // namespace sdx

int main(int argc, char** argv) {
  try {
    const std::size_t runs = argc > 1 ? std::max(100UL, std::strtoul(argv[1], nullptr, 10)) : 20000;
    const auto library = sdx::ort::Library::open(sdx::ort::choose_library({}, "cpu"));
    fmt::print("ONNX Runtime {} ({}), medians of {} runs in microseconds\n", library->version(), library->path().string(), runs);
    fmt::print("{:>9} {:>12} {:>12} {:>12}\n", "elements", "own API", "bridge", "difference");
    for (const std::int64_t count : {1, 1000, 100000}) sdx::measure(*library, count, runs);
  } catch (const std::exception& e) {
    fmt::print(stderr, "error: {}\n", e.what());
    return 1;
  }
  return 0;
}
