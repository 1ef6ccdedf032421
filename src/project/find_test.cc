#include "project/find.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/system/mapped_file.h"
#include "base/system/process.h"
#include "support/errors.h"

namespace sdx::project {
namespace {

namespace fs = std::filesystem;

class Find : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / ("sdx_find_" + std::to_string(process_id()));
    fs::remove_all(root_);
    put("work/other.txt", "");
    put("home/models/other.txt", "");
    places_ = {root_ / "work", root_ / "home"};
  }
  void TearDown() override { fs::remove_all(root_); }

  void put(const std::string& name, const std::string& content) {
    fs::create_directories((root_ / name).parent_path());
    write_file_atomically(root_ / name, content);
  }
  std::string find(const std::string& name) {
    const auto found = find_by_name(name, places_);
    return found ? fs::relative(found->path, root_).string() : "";
  }

  fs::path root_;
  Places places_;
};

TEST_F(Find, ProjectsOfBothToolsAreFoundByTheirNames) {
  put("work/sdx.yml", "name: ours");
  put("work/gpux.yml", "name: theirs");
  EXPECT_EQ(find("ours"), "work/sdx.yml");
  EXPECT_EQ(find("theirs"), "work/gpux.yml");
  const std::vector<std::string> names = known_names(places_);
  EXPECT_EQ(names, (std::vector<std::string>{"ours", "theirs"}));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(find((root_ / "work").string()), "work/sdx.yml");
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("'sdx.yml' is used, 'gpux.yml' is not"), std::string::npos);
}

TEST_F(Find, OrderIsPathThenProjectThenHomeThenBuilt) {
  EXPECT_EQ(find("net"), "");
  put("work/.sdx/model_info.json", R"({"name": "net", "config": "gone.yml", "compiled": "model.onnx"})");
  EXPECT_EQ(find("net"), "work/.sdx");
  put("work/there.yml", "name: net");
  put("work/.sdx/model_info.json", R"({"name": "net", "config": "there.yml"})");
  EXPECT_EQ(find("net"), "work/there.yml");
  put("home/models/net.onnx", "x");
  EXPECT_EQ(find("net"), "home/models/net.onnx");
  put("home/models/net/model.onnx", "x");
  EXPECT_EQ(find("net"), "home/models/net/model.onnx");
  put("home/models/net/sdx.yml", "name: net");
  EXPECT_EQ(find("net"), "home/models/net/sdx.yml");
  put("work/gpux.yml", "name: net");
  EXPECT_EQ(find("net"), "work/gpux.yml");
  put("work/sdx.yml", "name: net");
  EXPECT_EQ(find("net"), "work/sdx.yml");
  EXPECT_EQ(find((root_ / "home/models/net.onnx").string()), "home/models/net.onnx");
  EXPECT_EQ(find((root_ / "work").string()), "work/sdx.yml");
}

TEST_F(Find, NamesDoNotLeaveTheHomeFolder) {
  put("home/secret.onnx", "x");
  EXPECT_EQ(find("../secret"), "");
  EXPECT_EQ(find("/secret"), "");
}

TEST_F(Find, SaysWhatIsNear) {
  put("work/sdx.yml", "name: sentiment");
  EXPECT_EQ(testing::error_text([&] { locate("sentimant", places_); }),
            "there is no model file or project 'sentimant'; did you mean 'sentiment'?");
  EXPECT_EQ(known_names(places_), std::vector<std::string>{"sentiment"});
}

TEST_F(Find, BrokenProjectFileIsSaidNotSkipped) {
  put("work/sdx.yml", "name: [");
  EXPECT_THROW(find("anything"), Error);
  put("work/sdx.yml", "version: 1");
  EXPECT_THROW(find("anything"), Error);
  EXPECT_TRUE(known_names(places_).empty());
}

TEST_F(Find, FolderWithoutOneModelIsAnError) {
  put("two/a.onnx", "");
  EXPECT_EQ(find((root_ / "two").string()), "two/a.onnx");
  put("two/b.onnx", "");
  EXPECT_THROW(find((root_ / "two").string()), Error);
}

}  // namespace
}  // namespace sdx::project
