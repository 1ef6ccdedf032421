#include "faces.h"

#include <cstring>
#include <sdx/faces.hpp>
#include <span>

#include "arrays.h"
#include "entry.h"
#include "options.h"
#include "signals.h"
#include "vision/names.h"

namespace sdx::python {
namespace {

using faces::Face;
using faces::FaceDetector;
using faces::Point;
using media::Image;

// uint8[height, width] or uint8[height, width, 1, 3 or 4].
Image to_image(PyObject* array) {
  Buffers buffers;
  const Value value = to_value(array, {"picture", DataType::uint8}, buffers);
  if (!value.is_tensor() || value.tensor().dtype() != DataType::uint8) {
    fail(ErrorCode::invalid_argument, "a picture is an array of uint8[height, width, channels]; received {}",
         value.is_tensor() ? name(value.tensor().dtype()) : "no array");
  }
  const Tensor& t = value.tensor();
  const bool grey = t.rank() == 2;
  const std::int64_t channels = grey ? 1 : t.rank() == 3 ? t.dim(2) : 0;
  if ((channels != 1 && channels != 3 && channels != 4) || t.dim(0) < 1 || t.dim(1) < 1 || t.dim(0) > 65535 || t.dim(1) > 65535) {
    fail(ErrorCode::invalid_argument,
         "a picture is an array of uint8[height, width, channels], 1, 3 or 4 channels, sides 1 to 65535; received {}",
         t.type_string());
  }
  Image image = Image::blank(static_cast<int>(t.dim(1)), static_cast<int>(t.dim(0)), static_cast<int>(channels));
  std::memcpy(image.pixels.data(), t.data(), image.pixels.size());
  return image;
}

Object from_image(Image image) {
  auto owner = std::make_shared<Image>(std::move(image));
  const Shape shape{owner->height, owner->width, owner->channels};
  return to_python(Value(Tensor::view_mutable(owner->pixels.data(), DataType::uint8, shape, owner)));
}

float to_float(PyObject* object) { return static_cast<float>(to_double(object)); }

// (box, score, {point: (x, y)}, turned), both ways.
Object from_face(const Face& face) {
  const Object points = new_dict();
  for (const auto& [name, member] : vision::kPoints) {
    if (const auto& p = face.points.*member) set(points, name, tuple(number(double{p->x}), number(double{p->y})));
  }
  const faces::Box& b = face.box;
  return tuple(tuple(number(double{b.x}), number(double{b.y}), number(double{b.width}), number(double{b.height})),
               number(double{face.score}), points, number(std::int64_t{face.turned}));
}
Face to_face(PyObject* object) {
  expect_arguments(object, 4);
  const std::vector<float> box = to_list(argument(object, 0), to_float);
  if (box.size() != 4)
    fail(ErrorCode::invalid_argument, "a face's box has 4 numbers (x, y, width, height); received {}", box.size());
  Face face{{box[0], box[1], box[2], box[3]}, to_float(argument(object, 1)), {}};
  for (const auto& [name, member] : vision::kPoints) {
    PyObject* point = PyDict_GetItemString(argument(object, 2), name);
    if (point == nullptr) continue;
    const std::vector<float> xy = to_list(point, to_float);
    if (xy.size() != 2) fail(ErrorCode::invalid_argument, "{} is a point of 2 numbers; received {}", name, xy.size());
    face.points.*member = Point{xy[0], xy[1]};
  }
  face.turned = to_int(argument(object, 3));
  return face;
}

// A member of `options` where the dict has one of that name.
template <class T, class Convert>
void take(PyObject* dict, const char* name, T& to, const Convert& convert) {
  PyObject* value = PyDict_GetItemString(dict, name);
  if (value != nullptr && value != Py_None) to = convert(value);
}

template <class Enum>
auto one_of(const char* what, std::initializer_list<std::pair<std::string_view, Enum>> words) {
  return [what, all = std::vector<std::pair<std::string_view, Enum>>(words)](PyObject* object) {
    const std::string word = to_text(object);
    std::string known;
    for (const auto& [name, value] : all) {
      if (name == word) return value;
      known += (known.empty() ? "" : ", ") + std::string(name);
    }
    fail(ErrorCode::invalid_argument, "{} is one of {}; received '{}'", what, known, word);
  };
}

// load(path, options of sessions, own options)
Object load(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 3);
  const std::string path = to_text(argument(arguments, 0));
  PyObject* own = argument(arguments, 2);
  faces::DetectorOptions options;
  options.session = to_options(argument(arguments, 1));
  using faces::Runtime;
  take(own, "runtime", options.runtime,
       one_of<Runtime>("runtime", {{"auto", Runtime::automatic}, {"native", Runtime::native}, {"ort", Runtime::ort}}));
  using Size = faces::DetectorOptions::Size;
  take(own, "size", options.size,
       one_of<Size>("size", {{"auto", Size::automatic}, {"native", Size::native}, {"fixed", Size::fixed}}));
  take(own, "width", options.width, to_int);
  take(own, "height", options.height, to_int);
  take(own, "decoder", options.decoder, to_text);
  take(own, "score", options.score, to_float);
  take(own, "nms", options.nms, to_float);
  take(own, "top_k", options.top_k, to_int);
  take(own, "min_face", options.min_face, to_int);
  take(own, "any_orientation", options.any_orientation, to_truth);
  take(own, "thorough", options.thorough, to_truth);
  return instance_of(unlocked([&] { return FaceDetector::load(path, options); }));
}

Object detect(PyObject* self, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const FaceDetector& detector = value_of<FaceDetector>(self);
  const Image picture = to_image(argument(arguments, 0));
  const faces::Detection found = interruptible([&] { return detector.detect(picture); });
  Object d = new_dict(), times = new_dict();
  set(times, "preprocess", number(found.times.preprocess));
  set(times, "inference", number(found.times.inference));
  set(times, "decode", number(found.times.decode));
  set(d, "faces", list_of(found.faces, from_face));
  set(d, "runtime", text(found.runtime));
  set(d, "provider", text(found.provider));
  set(d, "times_ms", times);
  set(d, "turned", number(std::int64_t{found.turned}));
  set(d, "smallest", number(found.smallest));
  return d;
}

Object about(PyObject* self, PyObject*) {
  const FaceDetector& detector = value_of<FaceDetector>(self);
  return tuple(text(detector.decoder()), text(detector.runtime()), texts(detector.warnings()));
}

Object sharpness(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  const Image picture = to_image(argument(arguments, 0));
  return number(unlocked([&] { return faces::sharpness(picture); }));
}

Object judge(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const Image picture = to_image(argument(arguments, 0));
  const Face face = to_face(argument(arguments, 1));
  const faces::Quality q = unlocked([&] { return faces::judge(picture, face); });
  Object d = new_dict();
  const auto angle = [](const std::optional<double>& v) { return v ? number(*v) : Object::none(); };
  set(d, "level", text(vision::word_of(vision::kLevels, q.level)));
  set(d, "sharpness", number(q.sharpness));
  set(d, "exposure", number(q.exposure));
  set(d, "size_px", number(q.size_px));
  set(d, "yaw", angle(q.yaw));
  set(d, "pitch", angle(q.pitch));
  set(d, "roll", angle(q.roll));
  return d;
}

// pick(picture, faces, which, n)
Object pick(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  const Image picture = to_image(argument(arguments, 0));
  const std::vector<Face> all = to_list(argument(arguments, 1), to_face);
  using faces::Pick;
  const Pick which =
      one_of<Pick>("which", {{"all", Pick::all}, {"largest", Pick::largest}, {"best", Pick::best}, {"nth", Pick::nth}})(
          argument(arguments, 2));
  const int n = to_int(argument(arguments, 3));
  return list_of(unlocked([&] { return faces::pick(picture, all, which, n); }),
                 [](std::size_t i) { return number(std::uint64_t{i}); });
}

std::array<std::uint8_t, 4> to_colour(PyObject* object) {
  const std::vector<std::int64_t> parts = to_list(object, to_integer);
  const bool in_range = std::all_of(parts.begin(), parts.end(), [](std::int64_t v) { return v >= 0 && v <= 255; });
  if ((parts.size() != 3 && parts.size() != 4) || !in_range) {
    fail(ErrorCode::invalid_argument, "a colour is 3 or 4 numbers from 0 to 255: red, green, blue, opacity");
  }
  std::array<std::uint8_t, 4> colour{0, 0, 0, 255};
  std::transform(parts.begin(), parts.end(), colour.begin(), [](std::int64_t v) { return static_cast<std::uint8_t>(v); });
  return colour;
}

faces::CropOptions to_crop(PyObject* dict) {
  faces::CropOptions options;
  std::string preset;
  take(dict, "preset", preset, to_text);
  if (!preset.empty()) options = faces::preset(preset);
  using faces::Fill;
  using faces::Position;
  using faces::Shape;
  take(dict, "width", options.width, to_int);
  take(dict, "height", options.height, to_int);
  take(dict, "face_height", options.face_height, to_double);
  take(dict, "position", options.position,
       one_of<Position>(
           "position",
           {{"center", Position::center}, {"rule-of-thirds", Position::rule_of_thirds}, {"custom", Position::custom}}));
  take(dict, "offset_x", options.offset_x, to_double);
  take(dict, "offset_y", options.offset_y, to_double);
  take(dict, "fill", options.fill,
       one_of<Fill>("fill", {{"colour", Fill::colour}, {"blur", Fill::blur}, {"edge", Fill::edge}, {"shift", Fill::shift}}));
  take(dict, "colour", options.colour, to_colour);
  take(dict, "align_eyes", options.align_eyes, to_truth);
  take(dict, "shape", options.shape,
       one_of<Shape>("shape", {{"rectangle", Shape::rectangle}, {"rounded", Shape::rounded}, {"ellipse", Shape::ellipse}}));
  take(dict, "radius", options.radius, to_double);
  return options;
}

// crop(picture, face, options)
Object crop(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 3);
  const Image picture = to_image(argument(arguments, 0));
  const Face face = to_face(argument(arguments, 1));
  const faces::CropOptions options = to_crop(argument(arguments, 2));
  return from_image(unlocked([&] { return faces::crop(picture, face, options); }));
}

// crop_box(box, options)
Object crop_box(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const faces::Box box = faces::crop_box(to_face(argument(arguments, 0)), to_crop(argument(arguments, 1)));
  return tuple(number(double{box.x}), number(double{box.y}), number(double{box.width}), number(double{box.height}));
}

Object presets(PyObject*, PyObject*) {
  return list_of(faces::presets(), [](const faces::Preset& p) {
    return tuple(text(p.name), text(p.description), number(std::int64_t{p.options.width}), number(std::int64_t{p.options.height}),
                 number(p.options.dpi), number(p.options.face_height));
  });
}

// align(picture, face, size)
Object align(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 3);
  const Image picture = to_image(argument(arguments, 0));
  const Face face = to_face(argument(arguments, 1));
  const int size = to_int(argument(arguments, 2));
  return from_image(unlocked([&] { return faces::align(picture, face, size); }));
}

// alignment(face, size): 2 rows of 3
Object alignment(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const faces::Affine m = faces::alignment(to_face(argument(arguments, 0)), to_int(argument(arguments, 1)));
  const auto row = [&](std::size_t i) { return list_of(std::span(m).subspan(i, 3), [](double v) { return number(v); }); };
  return tuple(row(0), row(3));
}

// enhance(picture, settings, face or None)
Object enhance(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 3);
  Image picture = to_image(argument(arguments, 0));
  const faces::Enhance settings = faces::parse_enhance(to_text(argument(arguments, 1)));
  std::optional<Face> face;
  if (argument(arguments, 2) != Py_None) face = to_face(argument(arguments, 2));
  unlocked([&] {
    faces::enhance(picture, settings, face ? &*face : nullptr);
    return 0;
  });
  return from_image(std::move(picture));
}

// anonymise(picture, faces, method, margin)
Object anonymise(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 4);
  Image picture = to_image(argument(arguments, 0));
  const std::vector<Face> all = to_list(argument(arguments, 1), to_face);
  using faces::Anonymise;
  const Anonymise method = one_of<Anonymise>(
      "method", {{"blur", Anonymise::blur}, {"mosaic", Anonymise::mosaic}, {"box", Anonymise::box}})(argument(arguments, 2));
  const double margin = to_double(argument(arguments, 3));
  unlocked([&] {
    for (const Face& face : all) faces::anonymise(picture, face, method, margin);
    return 0;
  });
  return from_image(std::move(picture));
}

// read(path or bytes)
Object read(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 1);
  PyObject* from = argument(arguments, 0);
  if (PyBytes_Check(from) == 0) {
    const std::string path = to_text(from);
    return from_image(unlocked([&] { return media::read_image(path); }));
  }
  char* data = nullptr;
  Py_ssize_t size = 0;
  check(PyBytes_AsStringAndSize(from, &data, &size));
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), static_cast<std::size_t>(size));
  return from_image(unlocked([&] { return media::decode_image(bytes); }));
}

// write(path, picture)
Object write(PyObject*, PyObject* arguments) {
  expect_arguments(arguments, 2);
  const std::string path = to_text(argument(arguments, 0));
  const Image picture = to_image(argument(arguments, 1));
  unlocked([&] {
    media::write_image(path, picture);
    return 0;
  });
  return Object::none();
}

PyMethodDef detector_methods[] = {{"detect", &entry<detect>, METH_VARARGS, "detect($self, picture, /)\n--\n\n"},
                                  {"about", &entry<about>, METH_NOARGS, "about($self, /)\n--\n\n"},
                                  {nullptr, nullptr, 0, nullptr}};

PyMethodDef functions[] = {
    {"load", &entry<load>, METH_VARARGS, "load($module, path, session, options, /)\n--\n\n"},
    {"sharpness", &entry<sharpness>, METH_VARARGS, "sharpness($module, picture, /)\n--\n\n"},
    {"judge", &entry<judge>, METH_VARARGS, "judge($module, picture, face, /)\n--\n\n"},
    {"pick", &entry<pick>, METH_VARARGS, "pick($module, picture, faces, which, n, /)\n--\n\n"},
    {"crop", &entry<crop>, METH_VARARGS, "crop($module, picture, face, options, /)\n--\n\n"},
    {"crop_box", &entry<crop_box>, METH_VARARGS, "crop_box($module, face, options, /)\n--\n\n"},
    {"presets", &entry<presets>, METH_NOARGS, "presets($module, /)\n--\n\n"},
    {"align", &entry<align>, METH_VARARGS, "align($module, picture, face, size, /)\n--\n\n"},
    {"alignment", &entry<alignment>, METH_VARARGS, "alignment($module, face, size, /)\n--\n\n"},
    {"enhance", &entry<enhance>, METH_VARARGS, "enhance($module, picture, settings, face, /)\n--\n\n"},
    {"anonymise", &entry<anonymise>, METH_VARARGS, "anonymise($module, picture, faces, method, margin, /)\n--\n\n"},
    {"read", &entry<read>, METH_VARARGS, "read($module, source, /)\n--\n\n"},
    {"write", &entry<write>, METH_VARARGS, "write($module, path, picture, /)\n--\n\n"},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

Object make_faces(PyObject*, PyObject*) {
  Object module = new_module<functions>("sardonyx._sardonyx.faces");
  add_class<FaceDetector>(module, "FaceDetector", "sardonyx._sardonyx.FaceDetector", detector_methods);
  return module;
}

}  // namespace sdx::python
