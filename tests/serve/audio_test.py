"""/v1/audio/transcriptions and translations, as OpenAI's clients call them: audio_test.py SDX

The model always says the same (tests/cli/tiny_speech.py).
"""

import json
import pathlib
import sys
import threading

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / folder) for folder in ("cli", "serve", "support")]
from scratch import scratch  # noqa: E402
from serve_process import Serve, check  # noqa: E402
import tiny_models  # noqa: E402

SAID = {"text": "hello world", "usage": {"type": "duration", "seconds": 0.6}}


def form(file=None, boundary="sdxform", **fields):
    parts = [f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode() for name, value in fields.items()]
    if file is not None:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="speech.wav"\r\nContent-Type: audio/wav\r\n\r\n'
        parts.append(head.encode() + file + b"\r\n")
    return b"".join(parts) + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}"}


def ask(server, path, file=None, **fields):
    body, headers = form(file, **fields)
    return server.ask("POST", path, body, headers)


def formats(server, sound):
    path = "/v1/audio/transcriptions"
    plain = ask(server, path, sound, model="whisper")
    check(plain.status == 200 and plain.json() == SAID, plain.body)
    for form_name, expected in (("text", b"hello world\n"), ("srt", b"1\n00:00:00,000 --> 00:00:00,500\nhello world\n\n"),
                                ("vtt", b"WEBVTT\n\n00:00:00.000 --> 00:00:00.500\nhello world\n\n"), ("json", json.dumps(SAID, separators=(",", ":")).encode())):
        got = ask(server, path, sound, model="whisper", response_format=form_name, language="de", temperature="0", prompt="names")
        check(got.status == 200 and got.body == expected, form_name, got.body)
    verbose = ask(server, path, sound, model="whisper", response_format="verbose_json", **{"timestamp_granularities[]": "segment"}).json()
    check(verbose["task"] == "transcribe" and verbose["language"] == "en" and verbose["duration"] == 0.6, verbose)
    segment = verbose["segments"][0]
    check(segment["id"] == 0 and segment["start"] == 0 and segment["end"] == 0.5 and segment["tokens"] == [12, 1, 2, 37], segment)
    check("words" not in verbose and "words" not in segment, verbose)
    timed = ask(server, path, sound, model="whisper", response_format="verbose_json", **{"timestamp_granularities[]": "word"}).json()
    words = [{"word": "hello", "start": 0, "end": 0.2}, {"word": "world", "start": 0.2, "end": 0.4}]
    check(timed["words"] == words and "segments" not in timed, timed)
    translated = ask(server, "/v1/audio/translations", sound, model="whisper", response_format="verbose_json").json()
    check(translated["task"] == "translate" and translated["text"] == "world", translated)
    unknown = ask(server, path, sound, model="whisper", chunking="auto")
    check(unknown.status == 200 and unknown.headers["Sdx-Ignored"] == "chunking", dict(unknown.headers))


def refusals(server, sound):
    path = "/v1/audio/transcriptions"
    cases = [
        (dict(file=sound), 400, "model"), (dict(model="whisper"), 400, "file"), (dict(file=sound, model="none"), 404, "none"),
        (dict(file=sound, model="letters"), 404, "/v1/chat/completions"), (dict(file=sound, model="whisper", language="xx"), 400, "xx"),
        (dict(file=sound, model="whisper", temperature="hot"), 400, "temperature"),
        (dict(file=sound, model="whisper", stream="perhaps"), 400, "stream"),
        (dict(file=sound, model="whisper", response_format="xml"), 400, "response_format"),
        (dict(file=sound, model="whisper", **{"timestamp_granularities[]": "letter"}), 400, "timestamp_granularities"),
        (dict(file=b"", model="whisper"), 400, "sound"), (dict(file=b"no sound", model="whisper"), 400, "sound"),
        (dict(file=sound[:60], model="whisper"), 400, "cut off"),
    ]
    for fields, status, word in cases:
        got = ask(server, path, **fields)
        check(got.status == status and word in got.json()["error"]["message"], fields.keys(), got.status, got.body)
    plain = server.ask("POST", path, {"model": "whisper"}, {"Content-Type": "application/json"})
    check(plain.status == 400 and "multipart/form-data" in plain.json()["error"]["message"], plain.body)
    chat = server.ask("POST", "/v1/chat/completions", {"model": "whisper", "messages": [{"role": "user", "content": "a"}]},
                      {"Content-Type": "application/json"})
    check(chat.status == 404 and "/v1/audio/transcriptions" in chat.json()["error"]["message"], chat.body)


def many(server, sound):
    answers = []

    def one():
        answers.append(ask(server, "/v1/audio/transcriptions", sound, model="whisper").json())

    threads = [threading.Thread(target=one) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(answers == [SAID] * 8, answers)


def events(server, sound, **fields):
    got = ask(server, "/v1/audio/transcriptions", sound, model="whisper", stream="true", **fields)
    return got, [json.loads(line[6:]) for line in got.body.decode().splitlines() if line.startswith("data: ")]


def streams(server, folder):
    """A piece for each window; the last event has the whole."""
    got, said = events(server, (folder / "long.wav").read_bytes())
    check(got.status == 200 and got.headers["Content-Type"].startswith("text/event-stream"), got.status, got.body)
    check(len(said) > 2 and {e["type"] for e in said[:-1]} == {"transcript.text.delta"} and said[-1]["type"] == "transcript.text.done", said)
    check("".join(e["delta"] for e in said[:-1]) == said[-1]["text"] and said[-1]["usage"] == {"type": "duration", "seconds": 2.5}, said)
    refused, said = events(server, b"no sound")
    check(refused.status == 400 and not said, refused.status, refused.body)
    refused, said = events(server, b"no sound", language="xx")
    check(refused.status == 400 and not said, refused.status, refused.body)


with scratch() as folder:
    tiny_models.write_served(folder, 64)
    server = Serve(sys.argv[1], f"whisper={folder / 'whisper'}", f"letters={folder / 'letters.gguf'}")
    try:
        for test in (formats, refusals, many):
            test(server, (folder / "speech.wav").read_bytes())
        streams(server, folder)
        names = {m["id"] for m in server.get("/v1/models").json()["data"]}
        check(names == {"whisper", "letters"}, names)
        check(server.get("/v2/models/whisper").json()["platform"] == "sardonyx_speech", "platform")
    finally:
        code = server.end()
    check(code == 0, code)
