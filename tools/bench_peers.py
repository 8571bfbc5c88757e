#!/usr/bin/env python3
"""Times inferd and llama.cpp on one GGUF file in one interleaved run, on the CPU.

bench_peers.py INFERD LLAMA_BIN_FOLDER FILE.gguf [--threads N] [--rounds N] [--part engine|http]

engine: prefill of 512 tokens and decode of 128, `inferd bench engine` and `llama-bench` by turns.
http:   32 streams of 64 prompt and 64 output tokens against `inferd serve` and `llama-server -np 32`, and one
        stream alone, servers by turns so that only one has weights in the caches.
Every round's numbers are printed; the summary has medians, their ratio, and in how many rounds inferd led.
"""
import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
import urllib.request


def run_json(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True)
    return json.loads(done.stdout)


def engine_round(args):
    ours = run_json([args.inferd, "bench", "engine", args.model, "--threads", str(args.threads), "--pp", "512",
                     "--tg", "128", "--repeat", "1", "--json"])
    theirs = run_json([os.path.join(args.llama, "llama-bench"), "-m", args.model, "-t", str(args.threads), "-p", "512",
                       "-n", "128", "-r", "1", "-o", "json"])
    row = {}
    for result in ours:
        row[("inferd", result["test"])] = result["tokens_per_s"]
        if "read_bandwidth_share" in result:
            row[("inferd", "share of read bandwidth")] = result["read_bandwidth_share"]
    for result in theirs:
        row[("llama.cpp", "pp512" if result["n_gen"] == 0 else "tg128")] = result["avg_ts"]
    return row


class Stream(threading.Thread):
    """One streamed completion; counts the events that carry text or a token."""

    def __init__(self, base, prompt, tokens, ours):
        super().__init__()
        self.base, self.events, self.first = base, 0, None
        body = {"prompt": prompt, "stream": True, "temperature": 0}
        body.update({"max_tokens": tokens, "ignore_eos": True} if ours else
                    {"n_predict": tokens, "ignore_eos": True, "cache_prompt": False})
        self.path = "/v1/completions" if ours else "/completion"
        self.body = json.dumps(body).encode()
        self.tokens = None

    def run(self):
        request = urllib.request.Request(self.base + self.path, self.body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            for line in answer:
                if line.startswith(b"data: {"):
                    self.first = self.first or time.monotonic()
                    self.events += 1


def http_once(args, ours, streams):
    """Tokens per second over all streams, and the median time to the first event."""
    source = random.Random(streams)
    port = 18000 + source.randrange(1000) + (0 if ours else 1000)
    if ours:
        command = [args.inferd, "serve", args.model, "--threads", str(args.threads), "--port", str(port),
                   "--max-seqs", "32", "--ctx", "4096"]
    else:
        command = [os.path.join(args.llama, "llama-server"), "-m", args.model, "-t", str(args.threads), "--port",
                   str(port), "-np", "32", "-c", "4096", "--no-webui"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    base = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(base + "/health" if not ours else base + "/health/ready", timeout=1)
                break
            except OSError:
                time.sleep(0.1)
        prompts = [[source.randrange(1000, 40000) for _ in range(64)] for _ in range(streams)]
        warm = Stream(base, prompts[0][:32], 4, ours)
        warm.start()
        warm.join()
        clients = [Stream(base, prompt, 64, ours) for prompt in prompts]
        begin = time.monotonic()
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        seconds = time.monotonic() - begin
        return streams * 64 / seconds, statistics.median(c.first - begin for c in clients)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def http_round(args):
    row = {}
    for streams in (1, 32):
        for name, ours in (("inferd", True), ("llama.cpp", False)):
            speed, first = http_once(args, ours, streams)
            row[(name, f"{streams} streams 64/64, tok/s")] = speed
            row[(name, f"{streams} streams, s to first")] = first
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inferd")
    parser.add_argument("llama")
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--part", choices=["engine", "http"], default="engine")
    args = parser.parse_args()
    rounds = []
    for i in range(args.rounds):
        rounds.append((engine_round if args.part == "engine" else http_round)(args))
        print(f"round {i + 1}: " + ", ".join(f"{n} {t} {v:.2f}" for (n, t), v in rounds[-1].items()), flush=True)
    for test in dict.fromkeys(test for _, test in rounds[0]):
        values = {name: [row[(name, test)] for row in rounds if (name, test) in row]
                  for name in ("inferd", "llama.cpp")}
        line = ", ".join(f"{name} {statistics.median(v):.2f} ({min(v):.2f} to {max(v):.2f})"
                         for name, v in values.items() if v)
        if all(values.values()):
            led = sum(a > b for a, b in zip(values["inferd"], values["llama.cpp"]))
            ratio = statistics.median(a / b for a, b in zip(values["inferd"], values["llama.cpp"]))
            line += f"; ratio {ratio:.2f}, inferd higher in {led} of {len(rounds)}"
        print(f"{test}: {line}")


if __name__ == "__main__":
    sys.exit(main())
