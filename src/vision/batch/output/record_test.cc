#include "vision/batch/output/record.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include <sdx/error.hpp>

namespace sdx::vision::batch {
namespace {

Record record() {
  Record r;
  r.file = "a \"b\"\n\xFF.jpg";
  r.width = 640;
  r.height = 480;
  r.runtime = "native";
  r.provider = "cpu";
  r.times.decode = 1.5;
  FaceRecord f;
  f.face.box = {1.25F, -2, 30, 40};
  f.face.score = 0.875F;
  f.face.points.nose = faces::Point{10, 20.5F};
  f.quality = {faces::Level::medium, 512.25, 0.5, 30, 1.0, std::nullopt, -3.0};
  f.output = "out/a.jpg";
  r.faces = {f, f};
  r.faces[1].output.clear();
  return r;
}

TEST(Record, IsJsonWithTheNamesThatScriptsKnow) {
  const auto j = nlohmann::json::parse(record_json(record(), false));
  EXPECT_EQ(j["width"], 640);
  EXPECT_TRUE(j["error"].is_null());
  EXPECT_EQ(j["times_ms"].size(), 6U);
  const auto& face = j["faces"][0];
  EXPECT_EQ(face["box"], nlohmann::json({1.25, -2, 30, 40}));
  EXPECT_EQ(face["points"], nlohmann::json::parse("{\"nose\": [10, 20.5]}"));
  EXPECT_EQ(face["quality"]["level"], "medium");
  EXPECT_TRUE(face["quality"]["pitch"].is_null());
  EXPECT_FALSE(face.contains("output"));
}

TEST(Record, SaysHowThePictureWasTurned) {
  Record r = record();
  EXPECT_EQ(nlohmann::json::parse(record_json(r, false))["turned"], 0);
  EXPECT_FALSE(nlohmann::json::parse(record_json(r, false)).contains("warning"));
  r.turned = 270;
  r.warning = "small";
  EXPECT_EQ(nlohmann::json::parse(record_json(r, false))["turned"], 270);
  const Record back = record_from_json(record_json(r, true));
  EXPECT_EQ(back.turned, 270);
  EXPECT_EQ(back.faces[1].face.turned, 270);
  EXPECT_EQ(back.warning, "small");
  EXPECT_NE(record_text(r).find("turned by 270 degrees"), std::string::npos);
}

TEST(Record, ComesBackFromJson) {
  const std::string text = record_json(record(), true);
  EXPECT_EQ(record_json(record_from_json(text), true), text);
  EXPECT_THROW(record_from_json("{}"), Error);
  EXPECT_THROW(record_from_json("{\"faces\": [1]}"), Error);
  EXPECT_THROW(record_from_json("no"), Error);
}

TEST(Record, StaysJsonWithoutNumbers) {
  Record r = record();
  r.faces[0].quality.sharpness = std::numeric_limits<double>::quiet_NaN();
  r.faces[0].face.score = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(nlohmann::json::parse(record_json(r, true))["faces"][0]["score"].is_null());
}

TEST(Record, CommandsNoTerminal) {
  Record r = record();
  r.file = "a\nb";
  EXPECT_TRUE(record_text(r).starts_with("a\\nb  640x480")) << record_text(r);
}

TEST(Record, IsCsvForSpreadsheets) {
  Record r = record();
  r.file = "=1+1,\"x\"";
  const std::string text = record_csv(r);
  EXPECT_TRUE(text.starts_with("\"'=1+1,\"\"x\"\"\",640,480,1,1.25,-2,30,40,0.875,medium,512.25,0.5,30,\"out/a.jpg\",\r\n"))
      << text;
  r.faces.clear();
  r.error = "it is broken";
  EXPECT_EQ(record_csv(r), "\"'=1+1,\"\"x\"\"\",640,480,,,,,,,,,,,,\"it is broken\"\r\n");
}

}  // namespace
}  // namespace sdx::vision::batch
