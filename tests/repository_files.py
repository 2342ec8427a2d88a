"""The files of the repository, for tests that read them."""
import os
import subprocess


def repository_files(root):
    """Paths below `root`: files that git tracks or would add, or all but the builds where git is not here."""
    try:
        names = subprocess.run(["git", "-c", "safe.directory=*", "-C", root, "ls-files", "-z", "--cached", "--others",
                                "--exclude-standard"], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        return [name for name in names.stdout.decode().split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        pass
    found = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders
                         if name not in (".git", ".cache", "__pycache__", "node_modules", "dist") and not name.startswith("build")]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return found
