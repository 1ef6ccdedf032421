"""What machine this is. Results live apart for each processor, in results/PROCESSOR."""

import os
import platform
import re

HERE = os.path.dirname(os.path.abspath(__file__))
# AMD's cores by family: the first model of each from which on it is another one.
ZEN = {23: [(0, "zen"), (8, "zen+"), (16, "zen"), (24, "zen+"), (32, "zen"), (48, "zen2")], 25: [(0, "zen3"), (16, "zen4"), (32, "zen3"), (96, "zen4")], 26: [(0, "zen5")]}
LEVELS = [("amx_tile", "amx"), ("avx512f", "avx512"), ("avx2", "avx2"), ("sse4_1", "sse4"), ("asimd", "neon")]


def cpu_fields(text):
    """The first processor of /proc/cpuinfo."""
    fields = {}
    for line in text.split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    return fields


def core_of(fields):
    """zen3, or family and model where no name is known; nothing where the processor does not say."""
    try:
        family, model = int(fields["cpu family"]), int(fields["model"])
    except (KeyError, ValueError):
        return ""
    if fields.get("vendor_id") == "AuthenticAMD" and family in ZEN:
        return [name for first, name in ZEN[family] if model >= first][-1]
    return f"{family}-{model}"


def level_of(fields):
    """The widest set of vector instructions."""
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    return next((name for flag, name in LEVELS if flag in flags), "")


def name_of(fields):
    """amd-epyc-zen3-avx2: a folder's name."""
    model = re.sub(r"\((R|TM|C)\)|@.*|\b\d+-Core\b|\b(CPU|Processor)\b", " ", fields.get("model name", platform.machine() or "unknown"), flags=re.IGNORECASE)
    parts = [model, core_of(fields), level_of(fields)]
    return "-".join(filter(None, (re.sub(r"[^a-z0-9+]+", "-", part.lower()).strip("-") for part in parts)))


def machine():
    info = {"system": f"{platform.system()} {platform.release().split('-')[0]}", "cores": os.cpu_count()}
    try:
        with open("/proc/cpuinfo") as file:
            fields = cpu_fields(file.read())
    except OSError:
        fields = {}
    info.update(cpu=fields.get("model name", platform.machine()), core=core_of(fields), level=level_of(fields), name=name_of(fields))
    info["isa"] = [f for f in fields.get("flags", "").split() if f.startswith(("avx", "amx", "fma"))]
    return info


def described(info):
    """AMD EPYC (zen3, avx2), 2 cores, Linux 6.18.44"""
    inner = ", ".join(filter(None, (info.get("core"), info.get("level"))))
    return f"{info.get('cpu', '')}{f' ({inner})' if inner else ''}, {info['cores']} cores, {info['system']}"


def folder():
    """Where this processor's results live."""
    return os.path.join(os.path.dirname(HERE), "results", machine()["name"])
