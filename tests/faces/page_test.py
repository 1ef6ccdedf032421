#!/usr/bin/env python3
"""`sdx faces page` in a browser: page_test.py SDX [FOLDER]. With FOLDER, pictures of the screen are kept there.

Needs Selenium and Debian's chromium and chromium-driver; exit code 77 where something is missing.
"""

import pathlib
import shlex
import sys
import time
import zipfile

from page_server import SKIP, Page, models

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import browser  # noqa: E402
from browser import ActionChains, Keys, Select, check  # noqa: E402
from scratch import scratch  # noqa: E402


class Browser(browser.Browser):
    def __init__(self, page, downloads, shots):
        super().__init__(shots, downloads, 1400, 1000)
        self.page, self.downloads = page, downloads

    def settled(self):
        """The crop that is shown is that of the settings."""
        self.until(lambda: self.all("#result img") and not self.all("#result.busy"), "the crop is shown")

    def frame(self):
        """Of the crop, on the screen: x, y, width, height."""
        return self.js("const r = document.querySelector('.frame-area').getBoundingClientRect(); return [r.x, r.y, r.width, r.height]")

    def downloaded(self, name):
        file = self.downloads / name
        self.until(file.exists, f"{name} is downloaded; there are {[f.name for f in self.downloads.iterdir()]}")
        data = file.read_bytes()
        file.unlink()
        return data

    def add(self, *files):
        self.one("#files").send_keys("\n".join(map(str, files)))
        self.until(lambda: not self.all("progress") and not self.all(".picture .open:disabled, .picture .open[disabled]"), "pictures are read")


def close(a, b, tolerance=2.0):
    return all(abs(x - y) <= tolerance for x, y in zip(a, b))


def finds_faces(b, file):
    b.add(file)
    b.until(lambda: b.all(".face"), "a face is listed")
    check(len(b.all(".face")) == len(b.all(".box")) >= 1, "boxes")
    check("quality" in b.text(".face"), b.text(".face"))
    check(len(b.all(".mark")) >= 5, "points")
    b.settled()


def drags(b):
    x, y, width, height = before = b.frame()
    area = b.one(".frame-area")
    ActionChains(b.driver).move_to_element(area).click_and_hold().move_by_offset(40, -30).release().perform()
    moved = b.frame()
    check(close(moved, [x + 40, y - 30, width, height]), before, moved)
    b.settled()
    grip = b.one(".grip[data-corner='1,1']")
    ActionChains(b.driver).move_to_element(grip).click_and_hold().move_by_offset(30, 30).release().perform()
    grown = b.frame()
    check(close(grown[:2], moved[:2]) and grown[2] > width + 20 and abs(grown[2] / grown[3] - width / height) < 0.02, moved, grown)
    check(b.one("#own").is_displayed(), "the face has a frame of its own")
    b.shoot("dragged")

    # Undo, redo: by keys and by buttons.
    ActionChains(b.driver).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
    check(close(b.frame(), moved), "undo", b.frame(), moved)
    b.one("#undo").click()
    check(close(b.frame(), before) and not b.one("#own").is_displayed(), "undo", b.frame(), before)
    b.one("#redo").click()
    ActionChains(b.driver).key_down(Keys.CONTROL).send_keys("y").key_up(Keys.CONTROL).perform()
    check(close(b.frame(), grown), "redo", b.frame(), grown)
    check(not b.one("#redo").is_enabled(), "nothing is left to redo")


def is_moved_by_keys(b):
    before = b.frame()
    b.js("document.querySelector('.frame').focus()")
    ActionChains(b.driver).key_down(Keys.SHIFT).send_keys(Keys.ARROW_RIGHT).key_up(Keys.SHIFT).send_keys("-").perform()
    after = b.frame()
    check(after[0] > before[0] and after[2] < before[2], before, after)
    check(b.js("return document.activeElement.classList.contains('frame')"), "the frame keeps the focus")
    b.driver.switch_to.active_element.send_keys(Keys.HOME)
    check(not b.one("#own").is_displayed(), "Home puts the frame back")
    b.one("#undo").click()
    check(close(b.frame(), after), "undo of Home", b.frame(), after)


def downloads_what_the_command_writes(b, page, file):
    Select(b.one("#preset")).select_by_value("passport")
    Select(b.one("#enhance")).select_by_value("natural")
    area = b.one(".frame-area")
    ActionChains(b.driver).move_to_element(area).click_and_hold().move_by_offset(-17, 11).release().perform()
    b.settled()
    command = shlex.split(b.text("#command"))
    check(command[:3] == ["sdx", "faces", "crop"], command)
    flags = command[command.index("crops") + 1:]
    check("--preset" in flags and any(f.startswith("--offset-x") for f in flags), flags)
    b.one("#download").click()
    name = f"{file.stem}_face1{file.suffix}"
    check(b.downloaded(name) == page.command_crop(file, flags)[name], "other bytes than the command's", flags)

    b.one("#download-all").click()
    archive = b.downloaded("faces.zip")
    with scratch() as folder:
        path = folder / "faces.zip"
        path.write_bytes(archive)
        with zipfile.ZipFile(path) as z:
            check(z.testzip() is None and name in z.namelist(), z.namelist())
            check(z.read(name) == page.command_crop(file, flags)[name], "the ZIP holds other bytes")


def shows_what_is_wrong(b, folder):
    bad = folder / "<img src=x onerror=document.title='broken'>.jpg"
    bad.write_bytes(b"this is not a picture")
    b.add(bad)
    b.until(lambda: b.all(".toast"), "the error is shown")
    check(bad.name in b.text(".toast"), b.text(".toast"))
    check(b.all(".picture.failed"), "the picture is marked")
    check(not b.all(".pictures img[src='x'], .toast img") and "broken" not in b.driver.title, "a name became markup")
    large = folder / "large.jpg"
    with large.open("wb") as f:
        f.truncate(70 << 20)
    b.add(large)
    b.until(lambda: any("at most" in t.text for t in b.all(".toast")), "the size is refused")
    for _ in b.all(".picture.failed .remove"):
        b.one(".picture.failed .remove").click()
    for cross in b.all(".toast .icon"):
        cross.click()


def switches_runtimes(b):
    b.one("[data-runtime=ort]").click()
    b.until(lambda: b.all(".toast") or b.one("[data-runtime=ort]").get_attribute("aria-checked") == "true", "the runtime changes, or the reason is said")
    if not b.all(".toast"):
        b.until(lambda: " ms" in b.text("[data-ms=ort]") and " ms" in b.text("[data-ms=native]"), "both latencies")
        b.one("[data-runtime=native]").click()
        b.until(lambda: b.one("[data-runtime=native]").get_attribute("aria-checked") == "true", "the runtime changes back")


def can_be_used_by_all(b):
    """Every control has a name, none is wider than the screen."""
    nameless = b.js("""
      return [...document.querySelectorAll('button, select, input, [tabindex="0"]')].filter((e) => e.offsetParent || e.closest('svg')).filter((e) =>
        !(e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label') || e.labels && e.labels.length)).map((e) => e.outerHTML)""")
    check(not nameless, "controls without a name", nameless)
    for width, height in ((1400, 1000), (1000, 800), (390, 844)):
        b.resize(width, height)
        wide = b.js("return document.documentElement.scrollWidth")
        check(wide <= width, "wider than the screen", wide, width)


def takes_pictures_of_the_screen(b):
    for width, height in ((1400, 1000), (390, 844)):
        for dark in (False, True):
            b.resize(width, height, dark)
            time.sleep(0.3)
            b.shoot(f"page_{width}_{'dark' if dark else 'light'}")
    b.resize(1400, 1000)


def run(b, page, folder, temporary):
    file = folder / "_assets" / "astronaut.png"
    b.open(page.url)
    b.shoot("empty")
    check(b.one("#empty").is_displayed() and not b.one("#work").is_displayed(), "the empty state")
    finds_faces(b, file)
    drags(b)
    is_moved_by_keys(b)
    downloads_what_the_command_writes(b, page, file)
    heic = folder / "faces" / "pictures" / "photo.heic"
    if heic.exists():
        b.add(heic)
        b.until(lambda: len(b.all(".pictures img")) == 2, "the browser shows a HEIC picture")
    shows_what_is_wrong(b, temporary)
    switches_runtimes(b)
    takes_pictures_of_the_screen(b)
    can_be_used_by_all(b)
    # What the browser itself finds wrong: the policy, scripts that fail. Refused pictures are expected.
    wrong = [e["message"] for e in b.driver.get_log("browser") if "status of 400" not in e["message"] and "status of 409" not in e["message"]]
    check(not wrong, wrong)


def main():
    folder = models()
    missing = browser.missing() + ([] if folder else ["test models"])
    if missing:
        print("skipped, for want of", ", ".join(missing))
        return SKIP
    shots = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    page = Page(sys.argv[1], folder / "face_yunet" / "yunet_n_dynamic.onnx")
    try:
        with scratch() as temporary:
            (temporary / "downloads").mkdir()
            b = Browser(page, temporary / "downloads", shots)
            try:
                run(b, page, folder, temporary)
            finally:
                b.driver.quit()
    finally:
        code = page.stop()
    check(code == 0, "exit code after Ctrl-C", code)
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
