#!/usr/bin/env python3
"""The page of `sdx serve` in a browser, before a server that stands in for it: page_test.py [FOLDER]. With FOLDER, pictures of the screen
are kept there.

Needs Selenium and Debian's chromium and chromium-driver; exit code 77 where something is missing.
"""

import json
import pathlib
import struct
import sys
import zlib

from stand_in import StandIn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from browser import SKIPPED, Browser, By, Keys, Select, check, missing  # noqa: E402
from scratch import scratch  # noqa: E402


def green_picture(path):
    """A PNG of 20 x 10 pixels."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((20, 200, 40)) * 20 for _ in range(10))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 20, 10, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows))
                     + chunk(b"IEND", b""))


class Page(Browser):
    def tab(self, name):
        self.one(f"#tab-{name}").click()
        check(self.one(f"#view-{name}").is_displayed(), name)

    def press(self, selector):
        """For what is shown anew from time to time."""
        self.until(lambda: self.one(selector).click() is None, f"{selector} is pressed")

    def say(self, text, kept=True):
        before = len(self.all(".assistant"))
        self.one("#message").send_keys(text, Keys.ENTER)
        self.until(lambda: len(self.all(".assistant")) == before + 1, "an answer begins")
        if kept:
            self.until(lambda: not self.all('.assistant[aria-busy="true"]'), "the answer ends")
        return self.all(".assistant")[-1]


def chats(b, server):
    for field, value in (("#system", "Be brief."), ("#temperature", "0.5"), ("#seed", "7")):
        b.one(field).send_keys(value)
    answer = b.say("What is sardonyx?")
    sent = json.loads(server.last("/v1/chat/completions")[2])
    check(sent["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is sardonyx?"}], sent)
    check(sent["model"] == "talker" and sent["temperature"] == 0.5 and sent["seed"] == 7 and sent["max_tokens"] == 512 and "top_p" not in sent, sent)
    check([e.text for e in answer.find_elements(By.CSS_SELECTOR, ".body strong")] == ["red"], "bold")
    check(len(answer.find_elements(By.CSS_SELECTOR, ".body ul > li")) == 2 and len(answer.find_elements(By.CSS_SELECTOR, ".body ol > li")) == 2, "lists")
    check(answer.find_element(By.CSS_SELECTOR, "pre code").text == 'print("<b>banded</b>")', "code")
    check(len(answer.find_elements(By.CSS_SELECTOR, ".body td")) == 4, "a table")
    links = [a.get_attribute("href") for a in answer.find_elements(By.CSS_SELECTOR, ".body a")]
    check(links == ["https://example.com/sardonyx"], links)
    check("tokens" in answer.find_element(By.CSS_SELECTOR, ".foot").text, "what it took")
    thought = answer.find_element(By.CSS_SELECTOR, "details.thought")
    check(not thought.get_property("open"), "reasoning is folded")
    check(b.js("return arguments[0].textContent", thought) == "ReasoningThe user asks.", thought.text)


def shows_markup_as_text(b):
    check(b.driver.title == "Sardonyx", b.driver.title)
    check(not b.all(".body script") and not b.all(".body img") and not b.all(".body em + b"), "markup of a model's")
    check("<script>" in b.text(".assistant .body") and "<em>iron</em>" in b.text(".assistant .body h3"), "as text")
    b.js("window.__made = null; const to = document.createElement('div'); showMarkdown(to, '`` a`b `` **x *y* z**\\n\\n> q\\n\\n~~~\\nopen'); window.__made = to.innerHTML")
    made = b.js("return window.__made")
    check("<code>a`b</code>" in made and "<strong>x <em>y</em> z</strong>" in made and "<blockquote>q" in made and ">open</code>" in made, made)


def stops(b, server):
    server.pause = 0.2
    broken = server.broken_off
    b.say("And at length?", kept=False)
    b.until(lambda: b.one("#stop").is_displayed() and len(b.all(".assistant")[-1].text) > 0, "a token")
    b.one("#view-chat").find_element(By.ID, "message").send_keys(Keys.ESCAPE)
    b.until(lambda: b.one("#send").is_displayed(), "it has stopped")
    check("stopped" in b.all(".assistant")[-1].text, b.all(".assistant")[-1].text)
    b.until(lambda: server.broken_off > broken, "the server sees it")
    b.say("And at more length?", kept=False)
    b.until(lambda: b.one("#stop").is_displayed() and len(b.all(".assistant")[-1].text) > 0, "a token")
    b.one("#new").click()
    b.until(lambda: b.one("#send").is_displayed(), "a new conversation ends the answer")
    server.pause = 0.002
    b.say("And now?")
    sent = [m for m in json.loads(server.last("/v1/chat/completions")[2])["messages"] if m["role"] != "system"]
    check(sent == [{"role": "user", "content": "And now?"}], sent)


def calls_tools(b, server):
    b.js("document.querySelectorAll('#chat-settings, #chat-settings details').forEach((d) => { d.open = true; })")
    b.one("#tools").send_keys("[nonsense")
    b.one("#message").send_keys("Weather?", Keys.ENTER)
    b.until(lambda: "Tools:" in b.text("#banner"), "the error")
    b.one("#tools").clear()
    b.one("#tools").send_keys(json.dumps([{"type": "function", "function": {"name": "weather"}}]))
    b.one("#new").click()
    answer = b.say("")  # what was written is still there
    sent = [m for m in json.loads(server.last("/v1/chat/completions")[2])["messages"] if m["role"] != "system"]
    check(sent == [{"role": "user", "content": "Weather?"}], sent)
    check(answer.find_element(By.CSS_SELECTOR, ".call strong").text == "weather" and '"city": "Warsaw"' in answer.text, answer.text)
    answer.find_element(By.CSS_SELECTOR, ".call textarea").send_keys("rain")
    before = len(b.all(".assistant"))
    answer.find_element(By.CSS_SELECTOR, ".calls > button").click()
    b.until(lambda: len(b.all(".assistant")) == before + 1 and not b.all('.assistant[aria-busy="true"]'), "the answer after the result")
    sent = json.loads(server.last("/v1/chat/completions")[2])["messages"]
    check([m["role"] for m in sent[-3:]] == ["user", "assistant", "tool"] and sent[-1] == {"role": "tool", "tool_call_id": "call_1", "content": "rain"}, sent)
    b.one("#tools").clear()


def classifies(b, server, picture):
    b.tab("try")
    check(Select(b.one("#try-model")).first_selected_option.text == "colours", "the model")
    Select(b.one("#values")).select_by_value("unit")
    b.one("#picture").send_keys(str(picture))
    b.until(lambda: b.one("#preview").is_displayed(), "the picture as the model sees it")
    b.one("#run").click()
    b.until(lambda: b.all(".bar-row"), "classes")
    rows = [e.text for e in b.all(".bar-row")]
    check([row.split("\n")[0] for row in rows] == ["green", "blue", "red"] and abs(float(rows[0].split("\n")[1]) - 200 / 255) < 0.01, rows)
    _, headers, body = server.last("/v2/models/colours/versions/1/infer")
    size = int(headers["Inference-Header-Content-Length"])
    check(json.loads(body[:size])["inputs"][0]["shape"] == [1, 3, 8, 8] and len(body) - size == 4 * 3 * 64, headers)
    b.one('[data-mode="json"]').click()
    b.one("#run").click()
    b.until(lambda: "0 class" in b.text("#result") or b.all(".bar-row"), "the request as JSON")
    server.project = True


def predicts_by_project(b, server, picture):
    b.open(server.url)
    b.tab("try")
    check(Select(b.one("#values")).first_selected_option.get_attribute("value") == "project", "the project's way")
    b.one("#picture").send_keys(str(picture))
    b.one("#run").click()
    b.until(lambda: "green" in b.text("#result"), "the project's labels")
    _, headers, body = server.last("/predict/colours")
    check(headers["Content-Type"] == "image/png" and body == picture.read_bytes(), headers)


def embeds(b):
    b.tab("embed")
    b.one("#embed-form .primary").click()
    b.until(lambda: len(b.all(".matrix tbody td")) == 9, "the table")
    check(b.all(".matrix tbody td")[0].text == "1.00", "itself")


def manages_models(b, server):
    b.tab("models")
    item = '[data-name="resting"]'
    check("not loaded" in b.text(item), b.text(item))
    b.press(f"{item} button")
    b.until(lambda: b.one(item).get_attribute("data-state") == "READY", "it is loaded")
    b.press('[data-name="broken"] button')
    b.until(lambda: "cut short" in b.text("#banner"), "why it cannot be loaded")
    check("on cpu" in b.text('[data-name="colours"]') and "version 1" in b.text('[data-name="colours"]'), b.text('[data-name="colours"]'))
    check(b.text("#state-text") == "4 of 5 ready", b.text("#state-text"))


def measures(b, server):
    b.tab("metrics")

    def value(name):
        return b.text(f"#chart-{name} .value")

    def rate(name):
        first = value(name).split()[0].replace(",", "")
        return float(first) if first[0].isdigit() else 0

    b.until(lambda: value("queue").startswith("4 "), "requests that wait")
    before = server.tokens
    server.tokens += 500
    server.requests.extend([("/v1/chat/completions", {}, b"")] * 20)
    b.until(lambda: rate("tokens") > 0, f"tokens since {before}")
    b.until(lambda: value("first") == "250 ms", "time to first token")
    check(b.all("#chart-tokens path.line") and "Tokens: now" in b.one("#chart-tokens svg").get_attribute("aria-label"), "a line")
    check(rate("requests") < 1e6, "monitors do not count")


def can_be_used_by_all(b):
    """Names for all controls, tabs by arrow keys, nothing wider than the screen, contrast of texts."""
    unnamed = b.js("""
      return [...document.querySelectorAll('button, input, select, textarea')].filter((e) => !(e.getAttribute('aria-label') || e.textContent.trim()
        || (e.labels && e.labels.length))).map((e) => e.outerHTML)""")
    check(not unnamed, unnamed)
    b.one("#tab-chat").click()
    b.one("#tab-chat").send_keys(Keys.ARROW_RIGHT)
    check(b.js("return document.activeElement.id") == "tab-try" and b.one("#view-try").is_displayed(), "arrow keys")
    for width in (390, 1400):
        b.resize(width, 844)
        for name in ("chat", "try", "embed", "models", "metrics"):
            b.tab(name)
            check(b.js("return document.documentElement.scrollWidth") <= width, name, width)
    poor = b.js("""
      const light = (c) => { const [r, g, b] = c.map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
      const colour = (text) => text.match(/[\\d.]+/g).map(Number);
      const poor = [];
      for (const theme of ['light', 'dark']) {
        document.documentElement.dataset.theme = theme;
        for (const view of document.querySelectorAll('.view')) view.hidden = false;
        for (const e of document.querySelectorAll('p, span, h2, h3, button, label, td, th, summary, strong, output')) {
          if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.getClientRects().length || e.closest('[disabled], .hidden, .skip')) continue;
          let at = e, back = null;
          while (at && !back) { const c = getComputedStyle(at).backgroundColor; if (/^rgb\\(/.test(c)) back = colour(c); else if (!/, 0\\)$/.test(c) && !/^rgba/.test(c)) break; at = at.parentElement; }
          if (!back) continue;
          const [a, z] = [light(colour(getComputedStyle(e).color)), light(back)];
          const contrast = (Math.max(a, z) + 0.05) / (Math.min(a, z) + 0.05);
          if (contrast < 4.5) poor.push([theme, e.className, e.textContent.slice(0, 30), contrast]);
        }
      }
      return poor""")
    check(not poor, poor)


def takes_pictures_of_the_screen(b, server):
    if not b.shots:
        return
    for width, height, dark in ((1400, 900, False), (1400, 900, True), (390, 844, False), (390, 844, True)):
        b.resize(width, height, dark)
        b.open(server.url)
        name = f"{width}-{'dark' if dark else 'light'}"
        b.shoot(f"empty-{name}")
        b.say("What is sardonyx?")
        b.shoot(f"chat-{name}")
        for tab in ("try", "embed", "models", "metrics"):
            b.tab(tab)
            if tab == "embed":
                b.one("#embed-form .primary").click()
                b.until(lambda: b.all(".matrix"), "the table")
            if tab == "metrics":
                for i in range(4):
                    server.tokens += 100 * i
                    b.until(lambda n=i: b.js("return charts[0].points.length") > n + 1, "points")
            b.shoot(f"{tab}-{name}")


def asks_for_a_key(b):
    server = StandIn(key="secret")
    try:
        b.open(server.url)
        b.until(lambda: b.one("#key-dialog").is_displayed(), "the dialog")
        check("needs a key" in b.text("#state-text"), b.text("#state-text"))
        b.shoot("key")
        b.one("#key-cancel").click()
        asked = b.js("return measure().then(() => 'answered', () => document.querySelector('#key-dialog').open)")
        check(asked is False, "once is enough", asked)
        b.one("#key").click()
        check(b.one("#key-dialog").is_displayed(), "it can be asked for")
        b.one("#key-value").send_keys("wrong", Keys.ENTER)
        b.until(lambda: "does not take" in b.text("#key-why"), "a key that is wrong")
        b.one("#key-value").send_keys("secret", Keys.ENTER)
        b.until(lambda: "ready" in b.text("#state-text"), "the models, with the key")
    finally:
        server.close()


def run(b, server, folder):
    picture = folder / "green.png"
    green_picture(picture)
    b.open(server.url)
    chats(b, server)
    shows_markup_as_text(b)
    stops(b, server)
    calls_tools(b, server)
    classifies(b, server, picture)
    predicts_by_project(b, server, picture)
    embeds(b)
    manages_models(b, server)
    measures(b, server)
    can_be_used_by_all(b)
    takes_pictures_of_the_screen(b, server)
    b.resize(1400, 900)
    asks_for_a_key(b)
    # What the browser itself finds wrong: the policy, scripts that fail. What the server refused is expected.
    wrong = [e["message"] for e in b.driver.get_log("browser") if not any(f"status of {s}" in e["message"] for s in (400, 401))]
    check(not wrong, wrong)


def main():
    if wanted := missing():
        print("skipped, for want of", ", ".join(wanted))
        return SKIPPED
    shots = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    server = StandIn()
    try:
        with scratch() as folder:
            b = Page(shots)
            try:
                run(b, server, folder)
            finally:
                b.driver.quit()
    finally:
        server.close()
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
