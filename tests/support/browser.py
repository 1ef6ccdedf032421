"""A browser for tests of pages: Selenium with Debian's chromium and chromium-driver."""

import shutil

try:
    from selenium import webdriver
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select, WebDriverWait
except ImportError:
    webdriver = ActionChains = By = Keys = Select = None

SKIPPED = 77  # exit code of a test without what it needs
PATIENCE = 120  # seconds; how long something may take on a busy machine


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def missing():
    """Names of what is not there; empty where a browser can be started."""
    wanted = {"selenium": webdriver, "chromium": shutil.which("chromium"), "chromedriver": shutil.which("chromedriver")}
    return [name for name, there in wanted.items() if not there]


class Browser:
    """`shots`: a folder for pictures of the screen; None: none are kept. `downloads`: where files go that pages offer."""

    def __init__(self, shots=None, downloads=None, width=1400, height=900):
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars", f"--window-size={width},{height}"):
            options.add_argument(flag)
        if downloads:
            options.add_experimental_option("prefs", {"download.default_directory": str(downloads), "download.prompt_for_download": False})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=shutil.which("chromedriver")))
        self.shots = shots
        self.resize(width, height)

    def resize(self, width, height, dark=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})

    def open(self, url):
        self.driver.get(url)
        self.until(lambda: self.js("return document.documentElement.dataset.ready") == "true", "the page is ready")

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def until(self, condition, what):
        try:
            # What is looked at may be shown anew at any time.
            return WebDriverWait(self.driver, PATIENCE, 0.05, [StaleElementReferenceException]).until(lambda _: condition())
        except Exception as error:
            self.shoot("failed")
            raise AssertionError(f"never: {what}") from error

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector):
        return self.js("return document.querySelector(arguments[0]).textContent", selector)

    def shoot(self, name):
        if self.shots:
            self.driver.save_screenshot(str(self.shots / f"{name}.png"))
