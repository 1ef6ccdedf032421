#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "providers/ort/options.h"
#include "providers/ort/ort_provider.h"
#include "providers/ort/trial.h"
#include "support/errors.h"

namespace sdx::ort {
namespace {

// The last place of each version's table, as ONNX Runtime's own source asserts it.
int last_place(int version) {
  const int ends[] = {-1,  101, 118, 124, 126, 149, 157, 161, 169, 191, 203, 209, 218,
                      224, 238, 254, 265, 275, 279, 279, 284, 284, 317, 389, 413};
  return ends[version];
}

TEST(OrtFunctions, PlacesLieWithinTheVersionThatBroughtThem) {
  int previous = -1;
#define SDX_ORT_CHECK(place, since, result, name, arguments)        \
  EXPECT_GT(place, previous) << #name;                              \
  EXPECT_LE(place, last_place(since)) << #name;                     \
  EXPECT_GT(place, since > 1 ? last_place(since - 1) : 0) << #name; \
  previous = place;
  SDX_ORT_FUNCTIONS(SDX_ORT_CHECK)
#undef SDX_ORT_CHECK
}

TEST(OrtFunctions, NothingBeyondTheGrantedVersionIsRead) {
  // A table of version 17 ends after place 275: reading on would leave the vector.
  std::vector<const void*> table(276, nullptr);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = &table[i];
  const Functions f = functions_of(table.data(), 17);
  EXPECT_EQ(reinterpret_cast<const void*>(f.run), &table[9]);
  EXPECT_EQ(reinterpret_cast<const void*>(f.append_openvino), &table[275]);
  EXPECT_EQ(f.append_vitisai, nullptr);
  EXPECT_EQ(f.assignment, nullptr);
}

TEST(OrtLibrary, AMissingLibraryIsAReason) {
  if (std::getenv("SDX_ORT_LIB") != nullptr) GTEST_SKIP() << "SDX_ORT_LIB is set";
  ProviderSettings settings;
  settings.ort_library = "/nonexistent/libonnxruntime.so";
  const ProviderInfo info = find("ort:cpu")->probe(settings, Effort::full);
  EXPECT_FALSE(info.available);
  EXPECT_NE(info.reason.find("/nonexistent/libonnxruntime.so"), std::string::npos) << info.reason;
}

TEST(OrtLibrary, AnotherFileIsNoLibrary) {
  if (std::getenv("SDX_ORT_LIB") != nullptr) GTEST_SKIP() << "SDX_ORT_LIB is set";
  const std::filesystem::path file = std::filesystem::temp_directory_path() / "sdx_no_library.so";
  std::ofstream(file) << "not an ELF file";
  ProviderSettings settings;
  settings.ort_library = file.string();
  const ProviderInfo info = find("ort:cpu")->probe(settings, Effort::full);
  EXPECT_FALSE(info.available);
  EXPECT_NE(info.reason.find("sdx_no_library.so"), std::string::npos) << info.reason;
  std::filesystem::remove(file);
}

TEST(OrtLibrary, AnOldVersionSaysWhatIsNeeded) {
  const ApiBase old{[](std::uint32_t) -> const void* const* { return nullptr; }, [] { return "1.16.3"; }};
  EXPECT_EQ(
      testing::error_of(ErrorCode::provider_unavailable, [&] { Library::from(old, "/somewhere/libonnxruntime.so", nullptr); }),
      "'/somewhere/libonnxruntime.so' is ONNX Runtime 1.16.3; 1.17 or newer is needed");
}

TEST(OrtTrial, WebGpusMessagesAreShort) {
  const std::string message =
      "ONNX Runtime 1.32.0: /src/plugin.cc:393 virtual std::unique_ptr<X> Create() [ONNXRuntimeError] : 11 : EP_FAIL : "
      "/src/webgpu_context.cc:136 Initialize(const Y&)::<lambda()> status was false. Failed to get a WebGPU adapter: No "
      "supported "
      "adapters\n\n";
  const Diagnosis found = explain_webgpu(message, "/usr/lib/libvulkan.so.1");
  EXPECT_EQ(found.reason, "no GPU driver that WebGPU can use (Failed to get a WebGPU adapter: No supported adapters)");
  EXPECT_NE(found.hint.find("mesa-vulkan-drivers"), std::string::npos);
  if (this_platform() == Platform::linux_os) {
    EXPECT_NE(explain_webgpu(message, "").reason.find("libvulkan.so.1 is not found"), std::string::npos);
  }
  EXPECT_EQ(explain_webgpu("another", "").reason, "another");
}

TEST(OrtOptions, AMisspeltOptionNamesTheClosest) {
  ProviderSettings settings;
  settings.options = {{"device_idd", "1"}};
  testing::expect_error(ErrorCode::invalid_argument, [&] { check_options("cuda", settings); }, {"did you mean 'device_id'"});
  settings.options = {{"device_id", "1"}, {"session.intra_op.allow_spinning", "0"}};
  EXPECT_NO_THROW(check_options("cuda", settings));
}

TEST(OrtOptions, ValuesAreChecked) {
  const auto problem = [](std::string_view provider, const std::string& key, const std::string& value) -> std::string {
    ProviderSettings settings;
    settings.options = {{key, value}};
    return testing::error_message([&] { check_options(provider, settings); });
  };
  EXPECT_NE(problem("cuda", "device_id", "one").find("must be a whole number, received 'one'"), std::string::npos);
  EXPECT_NE(problem("cuda", "device_id", "-1"), "");
  EXPECT_NE(problem("cuda", "cudnn_conv_algo_search", "exhaustive").find("EXHAUSTIVE HEURISTIC DEFAULT"), std::string::npos);
  EXPECT_NE(problem("tensorrt", "trt_fp16_enable", "2"), "");
  EXPECT_NE(problem("openvino", "device_type", "XPU9"), "");
  EXPECT_NE(problem("coreml", "ModelFormat", "Program"), "");
  EXPECT_NE(problem("cpu", "io_binding", "yes"), "");
  EXPECT_EQ(problem("cpu", "io_binding", "1"), "");
  EXPECT_NE(problem("cuda", "enable_cuda_graph", "1").find("has its own memory"), std::string::npos);
  EXPECT_EQ(problem("cuda", "enable_cuda_graph", "0"), "");
  EXPECT_NE(problem("webgpu", "enableGraphCapture", "1"), "");
  EXPECT_NE(problem("webgpu", "ep.webgpuexecutionprovider.enableGraphCapture", "1"), "");
  EXPECT_EQ(problem("openvino", "device_type", "HETERO:GPU,CPU"), "");
  EXPECT_EQ(problem("openvino", "device_type", "GPU.1"), "");
  EXPECT_EQ(problem("cuda", "gpu_mem_limit", "2147483648"), "");
  EXPECT_EQ(problem("coreml", "coreml_flags", "0x10"), "");
  EXPECT_EQ(problem("tensorrt", "trt_engine_cache_path", "anything at all"), "");
}

TEST(OrtOptions, CompiledModelsAreKeptInTheFolder) {
  ProviderSettings settings;
  settings.cache = "/kept";
  const auto options = [&](std::string_view provider) {
    std::map<std::string, std::string> out;
    for (const auto& [k, v] : provider_options(provider, settings)) EXPECT_TRUE(out.emplace(k, v).second) << k;
    return out;
  };
  using Map = std::map<std::string, std::string>;
  EXPECT_EQ(options("tensorrt"), (Map{{"trt_engine_cache_enable", "1"},
                                      {"trt_engine_cache_path", "/kept"},
                                      {"trt_timing_cache_enable", "1"},
                                      {"trt_timing_cache_path", "/kept"}}));
  EXPECT_EQ(options("openvino"), (Map{{"cache_dir", "/kept"}}));
  EXPECT_EQ(options("coreml"), (Map{{"ModelCacheDirectory", "/kept"}}));
  EXPECT_EQ(options("migraphx"), (Map{{"migraphx_model_cache_dir", "/kept"}}));
  EXPECT_EQ(options("vitisai"), (Map{{"cache_dir", "/kept"}, {"cache_key", "model"}}));
  EXPECT_EQ(options("cuda"), Map{});
  EXPECT_FALSE(keeps_compiled("cuda"));
  EXPECT_FALSE(keeps_compiled("cpu"));
  EXPECT_TRUE(keeps_compiled("tensorrt"));
  EXPECT_TRUE(keeps_compiled("qnn"));
  const Pairs context = context_config("qnn", "/kept/m.onnx");
  EXPECT_EQ(context.size(), 3U);
  EXPECT_EQ(context[1], (std::pair<std::string, std::string>{"ep.context_file_path", "/kept/m.onnx"}));
  EXPECT_TRUE(context_config("openvino", "/kept/m.onnx").empty());
  // The user's own win.
  settings.options = {{"trt_engine_cache_enable", "0"}, {"trt_engine_cache_path", "/mine"}, {"trt_engine_cache_path", "/last"}};
  EXPECT_EQ(options("tensorrt")["trt_engine_cache_enable"], "0");
  EXPECT_EQ(options("tensorrt")["trt_engine_cache_path"], "/last");
  settings.cache.clear();
  settings.options.clear();
  EXPECT_TRUE(options("openvino").empty());
}

TEST(OrtOptions, OldFlagsOfCoreMlAreTranslated) {
  ProviderSettings settings;
  settings.options = {{"coreml_flags", "0x34"}};
  const Pairs got = provider_options("coreml", settings);
  EXPECT_EQ(got.size(), 2U);
  EXPECT_EQ(got[0], (std::pair<std::string, std::string>{"MLComputeUnits", "CPUAndNeuralEngine"}));
  EXPECT_EQ(got[1], (std::pair<std::string, std::string>{"ModelFormat", "MLProgram"}));
}

TEST(OrtProvider, OtherPlatformsProvidersSayWhere) {
#if defined(__linux__)
  EXPECT_NE(find("directml")->probe({}, Effort::quick).reason.find("exists on Windows only"), std::string::npos);
  EXPECT_NE(find("ort:coreml")->probe({}, Effort::quick).reason.find("exists on macOS only"), std::string::npos);
#endif
  EXPECT_EQ(find("nobody"), nullptr);
}

TEST(OrtProvider, MessagesNameTheNodesAtFault) {
  Graph g;
  const ValueId x = g.add_input("x", Type::tensor(DataType::float32));
  const ValueId y = g.add_value("y"), z = g.add_value("z");
  Node relu, odd;
  relu.op_type = "Relu";
  relu.inputs = {x};
  relu.outputs = {y};
  odd.op_type = "Odd";
  odd.domain = "com.example";
  odd.inputs = {y};
  odd.outputs = {z};
  g.add_node(relu);
  g.add_node(odd);
  const auto only_odd = [&](const std::string& message) {
    const auto blamed = blamed_nodes(g, message);
    return blamed.size() == 1 && blamed[0].first == 1;
  };
  EXPECT_TRUE(only_odd("Fatal error: com.example:Odd(-1) is not a registered function/op"));
  EXPECT_TRUE(only_odd("Could not find an implementation for Odd(13) node with name 'a'"));
  EXPECT_TRUE(only_odd("Type Error: Type 'tensor(int8)' of input parameter (y) of operator (Odd) in node (a) is invalid."));
  EXPECT_TRUE(only_odd("This is an invalid model. In Node, (\"a\", Odd, \"com.example\", -1) : nothing"));
  EXPECT_TRUE(blamed_nodes(g, "out of memory").empty());
}

}  // namespace
}  // namespace sdx::ort
