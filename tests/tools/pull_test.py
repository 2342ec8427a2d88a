#!/usr/bin/env python3
"""`aerie pull` and -hf against a hub of our own on loopback: files that come whole, in parts, slowly, wrongly or not at all.
usage: pull_test.py PROGRAM MODEL.gguf MODEL_FOLDER"""
import hashlib
import http.server
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

program, gguf, folder = sys.argv[1:4]
COMMIT = "0123456789abcdef0123456789abcdef01234567"
with open(gguf, "rb") as opened:
    MODEL = opened.read()


def git_hash(data):
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def files_of(path):
    files = {}
    for name in os.listdir(path):
        with open(os.path.join(path, name), "rb") as file:
            files[name] = file.read()
    return files


class Hub(http.server.ThreadingHTTPServer):
    """Has the files of one repository, org/name, and whole ones of `others`, by name. `faults` holds what goes wrong with the next requests of a kind ("api" or
    the name of a file), each entry a function of the handler that may answer in place of the hub."""

    daemon_threads = True

    def __init__(self, files, large=(".gguf", ".safetensors")):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.large, self.others = files, large, {}
        self.faults, self.seen, self.gated, self.token, self.wrong = {}, [], False, None, {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def listing(self, repository="org/name"):
        entries = []
        for name, data in (self.others | {"org/name": self.files})[repository].items():
            entry = {"rfilename": name, "size": len(data), "blobId": git_hash(data)}
            if name.endswith(self.large):
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 134}
            entries.append(entry | self.wrong.get(name, {}))
        return {"id": repository, "sha": COMMIT, "siblings": entries}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, data=b"", **headers):
        self.send_response(status)
        for name, value in ({"Content-Length": len(data)} | headers).items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(data)

    def cut(self, data, of, status=200, **headers):
        """The beginning of an answer, and then the end of the connection."""
        self.send_response(status)
        self.send_header("Content-Length", str(of))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
        self.close_connection = True
        self.connection.close()

    def answer_without_length(self, data=MODEL + b"more", **headers):
        """An answer that ends with its connection."""
        self.send_response(200)
        for name, value in ({"Connection": "close"} | headers).items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)
        self.close_connection = True

    def data_from(self, data):
        """The data and its first byte, as the request's range asks for."""
        wanted = self.headers.get("Range")
        return int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0

    def send_file(self, data):
        first = self.data_from(data)
        if first >= len(data) and first > 0:
            return self.answer(416)
        if first == 0:
            return self.answer(200, data)
        return self.answer(206, data[first:], Content_Range=f"bytes {first}-{len(data) - 1}/{len(data)}")

    def do_GET(self):
        hub = self.server
        hub.seen.append((self.path, dict(self.headers)))
        if hub.token and self.headers.get("Authorization") != "Bearer " + hub.token:
            if hub.gated:
                return self.answer(401, b"{}", X_Error_Code="GatedRepo")
            return self.answer(401, b"{}", X_Error_Code="RepoNotFound")
        for other, files in hub.others.items():
            if self.path.startswith(f"/api/models/{other}/revision/main"):
                return self.answer(200, json.dumps(hub.listing(other)).encode())
            if self.path.startswith(f"/{other}/resolve/{COMMIT}/"):
                return self.send_file(files[self.path.rsplit("/", 1)[1]])
        is_api = self.path.startswith("/api/models/org/name/revision/main")
        name = "api" if is_api else self.path.removeprefix(f"/org/name/resolve/{COMMIT}/")
        waiting = hub.faults.get(name, [])
        if waiting and waiting.pop(0)(self) != "go on":
            return None
        if is_api:
            return self.answer(200, json.dumps(hub.listing()).encode())
        if name in hub.files:
            return self.send_file(hub.files[name])
        return self.answer(404, b"Entry not found", X_Error_Code="EntryNotFound")


class PullTest(unittest.TestCase):
    def setUp(self):
        self.home = tempfile.TemporaryDirectory()
        self.cache = os.path.join(self.home.name, "hub")

    def tearDown(self):
        self.home.cleanup()

    def environment(self, hub):
        return {"PATH": os.environ["PATH"], "HOME": self.home.name, "HF_HUB_CACHE": self.cache,
                "HF_ENDPOINT": hub.url if hub else "http://127.0.0.1:1", "no_proxy": "*"}

    def run_aerie(self, hub, *arguments, **variables):
        return subprocess.run([program, *arguments], env=self.environment(hub) | variables, capture_output=True, text=True,
                              timeout=120)

    def pull(self, hub, name="org/name", **variables):
        return self.run_aerie(hub, "pull", name, **variables)

    def works(self, hub, name="org/name", **variables):
        result = self.pull(hub, name, **variables)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def fails(self, hub, *words, name="org/name", **variables):
        result = self.pull(hub, name, **variables)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertEqual(len(result.stderr.strip().splitlines()), 1, result.stderr)
        self.no_half_file()
        return result.stderr

    def blobs(self, ending=""):
        found = os.path.join(self.cache, "models--org--name", "blobs")
        return sorted(name for name in os.listdir(found) if name.endswith(ending)) if os.path.isdir(found) else []

    def no_half_file(self):
        """Each blob without an ending is whole: its name is its hash."""
        for name in self.blobs():
            if "." in name:
                continue
            with open(os.path.join(self.cache, "models--org--name", "blobs", name), "rb") as file:
                data = file.read()
            self.assertIn(name, (hashlib.sha256(data).hexdigest(), git_hash(data)))

    def is_model(self, path):
        with open(path, "rb") as file:
            self.assertEqual(file.read(), MODEL)
        self.assertEqual(self.blobs(".incomplete"), [])

    def test_one_file_comes_and_is_linked_as_other_programs_expect(self):
        hub = Hub({"model.gguf": MODEL, "README.md": b"hello"})
        path = self.works(hub)
        self.is_model(path)
        repository = os.path.join(self.cache, "models--org--name")
        self.assertEqual(path, os.path.join(repository, "snapshots", COMMIT, "model.gguf"))
        self.assertEqual(os.readlink(path), "../../blobs/" + hashlib.sha256(MODEL).hexdigest())
        with open(os.path.join(repository, "refs", "main"), encoding="ascii") as file:
            self.assertEqual(file.read(), COMMIT)
        requests = len(hub.seen)
        self.assertEqual(self.works(hub), path)  # nothing but the listing is asked for again
        self.assertEqual(len(hub.seen), requests + 1)

    def test_a_folder_comes_without_what_is_no_part_of_the_model(self):
        hub = Hub(files_of(folder) | {"onnx/model.onnx": b"x" * 999, "README.md": b"hello", "consolidated.safetensors": b"y"})
        path = self.works(hub)
        self.assertIn("config.json", os.listdir(path))
        self.assertNotIn("README.md", os.listdir(path))
        self.assertNotIn("consolidated.safetensors", os.listdir(path))
        self.assertEqual(self.run_aerie(None, "info", "org/name").returncode, 0)

    def test_a_quantisation_is_chosen(self):
        hub = Hub({"m-Q4_K_M.gguf": MODEL, "m-Q8_0.gguf": MODEL + b"8", "m-IQ4_K_M.gguf": b"i", "mmproj-m-Q8_0.gguf": b"v"})
        self.assertTrue(self.works(hub).endswith("/m-Q4_K_M.gguf"))
        self.assertTrue(self.works(hub, "hf:org/name:q8_0").endswith("/m-Q8_0.gguf"))
        self.fails(hub, "no file is Q5_K_M", "m-IQ4_K_M, m-Q4_K_M, m-Q8_0", name="org/name:Q5_K_M")

    def test_a_split_file_comes_with_all_its_parts(self):
        hub = Hub({"Q8_0/m-Q8_0-00001-of-00002.gguf": MODEL, "Q8_0/m-Q8_0-00002-of-00002.gguf": b"second"})
        path = self.works(hub)
        self.assertTrue(path.endswith("/Q8_0/m-Q8_0-00001-of-00002.gguf"))
        self.assertTrue(os.path.exists(path.replace("00001-of", "00002-of")))
        del hub.files["Q8_0/m-Q8_0-00002-of-00002.gguf"]
        self.fails(hub, "has 2 parts, and some of them are missing")

    def test_an_address_names_a_file(self):
        hub = Hub({"m-Q4_K_M.gguf": MODEL, "m-F16.gguf": MODEL + b"16", "a/m-Q8_0.gguf": b"a", "b/m-Q8_0.gguf": b"b"})
        page = "https://huggingface.co/org/name/"
        for where in ("blob/main/m-F16.gguf", "resolve/main/m-F16.gguf?download=true"):
            self.assertTrue(self.works(hub, page + where).endswith("/m-F16.gguf"))
        self.assertTrue(self.works(hub, page + "tree/main").endswith("/m-Q4_K_M.gguf"))
        self.fails(hub, "several files are Q8_0: a/m-Q8_0, b/m-Q8_0", "/blob/main/", name="org/name:Q8_0")
        self.assertTrue(self.works(hub, page + "blob/main/b/m-Q8_0.gguf").endswith("/b/m-Q8_0.gguf"))
        self.fails(hub, "no model is in 'm-Q2_K.gguf'", name=page + "blob/main/m-Q2_K.gguf")
        for other in ("tree/main/b", "blob/main/README.md", "resolve/main/model.safetensors"):
            refused = self.pull(hub, page + other)
            self.assertEqual(refused.returncode, 2, other)
            self.assertIn("a file that ends with .gguf", refused.stderr)
        refused = self.pull(hub, page + "blob/dev/m-F16.gguf")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("only the revision main", refused.stderr)

    def test_a_model_is_fetched_where_it_is_named(self):
        hub = Hub({"model.gguf": MODEL})
        offline = self.run_aerie(hub, "info", "-hf", "org/name", "--offline")
        self.assertEqual(offline.returncode, 1)
        self.assertIn("downloads are off", offline.stderr)
        self.assertEqual(hub.seen, [])
        first = self.run_aerie(hub, "info", "--json", "-hf", "org/name")
        self.assertEqual(first.returncode, 0, first.stderr)
        again = self.run_aerie(None, "info", "--json", "-m", "hf:org/name", HF_HUB_OFFLINE="1")
        self.assertEqual(again.stdout, first.stdout)

    def knows_head(self, **more):
        """A folder of models whose heads.json names a head for org/name."""
        models = os.path.join(self.home.name, "models")
        os.makedirs(models, exist_ok=True)
        with open(os.path.join(models, "heads.json"), "w", encoding="utf-8") as file:
            json.dump({"schema": "aerie-heads-1", "heads": [{"target": "Org/Name", "head": "org/head"} | more]}, file)
        return {"AERIE_MODELS": models}

    def drafter_of(self, hub, *arguments, **variables):
        result = self.run_aerie(hub, "info", "--json", *arguments, **variables)
        self.assertEqual(result.returncode, 0, result.stderr)
        return "head" in json.loads(result.stdout), result.stderr

    def test_a_known_head_comes_with_its_model(self):
        hub = Hub(files_of(folder))
        hub.others["org/head"] = files_of(folder + "-eagle3")
        variables = self.knows_head()
        self.assertFalse(self.drafter_of(hub, "-hf", "org/name", "--draft", "lookup", **variables)[0])
        self.assertEqual([path for path, _ in hub.seen if "org/head" in path], [])
        self.assertFalse(self.drafter_of(hub, "-m", "org/name", **variables)[0], "a plain name downloads nothing")
        self.assertFalse(self.drafter_of(hub, "-hf", "org/name", "--offline", **variables)[0])
        has_head, err = self.drafter_of(hub, "-hf", "org/name", **variables)
        self.assertTrue(has_head)
        self.assertIn("hf:org/head is a head for this model", err)
        self.assertTrue(self.drafter_of(None, "-m", "org/name", **variables)[0], "it is in the cache now")
        self.assertEqual(self.drafter_of(None, "-hf", "org/name", **variables), (True, ""))
        other = self.drafter_of(None, "-m", "org/name", **self.knows_head(sha256="0" * 64))
        self.assertIn("other weights", other[1])
        weights = files_of(folder + "-eagle3")["model.safetensors"]
        same = self.knows_head(sha256=hashlib.sha256(weights).hexdigest())
        self.assertEqual(self.drafter_of(None, "-m", "org/name", **same), (True, ""))

    def test_a_known_head_that_does_not_come_is_no_error(self):
        hub = Hub(files_of(folder))
        hub.others["org/head"] = {"README.md": b"moved"}
        has_head, err = self.drafter_of(hub, "-hf", "org/name", **self.knows_head())
        self.assertFalse(has_head)
        self.assertIn("without a head: ", err)

    def test_a_known_head_that_does_not_fit_is_no_error(self):
        hub = Hub(files_of(folder))
        hub.others["org/head"] = files_of(folder + "-eagle3")
        config = json.loads(hub.others["org/head"]["config.json"])
        hub.others["org/head"]["config.json"] = json.dumps(config | {"hidden_size": 128}).encode()
        has_head, err = self.drafter_of(hub, "-hf", "org/name", **self.knows_head())
        self.assertFalse(has_head)
        self.assertIn("(without a head: ", err)
        for asked in (["--head", "hf:org/head"], ["--draft", "eagle3"], ["--draft-weights", "f16"]):
            result = self.run_aerie(hub, "info", "-hf", "org/name", *asked, **self.knows_head())
            self.assertEqual(result.returncode, 1, asked)
            self.assertIn("128", result.stderr)

    def test_a_known_head_with_other_tensors_is_no_error(self):
        """Its configuration fits; what is wrong shows when the weights are loaded."""
        hub = Hub(files_of(folder))
        hub.others["org/head"] = files_of(folder + "-eagle3")
        weights = hub.others["org/head"]["model.safetensors"]
        name = b"midlayer.self_attn.q_proj.weight"
        self.assertEqual(weights.count(name), 1)
        hub.others["org/head"]["model.safetensors"] = weights.replace(name, name.replace(b"q_proj", b"o_prox"))
        generate = "generate", "-hf", "org/name", "-p", "A lighthouse", "-n", "8", "--temp", "0"
        result = self.run_aerie(hub, *generate, **self.knows_head())
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("(without a head: ", result.stderr)
        self.assertIn("best: ", result.stderr)
        self.assertEqual(self.run_aerie(hub, *generate, "--draft", "none").stdout, result.stdout)
        asked = self.run_aerie(hub, *generate, "--head", "hf:org/head")
        self.assertEqual(asked.returncode, 1, asked.stderr)

    def test_a_table_of_heads_that_is_none(self):
        hub = Hub(files_of(folder))
        for wrong in ({"head": 7}, {"target": "../x"}, {"sha256": "12"}, {"also_named": "x"}, {"kinds": 1}):
            result = self.run_aerie(hub, "info", "-hf", "org/name", **self.knows_head(**wrong))
            self.assertEqual(result.returncode, 1, wrong)
            self.assertRegex(result.stderr, r"heads\.json: head 1: .*" + next(iter(wrong)))

    def remove(self, *arguments):
        return self.run_aerie(None, "models", "rm", *arguments)

    def test_a_model_is_deleted_where_nothing_else_needs_its_files(self):
        hub = Hub({"model-Q4_K_M.gguf": MODEL, "model-Q8_0.gguf": MODEL + b"\0" * 32, "copy-Q5_0.gguf": MODEL})
        for quant in ("Q4_K_M", "Q8_0", "Q5_0"):
            self.works(hub, "org/name:" + quant)
        self.assertEqual(self.remove("org/name:Q4_K_M").returncode, 2, "it cannot ask")
        self.assertEqual(self.remove("org/name:Q2_K", "-y").returncode, 1)
        self.assertEqual(len(self.blobs()), 2)
        self.assertIn("0.0 MB", self.remove("org/name:q4_k_m", "--yes").stdout, "the copy needs the blob")
        self.assertEqual(len(self.blobs()), 2)
        self.assertEqual(self.run_aerie(None, "info", "org/name:Q5_0").returncode, 0)
        self.assertEqual(self.remove("org/name:Q5_0", "-y").returncode, 0)
        self.assertEqual(self.blobs(), [hashlib.sha256(MODEL + b"\0" * 32).hexdigest()])
        self.assertEqual(self.remove("org/name", "-y").returncode, 0)
        self.assertEqual(os.listdir(self.cache), [])
        self.assertEqual(self.remove("org/name", "-y").returncode, 1)

    def test_a_download_that_has_begun_stays(self):
        hub = Hub({"m-Q4_K_M.gguf": MODEL, "m-Q8_0.gguf": MODEL + b"8"})
        self.works(hub, "org/name:Q4_K_M")
        hub.faults["m-Q8_0.gguf"] = [lambda handler: handler.cut((MODEL + b"8")[:5000], len(MODEL) + 1), lambda handler: handler.answer(403)]
        self.assertEqual(self.pull(hub, "org/name:Q8_0").returncode, 1)
        self.assertEqual(self.remove("org/name:Q4_K_M", "-y").returncode, 0)
        self.assertEqual(self.blobs(), [hashlib.sha256(MODEL + b"8").hexdigest() + ".incomplete"])

    def test_the_file_of_an_address_is_deleted_alone(self):
        hub = Hub({"m-Q4_K_M.gguf": MODEL, "m-F16.gguf": MODEL + b"16"})
        page = "https://huggingface.co/org/name/blob/main/m-F16.gguf"
        kept, gone = self.works(hub), self.works(hub, page)
        self.assertEqual(self.remove("--yes", page).returncode, 0)
        self.is_model(kept)
        self.assertFalse(os.path.exists(gone))
        again = self.remove("--yes", page)
        self.assertEqual(again.returncode, 1)
        self.assertIn("'m-F16.gguf': not in the Hugging Face cache", again.stderr)

    def test_without_a_home_the_password_file_knows_it(self):
        variables = self.environment(None)
        del variables["HOME"], variables["HF_HUB_CACHE"]
        result = subprocess.run([program, "info", "org/none"], env=variables, capture_output=True, text=True, timeout=60)
        self.assertIn(os.path.join(pwd.getpwuid(os.getuid()).pw_dir, ".cache"), result.stderr)

    def test_the_cache_of_aerie_is_shown_and_cleared(self):
        kept = os.path.join(self.home.name, ".cache", "aerie")
        os.makedirs(kept)
        for name in ("costs-0.json", "weights-0.txt", "pipelines-0", "notes.txt"):
            with open(os.path.join(kept, name), "w", encoding="utf-8") as file:
                file.write("x" * 10)
        shown = json.loads(self.run_aerie(None, "cache", "--json").stdout)
        self.assertEqual([kind["size_bytes"] for kind in shown["kinds"]], [10, 10, 10])
        self.assertEqual(self.run_aerie(None, "cache", "--clear").returncode, 0)
        self.assertEqual(os.listdir(kept), ["notes.txt"])

    def test_it_goes_on_after_a_cut(self):
        hub = Hub({"model.gguf": MODEL})
        half = len(MODEL) // 2
        hub.faults["model.gguf"] = [lambda handler: handler.cut(MODEL[:half], len(MODEL))]
        self.is_model(self.works(hub))
        self.assertEqual(hub.seen[-1][1]["Range"], f"bytes={half}-")

    def test_it_goes_on_after_many_cuts(self):
        hub = Hub({"model.gguf": MODEL})
        step = len(MODEL) // 9

        def some(handler):
            first = handler.data_from(MODEL)
            handler.cut(MODEL[first:first + step], len(MODEL) - first, 206 if first else 200)

        hub.faults["model.gguf"] = [some] * 8
        self.is_model(self.works(hub))

    def test_it_begins_again_where_the_server_cannot_go_on(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["model.gguf"] = [lambda handler: handler.cut(MODEL[:1000], len(MODEL)),
                                    lambda handler: handler.answer(200, MODEL)]
        self.is_model(self.works(hub))

    def test_a_killed_download_goes_on(self):
        hub = Hub({"model.gguf": MODEL})

        def slowly(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(MODEL)))
            handler.end_headers()
            handler.wfile.write(MODEL[:70000])
            handler.wfile.flush()
            time.sleep(30)

        for ending in (signal.SIGKILL, signal.SIGINT):
            hub.faults["model.gguf"] = [slowly]
            with subprocess.Popen([program, "pull", "org/name"], env=self.environment(hub), stderr=subprocess.DEVNULL) as running:
                until = time.monotonic() + 30
                while hub.faults["model.gguf"] or not (names := self.blobs(".incomplete")) or os.path.getsize(
                        os.path.join(self.cache, "models--org--name", "blobs", names[0])) < 70000:
                    self.assertLess(time.monotonic(), until)
                    time.sleep(0.02)
                running.send_signal(ending)
                running.wait(10)
            self.assertEqual(len(self.blobs(".incomplete")), 1)
            not_there = self.run_aerie(None, "info", "-hf", "org/name", "--offline")
            self.assertEqual(not_there.returncode, 1)
        self.is_model(self.works(hub))
        self.assertEqual(hub.seen[-1][1]["Range"], "bytes=70000-")

    def test_two_programs_do_not_mix_their_bytes(self):
        hub = Hub({"model.gguf": MODEL})

        def slowly(handler):
            time.sleep(1)
            return "go on"

        hub.faults["model.gguf"] = [slowly]
        with subprocess.Popen([program, "pull", "-q", "org/name"], env=self.environment(hub),
                              stdout=subprocess.DEVNULL) as first:
            until = time.monotonic() + 30
            while not self.blobs(".incomplete"):
                self.assertLess(time.monotonic(), until)
                time.sleep(0.02)
            self.fails(hub, "another program downloads it")
            self.assertEqual(first.wait(30), 0)
        self.is_model(self.works(hub))

    def test_a_wrong_hash_leaves_nothing(self):
        hub = Hub({"model.gguf": MODEL})
        damaged = MODEL[:-1] + bytes([MODEL[-1] ^ 1])
        hub.faults["model.gguf"] = [lambda handler: handler.answer(200, damaged)]
        self.fails(hub, "SHA-256")
        self.assertEqual(self.blobs(), [])
        self.is_model(self.works(hub))

    def test_damage_on_the_disk_is_found(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["model.gguf"] = [lambda handler: handler.cut(MODEL[:5000], len(MODEL)), lambda handler: handler.answer(403)]
        self.fails(hub, "private")
        path = os.path.join(self.cache, "models--org--name", "blobs", self.blobs(".incomplete")[0])
        with open(path, "r+b") as file:
            file.write(b"damage")
        self.fails(hub, "SHA-256")
        self.is_model(self.works(hub))

    def test_a_partial_file_that_is_too_long_is_not_used(self):
        hub = Hub({"model.gguf": MODEL})
        blobs = os.path.join(self.cache, "models--org--name", "blobs")
        os.makedirs(blobs)
        with open(os.path.join(blobs, hashlib.sha256(MODEL).hexdigest() + ".incomplete"), "wb") as file:
            file.write(MODEL + b"more")
        self.is_model(self.works(hub))

    def test_too_many_bytes(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["model.gguf"] = [lambda handler: handler.answer(200, MODEL + b"more"), Handler.answer_without_length]
        self.fails(hub, "it is another file")
        self.fails(hub, "more than the")
        self.is_model(self.works(hub))

    def test_a_page_in_place_of_the_file(self):
        """A page that asks to log in comes with status 200; it must not become the beginning of the file."""
        hub = Hub({"model.gguf": MODEL})
        page = b"<html>please log in</html>"
        hub.faults["model.gguf"] = [lambda handler: handler.answer(200, page),
                                    lambda handler: handler.answer_without_length(page)]
        self.fails(hub, "it is another file")
        self.fails(hub, f"{len(page)} of {len(MODEL)} bytes")
        hub.seen.clear()
        self.is_model(self.works(hub))
        self.assertEqual([headers["Range"] for _, headers in hub.seen if "Range" in headers], [])

    def test_a_page_leaves_what_has_come(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["model.gguf"] = [lambda handler: handler.cut(MODEL[:5000], len(MODEL)), lambda handler: handler.answer(403)]
        self.fails(hub, "private")
        for wrong in (lambda handler: handler.answer(200, b""), lambda handler: handler.answer(200, b"<html>"),
                      lambda handler: handler.answer_without_length(b"<html>", Content_Type="Text/HTML; charset=utf-8"),
                      lambda handler: handler.answer_without_length(b'{"error": "login"}'),
                      lambda handler: handler.answer_without_length(MODEL[:3000])):
            hub.faults["model.gguf"] = [wrong]
            self.fails(hub, "the server sends ")
            path = os.path.join(self.cache, "models--org--name", "blobs", self.blobs(".incomplete")[0])
            self.assertEqual(os.path.getsize(path), 5000)
        self.is_model(self.works(hub))
        self.assertEqual(hub.seen[-1][1]["Range"], "bytes=5000-")

    def test_a_server_that_begins_again(self):
        """The bytes that have come are compared with those that come again, and stay."""
        hub = Hub({"model.gguf": MODEL})
        cut = lambda handler: handler.cut(MODEL[:5000], len(MODEL))
        for again in (lambda handler: handler.answer(200, MODEL), lambda handler: handler.answer_without_length(MODEL)):
            hub.faults["model.gguf"] = [cut, again]
            self.is_model(self.works(hub))
            shutil.rmtree(self.cache)
        path = os.path.join(self.cache, "models--org--name", "blobs", hashlib.sha256(MODEL).hexdigest() + ".incomplete")
        for worse in (lambda handler: handler.answer_without_length(MODEL[:3000]),
                      lambda handler: handler.answer(200, b"no file", Content_Encoding="gzip")):
            hub.faults["model.gguf"] = [cut, worse]
            self.fails(hub, "the server sends ")
            self.assertEqual(os.path.getsize(path), 5000)
        hub.faults["model.gguf"] = [lambda handler: handler.answer(200, b"x" + MODEL[1:])]
        self.fails(hub, "it was deleted")
        self.is_model(self.works(hub))

    def test_another_part_than_was_asked_for(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["model.gguf"] = [
            lambda handler: handler.cut(MODEL[:5000], len(MODEL)),
            lambda handler: handler.answer(206, MODEL[4000:], Content_Range=f"bytes 4000-{len(MODEL) - 1}/{len(MODEL)}")]
        self.fails(hub, "another part of the file")
        self.is_model(self.works(hub))

    def test_a_hub_that_says_nothing(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["api"] = [lambda handler: time.sleep(7) or "go on"]
        result = self.pull(hub)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn(f"waiting for {hub.url}", result.stderr)

    def test_too_few_bytes(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["model.gguf"] = [lambda handler: handler.answer(200, b"")] * 9
        self.fails(hub, "0 of")

    def test_waiting_as_the_server_asks(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["api"] = [lambda handler: handler.answer(429, Retry_After=1)]
        hub.faults["model.gguf"] = [lambda handler: handler.answer(429, Retry_After=1),
                                    lambda handler: handler.answer(503, Retry_After=0)]
        start = time.monotonic()
        self.is_model(self.works(hub))
        self.assertGreaterEqual(time.monotonic() - start, 2)

    def test_waiting_for_hours_is_refused(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["api"] = [lambda handler: handler.answer(429, Retry_After=7200)]
        self.fails(hub, "7200 s")
        hub.faults["api"] = [lambda handler: handler.answer(429, Retry_After="Fri, 31 Dec 2027 23:59:59 GMT")]
        self.fails(hub, "too many requests")

    def test_errors_of_the_server_that_pass(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["api"] = [lambda handler: handler.answer(502)]
        hub.faults["model.gguf"] = [lambda handler: handler.answer(500), lambda handler: handler.answer(504)]
        self.is_model(self.works(hub))

    def test_errors_that_do_not_pass(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["model.gguf"] = [lambda handler: handler.answer(410)]
        self.fails(hub, "HTTP 410")
        hub.faults["model.gguf"] = [lambda handler: handler.answer(404)]
        self.fails(hub, "not found")
        self.fails(hub, "not found", name="org/other")

    def test_private_and_gated(self):
        hub = Hub({"model.gguf": MODEL})
        hub.token = "hf_secret"
        self.fails(hub, "private", "HF_TOKEN")
        self.fails(hub, "this HF_TOKEN may not", HF_TOKEN="hf_other")
        hub.gated = True
        self.fails(hub, "is gated", hub.url + "/org/name", "HF_TOKEN")
        self.is_model(self.works(hub, HF_TOKEN="hf_secret"))

    def test_the_token_of_a_login_is_used(self):
        hub = Hub({"model.gguf": MODEL})
        hub.token = "hf_secret"
        os.makedirs(os.path.join(self.home.name, ".cache/huggingface"))
        with open(os.path.join(self.home.name, ".cache/huggingface/token"), "w", encoding="ascii") as file:
            file.write("hf_secret\n")
        self.is_model(self.works(hub))

    def test_a_token_does_not_follow_redirections(self):
        elsewhere = Hub({"model.gguf": MODEL})
        hub = Hub({"model.gguf": MODEL})
        hub.token = "hf_secret"
        # Another name of the same machine is another host.
        target = elsewhere.url.replace("127.0.0.1", "localhost") + f"/org/name/resolve/{COMMIT}/model.gguf"
        hub.faults["model.gguf"] = [lambda handler: handler.answer(302, Location=target)]
        self.is_model(self.works(hub, HF_TOKEN="hf_secret"))
        self.assertNotIn("Authorization", elsewhere.seen[-1][1])

    def test_redirections_without_end(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["model.gguf"] = [lambda handler: handler.answer(302, Location=handler.path)] * 20
        self.fails(hub, "edirect")

    def test_a_redirection_to_a_file_is_not_followed(self):
        hub = Hub({"model.gguf": MODEL})
        hub.faults["model.gguf"] = [lambda handler: handler.answer(302, Location="file:///etc/passwd")]
        self.fails(hub, "file")

    def test_no_server(self):
        self.fails(None, "127.0.0.1")

    def test_answers_that_are_none(self):
        hub = Hub({"model.gguf": MODEL})
        for text in (b"", b"<html>", b"{}", b"[]", b'{"sha": "x", "siblings": []}', b'{"sha": 3, "siblings": 4}'):
            hub.faults["api"] = [lambda handler, text=text: handler.answer(200, text)]
            self.fails(hub)

    def test_names_that_lead_elsewhere(self):
        hub = Hub({"model.gguf": MODEL})
        for name in ("../../evil.gguf", "/etc/evil.gguf", "a/../../evil.gguf", "", "a//b.gguf", "a\\b.gguf"):
            hub.wrong["model.gguf"] = {"rfilename": name}
            self.fails(hub, "its name is none")
        hub.wrong["model.gguf"] = {"lfs": {"sha256": "../../../evil", "size": 1}}
        self.fails(hub, "damaged")

    def test_no_model_in_the_repository(self):
        self.fails(Hub({"README.md": b"hello"}), "no model")
        self.fails(Hub({"config.json": b"{}"}), "no model")

    def test_more_than_the_disk_holds(self):
        hub = Hub({"model.gguf": MODEL})
        hub.wrong["model.gguf"] = {"lfs": {"sha256": hashlib.sha256(MODEL).hexdigest(), "size": 1 << 60}}
        self.fails(hub, "free")

    def test_a_cache_that_cannot_be_written(self):
        with open(self.cache, "wb"):
            pass
        self.fails(Hub({"model.gguf": MODEL}), self.cache)

    def test_names(self):
        for name in ("name", "a/b/c", "../name", "org/..", "org/name:", "org/na me", "hf:", "org/name:Q4:K"):
            result = self.pull(None, name)
            self.assertEqual(result.returncode, 2, name)
            self.assertIn("ORG/NAME", result.stderr)
        self.assertEqual(self.pull(None, "org/name", HF_ENDPOINT="ftp://x").returncode, 2)
        self.assertEqual(self.pull(None, "org/name", HF_TOKEN="a\nb").returncode, 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
