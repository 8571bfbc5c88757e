#!/usr/bin/env python3
"""Makes random texts with the ids that Hugging Face's library gives them, as a golden folder for tokenizer_real_test.

    pip install tokenizers==0.23.3 gguf==0.19.0
    tools/fuzz_tokenizer.py --gguf smollm2=smollm2.gguf --gguf qwen2.5-coder=qwen2.5-coder-0.5b.gguf --out FOLDER
    export INFERD_GOLDEN=FOLDER INFERD_TEST_MODELS=MODELS
    build/release/src/text/tokenizer_real_test --gtest_filter='*hugging*'
"""
import argparse
import gzip
import json
import random
from pathlib import Path

from gguf import GGUFReader
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
CONTRACTIONS = ["'s", "'S", "'\u017f", "'t", "'re", "'RE", "'Ve", "'m", "'ll", "'lL", "'D", "'"]
SPACES = [" ", "  ", "   ", "\t", "\n", "\r", "\r\n", "\v", "\f", "\x85", "\xa0", "\u1680", "\u180e", "\u2009",
          "\u200b", "\u2028", "\u3000", "\ufeff"]
SPECIAL = ["<|im_start|>", "<|im_end|>", "<|im_", "start|>", "<tool_call>", "</tool_call>", "<|", "|>", "<",
           "[PAD151665]", "</s>", "\0", "\x04"]
NUMBERS = ["1", "42", "2024", "\u0663", "\u00bd", "\u2167", "\u3007", "\u00b2"]
COMPOSING = ["\u00e9", "e\u0301", "\u0301\u0323", "\u0323\u0301", "\u1ea1\u0307", "\u1112", "\u1161", "\u11ab",
             "\ud55c", "\u0344", "\u212b", "\u0915\u093c", "\U0001e94a"]
WORDS = ["\u6f22\u5b57", "\u304b\u306a", "\U0001f600", "\U0001f468\u200d\U0001f469", "\U0001f1e9\U0001f1ea",
         "word", "The", "ing", "HTTPServer", "snake_case", "==", "...", "//--"]
FRAGMENTS = CONTRACTIONS + SPACES + SPECIAL + NUMBERS + COMPOSING + WORDS
# Random characters come from near these, or from anywhere.
BLOCKS = [0, 0x300, 0x900, 0x1100, 0x2000, 0x3040, 0x4E00, 0xAC00, 0xF900, 0x10000, 0x11000, 0x16000, 0x1D100, 0x1E000,
          0x1F300]


def tokenizer_of(path):
    fields = GGUFReader(path).fields.items()
    meta = {name: field.contents() for name, field in fields if name.startswith("tokenizer.ggml.")}
    tokens, types = meta["tokenizer.ggml.tokens"], meta["tokenizer.ggml.token_type"]
    vocab = {token: i for i, (token, kind) in enumerate(zip(tokens, types)) if kind in (NORMAL, CONTROL, USER_DEFINED)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[tuple(m.split(" ")) for m in meta["tokenizer.ggml.merges"]]))
    byte_level = pre_tokenizers.ByteLevel
    if meta["tokenizer.ggml.pre"] == "smollm":
        steps = [pre_tokenizers.Digits(individual_digits=True), byte_level(add_prefix_space=False, use_regex=True)]
    else:
        tokenizer.normalizer = normalizers.NFC()
        steps = [pre_tokenizers.Split(Regex(QWEN2), "isolated"), byte_level(add_prefix_space=False, use_regex=False)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    for i, kind in enumerate(types):
        if kind in (CONTROL, USER_DEFINED):
            token = AddedToken(tokens[i], special=kind == CONTROL, normalized=False)
            (tokenizer.add_special_tokens if kind == CONTROL else tokenizer.add_tokens)([token])
    return tokenizer


def random_text(rng):
    text = ""
    for _ in range(rng.randint(1, 24)):
        kind = rng.random()
        if kind < 0.6:
            text += rng.choice(FRAGMENTS)
        elif kind < 0.7:
            text += rng.choice(FRAGMENTS) * rng.randint(2, 40)
        elif kind < 0.8:
            text += "".join(rng.choice("abcdefghijklmnopqrstuvwxyz ") for _ in range(rng.randint(1, 40)))
        else:
            near = rng.choice(BLOCKS) + rng.randrange(0x400)
            point = near if rng.random() < 0.8 else rng.randrange(0x110000)
            if not 0xD800 <= point < 0xE000:
                text += chr(point)
    return text


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="ascii") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--texts", type=int, default=20000)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    corpus = [{"id": f"fuzz-{args.seed}-{i}", "text": random_text(rng)} for i in range(args.texts)]
    write(args.out / "corpus.jsonl.gz", corpus)
    for item in args.gguf:
        name, path = item.split("=", 1)
        tokenizer, rows = tokenizer_of(path), []
        for row in corpus:
            tokenizer.encode_special_tokens = False
            ids = tokenizer.encode(row["text"], add_special_tokens=False).ids
            tokenizer.encode_special_tokens = True
            plain = tokenizer.encode(row["text"], add_special_tokens=False).ids
            decoded = tokenizer.decode(ids, skip_special_tokens=False)
            rows.append({"id": row["id"], "ids": ids, "ids_plain": plain, "decoded": decoded})
        write(args.out / "tokenizers" / f"{name}.jsonl.gz", rows)


if __name__ == "__main__":
    main()
