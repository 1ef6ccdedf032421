#!/usr/bin/env python3
"""The page of `sdx serve` in a browser, before the server itself with small models: page_live_test.py SDX [FOLDER]. With FOLDER, pictures
of the screen are kept there. SDX_LANGUAGE_MODELS may name a folder with a real language model.

Exit code 77 where Selenium, chromium or its driver is missing.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

from page_test import SKIPPED, Page, check, green_picture, missing

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent.parent / part) for part in ("cli", "support")]
from scratch import scratch  # noqa: E402
import tiny_models  # noqa: E402
from tiny_models import FLOAT, data, model, node, number, value_info  # noqa: E402

REAL = "SmolLM2-135M-Instruct.Q4_1.gguf"


def write_colours(folder):
    """A classifier: the mean of each colour, by a project with the names."""
    folder.mkdir()
    flatten = data(1, "mean") + data(2, "scores") + data(3, "flatten") + data(4, "Flatten") + data(5, data(1, "axis") + number(3, 1) + number(20, 2))
    (folder / "model.onnx").write_bytes(model([node("GlobalAveragePool", ["x"], ["mean"]), flatten], [value_info("x", FLOAT, ["n", 3, 8, 8])],
                                              [value_info("scores", FLOAT, ["n", 3])]))
    (folder / "sdx.yml").write_text("name: colours\nmodel: model.onnx\npreprocessing: {normalize: 0-1}\n"
                                    "postprocessing: {labels: [red, green, blue], top_k: 3}\n")


class Server:
    def __init__(self, sdx, *arguments):
        self.process = subprocess.Popen([sdx, "serve", *map(str, arguments), "--port", "0", "--no-grpc"], stderr=subprocess.PIPE, text=True)
        self.said, self.url = [], ""
        for line in self.process.stderr:
            self.said.append(line)
            if match := re.search(r"listening on (http://[\d.:]+)$", line.strip()):
                self.url = match.group(1) + "/"
                break
        check(self.url, "the server did not start", self.said)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.stderr.read()
        return self.process.wait(60)


def classifies(b, picture):
    b.tab("try")
    b.js("document.querySelector('#try-model').value = 'colours'; tryModelChanged()")
    check(b.js("return document.querySelector('#values').value") == "project", "the project's way")
    b.one("#picture").send_keys(str(picture))
    for way in ("project", "unit"):
        b.js("document.querySelector('#values').value = arguments[0]; fitChanged()", way)
        b.js("document.querySelector('#result').replaceChildren()")
        b.one("#run").click()
        b.until(lambda: b.all(".bar-row") or b.all("#result .failed"), "a result")
        first = b.all(".bar-row")[0].text.split("\n")
        check(first[0] in ("green", "class 1") and abs(float(first[1]) - 200 / 255) < 0.02, way, b.text("#result"))
    b.shoot("live-try")


def chats(b, real):
    b.tab("chat")
    b.one("#max-tokens").clear()
    b.one("#max-tokens").send_keys("40" if real else "3")
    answer = b.say("Name three gemstones." if real else "ab")
    check(not answer.find_elements("css selector", ".failed"), answer.text)
    check("tokens" in answer.text, answer.text)
    if real:
        check(len(answer.find_element("css selector", ".body").text) > 20, answer.text)
    b.shoot("live-chat")


def manages_models(b):
    b.tab("models")
    for state, label in (("UNAVAILABLE", "unload"), ("READY", "load")):
        b.press(f'[aria-label="{label} colours"]')
        b.until(lambda s=state: b.one('[data-name="colours"]').get_attribute("data-state") == s, f"colours are {state}")
    b.shoot("live-models")


def measures(b):
    b.tab("metrics")
    b.until(lambda: b.js("return charts[0].points.length") >= 2, "two points")
    b.js("for (let i = 0; i < 20; i += 1) ask('/v2');")
    b.until(lambda: b.js("return Math.max(...charts[0].points)") > 4, "requests")
    b.shoot("live-metrics")


def run(b, server, folder, real):
    picture = folder / "green.png"
    green_picture(picture)
    b.open(server.url)
    classifies(b, picture)
    chats(b, real)
    b.tab("embed")
    b.js("document.querySelector('#texts').value = 'ab a\\nab'")
    b.one("#embed-form .primary").click()
    b.until(lambda: len(b.all(".matrix tbody td")) == 4, "the table")
    manages_models(b)
    measures(b)
    wrong = [e["message"] for e in b.driver.get_log("browser")]
    check(not wrong, wrong)


def has_no_page(sdx, folder):
    server = Server(sdx, "colours=" + str(folder / "colours"), "--no-page")
    status = subprocess.run([sys.executable, "-c", "import urllib.request as u, sys\ntry: u.urlopen(sys.argv[1])\nexcept u.HTTPError as e: print(e.code)",
                             server.url], capture_output=True, text=True, check=True).stdout
    check(server.stop() == 0 and status.strip() == "404", status)


def main():
    if wanted := missing():
        print("skipped, for want of", ", ".join(wanted))
        return SKIPPED
    sdx = str(pathlib.Path(sys.argv[1]).resolve())
    shots = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    with scratch() as folder:
        tiny_models.write_all(folder)
        write_colours(folder / "colours")
        real = pathlib.Path(os.environ.get("SDX_LANGUAGE_MODELS", "none")) / REAL
        talker = real if real.exists() else folder / "talker.gguf"
        server = Server(sdx, f"talker={talker}", f"letters={folder / 'embedder'}", f"colours={folder / 'colours'}")
        b = Page(shots)
        try:
            run(b, server, folder, real.exists())
        finally:
            b.driver.quit()
            code = server.stop()
        check(code == 0, "exit code after SIGTERM", code)
        has_no_page(sdx, folder)
    print("ok, with", REAL if real.exists() else "a tiny model")
    return 0


if __name__ == "__main__":
    sys.exit(main())
