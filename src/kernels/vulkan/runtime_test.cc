// The module's own functions on every driver of this machine: memory, copies, shaders, and devices that fail.

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "kernels/vulkan/recorder.h"
#include "kernels/vulkan/spirv.h"

namespace sdx::vulkan {
namespace {

// Memory that goes back, whatever happens.
struct Held {
  Held(OpenDevice& from, std::uint64_t bytes, MemoryKind kind) : device(from), memory(from.allocate(bytes, kind)) {}
  ~Held() { device.release(memory); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  OpenDevice& device;
  Memory memory;
};

// Skipped where no driver is installed.
class Vulkan : public testing::Test {
 protected:
  void SetUp() override {
    char message[256] = "";
    std::size_t count = 0;
    if (own_table().list(nullptr, 0, &count, {message, sizeof message}) != Outcome::ok) GTEST_SKIP() << message;
    for (std::size_t i = 0; i < count; ++i) {
      if (Instance::get().devices()[i].facts.lacks[0] != '\0') continue;
      device_ = OpenDevice::open(i);
      return;
    }
    GTEST_SKIP() << "no device that can be used";
  }

  // Runs one dispatch over `x`, and returns as many numbers of its result.
  template <class Push>
  std::vector<float> run(Shader shader, std::vector<std::uint32_t> constants, const std::vector<float>& x, std::size_t results,
                         Push push) {
    const Held in(*device_, x.size() * 4, MemoryKind::device), out(*device_, results * 4, MemoryKind::device);
    const Held back(*device_, results * 4, MemoryKind::download);
    device_->upload(in.memory, 0, x.data(), x.size() * 4);
    std::vector<Command> commands(2);
    Command& c = commands[0];
    c.shader = shader;
    c.constant_count = static_cast<std::uint32_t>(constants.size());
    std::copy(constants.begin(), constants.end(), c.constants);
    push(c, in.memory.address, out.memory.address);
    const Copy copy{&out.memory, &back.memory, 0, 0, results * 4};
    commands[1].copy = &copy;
    commands[1].barrier = 1;
    Recorder(*device_, commands.data(), commands.size()).run({}, nullptr);
    std::vector<float> y(results);
    std::memcpy(y.data(), back.memory.mapped, results * 4);
    return y;
  }

  std::vector<float> map(Function f, const std::vector<float>& x, float alpha = 0, float beta = 0, float gamma = 0) {
    return run(Shader::map, {static_cast<std::uint32_t>(f)}, x, x.size(), [&](Command& c, std::uint64_t in, std::uint64_t out) {
      const struct {
        std::uint64_t in, out;
        std::uint32_t count;
        float alpha, beta, gamma;
      } push{in, out, static_cast<std::uint32_t>(x.size()), alpha, beta, gamma};
      static_assert(sizeof push == 32);
      std::memcpy(c.push, &push, sizeof push);
      c.push_bytes = sizeof push;
      c.groups[0] = static_cast<std::uint32_t>((x.size() + kGroup - 1) / kGroup);
      c.groups[1] = c.groups[2] = 1;
    });
  }

  std::shared_ptr<OpenDevice> device_;
};

struct Known {
  Function function;
  double (*of)(double);
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

const Known kKnown[] = {
    {Function::identity, [](double x) { return x; }},
    {Function::relu, [](double x) { return x < 0 ? 0 : x; }},
    {Function::tanh, [](double x) { return std::tanh(x); }},
    {Function::sigmoid, sigmoid},
    {Function::leaky_relu, [](double x) { return x >= 0 ? x : 0.25 * x; }},
    {Function::thresholded_relu, [](double x) { return x > 0.25 ? x : 0; }},
    {Function::hard_sigmoid, [](double x) { return std::min(std::max(0.25 * x + 0.5, 0.0), 1.0); }},
    {Function::hard_swish, [](double x) { return x * std::min(std::max(x / 6 + 0.5, 0.0), 1.0); }},
    {Function::clip, [](double x) { return std::min(std::max(x, 0.25), 0.5); }},
    {Function::elu, [](double x) { return x >= 0 ? x : 0.25 * std::expm1(x); }},
    {Function::silu, [](double x) { return x * sigmoid(x); }},
    {Function::gelu, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }},
    {Function::gelu_tanh, [](double x) { return 0.5 * x * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }},
    {Function::quick_gelu, [](double x) { return x * sigmoid(0.25 * x); }},
    {Function::softsign, [](double x) { return x / (1 + std::fabs(x)); }},
    {Function::softplus, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }},
    {Function::selu, [](double x) { return 2 * (x >= 0 ? x : 0.25 * std::expm1(x)); }},
    {Function::celu, [](double x) { return x >= 0 ? x : 0.25 * std::expm1(x / 0.25); }},
    {Function::sqrt, [](double x) { return std::sqrt(x); }},
    {Function::exp, [](double x) { return std::exp(x); }},
    {Function::log, [](double x) { return std::log(x); }},
    {Function::neg, [](double x) { return -x; }},
    {Function::abs, [](double x) { return std::fabs(x); }},
    {Function::erf, [](double x) { return std::erf(x); }},
    {Function::sin, [](double x) { return std::sin(x); }},
    {Function::cos, [](double x) { return std::cos(x); }},
    {Function::reciprocal, [](double x) { return 1 / x; }},
    {Function::floor, [](double x) { return std::floor(x); }},
    {Function::ceil, [](double x) { return std::ceil(x); }},
    {Function::round, [](double x) { return std::nearbyint(x); }},
    {Function::sign, [](double x) { return x > 0   ? 1.0
                                           : x < 0 ? -1.0
                                                   : x; }},
    {Function::mish, [](double x) { return x * std::tanh(std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)))); }},
};
static_assert(std::size(kKnown) == static_cast<std::size_t>(Function::count));

TEST_F(Vulkan, FunctionsAgreeWithTheHostsOwn) {
  std::vector<float> x;
  for (int i = -4000; i <= 4000; ++i) x.push_back(static_cast<float>(i) * 0.00303F);
  for (const float far : {20.0F, -20.0F, 80.0F, -80.0F, 1e-6F, -1e-6F, 0.0F}) x.push_back(far);
  for (const Known& k : kKnown) {
    const std::vector<float> y = map(k.function, x, 0.25F, 0.5F, 2);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double want = k.of(static_cast<double>(x[i]));
      if (std::isnan(want)) {
        ASSERT_TRUE(std::isnan(y[i])) << static_cast<int>(k.function) << " of " << x[i];
      } else if (!std::isinf(want)) {
        ASSERT_NEAR(static_cast<double>(y[i]), want, 2e-6 * std::max(1.0, std::fabs(want)))
            << static_cast<int>(k.function) << " of " << x[i];
      }
    }
  }
}

TEST_F(Vulkan, FunctionsKeepNaN) {
  const std::vector<float> x{std::numeric_limits<float>::quiet_NaN()};
  for (const Known& k : kKnown) {
    if (k.function == Function::thresholded_relu || k.function == Function::celu) continue;
    EXPECT_TRUE(std::isnan(map(k.function, x, 0.25F, 0.5F, 2)[0])) << static_cast<int>(k.function);
  }
}

TEST_F(Vulkan, ASessionsMemoryComesAndGoes) {
  const std::vector<std::byte> data((std::size_t{17} << 20) + 4, std::byte{7});  // more than an upload takes at once
  Memory m = device_->allocate(data.size(), MemoryKind::device);
  device_->upload(m, 0, data.data(), data.size());
  Memory back = device_->allocate(data.size(), MemoryKind::download);
  const Copy copy{&m, &back, 0, 0, data.size()};
  Command c{};
  c.copy = &copy;
  Recorder(*device_, &c, 1).run({}, nullptr);
  EXPECT_EQ(std::memcmp(back.mapped, data.data(), data.size()), 0);
  device_->release(m);
  device_->release(back);
  EXPECT_EQ(m.handle, nullptr);
}

TEST_F(Vulkan, TooLargeAnAllocationIsOutOfMemory) {
  try {
    device_->allocate(std::uint64_t{1} << 50, MemoryKind::device);
    FAIL();
  } catch (const Failure& e) {
    EXPECT_EQ(e.outcome(), Outcome::out_of_memory);
  }
}

// Puts a function in the place of one of the driver's, for its own lifetime.
template <class F>
class Replaced {
 public:
  Replaced(F& place, F function) : place_(place), before_(place) { place_ = function; }
  ~Replaced() { place_ = before_; }
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;

 private:
  F& place_;
  F before_;
};

VkResult out_of_memory(VkDevice, const VkMemoryAllocateInfo*, const VkAllocationCallbacks*, VkDeviceMemory*) {
  return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}
VkResult lost(VkQueue, std::uint32_t, const VkSubmitInfo*, VkFence) { return VK_ERROR_DEVICE_LOST; }

TEST_F(Vulkan, ADeviceWithoutMemoryGoesOnAfterwards) {
  {
    const Replaced replaced(device_->f().AllocateMemory, &out_of_memory);
    try {
      device_->allocate(64, MemoryKind::device);
      FAIL();
    } catch (const Failure& e) {
      EXPECT_EQ(e.outcome(), Outcome::out_of_memory);
      EXPECT_NE(std::string(e.what()).find("VK_ERROR_OUT_OF_DEVICE_MEMORY"), std::string::npos) << e.what();
    }
  }
  EXPECT_EQ(map(Function::neg, {3})[0], -3);
}

TEST_F(Vulkan, ALostDeviceStaysLostAndIsOpenedAnew) {
  device_->f().QueueSubmit = lost;
  for (int attempt = 0; attempt < 2; ++attempt) {
    try {
      map(Function::neg, {3});
      FAIL();
    } catch (const Failure& e) {
      EXPECT_EQ(e.outcome(), Outcome::lost);
    }
  }
  std::size_t index = 0;
  while (&Instance::get().devices()[index] != &device_->physical()) ++index;
  const auto anew = OpenDevice::open(index);
  EXPECT_NE(anew, device_);
  device_ = anew;
  EXPECT_EQ(map(Function::neg, {3})[0], -3);
}

// A run in many parts ends soon after it is stopped, and the recording runs again.
TEST_F(Vulkan, ARunIsStoppedBetweenItsParts) {
  constexpr std::size_t kParts = 2000;
  Memory m = device_->allocate(std::size_t{4} << 20, MemoryKind::device);
  std::vector<Command> commands(kParts);
  for (Command& c : commands) {
    c.shader = Shader::fill;
    const struct {
      std::uint64_t to;
      std::uint32_t count, word;
    } push{m.address, 1 << 20, 7};
    std::memcpy(c.push, &push, sizeof push);
    c.push_bytes = sizeof push;
    c.groups[0] = 4096;
    c.groups[1] = c.groups[2] = 1;
    c.barrier = 1;
    c.cost = std::uint64_t{1} << 60;
  }
  Recorder recorder(*device_, commands.data(), commands.size());
  int asked = 0;
  const StopQuestion stop{[](void* n) { return ++*static_cast<int*>(n) > 3 ? 1 : 0; }, &asked};
  try {
    recorder.run(stop, nullptr);
    FAIL();
  } catch (const Failure& e) {
    EXPECT_EQ(e.outcome(), Outcome::stopped);
  }
  EXPECT_LT(asked, 1000);
  device_->release(m);
}

VkResult no_pipeline(VkDevice, VkPipelineCache, std::uint32_t, const VkComputePipelineCreateInfo*, const VkAllocationCallbacks*,
                     VkPipeline*) {
  return VK_ERROR_OUT_OF_HOST_MEMORY;
}

TEST_F(Vulkan, APipelineThatCannotBeMadeIsMadeLater) {
  {
    const Replaced replaced(device_->f().CreateComputePipelines, &no_pipeline);
    try {
      map(Function::mish, {0}, 0.125F);
      FAIL();
    } catch (const Failure& e) {
      EXPECT_EQ(e.outcome(), Outcome::out_of_memory);
      EXPECT_NE(std::string(e.what()).find("make a pipeline of 'map'"), std::string::npos) << e.what();
    }
  }
  EXPECT_EQ(map(Function::mish, {0})[0], 0);
}

TEST_F(Vulkan, CompiledPipelinesAreOfUseAgain) {
  map(Function::cos, {0});
  std::vector<char> kept(device_->pipelines(nullptr, 0));
  if (kept.empty()) GTEST_SKIP() << "the driver keeps nothing";
  EXPECT_EQ(device_->pipelines(kept.data(), kept.size()), kept.size());
  device_->add_pipelines(kept.data(), kept.size());
  EXPECT_EQ(map(Function::cos, {0})[0], 1);
  // A head that is not the driver's: it takes nothing of it.
  std::fill(kept.begin(), kept.end(), '\x7F');
  device_->add_pipelines(kept.data(), kept.size());
  EXPECT_EQ(map(Function::sin, {0})[0], 0);
}

TEST_F(Vulkan, ThreadsShareADevice) {
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        const auto x = static_cast<float>(10 * t + i);
        const Function f = i % 2 == 0 ? Function::neg : Function::abs;
        if (map(f, {x})[0] == (i % 2 == 0 ? -x : x)) ++right;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(right, 30);
}

TEST(VulkanShaders, EachIsSpirv) {
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(Shader::count); ++i) {
    const auto words = spirv_of(static_cast<Shader>(i));
    ASSERT_GT(words.size(), 5U) << name_of(static_cast<Shader>(i));
    EXPECT_EQ(words[0], 0x07230203U);
  }
}

}  // namespace
}  // namespace sdx::vulkan
