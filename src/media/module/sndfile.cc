// libsdx_sndfile.so: sound by libsndfile.

#include <sndfile.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "media/module/support.h"

namespace sdx::media {
namespace {

constexpr sf_count_t kBlock = 4096;  // frames

struct Memory {
  const unsigned char* data;
  sf_count_t size, at;
};

sf_count_t length(void* m) { return static_cast<Memory*>(m)->size; }
sf_count_t tell(void* m) { return static_cast<Memory*>(m)->at; }
sf_count_t refuse(const void*, sf_count_t, void*) { return 0; }

sf_count_t seek(sf_count_t offset, int from, void* context) {
  auto* m = static_cast<Memory*>(context);
  const sf_count_t start = from == SEEK_SET ? 0 : from == SEEK_CUR ? m->at : m->size;
  m->at = offset < 0 ? std::max(-start, offset) + start : std::min(offset, m->size - start) + start;
  return m->at;
}

sf_count_t copy(void* to, sf_count_t count, void* context) {
  auto* m = static_cast<Memory*>(context);
  const sf_count_t n = std::clamp<sf_count_t>(count, 0, m->size - m->at);
  std::memcpy(to, m->data + m->at, static_cast<std::size_t>(n));
  m->at += n;
  return n;
}

// libsndfile also reads formats without a signature and rare ones; these stay off.
bool is_wanted(int format) {
  constexpr int kWanted[] = {SF_FORMAT_WAV, SF_FORMAT_WAVEX, SF_FORMAT_RF64, SF_FORMAT_W64, SF_FORMAT_AIFF,
                             SF_FORMAT_AU,  SF_FORMAT_FLAC,  SF_FORMAT_OGG,  SF_FORMAT_MPEG};
  return std::find(std::begin(kWanted), std::end(kWanted), format & SF_FORMAT_TYPEMASK) != std::end(kWanted);
}

struct Close {
  void operator()(SNDFILE* file) const { sf_close(file); }
};

Outcome read_all(Memory& memory, const ModuleSoundSink& sink, ModuleText error) {
  SF_VIRTUAL_IO io{length, seek, copy, refuse, tell};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, Close> file(sf_open_virtual(&io, SFM_READ, &info, &memory));
  if (!file) return say(error, Outcome::damaged, sf_strerror(nullptr));
  if (!is_wanted(info.format)) return say(error, Outcome::unsupported, "its format is none of those that are read");
  const ModuleSoundFacts facts{info.frames, info.samplerate, info.channels};
  if (!sink.facts(sink.context, &facts)) return Outcome::stopped;
  std::vector<float> block(static_cast<std::size_t>(kBlock * info.channels));
  sf_count_t done = 0;
  while (const sf_count_t count = sf_readf_float(file.get(), block.data(), kBlock)) {
    if (count < 0) break;
    if (!sink.frames(sink.context, block.data(), static_cast<std::size_t>(count))) return Outcome::stopped;
    done += count;
  }
  if (sf_error(file.get()) != SF_ERR_NO_ERROR) return say(error, Outcome::damaged, sf_strerror(file.get()));
  if (info.frames != SF_COUNT_MAX && done < info.frames) return say(error, Outcome::damaged, "it is cut off");
  return Outcome::ok;
}

Outcome read(const void* data, std::size_t size, const ModuleSoundSink* sink, ModuleText error) {
  return guarded(error, [&] {
    Memory memory{static_cast<const unsigned char*>(data), static_cast<sf_count_t>(size), 0};
    return read_all(memory, *sink, error);
  });
}

const SoundModule kModule{module_head<SoundModule>(SDX_VERSION), &read};

}  // namespace
}  // namespace sdx::media

extern "C" __attribute__((visibility("default"))) const sdx::ModuleHead* sdx_sndfile_module() {
  return &sdx::media::kModule.head;
}
