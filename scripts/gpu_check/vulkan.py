"""Checks the same GPU through Vulkan. The loader is the suite's own. A bare machine often has NVIDIA's driver without
the manifest that names it to a loader, and without the libraries of X11 that the driver's GLX library needs."""

import glob
import json
import os
import re

import runs
import shards

# A driver's manifest may name GLX's library, which needs libX11 and libXext, or EGL's, which does not.
LIBRARIES = ("libGLX_nvidia.so.0", "libEGL_nvidia.so.0")
FOLDERS = ("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib")
MANIFESTS = ("/usr/local/nvidia/share", "/usr/share", "/etc", "/usr/local/share")


def manifests(check):
    """Paths of manifests that name NVIDIA's driver: the machine's own, then some that are written here."""
    known = [path for folder in MANIFESTS for path in sorted(glob.glob(f"{folder}/vulkan/icd.d/*nvidia*.json"))]
    for name in LIBRARIES:
        for folder in FOLDERS:
            if not os.path.exists(f"{folder}/{name}"):
                continue
            path = os.path.join(check.work, f"{name}.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump({"file_format_version": "1.0.0", "ICD": {"library_path": f"{folder}/{name}", "api_version": "1.3.0"}}, file)
            known.append(path)
            break
    return known


def find(check):
    """(environment variables, device) of the first NVIDIA device that Vulkan lists, or of the one that
    AERIE_TEST_VULKAN names; ({}, "") if there is none."""
    wanted = os.environ.get("AERIE_TEST_VULKAN")
    libraries = check.libraries("lib", "vulkan") + "".join(f":{folder}" for folder in FOLDERS[:1])
    attempts = []
    for path in ([None] if wanted else manifests(check)):
        more = {"LD_LIBRARY_PATH": libraries}
        if path:
            more.update(VK_DRIVER_FILES=path, VK_ICD_FILENAMES=path)
        listed = check.runner.output([check.program("aerie"), "devices"], 25, dict(more, VK_LOADER_DEBUG="error,warn"))
        attempts.append(f"{path or 'as the machine has it'}:\n{listed.strip()[:3000]}")
        name = re.escape(wanted) if wanted else "NVIDIA|GeForce|Tesla|Quadro|RTX"
        found = re.search(rf"^(vulkan:\d+) .*(?:{name})", listed, re.M | re.I)
        if not found and wanted and wanted.isdigit():
            found = re.search(rf"^(vulkan:{wanted}) ", listed, re.M)
        if found:
            # The op tests open the device with the number in this variable.
            number = found.group(1).split(":")[1]
            check.report.table("Vulkan's devices, and what the loader said", "\n".join(attempts))
            return dict(more, AERIE_TEST_DEVICE=found.group(1), AERIE_TEST_VULKAN=number), found.group(1)
    check.report.table("Vulkan's devices, and what the loader said", "\n".join(attempts) or "no library of NVIDIA's driver for Vulkan lies here")
    return {}, ""


def run(check):
    more, device = find(check)
    if not device:
        check.report.note(runs.Result("vulkan", "devices", 0, runs.SKIPPED, "no Vulkan driver here finds an NVIDIA GPU"))
        return
    check.report.note(runs.Result("vulkan", "devices", 0, runs.DONE, device))
    check.run("vulkan", "same bits as the CPU", 40, [check.program("engine_test"), "--from=same_bits_test.cpp"], more)
    # Matrices run by themselves: how a driver implements them is the greatest unknown.
    shards.run(check, "vulkan", "ops_test", "*/vulkan_cooperative", 7, 60, more)
    shards.run(check, "vulkan", "ops_test", "*/vulkan", 14, 70, more)
    for weights in ("f16", "q4_0"):
        check.bench("vulkan", "llama-2-7b", weights, "--rows", "1,8,16,60", "--draft", "none", seconds=4, limit=50, more=more, device=device)
    check.run("vulkan", "drafted = plain", 50, [check.program("engine_test"), "--from=lossless_test.cpp", "--gtest_filter=Types/Lossless.EveryDrafter/*"],
              dict(more, AERIE_TEST_PROMPTS="1"))
