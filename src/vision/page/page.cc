#include "vision/page/page.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/error.h"
#include "base/text/json_text.h"
#include "serve/http/access.h"
#include "serve/http/multipart.h"
#include "tensor/zip/writer.h"
#include "vision/page/assets.h"
#include "vision/page/crop_names.h"
#include "vision/page/json.h"

namespace sdx::faces::page {
namespace {

using nlohmann::json;
using serve::error_response;
using serve::json_response;
using serve::Request;
using serve::Response;

constexpr std::uint64_t kSettingsBytes = 1 << 20;  // of JSON that the page sends
constexpr int kLargestPreview = 2048;
constexpr int kMostLooks = 5;
constexpr double kLooksMs = 60;

double now_ms() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class Turn {
 public:
  explicit Turn(std::counting_semaphore<>& turns) : turns_(turns) { turns_.acquire(); }
  ~Turn() { turns_.release(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  std::counting_semaphore<>& turns_;
};

// Headers that forbid caching private content, guessing its type, and showing it in a frame.
void harden(Response& response) {
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  response.headers.emplace_back("X-Frame-Options", "DENY");
}

Response refused(int status, std::string_view message) {
  Response response = error_response(status, message);
  harden(response);
  return response;
}

Response file_response(std::string type, std::string bytes) {
  Response response;
  response.headers = {{"Content-Type", std::move(type)}};
  response.body = std::move(bytes);
  return response;
}

// "/api/pictures/ID/what": ID and what; empty for other paths.
std::pair<std::string, std::string> split_picture_path(const std::string& path) {
  constexpr std::string_view prefix = "/api/pictures/";
  if (!path.starts_with(prefix)) return {};
  const std::string rest = path.substr(prefix.size());
  const std::size_t slash = rest.find('/');
  return {rest.substr(0, slash), slash == std::string::npos ? "" : rest.substr(slash + 1)};
}

std::size_t index_of(const json& wish, std::size_t faces) {
  const json value = wish.value("face", json(0U));
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() >= faces) {
    fail(ErrorCode::invalid_argument, "'face' must be a number from 0 that is less than the picture's number of faces, {}",
         faces);
  }
  return value.get<std::size_t>();
}

void replace(std::string& text, std::string_view what, std::string_view with) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

}  // namespace

Page::Page(Backend backend, std::string token, PageLimits limits, Runtime runtime)
    : backend_(std::move(backend)), token_(std::move(token)), limits_(limits), store_(limits.memory), runtime_(runtime) {}

serve::Admission Page::admit(const Request& request) const {
  const std::string_view given = request.path == "/" ? request.parameter("token") : request.header("x-sdx-token");
  if (!serve::equal_secrets(given, token_)) {
    return {refused(403, "open the address that `sdx faces page` has printed, with its token"), {}};
  }
  // The server has checked Host; Origin must be the same.
  const std::string_view origin = request.header("origin");
  if (!origin.empty() && origin != fmt::format("http://{}", request.header("host"))) {
    return {refused(403, "the request comes from a page of another site"), {}};
  }
  return {std::nullopt, request.path == "/api/pictures" ? limits_.upload_bytes + 65536 : kSettingsBytes};
}

Response Page::handle(const Request& request) {
  const bool get = request.method == "GET" || request.method == "HEAD";
  const bool post = request.method == "POST";
  const std::string& path = request.path;
  const auto [id, what] = split_picture_path(path);
  Response response;
  try {
    if (path == "/" && get) {
      response = document();
    } else if (path == "/api/info" && get) {
      response = info();
    } else if (path == "/api/pictures" && post) {
      response = upload(request);
    } else if (path == "/api/zip" && post) {
      response = zip(request);
    } else if (path == "/api/runtime" && post) {
      response = switch_runtime(request);
    } else if (!id.empty()) {
      response = picture(request, id, what);
    } else {
      response = error_response(404, "there is no such page");
    }
  } catch (const Error& e) {
    const bool large = e.code() == ErrorCode::out_of_memory;
    const bool unusable = e.code() == ErrorCode::provider_unavailable;
    const bool wrong = e.code() == ErrorCode::invalid_argument || e.code() == ErrorCode::not_implemented;
    response = error_response(large ? 413 : unusable ? 409 : wrong ? 400 : 500, e.what());
  }
  harden(response);
  return response;
}

Response Page::document() const {
  const std::string nonce = serve::random_token();
  std::string text(kDocument);
  replace(text, "@NONCE@", nonce);
  Response response = file_response("text/html; charset=utf-8", std::move(text));
  response.headers.emplace_back(
      "Content-Security-Policy",
      fmt::format(
          "default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; img-src 'self' blob: data:; connect-src 'self'; "
          "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
          nonce));
  return response;
}

Response Page::info() const {
  json presets = json::array();
  for (const Preset& preset : backend_.presets) presets.push_back(preset_json(preset));
  const json document{{"version", SDX_VERSION},
                      {"model", backend_.model},
                      {"decoder", backend_.decoder},
                      {"runtime", runtime_name(runtime_)},
                      {"presets", presets},
                      {"enhancements", backend_.enhancements},
                      {"limits", {{"upload_bytes", limits_.upload_bytes}, {"zip_entries", limits_.zip_entries}}}};
  return json_response(dump_json(document));
}

std::shared_ptr<const Looked> Page::look(Picture& picture, Runtime runtime) {
  {
    const std::lock_guard lock(picture.mutex);
    if (const auto at = picture.looked.find(runtime); at != picture.looked.end()) return at->second;
  }
  auto looked = std::make_shared<Looked>();
  // The first look at a size of picture pays for planning. What the runtime takes is that of the fastest look after it: others
  // may have shared the processor.
  looked->detection = backend_.detect(picture.opened, runtime);
  const double start = now_ms();
  double least = 0;
  for (int i = 0; i < kMostLooks && (i == 0 || now_ms() - start < kLooksMs); ++i) {
    const StageTimes times = backend_.detect(picture.opened, runtime).times;
    const double sum = times.preprocess + times.inference + times.decode;
    if (i == 0 || sum < least) {
      least = sum;
      looked->detection.times = times;
    }
  }
  for (const Face& face : looked->detection.faces) looked->quality.push_back(backend_.judge(picture.opened, face));
  const std::lock_guard lock(picture.mutex);
  return picture.looked.emplace(runtime, std::move(looked)).first->second;
}

Response Page::upload(const Request& request) {
  std::string_view body = request.body;
  std::string name(request.parameter("name"));
  std::vector<serve::Part> parts;
  if (const std::string boundary = serve::multipart_boundary(request.header("content-type")); !boundary.empty()) {
    parts = serve::parse_multipart(body, boundary);
    const auto file = std::find_if(parts.begin(), parts.end(), [](const serve::Part& p) { return !p.file_name.empty(); });
    if (file == parts.end()) fail(ErrorCode::invalid_argument, "the form has no file");
    body = file->body;
    name = file->file_name;
  }
  if (body.empty()) fail(ErrorCode::invalid_argument, "the file is empty");
  if (body.size() > limits_.upload_bytes) {
    return error_response(413, fmt::format("the file has {} bytes; at most {} are accepted", body.size(), limits_.upload_bytes));
  }
  const Turn turn(uploads_);
  auto picture = std::make_shared<Picture>();
  picture->name = name.empty() ? "picture" : name.substr(0, 255);
  const double start = now_ms();
  picture->opened = backend_.open(std::string(body));
  picture->decode_ms = now_ms() - start;
  const auto looked = look(*picture, runtime_);
  picture->id = std::to_string(next_id_++);
  store_.add(picture);
  return json_response(dump_json(picture_json(*picture, *looked)), 201);
}

Response Page::picture(const Request& request, const std::string& id, const std::string& what) {
  const auto found = store_.find(id);
  if (!found) return error_response(404, "this picture is no longer in memory; add it again");
  if (what.empty() && request.method == "GET") return json_response(dump_json(picture_json(*found, *look(*found, runtime_))));
  if (what.empty() && request.method == "DELETE") {
    store_.remove(id);
    return json_response("{}");
  }
  if (what == "preview" && request.method == "GET") return preview(request, *found);
  if (what == "crop" && request.method == "POST") return crop(request, *found);
  return error_response(what.empty() || what == "preview" || what == "crop" ? 405 : 404, "a picture has no such answer");
}

Response Page::preview(const Request& request, const Picture& picture) const {
  const std::string_view text = request.parameter("size");
  int size = 1024;
  if (!text.empty()) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), size);
    if (error != std::errc() || end != text.data() + text.size() || size < 16 || size > kLargestPreview) {
      fail(ErrorCode::invalid_argument, "'size' must be 16 to {} pixels", kLargestPreview);
    }
  }
  const media::Image& image = *picture.opened.image;
  const double scale = std::min(1.0, static_cast<double>(size) / std::max(image.width, image.height));
  if (scale == 1) return file_response("image/jpeg", media::encode_jpeg(image, 88));
  const auto side = [&](int n) { return std::max(1, static_cast<int>(n * scale + 0.5)); };
  return file_response("image/jpeg", media::encode_jpeg(media::resize(image, side(image.width), side(image.height)), 85));
}

Response Page::crop(const Request& request, Picture& picture) {
  const json wish = parse_object(request.body);
  const auto looked = look(picture, runtime_);
  const CropSettings settings = crop_settings(wish, {"face"});
  File file = backend_.crop(picture.opened, looked->detection.faces[index_of(wish, looked->detection.faces.size())], settings);
  Response response = file_response(file.type, std::move(file.bytes));
  response.headers.emplace_back("X-Sdx-Ending", file.ending);
  return response;
}

Response Page::zip(const Request& request) {
  const json wishes = parse_object(request.body).value("crops", json());
  if (!wishes.is_array() || wishes.empty() || wishes.size() > static_cast<std::size_t>(limits_.zip_entries)) {
    fail(ErrorCode::invalid_argument, "'crops' must be a list of 1 to {} crops", limits_.zip_entries);
  }
  ZipWriter writer;
  std::unordered_set<std::string> names;
  std::uint64_t bytes = 0;
  for (const json& wish : wishes) {
    if (*request.gone) fail(ErrorCode::cancelled, "the browser has disconnected");
    if (!wish.is_object() || !wish.value("picture", json()).is_string()) {
      fail(ErrorCode::invalid_argument, "each of 'crops' must be an object with 'picture'");
    }
    const auto picture = store_.find(wish["picture"].get<std::string>());
    if (!picture) return error_response(404, "one of the pictures is no longer in memory; add it again");
    const auto looked = look(*picture, runtime_);
    const std::size_t face = index_of(wish, looked->detection.faces.size());
    const CropSettings settings = crop_settings(wish, {"face", "picture"});
    const File file = backend_.crop(picture->opened, looked->detection.faces[face], settings);
    bytes += file.bytes.size();
    if (bytes > limits_.zip_bytes) {
      fail(ErrorCode::out_of_memory, "the crops have more than {} bytes together; download them in parts", limits_.zip_bytes);
    }
    const std::string name = fmt::format("{}_face{}{}", picture->name.substr(0, picture->name.rfind('.')), face + 1, file.ending);
    if (!writer.fits(file.bytes.size())) fail(ErrorCode::out_of_memory, "a ZIP file holds at most 65534 files and 4 GiB");
    writer.add(unique_name(name, names), file.bytes);
  }
  return file_response("application/zip", writer.finish());
}

Response Page::switch_runtime(const Request& request) {
  const json wish = parse_object(request.body);
  if (!wish.value("runtime", json()).is_string()) fail(ErrorCode::invalid_argument, "'runtime' must be native or ort");
  const Runtime runtime = parse_runtime(wish["runtime"].get<std::string>());
  // A look at a small picture says whether it works.
  Opened probe;
  probe.image = std::make_shared<media::Image>(media::Image::blank(64, 64));
  const Detection seen = backend_.detect(probe, runtime);
  runtime_ = runtime;
  return json_response(dump_json(json{{"runtime", runtime_name(runtime)}, {"provider", seen.provider}}));
}

}  // namespace sdx::faces::page
