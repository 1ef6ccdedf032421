"""sardonyx.speech: what goes in and out of Python. What models hear is tested by tests/speech."""

import sys
import threading
import wave
from pathlib import Path

import numpy as np
import pytest

import sardonyx
from sardonyx.speech import Segment, Transcriber, Word

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "cli"))
import tiny_models  # noqa: E402

SAID = Segment(0.0, 0.5, "hello world", [12, 1, 2, 37], 0.0, pytest.approx(-0.002, abs=0.002), pytest.approx(0.6, abs=0.3), pytest.approx(0, abs=0.1), [])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("speech")
    tiny_models.write_served(made, 64)
    return made


@pytest.fixture(scope="module")
def transcriber(folder):
    """It always hears "hello world", or "world" in translation, in windows of one second."""
    return Transcriber(folder / "whisper", providers=["CPUExecutionProvider"])


def samples(path):
    with wave.open(str(path)) as sound:
        return np.frombuffer(sound.readframes(sound.getnframes()), np.int16) / 32768


def test_sources_are_equal(transcriber, folder):
    path = folder / "speech.wav"
    assert transcriber.languages == ["en", "de"] and transcriber.rate == 16000
    of_path = transcriber.transcribe(path)
    assert (of_path.text.strip(), of_path.language, of_path.duration) == ("hello world", "en", 0.6)
    assert of_path.segments[0]._replace(text="hello world") == SAID
    values = samples(path)
    sources = [str(path), path.read_bytes(), memoryview(path.read_bytes()), values, values.astype(np.float32), values.tolist(), np.repeat(values, 2)[::2]]
    for source in sources:
        assert transcriber.transcribe(source) == of_path
    assert transcriber.transcribe(np.repeat(values, 2), rate=32000).duration == 0.6
    assert transcriber.transcribe(np.zeros(0, np.float32)).segments == []
    # What is no number counts as silence.
    assert transcriber.transcribe(np.full(9600, np.nan, np.float32)) == transcriber.transcribe(np.zeros(9600, np.float32))


def test_settings(transcriber, folder):
    path = folder / "speech.wav"
    assert transcriber.transcribe(path, translate=True).text.strip() == "world"
    german = transcriber.transcribe(path, language="de", prompt="names", seed=3, temperatures=0.0, condition_on_previous=False)
    assert (german.language, german.language_probability) == ("de", 1.0)
    assert transcriber.transcribe(path, temperatures=[0.4], log_probability=None, compression_ratio=None, no_speech=None).segments[0].temperature == 0.4
    plain = transcriber.transcribe(path, timestamps=False)
    assert len(plain.segments) == 1 and plain.segments[0].tokens[:2] == [1, 2]


def test_words(transcriber, folder):
    sure = pytest.approx(1, abs=0.01)
    said = transcriber.transcribe(folder / "speech.wav", word_timestamps=True)
    assert said.segments[0].words == [Word(0.0, 0.2, "hello", sure), Word(0.2, 0.4, " world", sure)]
    assert said.segments[0].end == 0.4
    assert said.vtt() == "WEBVTT\n\n00:00:00.000 --> 00:00:00.400\nhello<00:00:00.200> world\n\n"
    assert said.srt() == "1\n00:00:00,000 --> 00:00:00,400\nhello world\n\n"


def test_subtitles(transcriber, folder):
    said = transcriber.transcribe(folder / "speech.wav")
    assert said.srt() == "1\n00:00:00,000 --> 00:00:00,500\nhello world\n\n"
    assert said.vtt() == "WEBVTT\n\n00:00:00.000 --> 00:00:00.500\nhello world\n\n"


def test_streams(transcriber, folder):
    whole = transcriber.transcribe(folder / "long.wav")
    assert len(whole.segments) > 2 and list(transcriber.stream(folder / "long.wav")) == whole.segments
    for first in transcriber.stream(folder / "long.wav"):
        assert first == whole.segments[0]
        break
    seen = []
    ended = transcriber.transcribe(folder / "long.wav", on_segment=lambda segment: seen.append(segment) or len(seen) < 2)
    assert seen == ended.segments == whole.segments[:2]

    def bad(segment):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        transcriber.transcribe(folder / "speech.wav", on_segment=bad)
    with pytest.raises(sardonyx.InvalidArgument, match="not a usable sound file"):
        list(transcriber.stream(b"no sound"))


def test_threads(transcriber, folder):
    whole, found = transcriber.transcribe(folder / "long.wav"), []
    threads = [threading.Thread(target=lambda: found.append(transcriber.transcribe(folder / "long.wav"))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [whole] * 4


@pytest.mark.parametrize(
    ("sound", "settings", "words"),
    [
        (b"", {}, "sound"),
        (b"no sound", {}, "sound"),
        ("missing.wav", {}, "missing.wav"),
        (np.zeros((2, 4), np.float32), {}, "one channel"),
        (np.zeros(4, np.float32), {"rate": 0}, "rate"),
        (np.zeros(4, np.float32), {"rate": -5}, "rate"),
        (np.zeros(1600, np.float32), {"language": "xx"}, "xx"),
        (np.zeros(1600, np.float32), {"temperatures": []}, "temperature"),
        (np.zeros(1600, np.float32), {"temperatures": [float("nan")]}, "temperature"),
    ],
)
def test_refusals(transcriber, sound, settings, words):
    with pytest.raises((sardonyx.InvalidArgument, sardonyx.NoSuchFile), match=words):
        transcriber.transcribe(sound, **settings)


def test_other_folders(folder):
    with pytest.raises(sardonyx.Error, match="nowhere"):
        Transcriber(folder / "nowhere")
    with pytest.raises(sardonyx.Error, match="whisper"):
        Transcriber(folder / "other_model")
