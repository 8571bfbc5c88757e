#!/usr/bin/env python3
"""Compares the memory plan with what the process really takes.

measure_plan.py INFERD [--model NAME]... [--ctx N]... [--seqs N]... [--threads N] [--within PERCENT]

For each combination: starts `INFERD serve`, reads the total of the plan that it prints before it loads, sends
prompts of random ids until every page of the KV pool has been written and every sequence slot has been used at
once, and reads the peak of the resident memory from the kernel. Exits with 1 when one differs by more than
--within percent. A ctx of 0 is the model's own.
"""
import argparse
import concurrent.futures
import json
import random
import re
import signal
import subprocess
import sys
import urllib.request

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def get(base, path):
    with urllib.request.urlopen(base + path, timeout=60) as answer:
        return json.load(answer)


def complete(base, ids, max_tokens):
    body = json.dumps({"prompt": ids, "max_tokens": max_tokens, "ignore_eos": True}).encode()
    request = urllib.request.Request(base + "/v1/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=3600) as answer:
        return json.load(answer)["usage"]


def fill(base, ctx, seqs):
    """Until no page is free, or a fifth more than the pool went through it: finished sequences leave their pages in the prefix
    cache, so new ones take pages that were never used. Returns the tokens it took."""
    source = random.Random(1)
    tokens = 0
    prompt = min(ctx - 40, 1000)
    pool = 16 * get(base, "/metrics.json")["kv_blocks_total"]
    with concurrent.futures.ThreadPoolExecutor(seqs) as clients:
        while get(base, "/metrics.json")["kv_blocks_free"] > 0 and tokens < 1.2 * pool:
            prompts = [[source.randrange(1000, 40000) for _ in range(prompt)] for _ in range(seqs)]
            for usage in clients.map(lambda ids: complete(base, ids, 32), prompts):
                tokens += usage["total_tokens"]
    return tokens


def peak_bytes(pid):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(r"VmHWM:\s*(\d+) kB", status.read()).group(1)) * 1024


def measure(inferd, model, ctx, seqs, threads):
    command = [inferd, "serve", model, "--port", "0", "--max-seqs", str(seqs)]
    if ctx:
        command += ["--ctx", str(ctx)]
    if threads:
        command += ["--threads", str(threads)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        ready = server.stdout.readline()
        if not ready.startswith("ready "):
            raise SystemExit(f"{' '.join(command)}: {server.stderr.read()}")
        base = ready.split()[1]
        ctx = int(re.search(r"ctx (\d+)", ready).group(1))
        tokens = fill(base, ctx, seqs)
        most = get(base, "/metrics.json")["step_sequences_max"]
        peak = peak_bytes(server.pid)
    finally:
        server.send_signal(signal.SIGTERM)
        said = server.communicate(timeout=60)[1]
    number, unit = re.search(r"^\s*total\s+([\d.,]+) (\w+)", said, re.MULTILINE).groups()
    planned = float(number.replace(",", "")) * UNITS[unit]
    off = 100 * (peak / planned - 1)
    print(f"{model:20} ctx {ctx:6}  seqs {seqs:3} ({most:2} in one step)  {tokens:7} tokens  "
          f"planned {planned / 2**20:8.1f} MiB  peak {peak / 2**20:8.1f} MiB  {off:+5.2f} %", flush=True)
    return abs(off)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("inferd")
    parser.add_argument("--model", action="append")
    parser.add_argument("--ctx", type=int, action="append")
    parser.add_argument("--seqs", type=int, action="append")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--within", type=float, default=5)
    args = parser.parse_args()
    worst = 0
    for model in args.model or ["smollm2", "qwen2.5-coder-0.5b"]:
        for ctx in args.ctx or [512, 4096, 0]:
            for seqs in args.seqs or [1, 16]:
                worst = max(worst, measure(args.inferd, model, ctx, seqs, args.threads))
    print(f"largest difference {worst:.2f} %, allowed {args.within:g} %")
    return 0 if worst <= args.within else 1


if __name__ == "__main__":
    sys.exit(main())
