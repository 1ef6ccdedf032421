#include "plan/regions.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "base/error.h"
#include "ops/infer.h"
#include "support/graph_text.h"

namespace sdx::plan {
namespace {

class NoKernel : public Kernel {
 public:
  std::string_view name() const override { return "none"; }
  void run(const KernelContext&) const override {}
};

// Takes the operators it is told to, and remembers the regions it was given, as lists of operators.
class Fake : public Provider {
 public:
  Fake(std::string name, std::set<std::string> takes) : name_(std::move(name)), takes_(std::move(takes)) {}
  std::string_view name() const override { return name_; }
  ProviderInfo probe(const ProviderSettings&, Effort) const override { return {}; }
  bool compiles_regions() const override { return true; }
  std::string_view family() const override { return family_; }
  std::vector<Claim> claim(const Graph& graph, const ProviderSettings&) const override {
    std::vector<Claim> claims;
    for (const Node& n : graph.nodes()) {
      const bool takes = takes_.contains(n.op_type);
      claims.push_back({takes, takes ? "" : "not mine"});
    }
    return claims;
  }
  RegionResult compile(const Region& region, const ProviderSettings&) const override {
    std::string text;
    for (const Node& n : region.graph->nodes()) text += (text.empty() ? "" : " ") + n.op_type;
    text += region.source != nullptr ? " (whole)" : "";
    for (std::size_t i = 0; i < region.stays.size(); ++i) {
      if (region.stays[i]) text += " keeps " + region.graph->output_names()[i];
    }
    for (const auto& [next, settings] : region.followers) text += " then " + std::string(next->name());
    seen.push_back(text);
    region.graph->verify();
    if (on_compile) on_compile();
    RegionResult result;
    for (NodeId id = 0; id < region.graph->nodes().size(); ++id) {
      if (refuses.contains(region.graph->node(id).op_type)) result.refused.emplace_back(id, "cannot after all");
    }
    if (result.refused.empty()) result.kernel = std::make_unique<NoKernel>();
    return result;
  }

  std::set<std::string> refuses;
  std::function<void()> on_compile;
  std::string family_;
  mutable std::vector<std::string> seen;

 private:
  std::string name_;
  std::set<std::string> takes_;
};

struct Outcome {
  Model model;
  Regions regions;
  std::string left;  // operators of the graph afterwards, in order
};

Outcome form(std::string_view text, const std::vector<const Fake*>& chain, bool strict = false, bool with_source = false) {
  Outcome o;
  o.model = testing::parse_model(text);
  ops::infer_in_place(o.model.graph, {});
  const Model original = o.model;
  std::vector<ChosenProvider> chosen;
  for (const Fake* f : chain) chosen.push_back({f, {}});
  ModelSource source;
  source.path = "model.onnx";
  o.regions = form_regions(o.model.graph, original, with_source ? &source : nullptr, chosen, strict);
  o.model.graph.verify();
  for (const Node& n : o.model.graph.nodes()) o.left += (o.left.empty() ? "" : " ") + n.op_type;
  return o;
}

constexpr const char* kChain =
    "input x: float32[2]\n"
    "a = Relu(x)\n"
    "b = Neg(a)\n"
    "c = Abs(b)\n"
    "d = Relu(c)\n"
    "output d\n";

TEST(Regions, AWholeModelIsOneRegion) {
  const Fake all("all", {"Relu", "Neg", "Abs"});
  const Outcome o = form(kChain, {&all}, false, true);
  EXPECT_EQ(all.seen, (std::vector<std::string>{"Relu Neg Abs Relu (whole)"}));
  EXPECT_EQ(o.left, "Region");
  EXPECT_EQ(o.regions.compiled.size(), 1U);
  EXPECT_TRUE(o.regions.failures.empty());
}

TEST(Regions, WhatIsNotTakenCutsIt) {
  const Fake some("some", {"Relu", "Neg"});
  const Outcome o = form(kChain, {&some}, false, true);
  EXPECT_EQ(some.seen, (std::vector<std::string>{"Relu Neg", "Relu"}));
  EXPECT_EQ(o.left, "Region Abs Region");
  ASSERT_TRUE(o.regions.refused.contains("c"));
  EXPECT_EQ(o.regions.refused.at("c")[0].reason, "not mine");
}

// b feeds Abs, which is not taken, and d needs both: in one region b and d would wait for themselves.
TEST(Regions, AGroupNeverWaitsForItself) {
  const Fake some("some", {"Relu", "Neg", "Add"});
  const Outcome o = form(
      "input x: float32[2]\n"
      "b = Relu(x)\n"
      "c = Abs(b)\n"
      "e = Neg(b)\n"
      "d = Add(c, e)\n"
      "output d\n",
      {&some});
  // Of its two results, only `e` is for the other region alone.
  EXPECT_EQ(some.seen, (std::vector<std::string>{"Relu Neg keeps e", "Add"}));
  EXPECT_EQ(o.left, "Region Abs Region");
}

TEST(Regions, IndependentPathsJoinOneGroup) {
  const Fake some("some", {"Relu", "Neg"});
  form(
      "input x: float32[2]\ninput y: float32[2]\n"
      "a = Relu(x)\nb = Neg(y)\nc = Abs(a)\nd = Abs(b)\ne = Relu(c)\nf = Neg(d)\n"
      "output e\noutput f\n",
      {&some});
  EXPECT_EQ(some.seen, (std::vector<std::string>{"Relu Neg", "Relu Neg"}));
}

TEST(Regions, WhatIsRefusedLaterIsLeftOutAndTheRestTriedAgain) {
  Fake all("all", {"Relu", "Neg", "Abs"});
  all.refuses = {"Abs"};
  const Outcome o = form(kChain, {&all});
  EXPECT_EQ(all.seen, (std::vector<std::string>{"Relu Neg Abs Relu", "Relu Neg", "Relu"}));
  EXPECT_EQ(o.left, "Region Abs Region");
  EXPECT_EQ(o.regions.refused.at("c")[0].reason, "cannot after all");
}

TEST(Regions, TheNextProviderTakesWhatIsLeft) {
  const Fake first("first", {"Relu"}), second("second", {"Relu", "Neg", "Abs"});
  const Outcome o = form(kChain, {&first, &second});
  EXPECT_EQ(first.seen, (std::vector<std::string>{"Relu", "Relu"}));
  EXPECT_EQ(second.seen, (std::vector<std::string>{"Neg Abs"}));
  EXPECT_EQ(o.left, "Region Region Region");
}

TEST(Regions, ProvidersOfOneFamilyShareARegion) {
  Fake first("ort:cuda", {"Relu", "Neg", "Abs"}), second("ort:cpu", {"Relu"}), other("other", {"Relu"});
  first.family_ = second.family_ = "ort";
  form(kChain, {&first, &second, &other});
  EXPECT_EQ(first.seen, (std::vector<std::string>{"Relu Neg Abs Relu then ort:cpu"}));
}

TEST(Regions, AFailureLeavesTheNodesToOthersUnlessStrict) {
  Fake broken("broken", {"Relu", "Neg", "Abs"});
  broken.on_compile = [] { fail(ErrorCode::provider_unavailable, "the device is gone"); };
  const Fake next("next", {"Relu", "Neg", "Abs"});
  const Outcome o = form(kChain, {&broken, &next});
  ASSERT_EQ(o.regions.failures.size(), 1U);
  EXPECT_NE(o.regions.failures[0].find("the device is gone"), std::string::npos);
  EXPECT_EQ(o.left, "Region");
  EXPECT_EQ(o.regions.compiled[0].provider, "next");
  EXPECT_THROW(form(kChain, {&broken, &next}, true), Error);
  // Wrong options are an error, strict or not: the user has to correct them.
  broken.on_compile = [] { fail(ErrorCode::invalid_argument, "no such device"); };
  EXPECT_THROW(form(kChain, {&broken, &next}), Error);
}

TEST(Regions, BranchesGoWithTheirNode) {
  const Fake some("some", {"If", "Relu"});
  const Outcome o = form(
      "input c: bool[]\ninput x: float32[2]\n"
      "y = Relu(x)\n"
      "z = If(c)\n"
      "  then_branch {\n    t = Abs(y)\n    output t\n  }\n"
      "  else_branch {\n    e = Neg(y)\n    output e\n  }\n"
      "output z\n",
      {&some});
  EXPECT_EQ(some.seen, (std::vector<std::string>{"Relu If"}));
  EXPECT_EQ(o.left, "Region");
}

}  // namespace
}  // namespace sdx::plan
