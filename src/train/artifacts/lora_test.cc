#include "train/artifacts/lora.h"

#include "base/error.h"
#include "support/errors.h"
#include "support/made_artifacts.h"

namespace sdx::train {
namespace {

using test::labels;
using test::MadeArtifacts;
using test::numbers;

constexpr const char* kModel =
    "opset 17\ninput x: float32[n,4]\n"
    "constant w: float32[4,3] 0.1 -0.2 0.3 0.4 0.2 -0.1 0.3 -0.4 0.5 0.2 0.1 -0.3\nconstant b: float32[3] 0.1 0.2 0.3\n"
    "constant v: float32[2,3] 0.6 -0.2 0.3 0.4 0.2 -0.1\nconstant c: float32[2] 0.1 0.2\n"
    "a = MatMul(x, w)\nd = Add(a, b)\ne = Tanh(d)\ny = Gemm(e, v, c) {transB=1}\ns = ReduceSum(w) {keepdims=0}\noutput y\noutput "
    "s\n";
const NamedValues kFeeds{{"x", numbers({5, 4})}, {"labels", labels({0, 1, 1, 0, 1})}};

ArtifactOptions lora(std::vector<std::string> targets, std::int64_t rank = 2) {
  ArtifactOptions options;
  options.lora = LoraOptions{rank, 4, std::move(targets)};
  options.additional_outputs = {"y"};
  return options;
}

std::vector<float> values(const std::map<std::string, Tensor>& all, const char* name) {
  const Tensor& t = all.at(name);
  return {t.values<float>().begin(), t.values<float>().end()};
}

TEST(Lora, ChangesNothingAtFirst) {
  MadeArtifacts plain(kModel), adapted(kModel, lora({"*"}));
  EXPECT_EQ(plain.step(kFeeds).at("onnx::loss::2").values<float>()[0],
            adapted.step(kFeeds).at("onnx::loss::2").values<float>()[0]);
  std::size_t trained = 0;
  for (const Parameter& p : adapted.state.parameters) trained += p.requires_grad ? 1U : 0U;
  EXPECT_EQ(trained, 4U);
  EXPECT_EQ(adapted.state.at("w.lora_A").value.shape(), (Shape{4, 2}));
  EXPECT_EQ(adapted.state.at("v.lora_A").value.shape(), (Shape{2, 3}));  // Gemm's weights lie the other way
  EXPECT_FALSE(adapted.state.at("w").requires_grad);
}

TEST(Lora, GradientsAndMergedWeights) {
  MadeArtifacts made(kModel, lora({"*"}));
  for (const char* name : {"w.lora_B", "v.lora_B"}) {
    Tensor& b = made.state.at(name).value;
    b = numbers(b.shape(), 0.3F);
  }
  made.expect_gradients(kFeeds);
  const auto before = made.evaluate(kFeeds);
  Model merged = made.eval;
  for (std::size_t i = merged.graph.inputs().size(); i-- > 0;) {
    ValueInfo& v = merged.graph.value(merged.graph.inputs()[i]);
    const Parameter* p = made.state.find(v.name);
    if (p == nullptr) continue;
    v.constant = p->value;
    v.is_input = false;
    merged.graph.remove_input(i);
  }
  EXPECT_EQ(lora_pairs(merged).size(), 2U);
  ASSERT_TRUE(merge_lora(merged));
  EXPECT_TRUE(lora_pairs(merged).empty());
  merged.graph.verify();
  for (const Node& n : merged.graph.nodes()) EXPECT_EQ(n.name.find("lora"), std::string::npos);
  for (const ValueInfo& v : merged.graph.values()) EXPECT_EQ(v.name.find("lora"), std::string::npos) << v.name;
  made.eval = merged;
  const auto after = made.evaluate(kFeeds);
  for (const char* name : {"y", "onnx::loss::2"}) {
    const std::vector<float> a = values(before, name), b = values(after, name);
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << name;
  }
  EXPECT_FALSE(merge_lora(merged));
}

TEST(Lora, OtherReadersKeepTheirWeights) {
  ArtifactOptions options = lora({"w"});
  options.additional_outputs = {"s"};
  MadeArtifacts made(kModel, options);
  Tensor& b = made.state.at("w.lora_B").value;
  b = numbers(b.shape(), 0.3F);
  EXPECT_NEAR(made.evaluate(kFeeds).at("s").values<float>()[0], 1.1F, 1e-5);
}

TEST(Lora, TargetsAndRefusals) {
  const auto refused = [](const ArtifactOptions& options, const std::string& part) {
    testing::expect_error([&] { const MadeArtifacts made(kModel, options); }, {part});
  };
  refused(lora({"b"}), "lora: there is no 'b'");
  refused(lora({"*"}, 0), "rank 0");
  MadeArtifacts made(kModel, lora({"v"}));
  EXPECT_EQ(made.state.find("w.lora_A"), nullptr);
  ArtifactOptions with_head = lora({"*"});
  with_head.head_classes = 4;
  MadeArtifacts head(kModel, with_head);
  EXPECT_EQ(head.state.find("v.lora_A"), nullptr);  // the new head is trained whole
  EXPECT_TRUE(head.state.at("v").requires_grad);
}

TEST(Head, TakesThePlaceOfTheLastLayer) {
  ArtifactOptions options;
  options.head_classes = 4;
  options.seed = 7;
  MadeArtifacts made(kModel, options), same(kModel, options);
  EXPECT_EQ(made.state.at("v").value.shape(), (Shape{4, 3}));
  EXPECT_EQ(made.state.at("c").value.shape(), (Shape{4}));
  EXPECT_TRUE(made.state.at("c").requires_grad);
  EXPECT_FALSE(made.state.at("w").requires_grad);
  const auto a = made.state.at("v").value.values<float>(), b = same.state.at("v").value.values<float>();
  EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin()));
  for (const float f : a) EXPECT_LE(std::abs(f), 1 / std::sqrt(3.0F));
  EXPECT_NE(a[0], a[1]);
  made.expect_gradients({{"x", numbers({5, 4})}, {"labels", labels({0, 3, 1, 2, 1})}});
}

TEST(Head, OfMatMulWithItsBiasBehindIt) {
  ArtifactOptions options;
  options.head_classes = 5;
  MadeArtifacts made(
      "opset 17\ninput x: float32[n,2]\nconstant w: float32[2,3] 1 2 3 4 5 6\nconstant b: float32[3] 1 2 3\na = MatMul(x, w)\n"
      "d = Add(b, a)\ny = Softmax(d)\noutput y\n",
      options);
  EXPECT_EQ(made.state.at("w").value.shape(), (Shape{2, 5}));
  EXPECT_EQ(made.state.at("b").value.shape(), (Shape{5}));
}

}  // namespace
}  // namespace sdx::train
