// Results that a provider leaves in its device's memory: no other code may read them, and they take no memory here.

#include <gtest/gtest.h>

#include "ops/infer.h"
#include "plan/program.h"
#include "support/graph_text.h"

namespace sdx::plan {
namespace {

void* const kDevice = reinterpret_cast<void*>(std::uintptr_t{64});  // an address that no host can read

// Leaves output 1 of a region with two outputs on the device, and expects it there as the second input of the next.
class DeviceKernel : public Kernel {
 public:
  explicit DeviceKernel(bool makes) : makes_(makes) {}
  std::string_view name() const override { return "device"; }
  bool allocates_outputs() const override { return true; }
  bool keeps_output(std::size_t i) const override { return makes_ && i == 1; }
  void run(const KernelContext& c) const override {
    if (makes_) {
      *c.outputs[0] = c.input(0).clone();
      *c.outputs[1] = Tensor::view(kDevice, DataType::float32, c.input(0).shape(), std::make_shared<int>(0));
      return;
    }
    std::size_t seen = 0;
    for (const Value* v : c.inputs) seen += v->tensor().data() == kDevice ? 1 : 0;
    *c.outputs[0] = Tensor::of<float>({2}, {static_cast<float>(seen), 7});
  }

 private:
  bool makes_;
};

class Device : public Provider {
 public:
  std::string_view name() const override { return "device"; }
  ProviderInfo probe(const ProviderSettings&, Effort) const override { return {}; }
  bool compiles_regions() const override { return true; }
  std::vector<Claim> claim(const Graph& graph, const ProviderSettings&) const override {
    std::vector<Claim> claims;
    for (const Node& n : graph.nodes()) claims.push_back({n.op_type != "Abs", "not mine"});
    return claims;
  }
  RegionResult compile(const Region& region, const ProviderSettings&) const override {
    RegionResult result;
    result.kernel = std::make_unique<DeviceKernel>(region.graph->outputs().size() == 2);
    return result;
  }
};

class HostKernel : public Kernel {
 public:
  std::string_view name() const override { return "host"; }
  int in_place() const override { return 0; }
  void run(const KernelContext& c) const override {
    for (std::int64_t i = 0; i < c.input(0).size(); ++i) c.out<float>(0)[i] = std::abs(c.in<float>(0)[i]);
  }
};

class Host : public Provider {
 public:
  std::string_view name() const override { return "host"; }
  ProviderInfo probe(const ProviderSettings&, Effort) const override { return {}; }
  std::vector<Claim> claim(const Graph& graph, const ProviderSettings&) const override {
    return std::vector<Claim>(graph.nodes().size(), Claim{true, ""});
  }
  Step lower(const Graph&, NodeId, const LowerOptions&) const override {
    Step step;
    step.kernel = std::make_unique<HostKernel>();
    return step;
  }
};

TEST(KeptOutput, PassesFromRegionToRegionAsItIs) {
  Model model = testing::parse_model(
      "input x: float32[2]\n"
      "b = Relu(x)\n"
      "c = Abs(b)\n"
      "e = Neg(b)\n"
      "d = Add(c, e)\n"
      "output d\n");
  ops::infer_in_place(model.graph, {});
  const Device device;
  const Host host;
  const std::vector<ChosenProvider> chosen{{&device, {}}};
  const Model original = model;
  Regions regions = form_regions(model.graph, original, nullptr, chosen, false);
  ops::infer_in_place(model.graph, {});
  const std::vector<const Provider*> chain{&device, &host};
  const Program program(std::move(model.graph), chain, 4, std::move(regions));
  for (int turn = 0; turn < 3; ++turn) {
    RunEnv env;
    const std::vector<Value> out = program.run({Tensor::of<float>({2}, {-1, 2})}, env);
    EXPECT_EQ(out[0].tensor().values<float>()[0], 1);
    EXPECT_EQ(out[0].tensor().values<float>()[1], 7);
  }
}

}  // namespace
}  // namespace sdx::plan
