#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "providers/openvino/devices.h"
#include "providers/openvino/openvino_provider.h"
#include "providers/openvino/options.h"
#include "providers/openvino/region_kernel.h"

namespace sdx::openvino {
namespace {

std::string property(const Settings& s, const std::string& key) {
  std::string found;
  int count = 0;
  for (const auto& [k, v] : s.properties) {
    if (k != key) continue;
    found = v;
    ++count;
  }
  EXPECT_LE(count, 1) << key << " is given twice";
  return found;
}

std::string problem(const std::string& key, const std::string& value) {
  ProviderSettings settings;
  settings.options = {{key, value}};
  try {
    settings_of(settings);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument);
    return e.message();
  }
  return "";
}

TEST(OpenVinoOptions, BecomeProperties) {
  ProviderSettings settings;
  settings.threads = 3;
  settings.cache = "/cache";
  const Settings plain = settings_of(settings);
  EXPECT_EQ(plain.device, "CPU");
  EXPECT_EQ(property(plain, "INFERENCE_NUM_THREADS"), "3");
  EXPECT_EQ(property(plain, "INFERENCE_PRECISION_HINT"), "f32");
  EXPECT_EQ(property(plain, "LP_TRANSFORMS_MODE"), "NO");
  EXPECT_EQ(property(plain, "CACHE_DIR"), "/cache");

  settings.options = {{"num_of_threads", "1"}, {"cache_dir", "/mine"}, {"LP_TRANSFORMS_MODE", "YES"}, {"precision", "ACCURACY"}};
  const Settings given = settings_of(settings);
  EXPECT_EQ(property(given, "INFERENCE_NUM_THREADS"), "1");
  EXPECT_EQ(property(given, "CACHE_DIR"), "/mine");
  EXPECT_EQ(property(given, "LP_TRANSFORMS_MODE"), "YES");
  EXPECT_EQ(property(given, "EXECUTION_MODE_HINT"), "ACCURACY");
  EXPECT_EQ(property(given, "INFERENCE_PRECISION_HINT"), "");

  settings.options = {{"device_type", "GPU.1"}, {"precision", "FP16"}};
  const Settings gpu = settings_of(settings);
  EXPECT_EQ(gpu.device, "GPU.1");
  EXPECT_EQ(property(gpu, "INFERENCE_PRECISION_HINT"), "f16");
  EXPECT_EQ(property(gpu, "INFERENCE_NUM_THREADS"), "");
  EXPECT_EQ(property(gpu, "LP_TRANSFORMS_MODE"), "");
}

TEST(OpenVinoOptions, AreChecked) {
  EXPECT_NE(problem("device_typ", "CPU").find("did you mean 'device_type'"), std::string::npos);
  EXPECT_NE(problem("frobnicate", "1").find("Known: device_type"), std::string::npos);
  EXPECT_NE(problem("device_type", "XPU").find("received 'XPU'"), std::string::npos);
  EXPECT_NE(problem("device_type", "GPU."), "");
  EXPECT_NE(problem("device_type", "HETERO:"), "");
  EXPECT_NE(problem("device_type", "GPU,"), "");
  EXPECT_NE(problem("num_of_threads", "-1"), "");
  EXPECT_NE(problem("precision", "FP8"), "");
  for (const char* good : {"CPU", "GPU", "NPU", "GPU.0", "AUTO", "AUTO:GPU,CPU", "HETERO:NPU,GPU.1,CPU", "MULTI:GPU.0,GPU.1"}) {
    EXPECT_EQ(problem("device_type", good), "") << good;
  }
}

TEST(OpenVinoDevices, WhatIsMissingHasAReason) {
  const std::vector<Device> cpu{{"CPU", "Some CPU"}};
  const LoaderView nothing;
  MachineFacts machine;
  EXPECT_EQ(missing_device("CPU", cpu, machine, nothing).reason, "");
  EXPECT_EQ(missing_device("AUTO", cpu, machine, nothing).reason, "");
  EXPECT_NE(missing_device("GPU", cpu, machine, nothing).reason.find("no Intel GPU is on the PCI bus"), std::string::npos);
  EXPECT_NE(missing_device("HETERO:NPU,CPU", cpu, machine, nothing).reason.find("no Intel NPU"), std::string::npos);
  machine.intel_gpus = {"Intel [8086:56a0]"};
  EXPECT_NE(missing_device("GPU", cpu, machine, nothing).reason.find("no /dev/dri/renderD*"), std::string::npos);
  machine.render_nodes = true;
  EXPECT_NE(missing_device("GPU", cpu, machine, nothing).reason.find("libOpenCL.so.1"), std::string::npos);
  EXPECT_NE(missing_device("GPU", cpu, machine, nothing).hint.find("intel-opencl-icd"), std::string::npos);
  const std::vector<Device> both{{"CPU", ""}, {"GPU.0", "Arc"}, {"GPU.1", "Arc"}};
  EXPECT_EQ(missing_device("AUTO:GPU.1,CPU", both, machine, nothing).reason, "");
  EXPECT_EQ(missing_device("GPU", both, machine, nothing).reason, "");
  EXPECT_NE(missing_device("GPU.2", both, machine, nothing).reason.find("there are only CPU, GPU.0: Arc"), std::string::npos);
  EXPECT_EQ(missing_device("GPU.0", std::vector<Device>{{"GPU", ""}}, machine, nothing).reason, "");
}

TEST(OpenVinoProvider, AMissingLibraryIsAReason) {
  if (std::getenv("SDX_OPENVINO_LIB") != nullptr) GTEST_SKIP() << "SDX_OPENVINO_LIB is set";
  ProviderSettings settings;
  settings.openvino_library = "/nonexistent/libopenvino_c.so";
  const ProviderInfo info = find("openvino")->probe(settings, Effort::full);
  EXPECT_FALSE(info.available);
  EXPECT_NE(info.reason.find("/nonexistent/libopenvino_c.so"), std::string::npos) << info.reason;
  EXPECT_NE(info.hint.find("pip install openvino"), std::string::npos) << info.hint;
}

Graph two_nodes() {
  Graph g;
  const ValueId x = g.add_input("x", Type::tensor(DataType::float32));
  const ValueId y = g.add_value("y"), z = g.add_value("z");
  Node conv, odd;
  conv.op_type = "Conv";
  conv.name = "first";
  conv.inputs = {x};
  conv.outputs = {y};
  odd.op_type = "Odd";
  odd.domain = "com.example";
  odd.inputs = {y};
  odd.outputs = {z};
  g.add_node(conv);
  g.add_node(odd);
  return g;
}

TEST(OpenVinoProvider, MessagesNameTheNodesAtFault) {
  const Graph g = two_nodes();
  const std::string report =
      "Exception from src/inference/src/cpp/core.cpp:84:\n"
      "Check 'false' failed at src/frontends/a.cpp:151:\n"
      "FrontEnd API failed with OpConversionFailure:\n"
      "Model wasn't fully converted. Failed operations detailed log:\n"
      "-- Conv-15 with a message:\n"
      "While validating ONNX node '<Node(Conv): y>': Check 'x.is_static()' failed at src/frontends/onnx/conv.cpp:38:\n"
      "FrontEnd API failed with GeneralFailure:\n"
      "The rank has to be known\n"
      "\n"
      "Summary:\n"
      "-- Conversion is failed for: Conv-15\n";
  const auto by_value = blamed_nodes(g, report);
  ASSERT_EQ(by_value.size(), 1U);
  EXPECT_EQ(by_value[0].first, 0U);
  EXPECT_NE(by_value[0].second.find("The rank has to be known"), std::string::npos);
  EXPECT_EQ(by_value[0].second.find(".cpp"), std::string::npos) << by_value[0].second;
  const auto odd = [&](const std::string& message) {
    const auto blamed = blamed_nodes(g, message);
    return blamed.size() == 1 && blamed[0].first == 1;
  };
  EXPECT_TRUE(odd("Summary:\n-- No conversion rule found for operations: com.example.Odd, ai.onnx.Other\nmore"));
  EXPECT_TRUE(odd("-- Conversion is failed for: Odd-1\n"));
  EXPECT_TRUE(odd("Unsupported value_info type: z\n"));
  EXPECT_TRUE(odd("Unexpected: CPU plug-in doesn't support Odd operation with dynamic rank. Operation name: z\n"));
  EXPECT_TRUE(blamed_nodes(g, "out of memory").empty());
  EXPECT_EQ(plain("Exception from a.cpp:1:\nException from b.cpp:2:\nNo memory\n\n"), "No memory");
}

}  // namespace
}  // namespace sdx::openvino
