"""The archive of gpu_suite.sh on the machine with the GPU. It is unpacked once for all calls that follow."""

import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile

ARCHIVE = "suite.tar.xz"


class Missing(Exception):
    """No suite can be used; the message says why, in one line."""


def unpack(path):
    """The folder of a suite that lies at `path`: an archive, a folder that holds one, or a folder of programs."""
    archive = os.path.join(path, ARCHIVE) if os.path.isdir(path) else path
    if os.path.isdir(os.path.join(path, "bin")):
        return mark_programs(path)
    if not os.path.isfile(archive):
        raise Missing(f"{path} holds no {ARCHIVE}: build the target gpu_suite, and carry it here")
    with open(archive, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:16]
    folder = os.path.join(tempfile.gettempdir(), f"aerie-gpu-suite-{os.getuid()}-{digest}")
    whole = os.path.join(folder, ".whole")
    if not os.path.exists(whole):
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, mode=0o700)
        extract(archive, folder)
        with open(whole, "w", encoding="utf-8"):
            pass
    return mark_programs(folder)


def extract(archive, folder):
    if shutil.which("xz") and shutil.which("tar"):
        done = subprocess.run(["tar", "-xJf", archive, "-C", folder], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Missing(f"{archive}: {done.stderr.strip()[:200]}")
        return
    try:
        with tarfile.open(archive, "r:xz") as tar:
            tar.extractall(folder)
    except (OSError, tarfile.TarError, EOFError) as error:
        raise Missing(f"{archive}: {error}") from error


def mark_programs(folder):
    """Makes the suite's programs executable again, since copying may have lost that. Returns the folder."""
    programs = os.path.join(folder, "bin")
    for name in os.listdir(programs):
        try:
            os.chmod(os.path.join(programs, name), 0o755)
        except OSError:
            pass  # files of another user stay as they are
    return folder
