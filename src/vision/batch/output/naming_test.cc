#include "vision/batch/output/naming.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sdx::vision::batch
