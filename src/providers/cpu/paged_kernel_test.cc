// The fast kernel of sdx PagedAttention against GroupQueryAttention, text by text.

#include <array>
#include <cstring>
#include <limits>
#include <memory>

#include "base/thread_pool.h"
#include "ops/infer.h"
#include "providers/cpu/kernel_table.h"
#include "support/graph_text.h"
#include "support/kernel_problems.h"
#include "support/paged_problem.h"

namespace sdx::cpu {
namespace {

using sdx::testing::paged_cases;
using sdx::testing::PagedCase;
using sdx::testing::PagedProblem;
using enum ops::PagedIn::Slot;

// The node of a problem in a graph of its own, with the kernel that takes it.
class Compiled {
 public:
  explicit Compiled(PagedProblem& p) : inputs_(p.inputs()), outputs_(static_cast<std::size_t>(p.caches()) + 1) {
    std::string text = "opset 21\n", call;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::string name = "x" + std::to_string(i);
      if (inputs_[i].defined()) text += "input " + name + ": " + inputs_[i].type_string() + "\n";
      call += (i > 0 ? ", " : "") + (inputs_[i].defined() ? name : "_");
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) text += (i > 0 ? ", y" : "y") + std::to_string(i);
    text += " = sdx.PagedAttention(" + call + ") {num_heads=1, kv_num_heads=1}\n";
    for (std::size_t i = 0; i < outputs_.size(); ++i) text += "output y" + std::to_string(i) + "\n";
    graph_ = sdx::testing::parse_model(text).graph;
    graph_.node(0).attributes = p.node().attributes;
    ops::infer_in_place(graph_);
    LowerContext context(graph_, 0);
    for (const KernelEntry* entry : kernel_table().find("sdx", "PagedAttention")) {
      if (!kernel_) kernel_ = entry->make(context);
    }
    reason_ = context.reason();
  }

  const std::string& reason() const { return reason_; }
  const Tensor& output(std::size_t i) const { return outputs_[i].tensor(); }

  // In place where `bound`, otherwise into copies.
  void run(bool bound) {
    ASSERT_TRUE(kernel_) << reason_;
    std::vector<Value> in(inputs_.begin(), inputs_.end());
    std::vector<const Value*> given;
    std::vector<Value*> wanted;
    std::vector<const Type*> in_types, out_types;
    const Node& node = graph_.node(0);
    for (std::size_t i = 0; i < in.size(); ++i) {
      given.push_back(inputs_[i].defined() ? &in[i] : nullptr);
      in_types.push_back(inputs_[i].defined() ? &graph_.value(node.inputs[i]).type : nullptr);
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Type& type = graph_.value(node.outputs[i]).type;
      outputs_[i] = bound && i > 0 ? inputs_[kKeyCache + i - 1] : Tensor(type.elem, to_shape(*type.shape));
      wanted.push_back(&outputs_[i]);
      out_types.push_back(&type);
    }
    ResolveContext resolve;
    resolve.inputs = in_types, resolve.outputs = out_types;
    const std::unique_ptr<KernelState> state = kernel_->resolve(resolve);
    test::Guarded<float> workspace(static_cast<std::int64_t>(resolve.workspace_bytes / 4));
    ops::testing::FakeServices services;
    KernelContext context;
    context.inputs = given, context.outputs = wanted, context.services = &services;
    context.state = state.get(), context.workspace = workspace.data();
    kernel_->run(context);
  }

 private:
  std::vector<Tensor>& inputs_;
  std::vector<Value> outputs_;
  Graph graph_;
  std::unique_ptr<Kernel> kernel_;
  std::string reason_;
};

void check(const PagedCase& c, bool bound) {
  SCOPED_TRACE(std::string(name(c.cache)) + ", case " + std::to_string(c.seed) + (bound ? ", bound" : ""));
  PagedProblem p(c);
  const std::vector<Tensor> before = p.copies_of_caches();
  Compiled compiled(p);
  compiled.run(bound);
  if (::testing::Test::HasFatalFailure()) return;
  std::vector<Tensor> after;
  for (std::int64_t i = 1; i <= p.caches(); ++i) after.push_back(compiled.output(static_cast<std::size_t>(i)));
  p.check(compiled.output(0), before, after);
}

TEST(PagedKernel, SaysWhatGroupQueryAttentionSays) {
  test::for_each_isa([] {
    for (const PagedCase& c : paged_cases()) {
      check(c, c.seed % 2 == 0);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

TEST(PagedKernel, OnSeveralThreads) {
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    for (const PagedCase& c : paged_cases()) {
      check(c, true);
      if (HasFatalFailure()) return;
    }
  }
}

// Heads, sizes and lengths around the widths of register tiles, parts and tiles of positions.
TEST(PagedKernel, OddExtents) {
  test::for_each_isa([] {
    unsigned seed = 100;
    for (const auto& [size, group] :
         std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 2}, {15, 5}, {33, 1}, {64, 3}, {80, 9}, {130, 4}}) {
      PagedCase c;
      c.heads = 2 * group, c.kv = 2, c.size = size, c.block_size = 48, c.seed = ++seed;
      c.cache = std::array{DataType::float32, DataType::float16, DataType::bfloat16, DataType::int8}[seed % 4];
      c.texts = {{127, 1}, {128, 2}, {511, 1}, {510, 3}, {0, 8}, {0, 17}, {600, 16}};
      check(c, true);
      if (::testing::Test::HasFatalFailure()) return;
    }
  });
}

// The same text alone, beside others, and on other numbers of threads: the same bits.
TEST(PagedKernel, OneTokensResultDoesNotDependOnItsNeighbours) {
  const auto last_token = [](std::int64_t texts, int threads) {
    ThreadPool pool(threads);
    const PoolScope scope(pool);
    PagedCase c;
    c.texts = {{2000, 1}}, c.heads = 4, c.kv = 2, c.size = 64, c.block_size = 64;
    PagedProblem alone(c);
    c.texts.assign(static_cast<std::size_t>(texts), {700, 1});
    c.texts[0] = {2000, 1};
    PagedProblem among(c);
    // The first text's rows and its query, in the other problem.
    for (const std::size_t i : {kKeyCache, kValueCache}) {
      const std::int64_t block = 2 * 64 * 64;
      for (std::size_t b = 0; b < 32; ++b) {
        const auto from = alone.inputs()[kTable].values<std::int32_t>()[b], to = among.inputs()[kTable].values<std::int32_t>()[b];
        std::copy_n(alone.inputs()[i].values<float>().data() + from * block, block,
                    among.inputs()[i].mutable_values<float>().data() + to * block);
      }
    }
    for (const std::size_t i : {kQuery, kKey, kValue}) {
      const auto from = alone.inputs()[i].values<float>();
      std::copy(from.begin(), from.end(), among.inputs()[i].mutable_values<float>().begin());
    }
    Compiled compiled(among);
    compiled.run(true);
    const auto out = compiled.output(0).values<float>();
    return std::vector<float>(out.begin(), out.begin() + 256);
  };
  const std::vector<float> alone = last_token(1, 1);
  EXPECT_EQ(last_token(5, 1), alone);
  EXPECT_EQ(last_token(1, 3), alone);
  EXPECT_EQ(last_token(7, 2), alone);
}

TEST(PagedKernel, NumbersThatAreNoneStayWithTheirText) {
  test::for_each_isa([] {
    for (const DataType type : {DataType::float32, DataType::float16, DataType::bfloat16, DataType::int8}) {
      for (const std::int64_t fresh : {1, 3, 40}) {
        PagedCase c;
        c.texts = {{30, fresh}, {600, 1}, {5, fresh}}, c.cache = type;
        PagedProblem p(c);
        // Belongs to the first text's last token.
        p.inputs()[kKey].mutable_values<float>()[static_cast<std::size_t>((fresh - 1) * 32 + 3)] =
            std::numeric_limits<float>::quiet_NaN();
        Compiled compiled(p);
        compiled.run(true);
        const auto y = compiled.output(0).values<float>();
        for (std::size_t i = 0; i < y.size(); ++i) {
          const std::size_t token = i / 64;
          const bool first_head = i % 64 < 32;  // key head 0 has query heads 0 and 1
          EXPECT_EQ(std::isnan(y[i]), first_head && token + 1 == static_cast<std::size_t>(fresh)) << i;
        }
      }
    }
  });
}

// Whatever the inputs say, an error or a result: nothing outside the caches is read or written.
TEST(PagedKernel, HostileTables) {
  std::mt19937 rng(7);
  int refused = 0, taken = 0;
  for (unsigned round = 0; round < 400; ++round) {
    PagedCase c;
    c.texts = {{20, 3}, {5, 1}, {0, 12}}, c.angles = 8, c.seed = round;
    c.cache = round % 2 == 0 ? DataType::float32 : DataType::int8;
    PagedProblem p(c);
    std::vector<std::unique_ptr<test::Guarded<char>>> guards;
    for (std::size_t i = kKeyCache; i < kStarts; ++i) {
      Tensor& t = p.inputs()[i];
      if (!t.defined()) continue;
      guards.push_back(std::make_unique<test::Guarded<char>>(static_cast<std::int64_t>(t.bytes())));
      std::memcpy(guards.back()->data(), t.data(), t.bytes());
      t = Tensor::view_mutable(guards.back()->data(), t.dtype(), t.shape());
    }
    const auto pick = [&](const std::vector<std::int64_t>& values) { return values[rng() % values.size()]; };
    const std::int64_t most = std::numeric_limits<std::int64_t>::max();
    switch (rng() % 3) {
      case 0:
        p.inputs()[kTable].mutable_values<std::int32_t>()[rng() % 6] =
            static_cast<std::int32_t>(pick({-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1 << 30, -(1 << 30)}));
        break;
      case 1:
        p.inputs()[kPast].mutable_values<std::int64_t>()[rng() % 3] = pick({-1, 0, 5, 17, 20, 29, 30, 31, 32, most, -most});
        break;
      default: p.inputs()[kStarts].mutable_values<std::int64_t>()[rng() % 4] = pick({-1, 0, 1, 3, 4, 5, 15, 16, 17, most, -most});
    }
    Compiled compiled(p);
    const std::vector<Tensor> before = p.copies_of_caches();
    try {
      compiled.run(true);
      ++taken;
    } catch (const Error&) {
      ++refused;
      for (std::size_t i = 0; i < before.size(); ++i) {
        const Tensor& after = p.inputs()[kKeyCache + i];
        EXPECT_EQ(std::memcmp(before[i].data(), after.data(), after.bytes()), 0);
      }
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(taken, 50);
}

TEST(PagedKernel, SaysWhatItDoesNotTake) {
  PagedCase c;
  c.texts = {{3, 2}}, c.window = 0;
  PagedProblem nothing(c);
  EXPECT_EQ(Compiled(nothing).reason(), "an empty window");
  c.window = -1;
  PagedProblem half(c);
  for (const std::size_t i : {kQuery, kKey, kValue}) half.inputs()[i] = ops::converted(half.inputs()[i], DataType::float16);
  EXPECT_EQ(Compiled(half).reason(), "not float32");
}

}  // namespace
}  // namespace sdx::cpu
