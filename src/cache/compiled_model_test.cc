#include "cache/compiled_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sdx/sdx.hpp>

#include "base/error.h"
#include "cache/compiled_format.h"
#include "onnx/writer.h"
#include "support/errors.h"
#include "support/graph_text.h"
#include "support/temporary_folder.h"

namespace sdx::cache {
namespace {

namespace fs = std::filesystem;

// A packed product (its weights made by a pass, above kSmall), constants read as they are, a subgraph, a default that runs may
// replace, symbolic extents.
const char* const kModel = R"(
  input x: float32[n,64]
  input factor: float32[1] = 2
  input upper: bool[]
  constant size: int64[2] 64 128
  constant b: float32[2] 3 4
  constant first: int64[2] 0 5
  w = ConstantOfShape(size)
  v = Add(w, factor)
  y = MatMul(x, v)
  z = Gather(y, first) {axis=1}
  r = If(upper)
    then_branch {
      p = Add(z, b)
      output p
    }
    else_branch {
      q = Mul(z, factor)
      output q
    }
  output r
)";

class CompiledModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = folder_ / "net.onnx";
    Model model = testing::parse_model(kModel);
    model.doc = "of the model";
    model.metadata = {{"description", "another"}};
    write_model(model, model_);
    options_.providers = {"cpu"};
    options_.cache_folder = folder_ / "cache";
  }

  Session open(bool keep = false) const {
    SessionOptions o = options_;
    o.keep_compiled = keep;
    return Session::open(model_, o);
  }
  static std::vector<float> run(const Session& s, bool upper, std::optional<float> factor = {}, std::int64_t rows = 2) {
    Tensor x(DataType::float32, {rows, 64});
    for (float& v : x.mutable_values<float>()) v = 0.5F;
    NamedValues in{{"x", x}, {"upper", Tensor::scalar<bool>(upper)}};
    if (factor) in.add("factor", Tensor::of<float>({1}, {*factor}));
    const NamedValues out = s.run(in);
    const auto values = out.tensor("r").values<float>();
    return {values.begin(), values.end()};
  }
  CompiledPlace place() const { return *compiled_place(model_, options_); }

  const testing::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  fs::path model_;
  SessionOptions options_;
};

TEST_F(CompiledModelTest, AnswersAsTheModelDoes) {
  const Session plain = open();
  EXPECT_EQ(plain.report().compiled, "");
  EXPECT_EQ(open(true).report().compiled, "");
  const Session mapped = open();
  ASSERT_EQ(mapped.report().compiled, (place().folder / "compiled.sdx").string());
  EXPECT_NE(mapped.report().text().find("compiled before: "), std::string::npos);
  for (const bool upper : {false, true}) {
    EXPECT_EQ(run(mapped, upper), run(plain, upper));
    EXPECT_EQ(run(mapped, upper, {}, 5), run(plain, upper, {}, 5));
    EXPECT_EQ(run(mapped, upper, 3.0F), run(plain, upper, 3.0F));  // a variant, compiled from the model
  }
  EXPECT_EQ(mapped.dump("loaded"), plain.dump("loaded"));
  EXPECT_EQ(mapped.dump("simplified"), plain.dump("simplified"));
  EXPECT_EQ(mapped.dump("planned"), plain.dump("planned"));
  EXPECT_EQ(mapped.inputs().size(), 3U);
  EXPECT_EQ(mapped.inputs()[0].type, plain.inputs()[0].type);
  EXPECT_TRUE(mapped.inputs()[1].has_default);
  EXPECT_EQ(mapped.metadata(), plain.metadata());
  EXPECT_EQ(mapped.custom_metadata(), plain.custom_metadata());
  EXPECT_EQ(mapped.custom_metadata().size(), 1U);
}

TEST_F(CompiledModelTest, OfAFolderThatOthersMayWriteToNothingIsUsedAndNothingKept) {
  open(true);
  ASSERT_NE(open().report().compiled, "");
  for (const std::filesystem::path& p : {place().root, place().folder, place().folder / "compiled.sdx"}) {
    namespace fs = std::filesystem;
    const fs::perms mode = fs::status(p).permissions();
    fs::permissions(p, fs::perms::others_write, fs::perm_options::add);
    const Report r = open(true).report();
    EXPECT_EQ(r.compiled, "");
    ASSERT_EQ(r.warnings.size(), 1U) << p;
    EXPECT_NE(r.warnings[0].find("the cache is not used: users other than its owner may write to '" + p.string()),
              std::string::npos);
    fs::permissions(p, mode);
    EXPECT_NE(open().report().compiled, "");
  }
}

TEST_F(CompiledModelTest, DoesNotMixStatesOfAModel) {
  open(true);
  const Session mapped = open();
  ASSERT_NE(mapped.report().compiled, "");
  write_file_atomically(model_, testing::model_bytes(kModel) + std::string("\x1a\x00", 2));  // replaced while the session is open
  EXPECT_EQ(run(mapped, true).size(), 4U);
  testing::expect_error(
      [&] {
        run(mapped, true, 3.0F);  // needs the model itself
      },
      {"has changed since the session was opened"});
}

TEST_F(CompiledModelTest, OptionsHaveFilesOfTheirOwn) {
  open(true);
  options_.disabled_passes = {"fold-constants"};
  EXPECT_EQ(open().report().compiled, "");
  options_.disabled_passes = {};
  options_.dimensions = {{"n", 2}};
  EXPECT_EQ(open(true).report().compiled, "");
  EXPECT_EQ(run(open(), true), run(open(true), true));
  EXPECT_NE(open().report().compiled, "");
  options_.cache = false;
  EXPECT_EQ(open(true).report().compiled, "");
}

// A file may hold any bytes with a right checksum: it is refused, or gives a graph that verifies; it never crashes.
TEST_F(CompiledModelTest, NoContentCrashes) {
  open(true);
  const fs::path file = place().folder / compiled::kFile;
  const std::string good = read_file(file);
  compiled::Head head{};
  std::memcpy(&head, good.data(), sizeof(head));
  ASSERT_GT(head.checked_bytes, head.meta_bytes);
  int opened = 0, refused = 0;
  for (std::size_t at = sizeof(head); at < sizeof(head) + head.meta_bytes; at += 3) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    compiled::Head changed = head;
    changed.hash_low = changed.hash_high = 0;
    const compiled::Hash128 hash = compiled::hash_head(&changed, bad.data() + sizeof(head), head.checked_bytes - sizeof(head));
    changed.hash_low = hash.low;
    changed.hash_high = hash.high;
    std::memcpy(bad.data(), &changed, sizeof(changed));
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bad;
    const auto model = CompiledModel::open(place());
    if (model == nullptr) {
      ++refused;
      continue;
    }
    ++opened;
    try {
      model->graph().verify();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::invalid_model) << e.what();
    }
  }
  EXPECT_GT(opened, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace sdx::cache
