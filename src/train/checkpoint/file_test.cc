// Checkpoints as files. Those of ONNX Runtime need SDX_TEST_MODELS.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sdx/train/checkpoint.hpp>

#include "base/system/mapped_file.h"
#include "support/errors.h"
#include "support/temporary_folder.h"
#include "tensor/npz.h"
#include "train/checkpoint/format.h"

namespace sdx::train {
namespace {

namespace fs = std::filesystem;

class CheckpointFile : public ::testing::Test {
 protected:
  const testing::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
  const fs::path path_ = folder_ / "checkpoint";
};

CheckpointState sample(float first = 1) {
  CheckpointState s;
  s.parameters.push_back({"weight", Tensor(DataType::float32, {10, 20}), true});
  float next = first;
  for (float& v : s.parameters[0].value.mutable_values<float>()) v = next++;
  s.parameters.push_back({"bias", Tensor::scalar<float>(0.5F), true});
  s.parameters.push_back({"größe", Tensor::of<std::int64_t>({2}, {7, -9}), false});
  s.parameters.push_back({"none", Tensor(DataType::float64, {0, 3}), false});
  const bool flags[] = {true, false, true};
  s.parameters.push_back({"flags", Tensor::of<bool>({3}, flags), false});
  s.parameters.push_back({"half", Tensor(DataType::bfloat16, {1}), false});
  *static_cast<std::uint16_t*>(s.parameters.back().value.mutable_data()) = 0x3F80;
  OptimizerState& o = s.optimizers["group0"];
  o.step = 20;
  o.initial_learning_rate = 0.25F;
  o.moments["weight"]["momentum0"] = s.parameters[0].value.clone();
  o.moments["weight"]["momentum1"] = Tensor::of<float>({2}, {3, 4});
  o.moments["bias"]["momentum0"] = Tensor::scalar<float>(9);
  s.properties["epoch"] = std::int64_t{-3};
  s.properties["best"] = 0.125F;
  s.properties["note"] = std::string("läuft");
  return s;
}

void expect_same(const Tensor& a, const Tensor& b, const std::string& what) {
  EXPECT_EQ(a.type_string(), b.type_string()) << what;
  ASSERT_EQ(a.bytes(), b.bytes()) << what;
  if (a.bytes() != 0) {
    EXPECT_EQ(std::memcmp(a.data(), b.data(), a.bytes()), 0) << what;
  }
}

void expect_same(const CheckpointState& a, const CheckpointState& b, bool optimizers = true) {
  ASSERT_EQ(a.parameters.size(), b.parameters.size());
  for (const Parameter& p : a.parameters) {
    ASSERT_NE(b.find(p.name), nullptr) << p.name;
    EXPECT_EQ(b.at(p.name).requires_grad, p.requires_grad) << p.name;
    expect_same(p.value, b.at(p.name).value, p.name);
  }
  EXPECT_EQ(a.properties, b.properties);
  if (!optimizers) {
    EXPECT_TRUE(b.optimizers.empty());
    return;
  }
  ASSERT_EQ(a.optimizers.size(), b.optimizers.size());
  for (const auto& [name, group] : a.optimizers) {
    const OptimizerState& other = b.optimizers.at(name);
    EXPECT_EQ(group.step, other.step);
    EXPECT_EQ(group.initial_learning_rate, other.initial_learning_rate);
    ASSERT_EQ(group.moments.size(), other.moments.size());
    for (const auto& [parameter, moments] : group.moments) {
      ASSERT_EQ(moments.size(), other.moments.at(parameter).size());
      for (const auto& [moment, value] : moments) expect_same(value, other.moments.at(parameter).at(moment), parameter);
    }
  }
}

TEST_F(CheckpointFile, HoldsAll) {
  const CheckpointState s = sample();
  s.save(path_, true);
  expect_same(s, CheckpointState::load(path_));
  const auto bytes = s.bytes(true);
  expect_same(s, CheckpointState::load(bytes));
  EXPECT_EQ(fs::file_size(path_), bytes.size());
  // At an odd address.
  std::vector<std::byte> moved(bytes.size() + 1);
  std::copy(bytes.begin(), bytes.end(), moved.begin() + 1);
  expect_same(s, CheckpointState::load(std::span(moved).subspan(1)));
}

TEST_F(CheckpointFile, LeavesTheOptimizerOutUnlessAsked) {
  sample().save(path_);
  expect_same(sample(), CheckpointState::load(path_), false);
}

TEST_F(CheckpointFile, NominalOnesHoldTypesAndShapes) {
  CheckpointState s = sample();
  s.nominal = true;
  s.optimizers.clear();
  const auto bytes = s.bytes();
  EXPECT_LT(bytes.size(), sample().bytes().size() - 800);
  const CheckpointState back = CheckpointState::load(bytes);
  EXPECT_TRUE(back.nominal);
  EXPECT_EQ(back.at("weight").value.type_string(), "float32[10,20]");
  EXPECT_EQ(back.at("weight").value.data(), nullptr);
  EXPECT_THROW((void)back.to_buffer(), Error);
}

TEST_F(CheckpointFile, WhatCannotBeWrittenIsRefused) {
  CheckpointState s = sample();
  s.parameters[1].name = "weight";
  testing::expect_error([&] { s.save(path_); }, {"two parameters are called 'weight'"});
  s = sample();
  s.parameters[1].value = Tensor(DataType::string, {1});
  testing::expect_error([&] { s.save(path_); }, {"'bias' is string[1]"});
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(CheckpointFile, LargeOnesTakeASecondFile) {
  const CheckpointState first = sample(1), second = sample(2), third = sample(3);
  const fs::path data = external_path(path_);
  const auto save = [&](const CheckpointState& s) { save_checkpoint(s, path_, true, 100); };
  save(first);
  const auto once = fs::file_size(data);
  EXPECT_EQ(once, 2 * 800 + 32);  // at multiples of 64
  expect_same(first, CheckpointState::load(path_));
  EXPECT_NE(
      testing::error_text([&] { (void)CheckpointState::load(MappedFile::open(path_)->bytes()); }).find("load it by its path"),
      std::string::npos);

  // The tensors of the one before stay where they are until the new one is there.
  const std::string before = read_file(path_);
  save(second);
  expect_same(second, CheckpointState::load(path_));
  const std::string after = read_file(path_);
  write_file_atomically(path_, before);
  expect_same(first, CheckpointState::load(path_));
  write_file_atomically(path_, after);
  const auto twice = fs::file_size(data);
  for (int i = 0; i < 3; ++i) {
    save(third);
    expect_same(third, CheckpointState::load(path_));
  }
  EXPECT_EQ(fs::file_size(data), twice);

  fs::resize_file(data, once / 2);
  testing::expect_error([&] { (void)CheckpointState::load(path_); }, {"of the file with external data"});
  save(first);
  expect_same(first, CheckpointState::load(path_));
  first.save(path_, true);
  expect_same(first, CheckpointState::load(path_));
  EXPECT_FALSE(fs::exists(data));
}

TEST_F(CheckpointFile, OldOnesAreKeptWithTheirSecondFile) {
  const CheckpointState first = sample(1), second = sample(2);
  const fs::path old = path_.string() + ".old";
  for (const std::uint64_t most : {std::uint64_t{100}, std::uint64_t{1} << 20, std::uint64_t{100}}) {
    save_checkpoint(first, path_, true, most);
    keep_checkpoint(path_, old);
    for (int i = 0; i < 3; ++i) save_checkpoint(second, path_, true, 100);
    expect_same(first, CheckpointState::load(old));
    expect_same(second, CheckpointState::load(path_));
    EXPECT_EQ(fs::exists(external_path(old)), most == 100);
  }
  // Files that are not checkpoints are kept as they are.
  write_file_atomically(path_, "something else");
  keep_checkpoint(path_, old);
  EXPECT_EQ(read_file(old), "something else");
  for (const fs::path& p : {old, external_path(old)}) fs::remove(p);
}

TEST_F(CheckpointFile, MissingFoldersAreErrors) {
  testing::expect_error([&] { sample().save(folder_ / "no" / "checkpoint"); }, {"no/checkpoint"});
  testing::expect_error([&] { (void)CheckpointState::load(folder_ / "none"); }, {"none"});
}

TEST_F(CheckpointFile, WhatIsCutShortIsRefused) {
  const auto bytes = sample().bytes(true);
  for (std::size_t n = 0; n + 8 < bytes.size(); ++n) {  // the last ones fill up a word
    EXPECT_THROW((void)CheckpointState::load(std::span(bytes).first(n)), Error) << n;
  }
}

TEST_F(CheckpointFile, ChangedBytesNeverCrash) {
  const auto bytes = sample().bytes(true);
  std::size_t refused = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const unsigned char flip : {0x01, 0x80, 0xFF}) {
      auto changed = bytes;
      changed[i] ^= std::byte{flip};
      try {
        (void)CheckpointState::load(changed);
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::invalid_model) << e.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, bytes.size() / 4);
}

TEST_F(CheckpointFile, ErrorsSayWhatIsWrong) {
  const auto with = [](const CheckpointState& s, std::string_view from, std::string_view to) {
    auto bytes = s.bytes(true);
    const auto at =
        std::search(bytes.begin(), bytes.end(), std::as_bytes(std::span(from)).begin(), std::as_bytes(std::span(from)).end());
    EXPECT_NE(at, bytes.end());
    std::copy_n(std::as_bytes(std::span(to)).begin(), to.size(), at);
    return testing::error_text([&] { (void)CheckpointState::load(bytes); });
  };
  EXPECT_NE(with(sample(), "ODTC", "ODTX").find("\"ODTC\""), std::string::npos);
  EXPECT_NE(with(sample(), "flags", "fl\xFFgs").find("not UTF-8"), std::string::npos);
  EXPECT_NE(with(sample(), "half", "none").find("two parameters are called 'none'"), std::string::npos);
  EXPECT_NE(with(sample(), "best", "note").find("two properties are called 'note'"), std::string::npos);
  EXPECT_NE(with(sample(), "momentum1", "momentum0").find("has moment 'momentum0' twice"), std::string::npos);
}

class Recorded : public CheckpointFile {
 protected:
  void SetUp() override {
    CheckpointFile::SetUp();
    const char* models = std::getenv("SDX_TEST_MODELS");
    recorded_ = fs::path(models == nullptr ? "" : models) / "training";
    if (models == nullptr || !fs::exists(recorded_)) GTEST_SKIP() << "no model files (SDX_TEST_MODELS)";
  }
  fs::path recorded_;
};

TEST_F(Recorded, AllAreReadAndSurviveBeingWritten) {
  int read = 0;
  for (const auto& entry : fs::recursive_directory_iterator(recorded_)) {
    if (!entry.path().filename().string().starts_with("checkpoint")) continue;
    const CheckpointState s = CheckpointState::load(entry.path());
    EXPECT_FALSE(s.parameters.empty()) << entry.path();
    EXPECT_FALSE(s.nominal);
    s.save(path_, true);
    expect_same(s, CheckpointState::load(path_));
    ++read;
  }
  EXPECT_GE(read, 17);
}

TEST_F(Recorded, HoldTheParametersAfterTraining) {
  for (const std::string name : {"mlp_adamw", "encoder_layernorm_adamw"}) {
    const CheckpointState s = CheckpointState::load(recorded_ / name / "checkpoint_after_20");
    const NamedTensors expected = read_npz(recorded_ / name / "final_params.npz");
    ASSERT_EQ(expected.size(), s.parameters.size());
    for (const auto& [parameter, value] : expected) expect_same(value, s.at(parameter).value, parameter);
    const OptimizerState& group = s.optimizers.at("group0");
    EXPECT_EQ(group.step, 20);
    EXPECT_EQ(group.initial_learning_rate, 0.001F);
    EXPECT_EQ(group.moments.size(), s.parameters.size());
    for (const auto& [parameter, moments] : group.moments) {
      EXPECT_EQ(moments.at("momentum0").shape(), s.at(parameter).value.shape());
      EXPECT_EQ(moments.at("momentum1").shape(), s.at(parameter).value.shape());
    }
  }
}

TEST_F(Recorded, NominalOnesHaveNamesAlone) {
  const CheckpointState s = CheckpointState::load(recorded_ / "ort_training_api" / "nominal_checkpoint");
  EXPECT_TRUE(s.nominal);
  ASSERT_EQ(s.parameters.size(), 4U);
  EXPECT_NE(s.find("fc1.weight"), nullptr);
}

}  // namespace
}  // namespace sdx::train
