// What a run through ONNX Runtime's C interface costs beyond one of ours: a model that does next to nothing, in turns.
//   sdx_bench_dropin [LIBRARY]   LIBRARY: another libonnxruntime.so, measured beside ours
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sdx/session.hpp>

#include "dropin/call.h"
#include "dropin/table.h"

using namespace sdx;
using namespace sdx::dropin;

namespace {

constexpr int kRuns = 20'000, kTurns = 9;

void check(const Caller& api, OrtStatus* status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "%s\n", api.call<const char*>(Slot::GetErrorMessage, static_cast<const OrtStatus*>(status)));
  std::exit(1);
}

// A program that opened the model through a table, and holds one input.
class Program {
 public:
  Program(const OrtApiBase* base, const std::string& model) : api_(base->GetApi(17)) {
    check(api_, api_.call(Slot::CreateEnv, ORT_LOGGING_LEVEL_WARNING, "bench", &env_));
    check(api_, api_.call(Slot::CreateSessionOptions, &options_));
    check(api_, api_.call(Slot::SetIntraOpNumThreads, options_, 1));
    const auto* const options = const_cast<const OrtSessionOptions*>(options_);
    check(api_, api_.call(Slot::CreateSessionFromArray, const_cast<const OrtEnv*>(env_), static_cast<const void*>(model.data()),
                          model.size(), options, &session_));
    check(api_, api_.call(Slot::CreateCpuMemoryInfo, OrtArenaAllocator, OrtMemTypeDefault, &info_));
    input_ = tensor();
  }

  OrtValue* tensor() {
    OrtValue* value = nullptr;
    check(api_,
          api_.call(Slot::CreateTensorWithDataAsOrtValue, const_cast<const OrtMemoryInfo*>(info_), static_cast<void*>(data_),
                    sizeof(data_), static_cast<const std::int64_t*>(extents_), std::size_t{1}, ELEMENT_FLOAT, &value));
    return value;
  }
  void run(const OrtValue* input) {
    OrtValue* output = nullptr;
    check(api_, api_.call(Slot::Run, session_, static_cast<const OrtRunOptions*>(nullptr),
                          static_cast<const char* const*>(inputs_), static_cast<const OrtValue* const*>(&input), std::size_t{1},
                          static_cast<const char* const*>(outputs_), std::size_t{1}, &output));
    api_.call<void>(Slot::ReleaseValue, output);
  }
  void run_held() { run(input_); }
  void run_all() {
    OrtValue* const input = tensor();
    run(input);
    api_.call<void>(Slot::ReleaseValue, input);
  }

 private:
  Caller api_;
  OrtEnv* env_ = nullptr;
  OrtSessionOptions* options_ = nullptr;
  OrtSession* session_ = nullptr;
  OrtMemoryInfo* info_ = nullptr;
  OrtValue* input_ = nullptr;
  float data_[4] = {1, 2, 3, 4};
  std::int64_t extents_[1] = {4};
  const char* inputs_[1] = {"a_first_input"};
  const char* outputs_[1] = {"the_only_output"};
};

// One field of a serialised model, of up to 127 bytes.
std::string field(int number, const std::string& bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
}
std::string count(int number, int value) { return {static_cast<char>(number << 3), static_cast<char>(value)}; }

// the_only_output = Add(a_first_input, a_first_input), of float32[4].
std::string small_model() {
  const std::string type = field(2, field(1, count(1, ELEMENT_FLOAT) + field(2, field(1, count(1, 4)))));
  const std::string node = field(1, "a_first_input") + field(1, "a_first_input") + field(2, "the_only_output") + field(4, "Add");
  const std::string graph = field(1, node) + field(2, "g");
  const std::string values = field(11, field(1, "a_first_input") + type) + field(12, field(1, "the_only_output") + type);
  const std::string whole = graph + values;
  std::string model = count(1, 8);
  model += static_cast<char>(7 << 3 | 2);
  model += static_cast<char>(0x80 | (whole.size() & 0x7F));
  model += static_cast<char>(whole.size() >> 7);
  return model + whole + field(8, count(2, 17));
}

double nanoseconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) run();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / kRuns;
}

struct Case {
  const char* name;
  std::function<void()> run;
  std::vector<double> times = {};
};

}  // namespace

int main(int argc, char** argv) {
  const std::string model = small_model();
  SessionOptions options;
  options.threads = 1;
  options.providers = {"cpu"};
  const Session session = Session::from_bytes(std::as_bytes(std::span(model)), options);
  const Tensor x = Tensor::of<float>({4}, {1, 2, 3, 4});
  float memory[4] = {1, 2, 3, 4};
  Program ours(api_base(), model);
  std::vector<Case> cases;
  cases.push_back({"our session, values held", [&, values = NamedValues{{"a_first_input", x}}] { session.run(values); }});
  cases.push_back({"our session, values made for each run", [&] {
                     RunOptions run;
                     run.outputs.emplace_back("the_only_output");
                     session.run({{"a_first_input", Tensor::view_mutable(memory, DataType::float32, {4})}}, run);
                   }});
  cases.push_back({"C interface, values held", [&] { ours.run_held(); }});
  cases.push_back({"C interface, values made for each run", [&] { ours.run_all(); }});
  std::unique_ptr<Program> theirs;
  if (argc > 1) {
    void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 1;
    const auto get = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
    theirs = std::make_unique<Program>(get(), model);
    cases.push_back({"other library, values held", [&] { theirs->run_held(); }});
    cases.push_back({"other library, values made for each run", [&] { theirs->run_all(); }});
  }
  for (int turn = 0; turn < kTurns; ++turn) {
    for (Case& c : cases) c.times.push_back(nanoseconds(c.run));
  }
  for (Case& c : cases) {
    std::sort(c.times.begin(), c.times.end());
    std::printf("%-42s median %7.0f ns, best %7.0f ns\n", c.name, c.times[c.times.size() / 2], c.times.front());
  }
  std::fflush(stdout);
  std::_Exit(0);  // another library's threads need not be waited for
}
