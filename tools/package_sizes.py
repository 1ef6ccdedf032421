#!/usr/bin/env python3
"""package_sizes.py FOLDER: a table (Markdown) of the packages in FOLDER: how large each file is, and what it takes where it is installed."""

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

MB = 1e6
WHAT = {"deb": "Debian", "zst": "any folder", "whl": "pip", "gz": "pip, built from source"}


def installed(path):
    """Bytes of the files inside."""
    if path.suffix == ".whl":
        return sum(member.file_size for member in zipfile.ZipFile(path).infolist())
    command = {".deb": ["dpkg-deb", "--fsys-tarfile", path], ".zst": ["zstd", "-dcq", path], ".gz": ["gzip", "-dc", path]}[path.suffix]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
            size = sum(member.size for member in tar)
        process.stdout.read()
    if process.returncode:
        sys.exit(f"{path} cannot be read")
    return size


def name_of(path):
    return path.name.split("_")[0] if path.suffix == ".deb" else path.name


def what(path):
    return "any Linux, the command alone" if path.name.startswith("sardonyx-static-") else WHAT[path.suffix.lstrip(".")]


def main():
    files = sorted(path for path in Path(sys.argv[1]).iterdir() if path.suffix.lstrip(".") in WHAT)
    print("# Sizes of the packages\n\n`make packages` writes this table. MB are 1,000,000 bytes.\n")
    print("| package | for | download, MB | installed, MB |\n|---|---|---|---|")
    for path in sorted(files, key=lambda path: (list(WHAT).index(path.suffix.lstrip(".")), path.name)):
        print(f"| {name_of(path)} | {what(path)} | {path.stat().st_size / MB:.1f} | {installed(path) / MB:.1f} |")


if __name__ == "__main__":
    main()
