#!/usr/bin/env python3
"""Runs programs under the Khronos validation layer; every message is a failure.

usage: validation_test.py core|sync|gpu CANARY PROGRAM [ARGUMENT...] [-- PROGRAM [ARGUMENT...]]...

The canary makes one mistake that the mode must report. Where it does not (no layer, or a layer that
cannot work with this driver), the mode counts as not run: exit status 77, which CTest shows as skipped.
"""
import itertools
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
# What the canary's mistake is called.
CANARY = {"core": "VUID-vkCmdPipelineBarrier-dstAccessMask", "sync": "SYNC-HAZARD-", "gpu": "out of bounds"}
MESSAGE = re.compile(r"^.*msgNum: ", re.MULTILINE)  # starts each message


def run(mode, command, folder):
    """The status of the command, and what the layer has said."""
    log = os.path.join(folder, "messages")
    settings = os.path.join(folder, "vk_layer_settings.txt")
    with open(settings, "w") as file:
        file.write("khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n"
                   "khronos_validation.report_flags = error,warn,perf\n"
                   "khronos_validation.log_filename = " + log + "\n"
                   "khronos_validation.enables = " + ENABLES[mode] + "\n"
                   "khronos_validation.gpuav_buffer_oob = true\n")
    if os.path.exists(log):
        os.remove(log)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, VK_INSTANCE_LAYERS="VK_LAYER_KHRONOS_validation",
                                   VK_LAYER_SETTINGS_PATH=settings))
    text = ""
    if os.path.exists(log):
        with open(log, errors="replace") as file:
            text = file.read()
    return done.returncode, text, done.stdout


def main():
    mode, canary = sys.argv[1:3]
    commands = [list(words) for is_break, words in itertools.groupby(sys.argv[3:], lambda word: word == "--")
                if not is_break]
    with tempfile.TemporaryDirectory() as folder:
        status, text, output = run(mode, [canary, mode], folder)
        if CANARY[mode] not in text:
            print(f"SKIPPED: {mode} validation was not run: it does not report the canary's mistake "
                  f"(status {status})\n{output}{text[:4000]}")
            return 77
        print(f"{mode}: the canary's mistake is reported")
        failed = False
        for command in commands:
            start = time.monotonic()
            status, text, output = run(mode, command, folder)
            messages = MESSAGE.findall(text)
            print(f"{mode}: {' '.join([os.path.basename(command[0])] + command[1:])}: status {status}, "
                  f"{len(messages)} messages, {time.monotonic() - start:.1f} s")
            if status != 0:
                print(output[-4000:])
            if text.strip():
                print(text[:4000])
            failed = failed or status != 0 or bool(text.strip())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
