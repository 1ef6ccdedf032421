// Metadata that are kept when a picture is cut and written in another format.

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "media/image.h"
#include "media/metadata/exif.h"
#include "media/metadata/iptc.h"
#include "media/metadata/xmp.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace sdx::media {
namespace {

std::span<const std::byte> bytes_of(const std::string& s) { return std::as_bytes(std::span<const char>(s)); }

Image grey_wedge(int channels = 3) {
  Image image = Image::blank(40, 20, channels);
  for (std::size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = static_cast<std::uint8_t>(i % 251);
  return image;
}

// A TIFF structure, written entry by entry.
class ExifWriter {
 public:
  explicit ExifWriter(bool big) : big_(big), bytes_(big ? "MM" : "II") {
    number(42, 2);
    number(8, 4);
  }
  std::size_t size() const { return bytes_.size(); }
  void number(std::size_t value, int width) {
    for (int i = 0; i < width; ++i) bytes_ += static_cast<char>(value >> (8 * (big_ ? width - 1 - i : i)));
  }
  void entry(int tag, int type, std::size_t count, std::size_t value) {
    number(static_cast<std::size_t>(tag), 2);
    number(static_cast<std::size_t>(type), 2);
    number(count, 4);
    number(value, type == 3 ? 2 : 4);
    if (type == 3) number(0, 2);
  }
  void text(std::string_view value) { bytes_ += value; }
  void pad(std::size_t to) { bytes_.resize(to, '\0'); }
  std::string take() { return bytes_; }

 private:
  bool big_;
  std::string bytes_;
};

constexpr std::string_view kThumbnail = "\xFF\xD8THE WHOLE PICTURE, SMALL";

std::string camera_exif(bool big) {
  ExifWriter w(big);
  w.number(8, 2);
  w.entry(0x010F, 2, 12, 200);  // maker
  w.entry(0x0112, 3, 1, 6);     // orientation
  w.entry(0x0100, 4, 1, 4000);  // width
  w.entry(0x011A, 5, 1, 220);   // 300 dpi
  w.entry(0x011B, 5, 1, 220);
  w.entry(0x0128, 3, 1, 2);
  w.entry(0x8769, 4, 1, 240);  // EXIF
  w.entry(0x8825, 4, 1, 360);  // GPS
  w.number(420, 4);            // the thumbnail's directory
  w.pad(200);
  w.text("Some Camera\0");
  w.pad(220);
  w.number(300, 4);
  w.number(1, 4);
  w.pad(240);
  w.number(4, 2);
  w.entry(0x9003, 2, 20, 320);
  w.entry(0xA002, 4, 1, 4000);
  w.entry(0xA003, 3, 1, 3000);
  w.entry(0x927C, 7, 9, 345);
  w.number(0, 4);
  w.pad(320);
  w.text("2024:05:06 07:08:09");
  w.pad(345);
  w.text("MakerNote");
  w.pad(360);
  w.number(1, 2);
  w.entry(0x0002, 5, 3, 380);
  w.number(0, 4);
  w.pad(380);
  w.text("LatitudeIsHere 24 bytes.");
  w.pad(420);
  w.number(2, 2);
  w.entry(0x0201, 4, 1, 460);
  w.entry(0x0202, 4, 1, kThumbnail.size());
  w.number(0, 4);
  w.pad(460);
  w.text(kThumbnail);
  return w.take();
}

std::uint32_t value_of(const std::string& exif, int tag, bool big) {
  const auto number = [&](std::size_t at, std::size_t width) {
    std::uint32_t v = 0;
    for (std::size_t i = 0; i < width; ++i) v = v << 8 | static_cast<unsigned char>(exif[at + (big ? i : width - 1 - i)]);
    return v;
  };
  for (std::size_t at = 8; at + 12 <= exif.size(); at += 2) {
    const std::uint32_t type = number(at + 2, 2);
    if (number(at, 2) == static_cast<std::uint32_t>(tag) && (type == 3 || type == 4) && number(at + 4, 4) == 1)
      return number(at + 8, type == 3 ? 2 : 4);
  }
  return 0;
}

// A profile that calls red green and green red; grey: of the gamma 2.2.
std::string profile(bool grey) {
  std::string out, data;
  const auto big = [](std::size_t value, int width) {
    std::string text;
    for (int i = width - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i));
    return text;
  };
  const auto xyz = [&](double x, double y, double z) {
    std::string text = std::string("XYZ \0\0\0\0", 8);
    for (const double v : {x, y, z}) text += big(static_cast<std::size_t>(std::lround(v * 65536)), 4);
    return text;
  };
  const std::string curve = std::string("curv\0\0\0\0\0\0\0\x01", 12) + big(0x0233, 2) + big(0, 2);
  std::vector<std::pair<std::string, std::string>> tags{{"wtpt", xyz(0.9642, 1, 0.8249)}};
  if (grey) {
    tags.emplace_back("kTRC", curve);
  } else {
    tags.emplace_back("rXYZ", xyz(0.38515, 0.71687, 0.09708));
    tags.emplace_back("gXYZ", xyz(0.43607, 0.22249, 0.01392));
    tags.emplace_back("bXYZ", xyz(0.14307, 0.06061, 0.71410));
    for (const char* name : {"rTRC", "gTRC", "bTRC"}) tags.emplace_back(name, curve);
  }
  std::string table = big(tags.size(), 4);
  for (const auto& [name, bytes] : tags) {
    table += name + big(128 + 4 + tags.size() * 12 + data.size(), 4) + big(bytes.size(), 4);
    data += bytes;
  }
  out = big(128 + table.size() + data.size(), 4) + std::string(4, '\0') + big(0x02400000, 4) + "mntr" + (grey ? "GRAY" : "RGB ") +
        "XYZ " + big(2024, 2) + std::string("\0\x01\0\x01\0\0\0\0\0\0", 10) + "acsp" + std::string(28, '\0');
  out += big(0xF6D6, 4) + big(0x10000, 4) + big(0xD32D, 4);
  out.resize(128, '\0');
  return out + table + data;
}

constexpr const char* kXmp =
    "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">"
    "<rdf:Description rdf:about=\"\" xmlns:t='http://ns.adobe.com/tiff/1.0/' xmlns:xmp=\"http://ns.adobe.com/xap/1.0/\" "
    "t:Orientation='6' "
    "xmp:Rating=\"5\"><xmp:Thumbnails><rdf:Alt>AAAA</rdf:Alt></xmp:Thumbnails></rdf:Description></rdf:RDF></x:xmpmeta>";

TEST(Metadata, SurviveEveryFormat) {
  for (const FileFormat format : {FileFormat::png, FileFormat::jpeg, FileFormat::webp, FileFormat::tiff, FileFormat::avif}) {
    for (const bool big : {false, true}) {
      SCOPED_TRACE(std::string(ending_of(format)) + (big ? " big" : " little"));
      EncodeOptions options;
      options.format = format;
      options.metadata.exif = camera_exif(big);
      options.metadata.xmp = kXmp;
      options.metadata.icc = profile(false);
      options.metadata.iptc = std::string("\x1C\x02\x78\0\x04Town", 9) + std::string(3, '\0');
      options.metadata.dpi = 300;
      const std::string file = encode(grey_wedge(), options);
      EXPECT_EQ(file.find(kThumbnail.substr(2)), std::string::npos) << "the thumbnail shows what was cut away";
      const DecodedImage back = decode_picture(bytes_of(file));
      EXPECT_EQ(back.orientation, 1);
      const Metadata& m = back.metadata;
      EXPECT_EQ(read_exif(m.exif).orientation, 1);
      EXPECT_EQ(exif_text(m.exif, 0x010F), "Some Camera");
      testing::expect_parts(m.exif, {"2024:05:06 07:08:09", "LatitudeIsHere 24 bytes."});
      EXPECT_EQ(m.exif.find("MakerNote") != std::string::npos, format != FileFormat::tiff);
      EXPECT_EQ(value_of(m.exif, 0xA002, big), 40U);
      EXPECT_EQ(value_of(m.exif, 0xA003, big), 20U);
      EXPECT_EQ(m.icc, options.metadata.icc);
      EXPECT_EQ(m.xmp, upright_xmp(kXmp));
      EXPECT_EQ(m.iptc, format == FileFormat::jpeg || format == FileFormat::tiff ? options.metadata.iptc : "");
      EXPECT_NEAR(m.dpi, 300, 0.1);
      EXPECT_TRUE(probe_image(bytes_of(file)).icc);
      // And once more: nothing is left to change.
      options.metadata = m;
      EXPECT_EQ(decode_picture(bytes_of(encode(grey_wedge(), options))).metadata.exif, m.exif);
    }
  }
}

TEST(Metadata, ResolutionIsWritten) {
  for (const FileFormat format : {FileFormat::png, FileFormat::jpeg, FileFormat::webp, FileFormat::tiff, FileFormat::bmp}) {
    EncodeOptions options;
    options.format = format;
    options.dpi = 600;
    options.metadata.exif = camera_exif(true);
    EXPECT_NEAR(decode_picture(bytes_of(encode(grey_wedge(), options))).metadata.dpi, 600, 0.1) << ending_of(format);
  }
}

TEST(Metadata, ALargeProfileIsSpreadOverSegments) {
  EncodeOptions options;
  options.format = FileFormat::jpeg;
  options.metadata.icc = profile(false) + std::string(200'000, 'x');
  options.metadata.icc[1] = static_cast<char>(options.metadata.icc.size() >> 16);
  EXPECT_EQ(decode_picture(bytes_of(encode(grey_wedge(), options))).metadata.icc, options.metadata.icc);
}

TEST(Metadata, AProfileForOtherColoursIsLeftOut) {
  EncodeOptions options;
  options.metadata.icc = profile(true);
  EXPECT_EQ(decode_picture(bytes_of(encode(grey_wedge(), options))).metadata.icc, "");
  EXPECT_EQ(decode_picture(bytes_of(encode(grey_wedge(1), options))).metadata.icc, options.metadata.icc);
  options.metadata.icc = "no profile";
  EXPECT_EQ(decode_picture(bytes_of(encode(grey_wedge(), options))).metadata.icc, "");
}

TEST(Metadata, ProfilesAreApplied) {
  Image image = Image::blank(2, 1, 4);
  image.pixels = {255, 0, 0, 7, 0, 0, 255, 200};
  for (const FileFormat format : {FileFormat::png, FileFormat::tiff}) {
    EncodeOptions options;
    options.format = format;
    options.metadata.icc = profile(false);
    const std::string file = encode(image, options);
    EXPECT_EQ(decode_picture(bytes_of(file)).image.pixels, image.pixels);
    DecodeOptions convert;
    convert.to_srgb = true;
    const DecodedImage back = decode_picture(bytes_of(file), convert);
    const int wanted[] = {0, 255, 0, 7, 0, 0, 255, 200};
    for (std::size_t i = 0; i < 8; ++i) EXPECT_NEAR(back.image.pixels[i], wanted[i], 3) << i;
    EXPECT_EQ(back.metadata.icc, "");
    EXPECT_TRUE(back.warnings.empty());
  }
}

TEST(Metadata, AProfileThatCannotBeAppliedIsAWarning) {
  EncodeOptions options;
  options.format = FileFormat::webp;
  options.quality = 100;
  options.metadata.icc = profile(false);
  const std::string good = encode(grey_wedge(), options);
  std::string file = good;
  const std::size_t at = file.find("RGB XYZ ");
  file.replace(at, 4, "CMYK");
  DecodeOptions convert;
  convert.to_srgb = true;
  const DecodedImage back = decode_picture(bytes_of(file), convert);
  EXPECT_EQ(back.image.pixels, grey_wedge().pixels);
  ASSERT_EQ(back.warnings.size(), 1U);
  EXPECT_NE(back.metadata.icc, "");
}

TEST(Metadata, GreyProfilesFitGreyPictures) {
  EncodeOptions options;
  options.metadata.icc = profile(true);
  DecodeOptions convert;
  convert.to_srgb = true;
  const DecodedImage back = decode_picture(bytes_of(encode(grey_wedge(1), options)), convert);
  EXPECT_TRUE(back.warnings.empty());
  EXPECT_EQ(back.metadata.icc, "");  // it has been applied
  EXPECT_EQ(back.image.channels, 3);
  for (std::size_t i = 0; i < 40 * 20; ++i) {
    EXPECT_NEAR(back.image.pixels[i * 3], grey_wedge(1).pixels[i], 12);  // sRGB's curve against a gamma of 2.2
    ASSERT_EQ(back.image.pixels[i * 3], back.image.pixels[i * 3 + 2]);
  }
}

TEST(Metadata, HostileExifDoesNoHarm) {
  const std::string good = camera_exif(false);
  EXPECT_EQ(upright_exif("", 1, 1, 0), "");
  EXPECT_EQ(upright_exif("II*", 1, 1, 0), "");
  EXPECT_EQ(read_exif(std::string("MM\0*\xFF\xFF\xFF\xFF\0\0\0\0\0\0", 14)).orientation, 1);
  std::string cycle = good;  // the thumbnail's directory is followed by the main one
  cycle[420 + 2 + 24] = 8;
  EXPECT_EQ(upright_exif(cycle, 40, 20, 0), "");
  std::string itself = good;  // … by itself
  itself[420 + 2 + 24] = static_cast<char>(420 & 0xFF);
  itself[420 + 2 + 25] = 1;
  EXPECT_EQ(read_exif(upright_exif(itself, 40, 20, 0)).orientation, 1);
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string exif = good.substr(0, round % 7 == 0 ? random() % good.size() : good.size());
    for (unsigned n = random() % 6 + 1; n > 0 && !exif.empty(); --n)
      exif[random() % exif.size()] = static_cast<char>(random() & 0xFF);
    const std::string out = upright_exif(exif, 40, 20, 72);
    ASSERT_LE(out.size(), exif.size());
    ASSERT_EQ(read_exif(out).orientation, 1);
    std::string tiff = exif;
    append_exif(tiff, exif);
    exif_of_tiff(exif);
    exif_text(exif, 0x010F);
  }
}

TEST(Metadata, XmpIsChangedAsText) {
  const std::string upright = upright_xmp(kXmp);
  EXPECT_NE(upright.find("t:Orientation='1'"), std::string::npos);
  EXPECT_EQ(upright.find("Thumbnails"), std::string::npos);
  EXPECT_NE(upright.find("xmp:Rating=\"5\""), std::string::npos);
  const std::string element = "<a xmlns:tiff=\"http://ns.adobe.com/tiff/1.0/\"><tiff:Orientation>8</tiff:Orientation></a>";
  EXPECT_NE(upright_xmp(element).find("<tiff:Orientation>1</tiff:Orientation>"), std::string::npos);
  for (const char* odd : {"", "tiff:Orientation=", "<tiff:Orientation>", "xmlns:=http://ns.adobe.com/tiff/1.0/ :Orientation='",
                          "<x xmlns:tiff='http://ns.adobe.com/tiff/1.0/' tiff:Orientation='3"}) {
    EXPECT_EQ(upright_xmp(odd), odd);
  }
}

// EXIF with a subject's area in both byte orders, the entry in the middle of its directory.
std::string exif_with_area(bool big) {
  ExifWriter w(big);
  w.number(8, 2);
  w.pad(8);
  w.number(1, 2);
  w.entry(0x8769, 4, 1, 40);
  w.number(0, 4);
  w.pad(40);
  w.number(4, 2);
  w.entry(0x9003, 2, 20, 120);
  w.entry(0x9214, 3, 4, 150);
  w.entry(0xA002, 4, 1, 4000);
  w.entry(0xA214, 4, 1, 77);
  w.number(0, 4);
  w.pad(120);
  w.text("2024:05:06 07:08:09");
  w.pad(150);
  for (const int v : {100, 200, 30, 40}) w.number(static_cast<std::size_t>(v), 2);
  return w.take();
}

constexpr const char* kRegions =
    "<x:xmpmeta xmlns:x='adobe:ns:meta/'><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'>"
    "<rdf:Description rdf:about='' xmlns:r=\"http://www.metadataworkinggroup.com/schemas/regions/\" "
    "xmlns:MP='http://ns.microsoft.com/photo/1.2/' xmlns:MPRI='http://ns.microsoft.com/photo/1.2/t/RegionInfo#' "
    "xmlns:I='http://iptc.org/std/Iptc4xmpExt/2008-02-29/' xmlns:exif='http://ns.adobe.com/exif/1.0/' "
    "xmlns:xmp='http://ns.adobe.com/xap/1.0/' xmp:Rating='5' exif:SubjectLocation='3,4' exif:Flash='1'>"
    "<r:Regions rdf:parseType='Resource'><r:RegionList><rdf:Bag><rdf:li><rdf:Description r:Name='Anna > B'>"
    "<r:Regions/></rdf:Description></rdf:li></rdf:Bag></r:RegionList></r:Regions><!-- <r:Regions> -->"
    "<MP:RegionInfo><rdf:Description MPRI:x='Berta'/></MP:RegionInfo>"
    "<I:PersonInImage><rdf:Bag><rdf:li>Clara</rdf:li></rdf:Bag></I:PersonInImage><I:Event>Wedding</I:Event>"
    "<exif:SubjectArea><rdf:Seq><rdf:li>1</rdf:li></rdf:Seq></exif:SubjectArea></rdf:Description></rdf:RDF></x:xmpmeta>";

TEST(Metadata, PlacesAndNamesDoNotSurviveACrop) {
  for (const FileFormat format : {FileFormat::png, FileFormat::jpeg, FileFormat::webp, FileFormat::tiff, FileFormat::avif}) {
    for (const bool big : {false, true}) {
      SCOPED_TRACE(std::string(ending_of(format)) + (big ? " big" : " little"));
      EncodeOptions options;
      options.format = format;
      options.metadata.exif = exif_with_area(big);
      options.metadata.xmp = kRegions;
      const Metadata whole = decode_picture(bytes_of(encode(grey_wedge(), options))).metadata;
      EXPECT_NE(whole.xmp.find("Anna"), std::string::npos) << "of the whole picture they are true";
      EXPECT_EQ(value_of(whole.exif, 0xA214, big), 77U);
      options.cropped = true;
      const Metadata part = decode_picture(bytes_of(encode(grey_wedge(), options))).metadata;
      for (const char* gone : {"Anna", "Berta", "Clara", "RegionInfo>", "SubjectArea", "SubjectLocation"}) {
        EXPECT_EQ(part.xmp.find(gone), std::string::npos) << gone;
      }
      for (const char* kept : {"xmp:Rating='5'", "exif:Flash='1'", "Wedding", "<!-- <r:Regions> -->"}) {
        EXPECT_NE(part.xmp.find(kept), std::string::npos) << kept;
      }
      EXPECT_EQ(value_of(part.exif, 0xA214, big), 0U);
      EXPECT_EQ(value_of(part.exif, 0xA002, big), 40U);
      EXPECT_NE(part.exif.find("2024:05:06 07:08:09"), std::string::npos);
    }
  }
}

TEST(Metadata, PlacesDoNotSurviveATurn) {
  EncodeOptions options;
  options.format = FileFormat::jpeg;
  options.metadata.exif = camera_exif(true);  // orientation 6
  options.metadata.xmp = kRegions;
  EXPECT_EQ(decode_picture(bytes_of(encode(grey_wedge(), options))).metadata.xmp.find("Anna"), std::string::npos);
}

TEST(Metadata, PacketsThatCannotBeReadDoNotSurviveACrop) {
  const std::string whole = kRegions;
  for (std::size_t size = whole.find("Anna"); size < whole.find("</r:Regions>"); size += 7) {
    EXPECT_EQ(upright_xmp(whole.substr(0, size), true), "") << size;
  }
  EXPECT_EQ(upright_xmp("<Regions xmlns='http://ns.acdsee.com/regions/'>Anna</Regions>", true), "");
  EXPECT_EQ(upright_xmp(std::string("<\0a\0", 4), true), "");
  EXPECT_EQ(upright_xmp(kXmp, true), upright_xmp(kXmp));
}

TEST(Metadata, QuotesThatDoNotMatchAreNoEndlessTask) {
  const std::string start = "<x xmlns:r='http://ns.acdsee.com/regions/'><a ";
  for (const char* odd : {"b=\"'\" c'=\">", "'b='\">'>", "=\"r:x=\">", "b='\"' \"'\">", "/'/\"'\">"}) {
    EXPECT_NO_THROW(upright_xmp(start + odd, true)) << odd;
    EXPECT_NO_THROW(upright_xmp(start + odd)) << odd;
  }
}

TEST(Metadata, OriginalsInsideMetadataAreLeftOut) {
  const std::string xmp =
      "<d xmlns:GImage='http://ns.google.com/photos/1.0/image/' GImage:Mime='image/jpeg' GImage:Data='THEORIGINAL' b='1'/>";
  EXPECT_EQ(upright_xmp(xmp), "<d xmlns:GImage='http://ns.google.com/photos/1.0/image/' b='1'/>");
}

TEST(Metadata, TagsAreWritten) {
  EncodeOptions options;
  options.metadata.tags = {{"Job", "4711 <&> \"x\""}, {"Ort", "K\xC3\xB6ln"}};
  const std::string png = encode(grey_wedge(), options);
  EXPECT_NE(png.find(std::string("tEXtJob\0"
                                 "4711 <&> \"x\"",
                                 20)),
            std::string::npos);
  EXPECT_NE(png.find("iTXtOrt"), std::string::npos);
  options.format = FileFormat::jpeg;
  options.metadata.xmp = kXmp;
  for (int i = 0; i < 2; ++i) {
    const std::string xmp = decode_picture(bytes_of(encode(grey_wedge(), options))).metadata.xmp;
    EXPECT_NE(xmp.find("<sdx:name>Job</sdx:name><sdx:value>4711 &lt;&amp;&gt; &quot;x&quot;</sdx:value>"), std::string::npos);
    EXPECT_EQ(xmp.find("xmp:Rating") != std::string::npos, i == 0);
    EXPECT_NE(xmp.find("</rdf:RDF>"), std::string::npos);
    options.metadata.xmp.clear();
  }
  options.metadata.tags = {{"bad", std::string("\x01", 1)}};
  EXPECT_THROW(encode(grey_wedge(), options), Error);
  options.metadata.tags = {{"bad", "\xC3"}};
  EXPECT_THROW(encode(grey_wedge(), options), Error);
  options.format = FileFormat::png;
  options.metadata.tags = {{"", "nothing"}};
  EXPECT_THROW(encode(grey_wedge(), options), Error);
}

TEST(Metadata, IptcLiesInImageResources) {
  const std::string iptc("\x1C\x02\x78\0\x05Hello", 10);
  EXPECT_EQ(iptc_of(iptc_segment(iptc)), iptc);
  std::string other(kPhotoshop);
  other += std::string(
      "8BIM\x03\xED\x03"
      "abc\0\0\0\x03"
      "xyz\0",
      18);
  EXPECT_EQ(iptc_of(other + iptc_segment(iptc).substr(kPhotoshop.size())), iptc);
  const std::string whole = iptc_segment(iptc);
  for (std::size_t cut = 0; cut < whole.size(); ++cut) EXPECT_EQ(iptc_of(whole.substr(0, cut)), "");
}

TEST(Metadata, FilesAreWrittenByTheirEnding) {
  const sdx::testing::TemporaryFolder folder;
  for (const char* name : {"a.png", "b.JPG", "c.webp", "d.tif", "e.bmp", "f.avif"}) {
    EncodeOptions options;
    options.metadata.exif = camera_exif(false);
    write_image(folder / name, grey_wedge(), options);
    const DecodedImage back = open_picture(folder / name);
    EXPECT_EQ(file_format(back.format), file_format((folder / name).extension().string()));
    EXPECT_EQ(probe_image(folder / name).width, 40);
  }
}

}  // namespace
}  // namespace sdx::media
