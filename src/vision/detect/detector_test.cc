// The whole path with models that give the same numbers for every picture; and against recorded answers where there are models.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sdx/faces.hpp>
#include <thread>

#include "support/session.h"
#include "support/temporary_folder.h"
#include "tensor/npy.h"
#include "vision/detect/decode.h"
#include "vision/detect/finder.h"
#include "vision/detect/shrink.h"
#include "vision/detect/suppress.h"

namespace sdx::faces {
namespace {

namespace fs = std::filesystem;

class FaceDetectors : public ::testing::Test {
 protected:
  fs::path save(const std::string& name, const std::string& text) const {
    return temporary_.write(name, testing::model_bytes(text));
  }

  const testing::TemporaryFolder temporary_;
  const fs::path& folder_ = temporary_.path();
};

// `outputs`: "name: type value" with one value for all elements.
std::string constant_model(const std::string& input, const std::vector<std::array<std::string, 3>>& outputs) {
  std::string text = "input " + input + "\n", ends;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto& [name, type, value] = outputs[i];
    text += fmt::format("constant k{}: {} {}\ny{} = Identity(k{})\n", i, type, value, i, i);
    ends += fmt::format("output y{}: {} as {}\n", i, type, name);
  }
  return text + ends;
}

std::vector<std::array<std::string, 3>> yunet_outputs(int side, const std::string& score = "0") {
  std::vector<std::array<std::string, 3>> out;
  for (const auto& [kind, values] : {std::pair{"cls", 1}, {"obj", 1}, {"bbox", 4}, {"kps", 10}}) {
    for (const int s : {8, 16, 32}) {
      const bool scores = values == 1;
      out.push_back(
          {fmt::format("{}_{}", kind, s), fmt::format("float32[1,{},{}]", side / s * (side / s), values), scores ? score : "0"});
    }
  }
  return out;
}

DetectorOptions at_native_size() {
  DetectorOptions options;
  options.size = DetectorOptions::Size::native;
  return options;
}

TEST_F(FaceDetectors, AYunetOfConstants) {
  const FaceDetector detector = FaceDetector::load(
      save("m.onnx", constant_model("input: float32[1,3,32,32]", yunet_outputs(32, "0.81"))), at_native_size());
  EXPECT_EQ(detector.decoder(), "yunet");
  EXPECT_EQ(detector.runtime(), "native");
  const Detection found = detector.detect(media::Image::blank(32, 32));
  EXPECT_EQ(found.runtime, "native");
  EXPECT_EQ(found.provider, "");  // everything is constant: nothing ran
  // Cells of 8, 16 and 32 pixels whose boxes are as large and have their centre in the upper left corner of the cell. Those
  // beside the origin overlap the larger ones.
  ASSERT_FALSE(found.faces.empty());
  for (const Face& face : found.faces) EXPECT_NEAR(face.score, 0.81, 1e-6);
  EXPECT_EQ(found.faces[0].box.x, -4);
  EXPECT_EQ(found.faces[0].box.width, 8);
  ASSERT_TRUE(found.faces[0].points.complete());
  EXPECT_EQ(found.faces[0].points.nose->x, 0);
  // The size that the file declares is not the one that it must have, but these outputs are for no other.
  EXPECT_THROW(detector.detect(media::Image::blank(64, 64)), Error);
  EXPECT_EQ(detector.detect(media::Image::blank(17, 9, 4)).faces.size(), found.faces.size());  // padded to the same
}

TEST_F(FaceDetectors, AreToldByTheirOutputs) {
  const auto decoder_of = [&](const std::vector<std::array<std::string, 3>>& outputs) {
    return FaceDetector::load(save("m.onnx", constant_model("x: float32[1,3,128,128]", outputs))).decoder();
  };
  const auto scrfd = [](int levels, bool points) {
    std::vector<std::array<std::string, 3>> out;
    for (const int values : {1, 4, 10}) {
      for (int i = 0; i < levels && (values < 10 || points); ++i)
        out.push_back({fmt::format("o{}_{}", values, i),
                       fmt::format("float32[{},{}]", (128 >> (3 + i)) * (128 >> (3 + i)) * (levels == 3 ? 2 : 1), values), "0"});
    }
    return out;
  };
  for (const int levels : {3, 5}) {
    for (const bool points : {false, true}) EXPECT_EQ(decoder_of(scrfd(levels, points)), "scrfd");
  }
  EXPECT_EQ(decoder_of({{"loc", "float32[9,14]", "0"}, {"conf", "float32[9,2]", "0"}, {"iou", "float32[9,1]", "0"}}),
            "yunet2022");
  EXPECT_EQ(decoder_of({{"a", "float32[1,9,4]", "0"}, {"b", "float32[1,9,2]", "0"}, {"c", "float32[1,9,10]", "0"}}),
            "retinaface");
  EXPECT_EQ(decoder_of({{"a", "float32[1,9,2]", "0"}, {"b", "float32[1,9,4]", "0"}}), "ultraface");
  EXPECT_EQ(decoder_of({{"a", "float32[1,896,16]", "0"}, {"b", "float32[1,896,1]", "0"}}), "blazeface");
  EXPECT_EQ(decoder_of({{"a", "float32[1,1,8,8]", "0"},
                        {"b", "float32[1,2,8,8]", "0"},
                        {"c", "float32[1,2,8,8]", "0"},
                        {"d", "float32[1,10,8,8]", "0"}}),
            "centerface");
}

TEST_F(FaceDetectors, OtherModelsAreErrors) {
  const fs::path other =
      save("other.onnx", "input x: float32[1,3,8,8]\ny = Relu(x)\noutput y: float32[1,3,8,8] as probabilities\n");
  const std::string text = testing::error_of(ErrorCode::invalid_argument, [&] { FaceDetector::load(other); });
  testing::expect_parts(text, {"probabilities: float32[1,3,8,8]", "yunet (", "blazeface (", "other.onnx"});
  const fs::path no_picture = save("sound.onnx", constant_model("x: float32[1,16000]", yunet_outputs(32)));
  testing::expect_parts(testing::error_of(ErrorCode::invalid_argument, [&] { FaceDetector::load(no_picture); }),
                        {"takes no picture", "x: float32[1,16000]"});
  const fs::path bytes = save("bytes.onnx", constant_model("x: uint8[1,3,32,32]", yunet_outputs(32)));
  EXPECT_THROW(FaceDetector::load(bytes), Error);
  const fs::path huge = save(
      "huge.onnx", constant_model("x: float32[1,3,1000000,8]", {{"a", "float32[1,9,2]", "0"}, {"b", "float32[1,9,4]", "0"}}));
  testing::expect_parts(testing::error_of(ErrorCode::invalid_argument, [&] { FaceDetector::load(huge); }), {"extents must be"});
  DetectorOptions options;
  options.decoder = "haar";
  testing::expect_parts(testing::error_of(ErrorCode::invalid_argument, [&] { FaceDetector::load(other, options); }),
                        {"'haar'", "scrfd"});
  options.decoder = "yunet";  // by name the model is taken, and its outputs are looked at when it has run
  const FaceDetector named = FaceDetector::load(other, options);
  EXPECT_THROW(named.detect(media::Image::blank(8, 8)), Error);
  EXPECT_THROW(FaceDetector::load(folder_ / "none.onnx"), Error);
}

TEST_F(FaceDetectors, BadOutputsAreErrorsOrNoFaces) {
  const auto outputs = yunet_outputs(32, "nan");
  EXPECT_TRUE(FaceDetector::load(save("nan.onnx", constant_model("x: float32[1,3,32,32]", outputs)), at_native_size())
                  .detect(media::Image::blank(32, 32))
                  .faces.empty());
  auto integers = yunet_outputs(32);
  integers[0][1] = "int64[1,16,1]";
  const FaceDetector wrong =
      FaceDetector::load(save("int.onnx", constant_model("x: float32[1,3,32,32]", integers)), at_native_size());
  testing::expect_parts(testing::error_of(ErrorCode::runtime_failure, [&] { wrong.detect(media::Image::blank(32, 32)); }),
                        {"cls_8", "int64"});
  media::Image broken = media::Image::blank(32, 32);
  broken.pixels.pop_back();
  EXPECT_THROW(wrong.detect(broken), Error);
  DetectorOptions options;
  options.score = 1.5F;
  EXPECT_THROW(FaceDetector::load(folder_ / "nan.onnx", options), Error);
}

TEST_F(FaceDetectors, SizesAndCoordinatesOfModelsOfOneSize) {
  // One certain box in the upper left quarter of the input, whatever the picture.
  const std::vector<std::array<std::string, 3>> outputs{{"scores", "float32[1,1,2]", "0.9"},
                                                        {"boxes", "float32[1,1,4]", "0 0 0.5 0.5"}};
  const FaceDetector detector = FaceDetector::load(save("ultra.onnx", constant_model("x: float32[1,3,240,320]", outputs)));
  EXPECT_EQ(detector.decoder(), "ultraface");
  const Detection found = detector.detect(media::Image::blank(1000, 600));
  ASSERT_EQ(found.faces.size(), 1U);
  EXPECT_NEAR(found.faces[0].box.width, 500, 1e-3);
  EXPECT_NEAR(found.faces[0].box.height, 300, 1e-3);
  EXPECT_FALSE(found.faces[0].points.complete());
  EXPECT_EQ(detector.useful_size(1000, 600), 401);  // 240 of 600 rows
  EXPECT_EQ(detector.useful_size(100, 60), 0);
  // Letterboxed: 128 pixels stand for the longer side, 1000. Channels last.
  const std::vector<std::array<std::string, 3>> blaze{{"r", "float32[1,896,16]", "12.8"}, {"c", "float32[1,896,1]", "9"}};
  const FaceDetector letterboxed = FaceDetector::load(save("blaze.onnx", constant_model("x: float32[1,128,128,3]", blaze)));
  const Detection boxes = letterboxed.detect(media::Image::blank(1000, 600));
  ASSERT_FALSE(boxes.faces.empty());
  EXPECT_NEAR(boxes.faces[0].box.width, 100, 1e-2);
  EXPECT_EQ(letterboxed.useful_size(1000, 600), 129);
}

TEST_F(FaceDetectors, WithoutOnnxRuntimeNativeAnswers) {
  DetectorOptions options = at_native_size();
  options.runtime = Runtime::ort;
  options.session.ort_library = (folder_ / "no_library.so").string();
  const FaceDetector detector =
      FaceDetector::load(save("m.onnx", constant_model("x: float32[1,3,32,32]", yunet_outputs(32, "0.81"))), options);
  EXPECT_EQ(detector.runtime(), "native");
  ASSERT_EQ(detector.warnings().size(), 1U);
  testing::expect_parts(detector.warnings()[0], {"no_library.so", "does not exist"});
  EXPECT_EQ(detector.detect(media::Image::blank(32, 32)).runtime, "native");
}

// ---- Against recorded answers

fs::path models() {
  const char* folder = std::getenv("SDX_TEST_MODELS");
  return folder == nullptr ? fs::path() : fs::path(folder);
}

std::vector<float> row_of(const Face& face) {
  std::vector<float> row{face.box.x, face.box.y, face.box.width, face.box.height};
  for (const auto& p :
       {face.points.right_eye, face.points.left_eye, face.points.nose, face.points.right_mouth, face.points.left_mouth}) {
    if (p) row.insert(row.end(), {p->x, p->y});
  }
  row.push_back(face.score);
  return row;
}

void expect_rows(const std::vector<Face>& faces, const nlohmann::json& rows, double pixels, double score,
                 const std::string& what) {
  ASSERT_EQ(faces.size(), rows.size()) << what;
  for (std::size_t i = 0; i < faces.size(); ++i) {
    const std::vector<float> row = row_of(faces[i]);
    ASSERT_EQ(row.size(), rows[i].size()) << what;
    for (std::size_t k = 0; k < row.size(); ++k) {
      EXPECT_NEAR(row[k], rows[i][k].get<double>(), k + 1 == row.size() ? score : pixels)
          << what << ", row " << i << ", number " << k;
    }
  }
}

class RecordedFaces : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(models() / "faces/expected.json")) GTEST_SKIP() << "no recorded faces (SDX_TEST_MODELS)";
    std::ifstream file(models() / "faces/expected.json");
    pictures_ = nlohmann::json::parse(file)["pictures"];
  }
  nlohmann::json pictures_;
};

bool lossless(const fs::path& name) {
  const bool turned = name.string().rfind("orientation", 0) == 0;  // these are about reading files
  return !turned && (name.extension() == ".png" || name.extension() == ".bmp" || name.extension() == ".tif");
}

TEST_F(RecordedFaces, YunetFindsWhatOpenCvFinds) {
  // Both files are of one size, and the first declares wrong outputs.
  for (const char* model : {"face_yunet/face_detection_yunet_2023mar.onnx", "face_yunet/face_detection_yunet_2023mar_640.onnx"}) {
    const FaceDetector detector = FaceDetector::load(models() / model, at_native_size());
    int compared = 0;
    for (const auto& [name, answer] : pictures_.items()) {
      if (!answer.contains("yunet_2023mar")) continue;
      const fs::path resized = models() / "faces/inputs" / (fs::path(name).stem().string() + ".640.png");
      const auto& rows = answer["yunet_2023mar"];
      if (rows.contains("resized") && fs::exists(resized)) {
        expect_rows(detector.detect(media::read_image(resized)).faces, rows["resized"], 0.05, 1e-3, name);
        ++compared;
      }
      if (lossless(name) && fs::path(name).stem() != "rgb16") {
        expect_rows(detector.detect(media::read_image(models() / "faces/pictures" / name)).faces, rows["native"], 0.05, 1e-3,
                    name);
        ++compared;
      }
    }
    EXPECT_GT(compared, 15);
  }
}

TEST_F(RecordedFaces, ShrinksAsOpenCvDoes) {
  DetectorOptions options;
  options.size = DetectorOptions::Size::fixed;
  options.width = options.height = 640;
  const FaceDetector detector = FaceDetector::load(models() / "face_yunet/face_detection_yunet_2023mar_640.onnx", options);
  int compared = 0;
  for (const char* name : {"painted_girl.png", "kwong.png", "statue.png"}) {
    const media::Image picture = media::read_image(models() / "faces/pictures" / name);
    nlohmann::json rows = pictures_[name]["yunet_2023mar"]["resized"];
    const double scale = std::max(picture.width, picture.height) / 640.0;
    for (auto& row : rows) {
      for (std::size_t i = 0; i + 1 < row.size(); ++i) row[i] = row[i].get<double>() * scale;
    }
    expect_rows(detector.detect(picture).faces, rows, 0.5, 2e-3, name);  // 1 pixel in 500 is rounded the other way
    ++compared;
  }
  EXPECT_EQ(compared, 3);
}

TEST_F(RecordedFaces, AllFacesAreFoundUnasked) {
  for (const char* model : {"face_yunet/face_detection_yunet_2023mar.onnx", "face_yunet/yunet_n_dynamic.onnx"}) {
    const FaceDetector detector = FaceDetector::load(models() / model);
    for (const char* name : {"astronaut.png", "apollo11_crew.jpg", "family_beach.jpg", "painted_girl.png", "synthetic_woman.jpg",
                             "two_phones.jpg", "cat.png", "sky_plane.jpg"}) {
      const media::Image picture = media::read_image(models() / "faces/pictures" / name);
      EXPECT_EQ(detector.detect(picture).faces.size(), pictures_[name]["faces_by_eye"].get<std::size_t>()) << name;
    }
  }
}

TEST_F(RecordedFaces, TurnedPictures) {
  DetectorOptions options;
  options.any_orientation = true;
  const FaceDetector detector = FaceDetector::load(models() / "face_yunet/face_detection_yunet_2023mar.onnx", options);
  const media::Image picture = media::read_image(models() / "faces/pictures/astronaut.png");
  const Detection upright = detector.detect(picture);
  ASSERT_EQ(upright.faces.size(), 1U);
  EXPECT_EQ(upright.provider, "cpu");
  EXPECT_EQ(upright.turned, 0);
  for (const int degrees : {90, 180, 270}) {
    const media::Image turned = vision::turned(picture, degrees);
    const Detection found = detector.detect(turned);
    ASSERT_EQ(found.faces.size(), 1U) << degrees;
    EXPECT_EQ((found.turned + degrees) % 360, 0);
    // The nose, in the picture that was given: turned once more it is where it was.
    const float side = 512;
    const Point nose = *found.faces[0].points.nose;
    const Point back = degrees == 90    ? Point{nose.y, side - nose.x}
                       : degrees == 180 ? Point{side - nose.x, side - nose.y}
                                        : Point{side - nose.y, nose.x};
    EXPECT_NEAR(back.x, upright.faces[0].points.nose->x, 0.05);
    EXPECT_NEAR(back.y, upright.faces[0].points.nose->y, 0.05);
  }
}

TEST_F(RecordedFaces, ManyThreadsShareADetector) {
  const FaceDetector detector = FaceDetector::load(models() / "face_yunet/face_detection_yunet_2023mar.onnx");
  const media::Image picture = media::read_image(models() / "faces/pictures/apollo11_crew.jpg");
  const std::vector<Face> expected = detector.detect(picture).faces;
  std::vector<std::thread> threads;
  std::atomic<int> same = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 3; ++i) same += static_cast<int>(detector.detect(picture).faces.size() == expected.size());
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(same, 12);
}

vision::Output output_of(const Tensor& t, std::string_view name) { return {name, t.shape(), t.values<float>()}; }

TEST_F(RecordedFaces, RawTensors) {
  const fs::path raw = models() / "faces/raw";
  for (const std::string name : {"astronaut", "family_beach"}) {
    const Tensor scores = read_npy(raw / (name + ".ultraface.scores.npy")).aligned(),
                 boxes = read_npy(raw / (name + ".ultraface.boxes.npy")).aligned();
    const std::vector<vision::Output> outputs{output_of(scores, "scores"), output_of(boxes, "boxes")};
    const nlohmann::json& answer = pictures_[name == "astronaut" ? name + ".png" : name + ".jpg"];
    const int width = answer["width"].get<int>(), height = answer["height"].get<int>();
    expect_rows(vision::suppress(vision::decode(vision::Family::ultraface, outputs, {width, height}, 0.7F),
                                 vision::Overlap::plain, 0.7F, 0.5F, 0),
                answer["ultraface_rfb320"], 1e-3, 1e-4, name);
  }
  std::vector<Tensor> maps;
  for (const int n : {537, 538, 539, 540})
    maps.push_back(read_npy(raw / fmt::format("small_girl.centerface.{}.npy", n)).aligned());
  const std::vector<vision::Output> outputs{output_of(maps[0], "537"), output_of(maps[1], "538"), output_of(maps[2], "539"),
                                            output_of(maps[3], "540")};
  const auto size = [&](std::size_t axis) { return static_cast<int>(maps[0].shape()[axis]) * 4; };
  expect_rows(vision::suppress(vision::decode(vision::Family::centerface, outputs, {size(3), size(2)}, 0.5F),
                               vision::Overlap::or_equal, 0.5F, 0.3F, 0),
              pictures_["small_girl.jpg"]["centerface"]["rows"], 1e-3, 1e-4, "small_girl");
}

}  // namespace
}  // namespace sdx::faces
