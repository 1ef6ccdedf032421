"""Speech to text by Whisper.

    from sardonyx.speech import Transcriber

    transcriber = Transcriber("whisper-base/")
    for segment in transcriber.stream("talk.flac", language="en"):
        print(segment.start, segment.end, segment.text)
    print(transcriber.transcribe("talk.flac").srt())

Sound is a file in any format that `sdx transcribe` reads, the bytes of one, or samples from -1 to 1 of one channel. Times are seconds. Any number
of threads may use a model; what computes releases the GIL. `docs/speech/speech.md` says which models are read and what the settings mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional, Union

from . import _sardonyx
from ._providers import Providers, options_of
from ._stream import pieces

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ._options import SessionOptions

    Sound = Union[str, os.PathLike[str], bytes, NDArray[np.floating[Any]], Sequence[float]]

__all__ = ["Segment", "Transcriber", "Transcript", "VoiceDetector", "Word"]

_speech = _sardonyx.speech()


class Word(NamedTuple):
    """A word. `text` has the space before it and the punctuation behind it; `probability` is the mean of its tokens."""

    start: float
    end: float
    text: str
    probability: float


class Segment(NamedTuple):
    """A piece of speech. `tokens` include those of timestamps; what follows them is of the window that the segment comes from. `words` are there
    with `word_timestamps`."""

    start: float
    end: float
    text: str
    tokens: list[int]
    temperature: float
    log_probability: float
    compression_ratio: float
    no_speech: float
    words: list[Word]


def _segment(plain: Any) -> Segment:
    return Segment(*plain)._replace(words=[Word(*word) for word in plain[-1]])


@dataclass
class Transcript:
    """language: its code; language_probability: below 1 where the model heard it; duration: of the sound."""

    text: str
    language: str
    language_probability: float
    duration: float
    segments: list[Segment] = field(default_factory=list)

    def srt(self) -> str:
        """Subtitles as SubRip has them."""
        return self._subtitles("srt")

    def vtt(self) -> str:
        """Subtitles as WebVTT has them, with the times of words where these are known."""
        return self._subtitles("vtt")

    def _subtitles(self, form: str) -> str:
        written: str = _speech.subtitles(form, [(*s[:3], [w[:3] for w in s.words]) for s in self.segments])
        return written


class VoiceDetector:
    """Silero's VAD in ONNX, version 4 to 6, as the packages silero-vad and faster-whisper contain it. providers, sess_options: as for
    InferenceSession."""

    def __init__(
        self,
        path: Union[str, os.PathLike[str]],
        *,
        providers: Optional[Providers] = None,
        sess_options: Optional[SessionOptions] = None,
    ) -> None:
        self._network = _speech.load_voice(os.fspath(path), options_of(providers, sess_options))

    def detect(self, sound: Sound, *, rate: int = 16000, **settings: Any) -> list[tuple[float, float]]:
        """When somebody speaks: starts and ends. settings: threshold, silence_threshold, min_speech, max_speech, min_silence, padding
        (docs/speech/speech.md)."""
        found: list[tuple[float, float]] = self._network.detect(_given(sound), rate, _voice_settings(**settings))
        return found


def _voice_settings(
    threshold: float = 0.5,
    silence_threshold: Optional[float] = None,
    min_speech: float = 0.0,
    max_speech: float = float("inf"),
    min_silence: float = 2.0,
    padding: float = 0.4,
) -> dict[str, Optional[float]]:
    return dict(locals())


class Transcriber:
    """A folder with Whisper: transformers' own with .safetensors, or an export to ONNX. providers, sess_options: as for InferenceSession."""

    def __init__(
        self,
        path: Union[str, os.PathLike[str]],
        *,
        providers: Optional[Providers] = None,
        sess_options: Optional[SessionOptions] = None,
    ) -> None:
        self._model = _speech.load(os.fspath(path), options_of(providers, sess_options))
        self.languages: list[str] = self._model.languages()
        """Codes of the languages that the model knows."""
        self.rate: int = self._model.rate()
        """Samples a second of sound that needs no resampling."""

    def transcribe(
        self,
        sound: Sound,
        *,
        rate: Optional[int] = None,
        language: str = "",
        translate: bool = False,
        timestamps: bool = True,
        word_timestamps: bool = False,
        prompt: str = "",
        condition_on_previous: bool = True,
        temperatures: Union[float, Sequence[float]] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
        compression_ratio: Optional[float] = 2.4,
        log_probability: Optional[float] = -1.0,
        no_speech: Optional[float] = 0.6,
        seed: int = 0,
        voice: Optional[VoiceDetector] = None,
        voice_settings: Optional[dict[str, Any]] = None,
        on_segment: Optional[Callable[[Segment], Optional[bool]]] = None,
    ) -> Transcript:
        """rate: samples a second of an array; None: the model's. language: a code; "": the model hears it. word_timestamps: when each word is said.
        None takes a limit away. voice: only what it hears is transcribed; voice_settings: as of VoiceDetector.detect().
        on_segment: called as soon as a segment is known; False ends the transcription."""
        settings = {
            "language": language,
            "translate": translate,
            "timestamps": timestamps,
            "word_timestamps": word_timestamps,
            "prompt": prompt,
            "condition_on_previous": condition_on_previous,
            "temperatures": [temperatures] if isinstance(temperatures, (int, float)) else list(temperatures),
            "compression_ratio": compression_ratio,
            "log_probability": log_probability,
            "no_speech": no_speech,
            "seed": seed,
            "voice": None if voice is None else voice._network,
            "voice_settings": _voice_settings(**(voice_settings or {})),
        }
        take = None if on_segment is None else lambda plain: on_segment(_segment(plain))
        found = self._model.transcribe(_given(sound), self.rate if rate is None else rate, settings, take)
        found["segments"] = [_segment(plain) for plain in found["segments"]]
        return Transcript(**found)

    def stream(self, sound: Sound, **settings: Any) -> Iterator[Segment]:
        """The segments as they are known, with transcribe()'s settings. Whoever stops reading ends the work."""
        return pieces(lambda put: self.transcribe(sound, on_segment=put, **settings))


def _given(sound: Any) -> Any:
    if isinstance(sound, (str, os.PathLike)):
        return os.fspath(sound)
    if isinstance(sound, (bytes, bytearray, memoryview)):
        return bytes(sound)
    import numpy as np

    return np.ascontiguousarray(sound, np.float32)
