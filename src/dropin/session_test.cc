
#include <array>
#include <atomic>
#include <thread>

#include "base/system/mapped_file.h"
#include "dropin/objects.h"
#include "dropin/test_program.h"
#include "onnx/ort/ort_model.h"
#include "onnx/writer.h"
#include "ops/infer.h"
#include "support/graph_text.h"
#include "support/temporary_folder.h"

namespace sdx::dropin {
namespace {

const char* const kAdd = "input x: float32[2,n]\ny = Add(x, x)\noutput y: float32[2,n]";

const float* data_of(const OrtValue* value) {
  const void* data = nullptr;
  EXPECT_OK(Slot::GetTensorData, value, &data);
  return static_cast<const float*>(data);
}

TEST(DropinSession, Runs) {
  const Opened opened(testing::model_bytes(kAdd));
  ASSERT_EQ(opened.problem, "");
  std::vector<float> data{1, 2, 3, 4};
  const Value_ x = floats(data, {2, 2});
  std::vector<OrtValue*> results;
  ASSERT_EQ(opened.run({"x"}, {x.get()}, {"y"}, results), "");
  const Value_ y(results[0]);
  EXPECT_EQ(data_of(y.get())[3], 8);
}

TEST(DropinSession, TheOptimisedModelIsWrittenWhereAskedFor) {
  const testing::TemporaryFolder folder;
  OrtSessionOptions* options = nullptr;
  EXPECT_OK(Slot::CreateSessionOptions, &options);
  EXPECT_OK(Slot::AddSessionConfigEntry, options, "session.save_model_format", "ORT");
  EXPECT_OK(Slot::SetSessionGraphOptimizationLevel, options, ORT_ENABLE_BASIC);
  const std::string file = folder / "optimised.bin";
  EXPECT_OK(Slot::SetOptimizedModelFilePath, options, file.c_str());
  EXPECT_EQ(Opened(testing::model_bytes(kAdd), options).problem, "");
  the_api().call<void>(Slot::ReleaseSessionOptions, options);
  const auto map = MappedFile::open(file);
  const auto written = map->bytes();
  const std::string bytes(reinterpret_cast<const char*>(written.data()), written.size());
  EXPECT_EQ(bytes.substr(4, 4), "ORTM");
  const Opened opened(bytes);
  EXPECT_EQ(opened.problem, "");
  std::vector<float> data{1, 2, 3, 4};
  const Value_ x = floats(data, {2, 2});
  std::vector<OrtValue*> results;
  ASSERT_EQ(opened.run({"x"}, {x.get()}, {"y"}, results), "");
  const Value_ y(results[0]);
  EXPECT_EQ(data_of(y.get())[3], 8);
}

// In the format of ONNX Runtime's own files; only the engine knows their metadata.
TEST(DropinSession, CustomMetadataAreApartFromTheModelsFields) {
  Model model = testing::parse_model(kAdd);
  ops::infer_in_place(model.graph);
  model.domain = "org.example";
  model.metadata = {{"domain", "another"}, {"description", "another"}, {"model_version", "3"}};
  for (const std::string& bytes : {write_ort_model(model), write_model(model)}) {
    const Opened opened(bytes);
    ASSERT_EQ(opened.problem, "");
    OrtModelMetadata* made = nullptr;
    EXPECT_OK(Slot::SessionGetModelMetadata, opened.session, &made);
    const Handle<OrtModelMetadata, Slot::ReleaseModelMetadata> metadata(made);
    EXPECT_EQ(metadata->domain, "org.example");
    EXPECT_EQ(metadata->description, "");
    EXPECT_EQ(metadata->version, 0);
    EXPECT_EQ(metadata->custom, model.metadata);
  }
}

TEST(DropinSession, ResultsGoIntoMemoryThatIsGiven) {
  const Opened opened(testing::model_bytes(kAdd));
  std::vector<float> in{1, 2, 3, 4}, out(4);
  const Value_ x = floats(in, {2, 2}), y = floats(out, {2, 2});
  std::vector<OrtValue*> results{y.get()};
  ASSERT_EQ(opened.run({"x"}, {x.get()}, {"y"}, results), "");
  EXPECT_EQ(results[0], y.get());
  EXPECT_EQ(out, (std::vector<float>{2, 4, 6, 8}));
}

TEST(DropinSession, MessagesAreThoseThatProgramsKnow) {
  const Opened opened(testing::model_bytes("input x: float32[2,3]\ny = Add(x, x)\noutput y: float32[2,3]"));
  std::vector<float> data(8);
  const Value_ fits = floats(data, {2, 3}), rank = floats(data, {6}), extents = floats(data, {2, 4});
  std::vector<OrtValue*> results;
  EXPECT_EQ(opened.run({"z"}, {fits.get()}, {"y"}, results), "2: Invalid input name: z");
  EXPECT_EQ(opened.run({"x"}, {fits.get()}, {"z"}, results), "2: Invalid output name:z");
  EXPECT_EQ(opened.run({""}, {fits.get()}, {"y"}, results), "2: input name cannot be empty");
  EXPECT_EQ(opened.run({"x"}, {fits.get()}, {}, results), "2: At least one output should be requested.");
  EXPECT_EQ(opened.run({}, {}, {"y"}, results), "2: Missing Input: x");
  EXPECT_EQ(opened.run({"x"}, {rank.get()}, {"y"}, results),
            "2: Invalid rank for input: x Got: 1 Expected: 2 Please fix either the inputs/outputs or the model.");
  EXPECT_EQ(
      opened.run({"x"}, {extents.get()}, {"y"}, results),
      "2: Got invalid dimensions for input: x for the following indices\n index: 1 Got: 4 Expected: 3\n Please fix either the "
      "inputs/outputs or the model.");
  OrtValue* made = nullptr;
  const std::int64_t shape[] = {2, 3};
  EXPECT_OK(Slot::CreateTensorAsOrtValue, default_allocator(), shape + 0, std::size_t{2}, static_cast<ElementType>(11), &made);
  const Value_ doubles(made);
  EXPECT_EQ(opened.run({"x"}, {doubles.get()}, {"y"}, results),
            "2: Unexpected input data type. Actual: (tensor(double)) , expected: (tensor(float))");
}

TEST(DropinSession, InputsThatNothingReadsMayBeLeftOut) {
  const Opened opened(testing::model_bytes(
      "input x: float32[n,2]\ninput u: float32[n,?,3]\ninput t: float32[2]\ny = Add(x, x)\noutput y: float32[n,2]"));
  std::vector<float> data(10, 1);
  const Value_ x = floats(data, {5, 2});
  std::vector<OrtValue*> results{nullptr};
  ASSERT_EQ(opened.run({"x"}, {x.get()}, {"y"}, results), "");
  const Value_ y(results[0]);
  std::vector<OrtValue*> none{nullptr};
  const std::string problem = opened.run({}, {}, {"y"}, none);
  EXPECT_EQ(problem, "2: Missing Input: x");
}

TEST(DropinSession, DamagedModelsAndMissingFiles) {
  EXPECT_EQ(Opened("no model").problem.substr(0, 2), "7:");
  EXPECT_EQ(Opened("").problem.substr(0, 2), "2:");
  const Opened opened(testing::model_bytes(kAdd));
  OrtSession* session = nullptr;
  EXPECT_EQ(ask(Slot::CreateSession, const_cast<const OrtEnv*>(opened.env), "/no/such/model.onnx",
                static_cast<const OrtSessionOptions*>(nullptr), &session),
            "3: Load model from /no/such/model.onnx failed:Load model /no/such/model.onnx failed. File doesn't exist");
}

TEST(DropinSession, ScalarsMayComeAsOneElement) {
  const Opened opened(testing::model_bytes("input x: float32[]\ny = Add(x, x)\noutput y: float32[]"));
  std::vector<float> data{3};
  const Value_ x = floats(data, {1});
  std::vector<OrtValue*> results;
  ASSERT_EQ(opened.run({"x"}, {x.get()}, {"y"}, results), "");
  EXPECT_EQ(data_of(Value_(results[0]).get())[0], 6);
}

TEST(DropinSession, OutputsOutliveInputsAndSessions) {
  Value_ kept;
  {
    const Opened opened(testing::model_bytes("input x: float32[2]\ny = Identity(x)\noutput y: float32[2]"));
    std::vector<float> data{1, 2};
    const Value_ x = floats(data, {2});
    std::vector<OrtValue*> results;
    ASSERT_EQ(opened.run({"x"}, {x.get()}, {"y"}, results), "");
    kept.reset(results[0]);
    data = {9, 9};
  }
  EXPECT_EQ(data_of(kept.get())[0], 1);
}

TEST(DropinSession, ConstantOutputsMayBeWritten) {
  const Opened opened(
      testing::model_bytes("input x: float32[1]\nconstant k: float32[2] 5\nz = Add(x, x)\noutput k: float32[2]\n"
                           "output z: float32[1]"));
  std::vector<float> data{1};
  const Value_ x = floats(data, {1});
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<OrtValue*> results;
    ASSERT_EQ(opened.run({"x"}, {x.get()}, {"k"}, results), "");
    const Value_ k(results[0]);
    void* memory = nullptr;
    EXPECT_OK(Slot::GetTensorMutableData, k.get(), &memory);
    EXPECT_EQ(static_cast<float*>(memory)[1], 5);
    static_cast<float*>(memory)[1] = 7;
  }
}

TEST(DropinSession, TerminatedRunsSaySo) {
  std::vector<float> data{1, 2};
  const Value_ x = floats(data, {2, 1});
  OrtRunOptions* options = nullptr;
  EXPECT_OK(Slot::CreateRunOptions, &options);
  const Handle<OrtRunOptions, Slot::ReleaseRunOptions> held(options);
  // The second has nothing to compute.
  for (const char* model : {kAdd, "input x: float32[2,n]\ny = Identity(x)\noutput y: float32[2,n]"}) {
    const Opened opened(testing::model_bytes(model));
    EXPECT_OK(Slot::RunOptionsSetTerminate, options);
    std::vector<OrtValue*> results;
    EXPECT_EQ(opened.run({"x"}, {x.get()}, {"y"}, results, options), "1: Exiting due to terminate flag being set to true.");
    EXPECT_OK(Slot::RunOptionsUnsetTerminate, options);
    ASSERT_EQ(opened.run({"x"}, {x.get()}, {"y"}, results, options), "");
    the_api().call<void>(Slot::ReleaseValue, results[0]);
  }
}

struct Answer {
  std::atomic<bool> done{false};
  float first = 0;
  std::string problem;
};

void answered(void* user, OrtValue** outputs, std::size_t count, OrtStatus* status) {
  auto& answer = *static_cast<Answer*>(user);
  answer.problem = said(status);
  if (count == 1) {
    answer.first = *data_of(outputs[0]);
    the_api().call<void>(Slot::ReleaseValue, outputs[0]);
  }
  answer.done = true;
}

TEST(DropinSession, RunsInTheBackground) {
  const Opened opened(testing::model_bytes(kAdd));
  std::vector<float> data{4, 2};
  const Value_ x = floats(data, {2, 1});
  const OrtValue* const inputs[] = {x.get()};
  const char *const names[] = {"x"}, *const outputs[] = {"y"};
  OrtValue* results[] = {nullptr};
  Answer answer;
  EXPECT_OK(Slot::RunAsync, opened.session, static_cast<const OrtRunOptions*>(nullptr), names + 0, inputs + 0, std::size_t{1},
            outputs + 0, std::size_t{1}, results + 0, &answered, static_cast<void*>(&answer));
  while (!answer.done) std::this_thread::yield();
  EXPECT_EQ(answer.problem, "");
  EXPECT_EQ(answer.first, 8);
}

TEST(DropinSession, BindingsKeepValuesFromRunToRun) {
  const Opened opened(testing::model_bytes(kAdd));
  OrtIoBinding* made = nullptr;
  EXPECT_OK(Slot::CreateIoBinding, opened.session, &made);
  const Handle<OrtIoBinding, Slot::ReleaseIoBinding> binding(made);
  std::vector<float> data{1, 2};
  const Value_ x = floats(data, {2, 1});
  EXPECT_OK(Slot::BindInput, made, "x", static_cast<const OrtValue*>(x.get()));
  EXPECT_OK(Slot::BindOutputToDevice, made, "y", cpu_memory());
  EXPECT_OK(Slot::RunWithBinding, opened.session, static_cast<const OrtRunOptions*>(nullptr),
            static_cast<const OrtIoBinding*>(made));
  data = {5, 6};
  EXPECT_OK(Slot::RunWithBinding, opened.session, static_cast<const OrtRunOptions*>(nullptr),
            static_cast<const OrtIoBinding*>(made));
  OrtValue** values = nullptr;
  std::size_t count = 0;
  EXPECT_OK(Slot::GetBoundOutputValues, static_cast<const OrtIoBinding*>(made), default_allocator(), &values, &count);
  ASSERT_EQ(count, 1U);
  EXPECT_EQ(data_of(values[0])[1], 12);
  the_api().call<void>(Slot::ReleaseValue, values[0]);
  default_allocator()->Free(default_allocator(), values);
  char* names = nullptr;
  std::size_t* lengths = nullptr;
  EXPECT_OK(Slot::GetBoundOutputNames, static_cast<const OrtIoBinding*>(made), default_allocator(), &names, &lengths, &count);
  EXPECT_EQ(std::string(names, lengths[0]), "y");
  default_allocator()->Free(default_allocator(), names);
  default_allocator()->Free(default_allocator(), lengths);
}

TEST(DropinSession, TellsOfItsModel) {
  const Opened opened(
      testing::model_bytes("input x: float32[2,n]\ninput w: float32[2,1] = 1 2\ny = Add(x, w)\noutput y: float32[2,n]"));
  const OrtSession* const session = opened.session;
  std::size_t count = 0;
  EXPECT_OK(Slot::SessionGetInputCount, session, &count);
  EXPECT_EQ(count, 1U);
  EXPECT_OK(Slot::SessionGetOverridableInitializerCount, session, &count);
  EXPECT_EQ(count, 1U);
  char* name = nullptr;
  EXPECT_OK(Slot::SessionGetOverridableInitializerName, session, std::size_t{0}, default_allocator(), &name);
  EXPECT_STREQ(name, "w");
  default_allocator()->Free(default_allocator(), name);
  EXPECT_EQ(ask(Slot::SessionGetInputName, session, std::size_t{1}, default_allocator(), &name), "1: out of index");
  OrtTypeInfo* info = nullptr;
  EXPECT_OK(Slot::SessionGetInputTypeInfo, session, std::size_t{0}, &info);
  const Handle<OrtTypeInfo, Slot::ReleaseTypeInfo> held(info);
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  EXPECT_OK(Slot::CastTypeInfoToTensorInfo, static_cast<const OrtTypeInfo*>(info), &tensor);
  std::int64_t extents[2] = {};
  const char* symbols[2] = {};
  EXPECT_OK(Slot::GetDimensions, tensor, extents + 0, std::size_t{2});
  EXPECT_OK(Slot::GetSymbolicDimensions, tensor, symbols + 0, std::size_t{2});
  EXPECT_EQ(extents[0], 2);
  EXPECT_EQ(extents[1], -1);
  EXPECT_STREQ(symbols[1], "n");
}

TEST(DropinSession, WeightsMayBeReplaced) {
  OrtSessionOptions* options = nullptr;
  EXPECT_OK(Slot::CreateSessionOptions, &options);
  const Handle<OrtSessionOptions, Slot::ReleaseSessionOptions> held(options);
  std::vector<float> weight{10, 20};
  const Value_ w = floats(weight, {2});
  EXPECT_OK(Slot::AddInitializer, options, "w", static_cast<const OrtValue*>(w.get()));
  const std::string text = "input x: float32[2]\nconstant w: float32[2] 1 2\ny = Add(x, w)\noutput y: float32[2]";
  const Opened opened(testing::model_bytes(text), options);
  ASSERT_EQ(opened.problem, "");
  std::vector<float> data{1, 1};
  const Value_ x = floats(data, {2});
  std::vector<OrtValue*> results;
  ASSERT_EQ(opened.run({"x"}, {x.get()}, {"y"}, results), "");
  EXPECT_EQ(data_of(Value_(results[0]).get())[1], 21);
  EXPECT_OK(Slot::AddInitializer, options, "nobody", static_cast<const OrtValue*>(w.get()));
  EXPECT_NE(Opened(testing::model_bytes(text), options).problem.find("'nobody'"), std::string::npos);
}

TEST(DropinSession, WeightsInMemoryStandForFiles) {
  const Model model =
      testing::parse_model("input x: float32[2]\nconstant w: float32[2] 1 2\ny = Add(x, w)\noutput y: float32[2]");
  const std::string bytes = write_model(model, [](const Tensor&) { return FilePlace{"w.bin", 4}; });
  const auto second = [&](const OrtSessionOptions* options) {
    const Opened opened(bytes, options);
    EXPECT_EQ(opened.problem, "");
    std::vector<float> data{1, 1};
    const Value_ x = floats(data, {2});
    std::vector<OrtValue*> results;
    EXPECT_EQ(opened.run({"x"}, {x.get()}, {"y"}, results), "");
    return data_of(Value_(results.at(0)).get())[1];
  };
  OrtSessionOptions *with_file = nullptr, *with_value = nullptr;
  EXPECT_OK(Slot::CreateSessionOptions, &with_file);
  const Handle<OrtSessionOptions, Slot::ReleaseSessionOptions> file_held(with_file);
  std::array<float, 3> file{0, 10, 20};
  const char* const file_name = "./w.bin";
  char* const content = reinterpret_cast<char*>(file.data());
  const std::size_t size = sizeof(file);
  EXPECT_OK(Slot::AddExternalInitializersFromFilesInMemory, with_file, &file_name, &content, &size, std::size_t{1});
  EXPECT_EQ(second(with_file), 21);

  EXPECT_OK(Slot::CreateSessionOptions, &with_value);
  const Handle<OrtSessionOptions, Slot::ReleaseSessionOptions> value_held(with_value);
  std::vector<float> weight{30, 40};
  const Value_ w = floats(weight, {2});
  const char* const name = "w";
  const OrtValue* const value = w.get();
  EXPECT_OK(Slot::AddExternalInitializers, with_value, &name, &value, std::size_t{1});
  EXPECT_EQ(second(with_value), 41);

  const Value_ other = floats(weight, {1, 2});
  EXPECT_OK(Slot::AddInitializer, with_file, "w", static_cast<const OrtValue*>(other.get()));
  EXPECT_NE(Opened(bytes, with_file).problem.find("its replacement is float32[1,2]"), std::string::npos);
}

std::string last_message;
void keep_message(void*, OrtLoggingLevel, const char*, const char* id, const char*, const char* message) {
  last_message = std::string(id) + "|" + message;
}

TEST(DropinSession, MessagesGoToTheProgram) {
  OrtSessionOptions* options = nullptr;
  EXPECT_OK(Slot::CreateSessionOptions, &options);
  const Handle<OrtSessionOptions, Slot::ReleaseSessionOptions> held(options);
  EXPECT_OK(Slot::SetUserLoggingFunction, options, &keep_message, static_cast<void*>(nullptr));
  EXPECT_OK(Slot::SetSessionLogId, options, "mine");
  EXPECT_OK(Slot::SetSessionLogSeverityLevel, options, 0);
  const Opened opened(testing::model_bytes(kAdd), options);
  EXPECT_EQ(last_message.substr(0, 5), "mine|");
}

TEST(DropinSession, EnvironmentsAreOneAndCounted) {
  OrtEnv *first = nullptr, *second = nullptr;
  EXPECT_OK(Slot::CreateEnv, ORT_LOGGING_LEVEL_WARNING, "a", &first);
  EXPECT_OK(Slot::CreateEnv, ORT_LOGGING_LEVEL_ERROR, "b", &second);
  EXPECT_EQ(first, second);
  EXPECT_EQ(current_env(), first);
  the_api().call<void>(Slot::ReleaseEnv, first);
  EXPECT_EQ(current_env(), second);
  the_api().call<void>(Slot::ReleaseEnv, second);
  EXPECT_EQ(current_env(), nullptr);
}

}  // namespace
}  // namespace sdx::dropin
