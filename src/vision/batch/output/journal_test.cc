#include "vision/batch/output/journal.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace sdx::vision::batch {
namespace {

namespace fs = std::filesystem;

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() : folder_(fs::path(::testing::TempDir()) / "sdx_journal_test") {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    put("in é.jpg", "12345");
    put("out.jpg", "123");
  }
  ~JournalTest() override { fs::remove_all(folder_); }

  void put(const char* name, const std::string& content) const { std::ofstream(folder_ / name, std::ios::binary) << content; }

  JournalEntry entry() const {
    return {*identity_of(folder_ / "in é.jpg"), "sub", "in é", "", {{(folder_ / "out.jpg").string(), 3}}, "{\"file\": \"in\"}"};
  }
  bool done(const Journal& journal) const { return journal.done(*identity_of(folder_ / "in é.jpg"), "") != nullptr; }

  fs::path folder_;
};

TEST_F(JournalTest, KeepsWhatIsDone) {
  Journal(folder_, "s", false).add(entry());
  const Journal again(folder_, "s", true);
  EXPECT_TRUE(again.existed());
  ASSERT_TRUE(done(again));
  const JournalEntry* known = again.known(entry().input.path, "");
  EXPECT_EQ(known->folder, "sub");
  EXPECT_EQ(known->stem, "in é");
  EXPECT_EQ(known->outputs, entry().outputs);
  EXPECT_EQ(known->record, "{\"file\": \"in\"}");
  EXPECT_EQ(again.known(entry().input.path, "other label"), nullptr);
}

TEST_F(JournalTest, CountsOnlyWithTheSameSettings) {
  Journal(folder_, "s", false).add(entry());
  EXPECT_FALSE(done(Journal(folder_, "other", true)));
  EXPECT_FALSE(done(Journal(folder_, "s", false)));
  const Journal fresh(folder_, "s", false);
  EXPECT_FALSE(fresh.begun());
  EXPECT_NE(fresh.finished_earlier(*identity_of(entry().input.path), ""), nullptr) << "who does not resume can tell";
}

TEST_F(JournalTest, NoticesChanges) {
  Journal(folder_, "s", false).add(entry());
  put("out.jpg", "1234");
  EXPECT_FALSE(done(Journal(folder_, "s", true)));
  put("out.jpg", "123");
  EXPECT_TRUE(done(Journal(folder_, "s", true)));
  put("in é.jpg", "123456");
  EXPECT_FALSE(done(Journal(folder_, "s", true)));
}

TEST_F(JournalTest, SurvivesLinesThatAreCutShort) {
  Journal(folder_, "s", false).add(entry());
  std::stringstream all;
  all << std::ifstream(folder_ / Journal::kName, std::ios::binary).rdbuf();
  const std::string content = all.str();
  for (std::size_t bytes = 0; bytes < content.size(); bytes += 7) {
    std::ofstream(folder_ / Journal::kName, std::ios::binary) << content.substr(0, bytes);
    Journal cut(folder_, "s", true);
    EXPECT_FALSE(done(cut)) << bytes;
    cut.add(entry());
    EXPECT_TRUE(done(Journal(folder_, "s", true))) << bytes;
  }
}

TEST_F(JournalTest, TakesNoHarmFromOtherLines) {
  std::ofstream(folder_ / Journal::kName)
      << "{}\n[1]\nnull\n{\"version\":\"x\"}\n{\"version\":1,\"settings\":\"s\"}\n"
         "{\"version\":1,\"settings\":\"s\",\"path\":1}\n{\"version\":1,\"run\":\"s\"}\n\xFF\n";
  Journal journal(folder_, "s", true);
  EXPECT_EQ(journal.entries(), 0U);
  journal.add(entry());
  EXPECT_EQ(Journal(folder_, "s", true).entries(), 1U);
}

TEST_F(JournalTest, KeepsTheTimeOfTheFirstRun) {
  std::ofstream(folder_ / Journal::kName) << "{\"version\":1,\"run\":\"s\",\"timestamp\":\"20200101T000000Z\"}\n";
  EXPECT_EQ(Journal(folder_, "s", true).timestamp(), "20200101T000000Z");
  EXPECT_NE(Journal(folder_, "t", true).timestamp(), "20200101T000000Z");
}

}  // namespace
}  // namespace sdx::vision::batch
