#include "vision/page/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/errors.h"
#include "vision/page/assets.h"
#include "vision/page/crop_names.h"

namespace sdx::faces::page {
namespace {

using nlohmann::json;

constexpr const char* kToken = "0123456789abcdef";

// Pictures are texts "WxH"; as many faces are found as W is larger than 10. ONNX Runtime is missing.
Backend fake_backend() {
  Backend backend;
  backend.model = "fake.onnx";
  backend.decoder = "fake";
  backend.open = [](std::string bytes) {
    const std::size_t x = bytes.find('x');
    if (x == std::string::npos) fail(ErrorCode::invalid_argument, "this is not a picture");
    Opened opened;
    opened.image = std::make_shared<media::Image>(media::Image::blank(std::stoi(bytes), std::stoi(bytes.substr(x + 1))));
    opened.memory = opened.image->pixels.size();
    opened.format = std::move(bytes);
    return opened;
  };
  backend.detect = [](const Opened& opened, Runtime runtime) {
    if (runtime == Runtime::ort) fail(ErrorCode::provider_unavailable, "there is no ONNX Runtime here");
    Detection detection;
    for (int i = 10; i < opened.image->width && i < 20; ++i) {
      Face face;
      face.box = {static_cast<float>(i), 2, 3, 4};
      face.score = 0.9F;
      face.points.nose = Point{1.5F, 2.5F};
      detection.faces.push_back(face);
    }
    detection.runtime = "native";
    detection.provider = "cpu";
    return detection;
  };
  backend.judge = [](const Opened&, const Face&) {
    Quality quality;
    quality.level = Level::medium;
    quality.yaw = 12.5;
    return quality;
  };
  backend.crop = [](const Opened& opened, const Face& face, const CropSettings& settings) {
    return File{fmt::format("{} {} {} {}", opened.format, face.box.x, settings.preset, settings.face_height.value_or(0)),
                "image/png", ".png"};
  };
  backend.presets = {{"avatar", "Square <avatar>", CropOptions{}}};
  backend.enhancements = {"none", "natural"};
  return backend;
}

class PageTest : public ::testing::Test {
 protected:
  PageLimits limits_{.upload_bytes = 1000, .memory = 5000, .zip_bytes = 200, .zip_entries = 5};
  Page page_{fake_backend(), kToken, limits_, Runtime::native};

  static serve::Request request(const std::string& method, const std::string& path, std::string body = "") {
    serve::Request out;
    out.method = method;
    out.path = path;
    out.body = std::move(body);
    out.headers = {{"Host", "127.0.0.1:8080"}, {"X-Sdx-Token", kToken}};
    out.gone = std::make_shared<std::atomic<bool>>(false);
    return out;
  }
  serve::Response ask(const std::string& method, const std::string& path, std::string body = "") {
    return page_.handle(request(method, path, std::move(body)));
  }
  json upload(const std::string& picture, const std::string& name) {
    serve::Request r = request("POST", "/api/pictures", picture);
    r.query = {{"name", name}};
    const serve::Response response = page_.handle(r);
    EXPECT_EQ(response.status, 201) << response.body;
    return json::parse(response.body);
  }
};

TEST_F(PageTest, LetsInWhoHasTheToken) {
  EXPECT_FALSE(page_.admit(request("GET", "/api/info")).refused);
  serve::Request document = request("GET", "/");
  document.headers.pop_back();
  EXPECT_EQ(page_.admit(document).refused->status, 403);
  document.query = {{"token", kToken}};
  EXPECT_FALSE(page_.admit(document).refused);
  // In the address it opens the page alone: addresses are kept in histories and logs.
  serve::Request info = request("GET", "/api/info");
  info.headers.pop_back();
  info.query = {{"token", kToken}};
  EXPECT_EQ(page_.admit(info).refused->status, 403);
  for (const char* wrong : {"", "0", "0123456789abcdeX", "0123456789abcdef0"}) {
    info.headers = {{"Host", "127.0.0.1:8080"}, {"X-Sdx-Token", wrong}};
    EXPECT_EQ(page_.admit(info).refused->status, 403) << wrong;
  }
}

TEST_F(PageTest, RefusesPagesOfOtherSites) {
  serve::Request r = request("POST", "/api/zip");
  r.headers.emplace_back("Origin", "http://127.0.0.1:8080");
  EXPECT_FALSE(page_.admit(r).refused);
  for (const char* origin : {"http://evil.example", "null", "https://127.0.0.1:8080", "http://127.0.0.1:8081"}) {
    r.headers.back().second = origin;
    EXPECT_EQ(page_.admit(r).refused->status, 403) << origin;
  }
}

TEST_F(PageTest, TheDocumentIsWholeAndRestricted) {
  const serve::Response response = ask("GET", "/");
  EXPECT_EQ(response.status, 200);
  const std::string_view policy = serve::header(response.headers, "Content-Security-Policy");
  EXPECT_TRUE(policy.starts_with("default-src 'none'; script-src 'nonce-")) << policy;
  EXPECT_EQ(policy.find("unsafe"), std::string_view::npos);
  const std::size_t at = policy.find("nonce-") + 6;
  const std::string nonce(policy.substr(at, 32));
  EXPECT_NE(response.body.find("<script nonce=\"" + nonce + "\">"), std::string::npos);
  EXPECT_NE(response.body.find("<style nonce=\"" + nonce + "\">"), std::string::npos);
  EXPECT_EQ(response.body.find("@NONCE@"), std::string::npos);
  EXPECT_TRUE(response.body.ends_with("</html>\n"));
  EXPECT_EQ(serve::header(response.headers, "X-Content-Type-Options"), "nosniff");
  EXPECT_NE(ask("GET", "/").body.find("nonce"), ask("GET", "/").body.find(nonce));
}

// The policy would block these, so they must not occur: handlers and styles in attributes, and anything from elsewhere.
TEST_F(PageTest, TheDocumentAsksForNothingElse) {
  for (const char* what : {" onclick=", " onload=", " onerror=", " style=\"", "src=\"http", "href=\"http", "@import", "url(",
                           "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("}) {
    EXPECT_EQ(kDocument.find(what), std::string_view::npos) << what;
  }
}

TEST_F(PageTest, SaysWhatThereIs) {
  const json info = json::parse(ask("GET", "/api/info").body);
  EXPECT_EQ(info["runtime"], "native");
  EXPECT_EQ(info["presets"][0]["description"], "Square <avatar>");
  EXPECT_EQ(info["enhancements"], json({"none", "natural"}));
  EXPECT_EQ(info["limits"]["upload_bytes"], 1000);
}

TEST_F(PageTest, TakesPictures) {
  const json picture = upload("12x9", "a<b>.png");
  EXPECT_EQ(picture["file"], "a<b>.png");
  EXPECT_EQ(picture["width"], 12);
  ASSERT_EQ(picture["faces"].size(), 2u);
  EXPECT_EQ(picture["faces"][1]["box"], json({11.0, 2.0, 3.0, 4.0}));
  EXPECT_EQ(picture["faces"][0]["quality"]["level"], "medium");
  EXPECT_EQ(picture["faces"][0]["quality"]["yaw"], 12.5);
  EXPECT_TRUE(picture["faces"][0]["quality"]["roll"].is_null());
  EXPECT_EQ(picture["faces"][0]["points"]["nose"], json({1.5, 2.5}));
  EXPECT_TRUE(picture["latency_ms"].contains("native"));
  const std::string path = "/api/pictures/" + picture["id"].get<std::string>();
  EXPECT_EQ(json::parse(ask("GET", path).body)["id"], picture["id"]);
  EXPECT_TRUE(ask("GET", path + "/preview").body.starts_with("\xff\xd8"));
  EXPECT_EQ(ask("GET", path + "/elsewhere").status, 404);
  EXPECT_EQ(ask("POST", path + "/preview").status, 405);
  EXPECT_EQ(ask("DELETE", path).status, 200);
  EXPECT_EQ(ask("GET", path).status, 404);
}

TEST_F(PageTest, TakesForms) {
  serve::Request r = request("POST", "/api/pictures",
                             "--B\r\nContent-Disposition: form-data; name=\"f\"; filename=\"b.png\"\r\n\r\n20x20\r\n--B--\r\n");
  r.headers.emplace_back("Content-Type", "multipart/form-data; boundary=B");
  const serve::Response response = page_.handle(r);
  EXPECT_EQ(response.status, 201) << response.body;
  EXPECT_EQ(json::parse(response.body)["file"], "b.png");
  r.body = "--B\r\nContent-Disposition: form-data; name=\"f\"\r\n\r\nno file\r\n--B--\r\n";
  EXPECT_EQ(page_.handle(r).status, 400);
}

TEST_F(PageTest, RefusesBadPictures) {
  EXPECT_EQ(ask("POST", "/api/pictures", "nonsense").status, 400);
  EXPECT_EQ(ask("POST", "/api/pictures", "").status, 400);
  EXPECT_EQ(ask("POST", "/api/pictures", "5x5" + std::string(1000, ' ')).status, 413);
  EXPECT_EQ(ask("POST", "/api/pictures", "100x100").status, 413);  // does not fit into memory
}

TEST_F(PageTest, ForgetsWhatWasNotUsedForLongest) {
  const std::string first = upload("20x30", "first")["id"], second = upload("20x30", "second")["id"];
  EXPECT_EQ(ask("GET", "/api/pictures/" + first).status, 200);
  const std::string third = upload("20x30", "third")["id"];  // 1800 bytes each
  EXPECT_EQ(ask("GET", "/api/pictures/" + second).status, 404);
  EXPECT_EQ(ask("GET", "/api/pictures/" + first).status, 200);
  EXPECT_EQ(ask("GET", "/api/pictures/" + third).status, 200);
}

TEST_F(PageTest, Previews) {
  const std::string path = "/api/pictures/" + upload("40x20", "a")["id"].get<std::string>() + "/preview";
  const auto preview = [&](const std::string& size) {
    serve::Request r = request("GET", path);
    r.query = {{"size", size}};
    return page_.handle(r);
  };
  const auto decoded = [](const serve::Response& response) {
    return media::decode_image(std::as_bytes(std::span<const char>(response.body.data(), response.body.size())));
  };
  EXPECT_EQ(decoded(preview("16")).width, 16);
  EXPECT_EQ(decoded(preview("16")).height, 8);
  EXPECT_EQ(decoded(preview("100")).width, 40);
  for (const char* wrong : {"0", "-1", "15", "2049", "99999999999", "1x", "x"}) EXPECT_EQ(preview(wrong).status, 400) << wrong;
}

TEST_F(PageTest, Crops) {
  const std::string path = "/api/pictures/" + upload("12x9", "a.png")["id"].get<std::string>() + "/crop";
  const serve::Response response = ask("POST", path, R"({"face": 1, "preset": "avatar", "face_height": 55.5})");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "12x9 11 avatar 55.5");
  EXPECT_EQ(serve::header(response.headers, "X-Sdx-Ending"), ".png");
  EXPECT_EQ(ask("POST", path, "{}").body, "12x9 10  0");  // the first face, and the command's defaults
  for (const char* wrong : {R"({"face": 2})", R"({"face": -1})", R"({"face": "0"})", R"({"face": 0.5})", R"({"preset": 1})",
                            R"({"width": "1"})", R"({"width": 1.5})", R"({"face_height": 1e999})", R"({"align_eyes": 1})",
                            R"({"unknown": 1})", "[]", "", "{", R"({"width": 99999999999})", R"({"fill": []})"}) {
    EXPECT_EQ(ask("POST", path, wrong).status, 400) << wrong;
  }
  EXPECT_EQ(ask("POST", path, "{\"fill\": \"" + std::string(2000, 'x') + "\"}").status, 400);
  const std::string without = "/api/pictures/" + upload("5x5", "none")["id"].get<std::string>() + "/crop";
  EXPECT_EQ(ask("POST", without, "{}").status, 400);
  EXPECT_EQ(ask("POST", "/api/pictures/99/crop", "{}").status, 404);
}

TEST_F(PageTest, Zips) {
  const std::string a = upload("12x9", "../a.png")["id"], b = upload("11x9", "../a.png")["id"];
  const auto entry = [](const std::string& id, int face) { return json{{"picture", id}, {"face", face}, {"preset", "avatar"}}; };
  const serve::Response response = ask("POST", "/api/zip", json{{"crops", {entry(a, 0), entry(a, 1), entry(b, 0)}}}.dump());
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_TRUE(response.body.starts_with("PK\x03\x04"));
  testing::expect_parts(response.body, {"___a_face1.png", "___a_face1-2.png"});
  EXPECT_EQ(response.body.find("../"), std::string::npos);
  EXPECT_EQ(ask("POST", "/api/zip", R"({"crops": []})").status, 400);
  EXPECT_EQ(ask("POST", "/api/zip", R"({"crops": [1]})").status, 400);
  EXPECT_EQ(ask("POST", "/api/zip", json{{"crops", {entry("77", 0)}}}.dump()).status, 404);
  EXPECT_EQ(ask("POST", "/api/zip", json{{"crops", json::array_t(6, entry(a, 0))}}.dump()).status, 400);
  serve::Request gone = request("POST", "/api/zip", json{{"crops", {entry(a, 0)}}}.dump());
  gone.gone = std::make_shared<std::atomic<bool>>(true);
  EXPECT_EQ(page_.handle(gone).status, 500);
}

TEST_F(PageTest, SwitchesRuntimes) {
  const serve::Response response = ask("POST", "/api/runtime", R"({"runtime": "ort"})");
  EXPECT_EQ(response.status, 409);
  EXPECT_NE(response.body.find("there is no ONNX Runtime here"), std::string::npos);
  EXPECT_EQ(json::parse(ask("GET", "/api/info").body)["runtime"], "native");
  EXPECT_EQ(ask("POST", "/api/runtime", R"({"runtime": "native"})").status, 200);
  EXPECT_EQ(ask("POST", "/api/runtime", R"({"runtime": "other"})").status, 400);
  EXPECT_EQ(ask("POST", "/api/runtime", "{}").status, 400);
}

TEST_F(PageTest, OtherPathsAreNotThere) {
  for (const char* path : {"/x", "/api", "/api/", "/api/pictures/", "/assets/page.css", "/etc/passwd"}) {
    EXPECT_EQ(ask("GET", path).status, 404) << path;
  }
}

TEST(HarmlessName, LeadsNowhere) {
  EXPECT_EQ(harmless_name("a.png"), "a.png");
  EXPECT_EQ(harmless_name("../a:b"), "___a_b");
  EXPECT_EQ(harmless_name("..\\..\\x"), "___.._x");
  EXPECT_EQ(harmless_name(std::string_view("a\0b\n", 4)), "a_b_");
  EXPECT_EQ(harmless_name(""), "picture");
  std::string umlauts;
  for (int i = 0; i < 150; ++i) umlauts += "ä";
  EXPECT_EQ(harmless_name(umlauts), umlauts.substr(0, 200));
  EXPECT_EQ(harmless_name("x" + umlauts), "x" + umlauts.substr(0, 198));
}

TEST(HarmlessName, IsUnique) {
  std::unordered_set<std::string> taken;
  EXPECT_EQ(unique_name("a.txt", taken), "a.txt");
  EXPECT_EQ(unique_name("a.txt", taken), "a-2.txt");
  EXPECT_EQ(unique_name("a", taken), "a");
  EXPECT_EQ(unique_name("a", taken), "a-2");
}

}  // namespace
}  // namespace sdx::faces::page
