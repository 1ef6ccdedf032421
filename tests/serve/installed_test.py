"""installed_test.py CMAKE SCRIPT SOURCE: what `cmake --install` copies of packaging/. SCRIPT is the installation script of that folder."""

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from scratch import scratch  # noqa: E402

CMAKE, SCRIPT, SOURCE = sys.argv[1], sys.argv[2], Path(sys.argv[3])


def check(condition, *what):
    if not condition:
        raise AssertionError(what)


def main():
    with scratch() as folder:
        prefix = folder / "opt"
        subprocess.run([CMAKE, f"-DCMAKE_INSTALL_PREFIX={prefix}", "-P", SCRIPT], check=True, stdout=subprocess.DEVNULL)
        units = prefix / "lib/systemd/system"
        service = (units / "sdx-serve.service").read_text()
        check(f"\nExecStart={prefix}/bin/sdx serve --repository " in service and "/usr/bin/sdx" not in service, service)
        given = (SOURCE / "packaging/systemd/sdx-serve.service").read_text()
        check(service == given.replace("/usr/bin/sdx ", f"{prefix}/bin/sdx "), service)
        check((units / "sdx-serve.socket").read_bytes() == (SOURCE / "packaging/systemd/sdx-serve.socket").read_bytes())
        installed = {f.relative_to(prefix / "share/sardonyx") for f in (prefix / "share/sardonyx").rglob("*") if f.is_file()}
        wanted = {f.relative_to(SOURCE / "packaging") for name in ("grafana", "kserve", "kubernetes", "proxy")
                  for f in (SOURCE / "packaging" / name).rglob("*") if f.is_file()}  # fmt: skip
        check(installed == wanted and Path("grafana/sdx-serve.json") in installed, installed ^ wanted)
        for file, fragment in {"bash-completion/completions/sdx": "complete -o default -o filenames -F _sdx sdx", "zsh/site-functions/_sdx": "#compdef sdx",
                               "fish/vendor_completions.d/sdx.fish": "complete -c sdx", "doc/sardonyx/LICENSE": "Permission is hereby granted",
                               "doc/sardonyx/NOTICE.md": ""}.items():  # fmt: skip
            check(fragment in (prefix / "share" / file).read_text(), file)
        description = next(prefix.glob("lib/**/sdx.pc")).read_text()
        check(f"prefix={prefix}\n" in description and "Libs: -L${libdir} -lsdx\n" in description, description)


if __name__ == "__main__":
    main()
    print("installed: ok")
