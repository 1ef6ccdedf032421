#include <deque>
#include <filesystem>
#include <thread>

#include "dropin/objects.h"
#include "dropin/test_program.h"
#include "support/graph_text.h"
#include "support/temporary_folder.h"

namespace sdx::dropin {
namespace {

const char* const kAdd = "input x: float32[n]\ny = Add(x, x)\noutput y: float32[n]";

// A program's own threads.
struct Made {
  std::deque<std::thread> threads;
  int joined = 0;
  bool refuses = false;

  static void* create(void* self, ThreadWorker work, void* param) {
    Made& made = *static_cast<Made*>(self);
    if (made.refuses && !made.threads.empty()) return nullptr;
    made.threads.emplace_back(work, param);
    latest() = &made;
    return &made.threads.back();
  }
  static void join(void* handle) {
    Made& made = *latest();
    static_cast<std::thread*>(handle)->join();
    ++made.joined;
  }
  static Made*& latest() {
    static Made* made = nullptr;
    return made;
  }
};

struct Options {
  OrtSessionOptions* options = nullptr;
  Options() { EXPECT_OK(Slot::CreateSessionOptions, &options); }
  ~Options() { the_api().call<void>(Slot::ReleaseSessionOptions, options); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  void take(Made& made) const {
    EXPECT_OK(Slot::SessionOptionsSetCustomCreateThreadFn, options, &Made::create);
    EXPECT_OK(Slot::SessionOptionsSetCustomThreadCreationOptions, options, static_cast<void*>(&made));
    EXPECT_OK(Slot::SessionOptionsSetCustomJoinThreadFn, options, &Made::join);
  }
};

void add(const Opened& opened) {
  std::vector<float> data(100000, 1.5F);
  const Value_ x = floats(data, {100000});
  std::vector<OrtValue*> results;
  ASSERT_EQ(opened.run({"x"}, {x.get()}, {"y"}, results), "");
  const Value_ y(results[0]);
  const void* out = nullptr;
  EXPECT_OK(Slot::GetTensorData, static_cast<const OrtValue*>(y.get()), &out);
  EXPECT_EQ(static_cast<const float*>(out)[99999], 3);
}

TEST(DropinThreads, OfAProgramServeItsSession) {
  Made made;
  const Options options;
  options.take(made);
  EXPECT_OK(Slot::SetIntraOpNumThreads, options.options, 3);
  {
    const Opened opened(testing::model_bytes(kAdd), options.options);
    ASSERT_EQ(opened.problem, "");
    EXPECT_EQ(made.threads.size(), 2U);
    add(opened);
  }
  EXPECT_EQ(made.joined, 2);
}

TEST(DropinThreads, ThoseForOperatorsSideBySideJoinTheOthers) {
  Made made;
  const Options options;
  options.take(made);
  EXPECT_OK(Slot::SetIntraOpNumThreads, options.options, 3);
  EXPECT_OK(Slot::SetInterOpNumThreads, options.options, 2);
  { const Opened sequential(testing::model_bytes(kAdd), options.options); }
  EXPECT_EQ(made.joined, 2);
  EXPECT_OK(Slot::SetSessionExecutionMode, options.options, ORT_PARALLEL);
  {
    const Opened opened(testing::model_bytes(kAdd), options.options);
    ASSERT_EQ(opened.problem, "");
    add(opened);
  }
  EXPECT_EQ(made.joined, 2 + 3);
}

TEST(DropinThreads, WhatAProgramDoesNotMakeIsAnError) {
  Made made;
  const Options options;
  EXPECT_OK(Slot::SetIntraOpNumThreads, options.options, 3);
  EXPECT_OK(Slot::SessionOptionsSetCustomCreateThreadFn, options.options, &Made::create);
  EXPECT_EQ(Opened(testing::model_bytes(kAdd), options.options).problem, "6: custom join thread function not set");
  options.take(made);
  made.refuses = true;
  EXPECT_NE(Opened(testing::model_bytes(kAdd), options.options).problem.find("made none"), std::string::npos);
  EXPECT_EQ(made.threads.size(), 1U);
  EXPECT_EQ(made.joined, 1);
}

TEST(DropinThreads, OfTheProcessServeAllSessionsWithoutTheirOwn) {
  Made made;
  OrtThreadingOptions* threading = nullptr;
  OrtEnv* env = nullptr;
  EXPECT_OK(Slot::CreateThreadingOptions, &threading);
  EXPECT_OK(Slot::SetGlobalIntraOpNumThreads, threading, 4);
  EXPECT_OK(Slot::SetGlobalCustomCreateThreadFn, threading, &Made::create);
  EXPECT_OK(Slot::SetGlobalCustomThreadCreationOptions, threading, static_cast<void*>(&made));
  EXPECT_OK(Slot::SetGlobalCustomJoinThreadFn, threading, &Made::join);
  EXPECT_EQ(ask(Slot::SetGlobalIntraOpThreadAffinity, threading, std::string(4097, '1').c_str()).substr(0, 2), "2:");
  EXPECT_OK(Slot::CreateEnvWithGlobalThreadPools, ORT_LOGGING_LEVEL_WARNING, "test",
            static_cast<const OrtThreadingOptions*>(threading), &env);
  the_api().call<void>(Slot::ReleaseThreadingOptions, threading);
  {
    const Options shared, own;
    EXPECT_OK(Slot::DisablePerSessionThreads, shared.options);
    const Opened first(testing::model_bytes(kAdd), shared.options), second(testing::model_bytes(kAdd), shared.options);
    const Opened third(testing::model_bytes(kAdd), own.options);
    EXPECT_EQ(made.threads.size(), 3U);
    add(first);
    add(second);
    add(third);
  }
  EXPECT_EQ(made.joined, 0);
  the_api().call<void>(Slot::ReleaseEnv, env);
  EXPECT_EQ(made.joined, 3);
}

// A program that is refused does not wait, and may end the session at once.
TEST(DropinThreads, ARunInTheBackgroundNeedsAnotherThread) {
  const Options options;
  EXPECT_OK(Slot::SetIntraOpNumThreads, options.options, 1);
  const Opened opened(testing::model_bytes(kAdd), options.options);
  std::vector<float> data{1, 2};
  const Value_ x = floats(data, {2});
  const char *const input = "x", *const output = "y";
  const OrtValue* const given = x.get();
  OrtValue* result = nullptr;
  const RunAsyncCallback never = [](void*, OrtValue**, std::size_t, OrtStatus*) { FAIL(); };
  EXPECT_EQ(ask(Slot::RunAsync, opened.session, static_cast<const OrtRunOptions*>(nullptr), &input, &given, std::size_t{1},
                &output, std::size_t{1}, &result, never, static_cast<void*>(nullptr)),
            "1: intra op thread pool must have at least one thread for RunAsync");
}

TEST(DropinRunOptions, ARunHasAProfileOfItsOwn) {
  const testing::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary / "profiles";
  std::filesystem::create_directories(folder);
  const Opened opened(testing::model_bytes(kAdd));
  OrtRunOptions* options = nullptr;
  EXPECT_OK(Slot::CreateRunOptions, &options);
  std::vector<float> data{1, 2};
  const Value_ x = floats(data, {2});
  const auto files = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  const auto run = [&] {
    std::vector<OrtValue*> results;
    ASSERT_EQ(opened.run({"x"}, {x.get()}, {"y"}, results, options), "");
    the_api().call<void>(Slot::ReleaseValue, results[0]);
  };
  run();
  EXPECT_EQ(files(), 0);
  EXPECT_OK(Slot::RunOptionsEnableProfiling, options, (folder / "run").c_str());
  run();
  EXPECT_EQ(files(), 1);
  EXPECT_GT(std::filesystem::file_size(*std::filesystem::directory_iterator(folder)), 100U);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  EXPECT_OK(Slot::RunOptionsDisableProfiling, options);
  run();
  EXPECT_EQ(files(), 0);
  the_api().call<void>(Slot::ReleaseRunOptions, options);
}

TEST(DropinAllocators, OfADeviceAreShared) {
  OrtEnv* env = nullptr;
  EXPECT_OK(Slot::CreateEnv, ORT_LOGGING_LEVEL_WARNING, "test", &env);
  const OrtEpDevice* const* devices = nullptr;
  std::size_t count = 0;
  EXPECT_OK(Slot::GetEpDevices, static_cast<const OrtEnv*>(env), &devices, &count);
  const OrtMemoryInfo* const info =
      the_api().call<const OrtMemoryInfo*>(Slot::EpDevice_MemoryInfo, devices[0], OrtDeviceMemoryType_DEFAULT);
  const OrtKeyValuePairs* const none = nullptr;
  OrtAllocator *made = nullptr, *shared = nullptr, *again = nullptr;
  EXPECT_OK(Slot::CreateSharedAllocator, env, devices[0], OrtDeviceMemoryType_DEFAULT, OrtDeviceAllocator, none, &made);
  EXPECT_OK(Slot::GetSharedAllocator, env, info, &shared);
  ASSERT_NE(made, nullptr);
  EXPECT_EQ(shared, made);
  EXPECT_OK(Slot::CreateSharedAllocator, env, devices[0], OrtDeviceMemoryType_DEFAULT, OrtDeviceAllocator, none, &again);
  EXPECT_OK(Slot::GetSharedAllocator, env, info, &shared);
  EXPECT_EQ(shared, again);
  const auto code = [&](Slot slot, auto... more) { return ask(slot, env, devices[0], more...).substr(0, 2); };
  EXPECT_EQ(code(Slot::CreateSharedAllocator, OrtDeviceMemoryType_DEFAULT, OrtArenaAllocator, none, &again), "1:");
  EXPECT_EQ(code(Slot::CreateSharedAllocator, OrtDeviceMemoryType_HOST_ACCESSIBLE, OrtDeviceAllocator, none, &again), "2:");
  EXPECT_OK(Slot::ReleaseSharedAllocator, env, devices[0], OrtDeviceMemoryType_DEFAULT);
  EXPECT_EQ(code(Slot::ReleaseSharedAllocator, OrtDeviceMemoryType_DEFAULT), "2:");
  the_api().call<void>(Slot::ReleaseEnv, env);
}

}  // namespace
}  // namespace sdx::dropin
