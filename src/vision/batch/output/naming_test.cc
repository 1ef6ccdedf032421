#include "vision/batch/output/naming.h"

#include <gtest/gtest.h>

#include <filesystem>

#include <sdx/error.hpp>

namespace sdx::vision::batch {
namespace {

const NameValues kValues{"anna", 2, 400, 300, "jpg", "high", "20260102T030405Z"};

TEST(NameTemplate, FillsPlaceholders) {
  EXPECT_EQ(NameTemplate("{stem}_face{index}.{ext}").make(kValues), "anna_face2.jpg");
  EXPECT_EQ(NameTemplate("{quality}/{timestamp}-{stem}-{width}x{height}.{ext}").make(kValues),
            "high/20260102T030405Z-anna-400x300.jpg");
}

TEST(NameTemplate, AddsAnEnding) {
  EXPECT_EQ(NameTemplate("{stem}").make(kValues), "anna.jpg");
  EXPECT_EQ(NameTemplate("{stem}.v1").make(kValues), "anna.v1.jpg");
  EXPECT_EQ(NameTemplate("{stem}.png").make(kValues), "anna.png");
  EXPECT_EQ(NameTemplate("{stem}.png").fixed_ending(), "png");
  EXPECT_EQ(NameTemplate("{stem}.{ext}").fixed_ending(), "");
}

TEST(NameTemplate, RefusesWhatIsNoTemplate) {
  for (const char* text :
       {"", "{stem", "stem}", "{name}.{ext}", "../{stem}.{ext}", "/tmp/{stem}", "a//{stem}", "{stem}:{index}", "{stem}/"}) {
    EXPECT_THROW(NameTemplate{text}, Error) << text;
  }
}

TEST(NameTemplate, RefusesValuesThatLeaveTheFolder) {
  NameValues values = kValues;
  values.stem = "../../etc/passwd";
  EXPECT_THROW(NameTemplate("{stem}.{ext}").make(values), Error);
  values.stem = std::string(300, 'a');
  EXPECT_THROW(NameTemplate("{stem}.{ext}").make(values), Error);
}

TEST(NameTemplate, LongStemsAreShortenedAndStayDifferent) {
  NameValues values = kValues;
  const NameTemplate name("{quality}/{stem}_face{index}.{ext}");
  values.stem = std::string(251, 'a');
  const std::string one = name.make_fitting(values);
  EXPECT_EQ(std::filesystem::path(one).filename().string().size(), 255U);
  EXPECT_TRUE(
      one.ends_with(name.make({"", values.index, 1, 1, values.extension, values.quality, ""}).substr(values.quality.size() + 1)));
  values.stem = std::string(250, 'a') + "b";
  EXPECT_NE(name.make_fitting(values), one);
  values.stem = "";
  for (int i = 0; i < 83; ++i) values.stem += "\xE4\xBA\xBA";  // 249 bytes of three each
  const std::string cut = name.make_fitting(values);
  EXPECT_LE(std::filesystem::path(cut).filename().string().size(), 255U);
  EXPECT_EQ((cut.find('~') - values.quality.size() - 1) % 3, 0U) << "between letters";
  values.stem = "short";
  EXPECT_EQ(name.make_fitting(values), name.make(values));
  values.stem = std::string(251, 'a');
  EXPECT_THROW(NameTemplate(std::string(260, 'x') + "{stem}.{ext}").make_fitting(values), Error);
}

TEST(SafeStem, KeepsLettersOfAllLanguages) {
  EXPECT_EQ(safe_stem("name with spaces é 人"), "name with spaces é 人");
  EXPECT_EQ(safe_stem("12:30\\a\n"), "12_30_a_");
  EXPECT_EQ(safe_stem(".."), "_.");
  EXPECT_EQ(safe_stem(""), "_");
}

TEST(Stems, AreUniqueInTheirFolder) {
  Stems stems;
  EXPECT_EQ(stems.take("", "a"), "a");
  EXPECT_EQ(stems.take("", "a"), "a-2");
  EXPECT_EQ(stems.take("", "a-2"), "a-2-2");
  EXPECT_EQ(stems.take("", "a"), "a-3");
  EXPECT_EQ(stems.take("b", "a"), "a");
  stems.reserve("b", "c");
  EXPECT_EQ(stems.take("b", "c"), "c-2");
}

TEST(Stems, DifferInMoreThanCase) {
  Stems stems;
  EXPECT_EQ(stems.take("", "Anna"), "Anna");
  EXPECT_EQ(stems.take("", "ANNA"), "ANNA-2");
  EXPECT_EQ(stems.take("", "anna-2"), "anna-2-2");
  EXPECT_EQ(stems.take("", "J\xC3\x96RG"), "J\xC3\x96RG");
  EXPECT_EQ(stems.take("", "j\xC3\xB6rg"), "j\xC3\xB6rg-2");
  EXPECT_EQ(stems.take("", "jo\xCC\x88rg"), "jo\xCC\x88rg-3") << "of two letters, as macOS writes it";
  EXPECT_EQ(stems.take("A", "x"), "x");
  EXPECT_EQ(stems.take("a", "X"), "X-2") << "in folders that are one";
  EXPECT_EQ(stems.take("", "\xFF"), "\xFF") << "no UTF-8";
  EXPECT_EQ(stems.take("", "\xFF"), "\xFF-2");
}

}  // namespace
}  // namespace sdx::vision::batch
