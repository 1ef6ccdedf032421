#include "media/metadata/xmp.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>

#include "base/error.h"
#include "base/text/markup.h"
#include "base/text/utf8.h"
#include "media/metadata/xml_cut.h"

namespace sdx::media {
namespace {

// The prefix that the packet binds to a namespace; "" where it does not. Source: XMP part 1 (ISO 16684-1), RDF/XML.
std::string prefix_of(std::string_view xmp, std::string_view space) {
  for (std::size_t at = xmp.find(space); at != std::string_view::npos; at = xmp.find(space, at + 1)) {
    const std::size_t from = xmp.rfind("xmlns:", at);
    if (from == std::string_view::npos) continue;
    const std::string_view text = xmp.substr(from + 6, at - from - 6);
    const std::size_t end = text.find_first_of("= \t\r\n");
    if (end == std::string_view::npos || text.find_first_not_of("= \t\r\n\"'", end) != std::string_view::npos) continue;
    return std::string(text.substr(0, end));
  }
  return "";
}

bool ends_name(char c) { return c == '=' || c == '>' || c == '/' || std::isspace(static_cast<unsigned char>(c)) != 0; }

// Finds the name as a whole word; npos: nowhere.
std::size_t find_name(const std::string& xmp, const std::string& name, std::size_t from) {
  for (std::size_t at = xmp.find(name, from); at != std::string::npos; at = xmp.find(name, at + 1)) {
    const bool begins = at > 0 && (xmp[at - 1] == '<' || std::isspace(static_cast<unsigned char>(xmp[at - 1])) != 0);
    if (begins && at + name.size() < xmp.size() && ends_name(xmp[at + name.size()])) return at;
  }
  return std::string::npos;
}

// Attributes name="…" and elements <name>…</name> get the value.
void set_property(std::string& xmp, const std::string& name, const char* value) {
  for (std::size_t at = find_name(xmp, name, 0); at != std::string::npos; at = find_name(xmp, name, at)) {
    const bool element = xmp[at - 1] == '<';
    std::size_t first = 0, last = 0;  // the text
    if (element) {
      const std::size_t open_end = xmp.find('>', at);
      const std::size_t end = xmp.find("</" + name, at);
      if (open_end == std::string::npos || end == std::string::npos || open_end > end || xmp[open_end - 1] == '/') {
        at += name.size();
        continue;
      }
      if (xmp.find('>', end) == std::string::npos) return;
      first = open_end + 1;
      last = end;
    } else {
      const std::size_t quote = xmp.find_first_of("\"'", at);
      const std::size_t end = quote == std::string::npos ? quote : xmp.find(xmp[quote], quote + 1);
      if (end == std::string::npos) return;
      first = quote + 1;
      last = end;
    }
    xmp.replace(first, last - first, value);
    at = first;
  }
}

// A property by its namespace; without a name all of the namespace.
struct Property {
  std::string_view space, name;
};

// Properties that show the whole picture, or refer to further parts of the file, which are not written again.
constexpr Property kElsewhere[] = {
    {"http://ns.adobe.com/xap/1.0/", "Thumbnails"},      {"http://ns.adobe.com/xap/1.0/", "PageInfo"},
    {"http://ns.adobe.com/xmp/note/", "HasExtendedXMP"}, {"http://ns.google.com/photos/1.0/image/", ""},
    {"http://ns.google.com/photos/1.0/depthmap/", ""},   {"http://ns.google.com/photos/1.0/container/", ""},
    {"http://ns.adobe.com/hdr-gain-map/1.0/", ""}};

// Properties that say where in the whole picture something is, and who is in it. Sources: MWG Guidelines for Handling Image
// Metadata 2.0, Microsoft's people tagging, Exif 2.32 for XMP, IPTC Photo Metadata 2023.1, ACDSee's regions, Google's photo
// sphere.
constexpr Property kPlaces[] = {{"http://www.metadataworkinggroup.com/schemas/regions/", ""},
                                {"http://ns.microsoft.com/photo/1.2/", ""},
                                {"http://ns.microsoft.com/photo/1.2/t/RegionInfo#", ""},
                                {"http://ns.microsoft.com/photo/1.2/t/Region#", ""},
                                {"http://ns.adobe.com/exif/1.0/", "SubjectArea"},
                                {"http://ns.adobe.com/exif/1.0/", "SubjectLocation"},
                                {"http://iptc.org/std/Iptc4xmpExt/2008-02-29/", "ImageRegion"},
                                {"http://iptc.org/std/Iptc4xmpExt/2008-02-29/", "PersonInImage"},
                                {"http://iptc.org/std/Iptc4xmpExt/2008-02-29/", "PersonInImageWDetails"},
                                {"http://ns.acdsee.com/regions/", ""},
                                {"http://ns.google.com/photos/1.0/focus/", ""},
                                {"http://ns.google.com/photos/1.0/panorama/", ""}};

// Empty where the packet cannot be read well enough to take them out.
template <class List>
std::optional<std::string> without(const std::string& xmp, const List& properties) {
  struct Unwanted {
    std::string start;
    bool whole;  // the name, not its start alone
  };
  std::vector<Unwanted> all;
  for (const Property& p : properties) {
    for (const std::string& prefix : prefixes_of(xmp, p.space)) {
      if (prefix.empty()) return std::nullopt;  // a default namespace, which no known writer has
      all.push_back({prefix + ":" + std::string(p.name), !p.name.empty()});
    }
  }
  if (all.empty()) return xmp;
  return cut_out(xmp, [&](std::string_view name) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Unwanted& u) { return u.whole ? name == u.start : name.starts_with(u.start); });
  });
}

void check_text(std::string_view text) {
  const bool control = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' && c != '\r';
  });
  const std::size_t valid = valid_utf8(text);
  if (control || valid + unfinished_utf8(text) < text.size()) {
    fail(ErrorCode::invalid_argument, "a tag's name or value of {} bytes contains control characters or is not UTF-8",
         text.size());
  }
  if (valid < text.size()) fail(ErrorCode::invalid_argument, "a tag's name or value ends within a letter of UTF-8");
}

constexpr const char* kRdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";

std::string described(const std::vector<std::pair<std::string, std::string>>& tags) {
  std::string out =
      fmt::format("<r:Description xmlns:r=\"{}\" r:about=\"\" xmlns:sdx=\"urn:sardonyx:tags:1.0/\"><sdx:tags><r:Bag>", kRdf);
  for (const auto& [name, value] : tags) {
    check_text(name);
    check_text(value);
    out += "<r:li r:parseType=\"Resource\"><sdx:name>" + markup_text(name) + "</sdx:name><sdx:value>" + markup_text(value) +
           "</sdx:value></r:li>";
  }
  return out + "</r:Bag></sdx:tags></r:Description>";
}

}  // namespace

std::string upright_xmp(std::string xmp, bool moved) {
  if (moved) {
    // A packet that is not UTF-8 cannot be searched.
    std::optional<std::string> rest = xmp.find('\0') == std::string::npos ? without(xmp, kPlaces) : std::nullopt;
    if (!rest) return "";
    xmp = std::move(*rest);
  }
  const std::string tiff = prefix_of(xmp, "http://ns.adobe.com/tiff/1.0/");
  if (!tiff.empty()) set_property(xmp, tiff + ":Orientation", "1");
  return without(xmp, kElsewhere).value_or(xmp);
}

std::string xmp_with_tags(std::string xmp, const std::vector<std::pair<std::string, std::string>>& tags) {
  if (tags.empty()) return xmp;
  const std::string more = described(tags);
  const std::string rdf = prefix_of(xmp, kRdf);
  const std::size_t end = rdf.empty() ? std::string::npos : xmp.rfind("</" + rdf + ":RDF");
  if (end != std::string::npos) return xmp.insert(end, more);
  return "<?xpacket begin=\"\xEF\xBB\xBF\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?><x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF "
         "xmlns:rdf=\"" +
         std::string(kRdf) + "\">" + more + "</rdf:RDF></x:xmpmeta><?xpacket end=\"w\"?>";
}

}  // namespace sdx::media
