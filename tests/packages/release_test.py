"""release_test.py PROJECT: tools/release.sh in a small repository with the project's own tools: what it refuses, changes and tags."""

import datetime
import os
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(sys.argv[1])
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n"


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


class Repository:
    def __init__(self, folder):
        self.folder = folder
        shutil.copytree(PROJECT / "tools", folder / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("sardonyx", "sardonyx-sys"):
            (folder / "bindings/rust" / name).mkdir(parents=True)
            shutil.copy(PROJECT / "bindings/rust" / name / "Cargo.toml", folder / "bindings/rust" / name)
        shutil.copy(PROJECT / "CMakeLists.txt", folder)
        shutil.copy(PROJECT / "bindings/rust/Cargo.lock", folder / "bindings/rust")
        (folder / "CHANGELOG.md").write_text(CHANGELOG)
        (folder / ".gitignore").write_text("/ran.txt\n__pycache__/\n")
        self.git("init", "-q")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "Start")

    def git(self, *words):
        # No settings of this machine, such as signatures, count.
        env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", **self.author()}
        return subprocess.run(["git", *words], cwd=self.folder, env=env, check=True, capture_output=True, text=True).stdout.strip()

    @staticmethod
    def author():
        return {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "A"), ("EMAIL", "a@example.org"))}

    def release(self, *words, checks="true", packages="true"):
        env = {**os.environ, **self.author(), "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
               "RELEASE_CHECKS": checks, "RELEASE_PACKAGES": packages}  # fmt: skip
        return subprocess.run([self.folder / "tools/release.sh", *words], env=env, capture_output=True, text=True)

    def state(self):
        return self.git("rev-parse", "HEAD"), self.git("tag"), self.git("status", "--porcelain")

    def refuses(self, message, *words, **programs):
        before = self.state()
        done = self.release(*words, **programs)
        check(done.returncode != 0 and message in done.stderr, words, done)
        check(self.state() == before, words, before, self.state())


def main():
    with scratch() as folder:
        here = Repository(folder / "repository")
        today = datetime.datetime.now(datetime.timezone.utc).date()
        dates = {str(today), str(today + datetime.timedelta(days=1))}
        for words in ([], ["1"], ["1.2"], ["v1.2.3"], ["1.02.3"], ["1.2.3", "x"], ["--dry-run"], ["--push", "1.2.3"]):
            here.refuses("release: ", *words)
        (here.folder / "new.txt").write_text("")
        here.refuses("not committed: ?? new.txt", "0.2.0")
        (here.folder / "new.txt").unlink()
        before = here.state()
        done = here.release("--dry-run", "0.2.0", checks="false", packages="false")
        check(done.returncode == 0 and "### Added\n\n- A thing.\n" in done.stdout, done)
        check(here.state() == before)
        # A check that fails, and packages that do not work.
        here.refuses("", "0.2.0", checks="false")
        here.refuses("nothing is tagged", "0.2.0", packages="false")
        here.refuses("does not have the tag v0.2.0", "--tagged", "0.2.0")

        done = here.release("0.2.0", checks="touch ran.txt", packages="git diff --exit-code HEAD")
        check(done.returncode == 0 and (here.folder / "ran.txt").exists(), done)
        check(here.git("log", "--format=%s") == "Release 0.2.0\nStart" and here.git("status", "--porcelain") == "")
        written = (here.folder / "CHANGELOG.md").read_text()
        check(written in [CHANGELOG.replace("]\n", f"]\n\n## [0.2.0] - {date}\n", 1) for date in dates], written)
        check("\nproject(sardonyx VERSION 0.2.0 " in (here.folder / "CMakeLists.txt").read_text())
        rust = {name: (here.folder / "bindings/rust" / name / "Cargo.toml").read_text() for name in ("sardonyx", "sardonyx-sys")}
        check(all('\nversion = "0.2.0"\n' in text for text in rust.values()) and 'sardonyx-sys", version = "0.2.0"' in rust["sardonyx"], rust)
        lock = (here.folder / "bindings/rust/Cargo.lock").read_text()
        check(lock.count('\nname = "sardonyx') == lock.count('\nversion = "0.2.0"\n') == 2, lock)
        check(here.git("rev-parse", "v0.2.0^{commit}") == here.git("rev-parse", "HEAD"))
        check(here.git("tag", "-l", "--format=%(contents)", "v0.2.0") == "Sardonyx 0.2.0\n\nAdded\n\n- A thing.")
        done = here.release("--tagged", "0.2.0", packages="touch ran.txt")
        check(done.returncode == 0, done)
        here.refuses("", "--tagged", "0.2.0", packages="false")

        here.refuses("the tag v0.2.0 exists already", "0.2.0")
        here.refuses("version 0.2.0 is newer", "0.1.9")
        here.refuses("nothing is under Unreleased", "0.3.0")


if __name__ == "__main__":
    main()
    print("release: ok")
