#include "vision/batch/settings.h"

#include <gtest/gtest.h>

#include <functional>

#include <sdx/error.hpp>

#include "support/errors.h"
#include "vision/batch/colour.h"

namespace sdx::vision::batch {
namespace {

using Colour = std::array<std::uint8_t, 4>;

Request crop_request() {
  Request r;
  r.task = Task::crop;
  r.paths = {"photos"};
  r.output = "out";
  return r;
}

std::string refusal(const std::function<void(Request&)>& change) {
  Request r = crop_request();
  change(r);
  return testing::error_message([&] { parse(r); });
}

TEST(Colour, ReadsWhatPeopleWrite) {
  EXPECT_EQ(parse_colour("#fc0"), (Colour{255, 204, 0, 255}));
  EXPECT_EQ(parse_colour("#FFCC0080"), (Colour{255, 204, 0, 128}));
  EXPECT_EQ(parse_colour("rgb(255, 204, 0)"), (Colour{255, 204, 0, 255}));
  EXPECT_EQ(parse_colour("hsv(48,100%,100%)"), (Colour{255, 204, 0, 255}));
  EXPECT_EQ(parse_colour("hsv(240,100,50)"), (Colour{0, 0, 128, 255}));
  EXPECT_EQ(parse_colour("White"), (Colour{255, 255, 255, 255}));
  EXPECT_EQ(parse_colour("transparent")[3], 0);
  for (const char* text :
       {"", "#", "#12345", "#gggggg", "rgb(1,2)", "rgb(256,0,0)", "rgb(nan,0,0)", "hsv(361,0,0)", "rgb(1,2,3", "purplish"}) {
    EXPECT_THROW(parse_colour(text), Error) << text;
  }
}

TEST(Settings, ReadSizes) {
  Request r = crop_request();
  r.mm = "35x45";
  EXPECT_EQ(parse(r).crop.width, 413);
  EXPECT_EQ(parse(r).crop.height, 531);
  EXPECT_EQ(parse(r).crop.dpi, 300);
  r.mm.clear();
  r.width = 200;
  EXPECT_EQ(parse(r).crop.height, 200);
  r.height = 300;
  EXPECT_EQ(parse(r).crop.height, 300);
  r.size = "640x480";
  EXPECT_EQ(parse(r).detector.width, 640);
  r.runtime = "native";
  EXPECT_EQ(parse(r).detector.runtime, faces::Runtime::native);
}

TEST(Settings, OffsetsMeanCustom) {
  Request r = crop_request();
  r.offset_y = -0.5;
  EXPECT_EQ(parse(r).crop.position, faces::Position::custom);
  EXPECT_EQ(parse(r).crop.offset_y, -0.5);
  r.offset_y.reset();
  r.position = "rule_of_thirds";  // as another tool spells it
  EXPECT_EQ(parse(r).crop.position, faces::Position::rule_of_thirds);
}

TEST(Settings, HidingFacesHidesMetadata) {
  Request r = crop_request();
  EXPECT_EQ(parse(r).metadata, MetadataMode::preserve);
  r.task = Task::blur;
  EXPECT_EQ(parse(r).metadata, MetadataMode::strip);
}

TEST(Settings, RefuseWhatMakesNoSense) {
  using Change = std::function<void(Request&)>;
  const std::pair<const char*, Change> cases[] = {
      {"--size lots", [](Request& r) { r.size = "lots"; }},
      {"--size", [](Request& r) { r.size = "1x1"; }},
      {"--mm 35", [](Request& r) { r.mm = "35"; }},
      {"contradict", [](Request& r) { r.mm = "35x45", r.width = 3; }},
      {"sets the size", [](Request& r) { r.preset = "passport", r.width = 3; }},
      {"--preset", [](Request& r) { r.preset = "pasport"; }},
      {"--face-height", [](Request& r) { r.face_height = 0; }},
      {"--score", [](Request& r) { r.score = 2; }},
      {"--face 0", [](Request& r) { r.face = "0"; }},
      {"--face biggest", [](Request& r) { r.face = "biggest"; }},
      {"--position", [](Request& r) { r.position = "left"; }},
      {"--offset-x", [](Request& r) { r.offset_x = 2; }},
      {"need --position custom", [](Request& r) { r.offset_x = 0.5, r.position = "center"; }},
      {"--fill", [](Request& r) { r.fill = "purplish"; }},
      {"--shape", [](Request& r) { r.shape = "star"; }},
      {"--format gif", [](Request& r) { r.format = "gif"; }},
      {"contradict", [](Request& r) { r.format = "jpeg", r.name = "{stem}.png"; }},
      {"--metadata", [](Request& r) { r.metadata = "keep"; }},
      {"--tag x", [](Request& r) { r.tags = {"x"}; }},
      {"contradict", [](Request& r) { r.tags = {"x=y"}, r.metadata = "strip"; }},
      {"--report", [](Request& r) { r.report = "r.pdf"; }},
      {"--source-col", [](Request& r) { r.source_column = "a"; }},
      {"-o", [](Request& r) { r.output.clear(); }},
      {"no pictures", [](Request& r) { r.paths.clear(); }},
      {"'-'",
       [](Request& r) {
         r.paths = {"-", "a.jpg"};
       }},
      {"contradict", [](Request& r) { r.resume = r.overwrite = true; }},
      {"contradict", [](Request& r) { r.watch = r.dry_run = true; }},
      {"--min-quality", [](Request& r) { r.min_quality = "good"; }},
      {"--runtime", [](Request& r) { r.runtime = "tensorflow"; }},
      {"--enhance", [](Request& r) { r.enhance = "nice"; }},
  };
  for (const auto& [expected, change] : cases) {
    EXPECT_NE(refusal(change).find(expected), std::string::npos) << expected << ": " << refusal(change);
  }
}

TEST(Settings, HashNoticesWhatChangesOutputs) {
  const Request plain = crop_request();
  const std::string before = settings_hash(plain);
  EXPECT_EQ(before, settings_hash(plain));
  Request r = plain;
  r.workers = 7;
  r.json = true;
  EXPECT_EQ(before, settings_hash(r));
  r.quality = 80;
  EXPECT_NE(before, settings_hash(r));
  r = plain;
  r.fill = "white";
  EXPECT_NE(before, settings_hash(r));
}

}  // namespace
}  // namespace sdx::vision::batch
