"""windows_zip_test.py ARCHIVE.zip: the archive for Windows has what it should, and its command runs in a folder with a foreign name."""

import subprocess
import sys
import zipfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
for folder in ("cli", "support"):
    sys.path.insert(0, str(TESTS / folder))
import tiny_models  # noqa: E402
from emulator import command_of  # noqa: E402
from scratch import scratch  # noqa: E402

FILES = {"sdx.exe", "README.txt", "LICENSE.txt", "NOTICE.md", "CHANGELOG.md", "third-party.txt"}
MOST_BYTES = 40_000_000
COMMANDS = [("--version", "0.1.0"), ("doctor", "All that is installed works."), ("run modèle.onnx -i A=[1,2] -i B=[3,4]", "{4, 6}")]


def main():
    archive = Path(sys.argv[1])
    assert archive.stat().st_size < MOST_BYTES, archive.stat().st_size
    with scratch() as root, zipfile.ZipFile(archive) as held:
        assert held.testzip() is None
        assert {Path(name).name for name in held.namelist()} == FILES, held.namelist()
        assert {Path(name).parts[0] for name in held.namelist()} == {archive.stem}, held.namelist()
        held.extractall(root / "größe 日本 😀")
        folder = root / "größe 日本 😀" / archive.stem
        notices = (folder / "third-party.txt").read_text()
        for library in ("Highway", "yaml-cpp", "Oniguruma", "mingw-w64", "libpng", "zlib"):
            assert f"\n{library}" in notices, library
        tiny_models.write_all(folder)
        (folder / "add.onnx").rename(folder / "modèle.onnx")
        for line, part in COMMANDS:
            done = subprocess.run([*command_of(folder / "sdx.exe"), *line.split()], cwd=folder, capture_output=True, text=True, timeout=300)
            assert done.returncode == 0 and part in done.stdout, (line, done)
    print("windows zip: ok")


if __name__ == "__main__":
    main()
