#include "providers/ort/device_runs.h"

#include <gtest/gtest.h>

#include <thread>

#include "ops/context.h"
#include "providers/ort/region_kernel.h"
#include "support/errors.h"
#include "support/fake_device.h"

namespace sdx::ort {
namespace {

struct Services : ops::RunServices {
  std::vector<Value> run_subgraph(const Node&, std::size_t, std::vector<Value>) override { return {}; }
  const StopCondition& stop() const override { return stop_; }
  std::uint64_t next_seed() override { return 1; }
  StopCondition stop_;
};

// A region y = x + x on a provider, whose result may stay on the device.
class Doubler {
 public:
  Doubler(std::shared_ptr<const Library> library, const std::string& provider, bool stays,
          std::vector<std::pair<std::string, std::string>> options = {}) {
    const Type type = Type::tensor(DataType::float32, {Dim::unknown()});
    Node add;
    add.op_type = "Add";
    const ValueId x = graph_.add_input("x", type), y = graph_.add_value("y", type);
    add.inputs = {x, x};
    add.outputs = {y};
    add.version = 14;
    graph_.add_node(add);
    graph_.add_output(y);
    for (const ValueId v : {x, y}) graph_.value(v).declared = type;
    model_.ir_version = 8;
    model_.opsets[""] = 17;
    Region region;
    region.graph = &graph_;
    region.model = &model_;
    region.stays = {stays};
    ProviderSettings settings;
    settings.options = std::move(options);
    settings.threads = 1;
    kernel_ = make_region_kernel(std::move(library), provider, provider, region, settings);
  }

  Value run(const Value& x) const {
    Value y;
    const std::array<const Value*, 1> in{&x};
    const std::array<Value*, 1> out{&y};
    Services services;
    kernel_->run({in, out, nullptr, nullptr, &services});
    return y;
  }
  std::string name() const { return std::string(kernel_->name()); }

 private:
  Graph graph_;
  Model model_;
  std::unique_ptr<Kernel> kernel_;
};

Value numbers(std::vector<float> values) {
  Tensor t(DataType::float32, {static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.mutable_values<float>().begin());
  return t;
}

std::vector<float> floats(const Value& v) {
  const auto span = v.tensor().values<float>();
  return {span.begin(), span.end()};
}

class FakeDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    fake::counters = {};
    fake::can_refill = fake::has_memory = true;
    fake::fails = false;
    static const std::vector<const void*> table = fake::table();
    static const ApiBase base{[](std::uint32_t version) { return version <= 23 ? table.data() : nullptr; },
                              [] { return "1.23.0"; }};
    library_ = Library::from(base, "fake", nullptr);
  }
  void TearDown() override {
    library_.reset();
    const fake::Counters& c = fake::counters;
    EXPECT_EQ(c.values, 0);
    EXPECT_EQ(c.bindings, 0);
    EXPECT_EQ(c.allocators, 0);
    EXPECT_EQ(c.infos, 0);
  }
  std::shared_ptr<const Library> library_;
};

TEST_F(FakeDevice, InputsAreBoundOnceForAShape) {
  {
    const Doubler d(library_, "cuda", false);
    EXPECT_NE(d.name().find("bound to Cuda memory"), std::string::npos) << d.name();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(floats(d.run(numbers({1.0F + i, 2}))), (std::vector<float>{2.0F + 2 * i, 4}));
    EXPECT_EQ(fake::counters.inputs_bound, 1);
    EXPECT_EQ(fake::counters.refills, 10);
    EXPECT_EQ(fake::counters.copied_to_host, 10);
    EXPECT_EQ(fake::counters.bindings, 1);
    EXPECT_EQ(floats(d.run(numbers({1, 2, 3}))), (std::vector<float>{2, 4, 6}));
    EXPECT_EQ(fake::counters.inputs_bound, 2);
    EXPECT_EQ(fake::counters.plain_runs, 0);
  }
}

TEST_F(FakeDevice, EarlierResultsAreNotOverwritten) {
  const Doubler d(library_, "cuda", false);
  const Value first = d.run(numbers({1}));
  const Value second = d.run(numbers({5}));
  EXPECT_EQ(floats(first), (std::vector<float>{2}));
  EXPECT_EQ(floats(second), (std::vector<float>{10}));
}

TEST_F(FakeDevice, ALibraryThatCannotRefillBindsAnew) {
  fake::can_refill = false;
  const Doubler d(library_, "cuda", false);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(floats(d.run(numbers({1.0F + i}))), (std::vector<float>{2.0F + 2 * i}));
  EXPECT_EQ(fake::counters.refills, 0);
  EXPECT_EQ(fake::counters.inputs_bound, 4);  // the first run's tensor, and one for each run
}

TEST_F(FakeDevice, WhatOnlyPartsOnTheDeviceReadDoesNotCrossTheHost) {
  const Doubler first(library_, "cuda", true), second(library_, "cuda", false);
  for (int i = 0; i < 3; ++i) {
    const Value middle = first.run(numbers({3}));
    EXPECT_NE(device_value(middle.tensor()), nullptr);
    EXPECT_EQ(middle.type_string(), "float32[1]");
    EXPECT_EQ(floats(second.run(middle)), (std::vector<float>{12}));
  }
  EXPECT_EQ(fake::counters.copied_to_device, 3);
  EXPECT_EQ(fake::counters.copied_to_host, 3);
}

TEST_F(FakeDevice, APartThatIsNotBoundTakesWhatStayed) {
  const Doubler first(library_, "cuda", true), second(library_, "cuda", false, {{"io_binding", "0"}});
  EXPECT_EQ(floats(second.run(first.run(numbers({3})))), (std::vector<float>{12}));
  EXPECT_EQ(fake::counters.plain_runs, 1);
}

TEST_F(FakeDevice, ThreadsHaveBindingsOfTheirOwn) {
  const Doubler d(library_, "cuda", false);
  std::mutex turns;  // the library's functions count without locks
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::lock_guard lock(turns);
        EXPECT_EQ(floats(d.run(numbers({1.0F + t}))), (std::vector<float>{2.0F + 2 * t}));
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST_F(FakeDevice, WithoutSuchMemoryRunsAreNotBound) {
  fake::has_memory = false;
  const Doubler d(library_, "cuda", true);
  EXPECT_EQ(floats(d.run(numbers({3}))), (std::vector<float>{6}));
  EXPECT_EQ(fake::counters.plain_runs, 1);
  EXPECT_EQ(d.name().find("bound"), std::string::npos);
}

TEST_F(FakeDevice, ProvidersInTheHostsMemoryAreBoundOnlyOnRequest) {
  const Doubler plain(library_, "cpu", false), bound(library_, "cpu", false, {{"io_binding", "1"}});
  EXPECT_EQ(floats(plain.run(numbers({3}))), (std::vector<float>{6}));
  EXPECT_EQ(fake::counters.plain_runs, 1);
  EXPECT_NE(bound.name().find("bound to Cpu memory"), std::string::npos);
}

TEST_F(FakeDevice, AFailedRunLeavesNothingBehind) {
  const Doubler d(library_, "cuda", false);
  fake::fails = true;
  testing::expect_error(ErrorCode::runtime_failure, [&] { d.run(numbers({3})); }, {"the device is lost"});
  EXPECT_EQ(fake::counters.bindings, 0);
  fake::fails = false;
  EXPECT_EQ(floats(d.run(numbers({3}))), (std::vector<float>{6}));
}

// The same code on a real library, in the memory that every machine has: tests/bridge/run_bridge.py sets SDX_VENDOR_PROVIDER.
class VendorBinding : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* provider = std::getenv("SDX_VENDOR_PROVIDER");
    if (provider == nullptr || std::string_view(provider) != "ort:cpu") GTEST_SKIP() << "SDX_VENDOR_PROVIDER is not ort:cpu";
    library_ = Library::open(choose_library({}, "cpu"));
  }
  std::shared_ptr<const Library> library_;
};

TEST_F(VendorBinding, TwoPartsPassOnWhatStaysBound) {
  const std::vector<std::pair<std::string, std::string>> on{{"io_binding", "1"}};
  const Doubler first(library_, "cpu", true, on), second(library_, "cpu", false, on);
  EXPECT_NE(first.name().find("bound to Cpu memory"), std::string::npos) << first.name();
  for (int i = 1; i < 50; ++i) {
    const auto n = static_cast<float>(i);
    const Value middle = first.run(numbers({n, 1}));
    EXPECT_NE(device_value(middle.tensor()), nullptr);
    EXPECT_EQ(floats(second.run(middle)), (std::vector<float>{4 * n, 4}));
    EXPECT_EQ(floats(second.run(numbers(std::vector<float>(static_cast<std::size_t>(i % 4), n)))),
              std::vector<float>(static_cast<std::size_t>(i % 4), 2 * n));
  }
}

TEST_F(VendorBinding, ManyThreadsAtOnce) {
  const Doubler d(library_, "cpu", false, {{"io_binding", "1"}});
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const auto n = static_cast<float>(t * 1000 + i);
        EXPECT_EQ(floats(d.run(numbers(std::vector<float>(1 + static_cast<std::size_t>(i % 3), n)))),
                  std::vector<float>(1 + static_cast<std::size_t>(i % 3), 2 * n));
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

}  // namespace
}  // namespace sdx::ort
