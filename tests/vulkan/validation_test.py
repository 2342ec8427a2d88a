#!/usr/bin/env python3
"""Runs programs under the Khronos validation layer; every message is a failure.

usage: validation_test.py [--layer LIBRARY] core|sync|gpu CANARY PROGRAM [ARGUMENT...] [-- PROGRAM [ARGUMENT...]]...

The canary makes one mistake that the mode must report. Where it does not (no layer, or a layer that
cannot work with this driver), the mode counts as not run: exit status 77, which CTest shows as skipped.
With --layer the layer is LIBRARY, of 2025 or later, and must report the mistake; the exit status is 77 only where there
is no such file or no device.
"""
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time

ENABLES = {
    "core": "",
    "sync": "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,"
            "VALIDATION_CHECK_ENABLE_SYNCHRONIZATION_VALIDATION_QUEUE_SUBMIT",
    "gpu": "VK_VALIDATION_FEATURE_ENABLE_GPU_ASSISTED_EXT",
}
# The layer's name for the canary's mistake.
CANARY = {"core": "VUID-vkCmdPipelineBarrier-dstAccessMask", "sync": "SYNC-HAZARD-", "gpu": "out of bounds"}
MESSAGE = re.compile(r"^(.*msgNum: |Validation [A-Z]\w+: \[)", re.MULTILINE)  # starts each message
# Settings for layers of 2025 and later, which also check accesses of shaders and races in shared memory. The layers'
# messages about themselves are filtered out: that settings cost time, and what their own shaders want of the device.
SETTINGS = {
    "core": "",
    "sync": "validate_sync = true\nsyncval_shader_accesses_heuristic = true\n",
    "gpu": "gpuav_enable = true\ngpuav_shared_memory_data_race = true\n",
}
OF_THEMSELVES = "message_id_filter = VALIDATION-SETTINGS,WARNING-Setting-Limit-Adjusted\n"
NAME = "VK_LAYER_KHRONOS_validation"


def settings_of(mode, log, is_current):
    lines = "debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\nreport_flags = error,warn,perf\nlog_filename = " + log + "\n"
    if is_current:
        lines += SETTINGS[mode] + OF_THEMSELVES
    else:
        lines += "enables = " + ENABLES[mode] + "\ngpuav_buffer_oob = true\n"
    return "".join("khronos_validation." + line for line in lines.splitlines(keepends=True))


def write_manifest(layer, folder):
    described = {"name": NAME, "type": "GLOBAL", "library_path": os.path.abspath(layer), "api_version": "1.4.0",
                 "implementation_version": "1", "description": "Khronos Validation Layer"}
    with open(os.path.join(folder, "VkLayer_khronos_validation.json"), "w") as file:
        json.dump({"file_format_version": "1.1.0", "layer": described}, file)


def run(mode, command, folder, layer):
    """(status of the command, messages of the layer, output of the command)."""
    log = os.path.join(folder, "messages")
    settings = os.path.join(folder, "vk_layer_settings.txt")
    with open(settings, "w") as file:
        file.write(settings_of(mode, log, bool(layer)))
    if os.path.exists(log):
        os.remove(log)
    env = dict(os.environ, VK_INSTANCE_LAYERS=NAME, VK_LAYER_SETTINGS_PATH=settings)
    if layer:
        env["VK_LAYER_PATH"] = folder
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env)
    text = ""
    if os.path.exists(log):
        with open(log, errors="replace") as file:
            text = file.read()
    return done.returncode, text, done.stdout


def main():
    arguments = sys.argv[1:]
    layer = None
    if arguments[0] == "--layer":
        layer, arguments = arguments[1], arguments[2:]
        if not os.path.exists(layer):
            print(f"SKIPPED: there is no {layer}; scripts/setup.sh --vulkan unpacks one")
            return 77
    mode, canary = arguments[:2]
    commands = [list(words) for is_break, words in itertools.groupby(arguments[2:], lambda word: word == "--")
                if not is_break]
    with tempfile.TemporaryDirectory() as folder:
        if layer:
            write_manifest(layer, folder)
        status, text, output = run(mode, [canary, mode], folder, layer)
        if CANARY[mode] not in text:
            is_skipped = not layer or status == 77
            print(f"{'SKIPPED' if is_skipped else 'error'}: {mode} validation was not run: it does not report the "
                  f"canary's mistake (status {status})\n{output}{text[:4000]}")
            return 77 if is_skipped else 1
        print(f"{mode}: the canary's mistake is reported")
        failed = False
        for command in commands:
            start = time.monotonic()
            status, text, output = run(mode, command, folder, layer)
            messages = MESSAGE.findall(text)
            ran = re.findall(r"^\[==========\] (\d+) tests? .* ran", output, re.MULTILINE)
            print(f"{mode}: {' '.join([os.path.basename(command[0])] + command[1:])}: {ran[0] if ran else 'no'} tests, "
                  f"status {status}, {len(messages)} messages, {time.monotonic() - start:.1f} s")
            if status != 0:
                print(output[-4000:])
            if text.strip():
                print(text[:4000])
            failed = failed or status != 0 or bool(text.strip())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
