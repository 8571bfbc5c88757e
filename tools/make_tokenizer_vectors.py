#!/usr/bin/env python3
"""Writes src/text/testdata/tokenizer_vectors.jsonl: small tokenizers and what Hugging Face's library makes of texts.

    pip install tokenizers==0.23.3
    tools/make_tokenizer_vectors.py > src/text/testdata/tokenizer_vectors.jsonl

A line is {"model": NAME, "json": {...}}, the member "model" of some tokenizer.json files, or {"name", "model": NAME,
"parts": {...}, "cases": [[text, ids, ids_plain, ids_framed, decoded], ...]}: the other members, and for each text its
ids, those with special tokens read as text, those with what the post-processor adds, and the text of the first.
The library trains the models anew, not twice in the same way, so another run gives other vectors, as good as these.
ids_plain is null where the library makes a special token of text all the same, which a unigram model does.
"""
import json
import random

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

PROSE = ["The quick brown fox jumps over the lazy dog.", "It's 12 o'clock, and we've seen 345 of 6789 things!",
         "caf\u00e9 na\u00efve \u6f22\u5b57 \u304b\u306a", "  two  spaces\tand a tab\nnew line\n\nagain", "a<x>b </s> hello hello"]
FRAGMENTS = [" ", "  ", "   ", "\n", "\t", "\u3000", "the", "The", "hello", "fox", "caf\u00e9", "e\u0301", "'s", "1", "42", "678",
             ".", "!", "--", "\u6f22", "\U0001f600", "\u2581", "<x>", "<y>", "</s>", "<s>", "X", "a<x>", "<x>b", "_", "\u00b2",
             "\0", "\u00a0", "\u0663"]
SPLIT = {"type": "Split", "behavior": "Isolated", "invert": False}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
GPT2 = BYTES | {"use_regex": True}
BYTE_DECODER = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
LLAMA = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                                          {"type": "ByteFallback"}, {"type": "Fuse"}]}
STRIP = {"type": "Sequence", "decoders": LLAMA["decoders"] + [{"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
NO_BYTES = {"type": "Sequence", "decoders": [LLAMA["decoders"][0], {"type": "Fuse"}]}
SPACE = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
PREPEND = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"}, SPACE]}


def added(content, number, **flags):
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
    return {"id": number, "content": content} | plain | flags


def model_of(tokenizer):
    return json.loads(tokenizer.to_str())["model"]


def make_models():
    byte_level = Tokenizer(models.BPE())
    byte_level.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    byte_level.train_from_iterator(PROSE * 3, trainers.BpeTrainer(vocab_size=330, initial_alphabet=alphabet, show_progress=False))
    chars = Tokenizer(models.BPE(unk_token="<unk>"))
    chars.normalizer = normalizers.Replace(" ", "\u2581")
    chars.train_from_iterator(PROSE * 3, trainers.BpeTrainer(vocab_size=140, special_tokens=["<unk>"], show_progress=False))
    unigram = Tokenizer(models.Unigram())
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.train_from_iterator(PROSE * 6, trainers.UnigramTrainer(
        vocab_size=90, unk_token="<unk>", special_tokens=["<unk>", "</s>"], show_progress=False))
    made = {"bytes": model_of(byte_level), "chars": model_of(chars), "unigram": model_of(unigram)}
    made["bytes-whole"] = made["bytes"] | {"ignore_merges": True, "vocab": made["bytes"]["vocab"] | {"hell": 330, "\u0120jumps": 331}}
    made["chars-fused"] = made["chars"] | {"fuse_unk": True}
    size = len(made["chars"]["vocab"])
    bytes_ = {f"<0x{b:02X}>": size + b for b in range(256)}
    made["chars-bytes"] = made["chars"] | {"byte_fallback": True, "vocab": made["chars"]["vocab"] | bytes_}
    made["chars-whole"] = made["chars-bytes"] | {"ignore_merges": True}
    made["unigram-bytes"] = made["unigram"] | {
        "byte_fallback": True, "vocab": made["unigram"]["vocab"] + [[f"<0x{b:02X}>", -20.0] for b in range(256)]}
    return made


def variants(made):
    """Name, model, parts that differ from null."""
    size = {name: len(model["vocab"]) for name, model in made.items()}
    byte_level = {"pre_tokenizer": GPT2, "decoder": BYTE_DECODER}
    yield "byte level", "bytes", byte_level
    yield "whole pieces", "bytes-whole", byte_level
    yield "a space before", "bytes", byte_level | {"pre_tokenizer": GPT2 | {"add_prefix_space": True}}
    yield "nfc", "bytes", byte_level | {"normalizer": {"type": "NFC"}}
    for steps in ([], [{"type": "Digits", "individual_digits": True}], [{"type": "Digits", "individual_digits": False}],
                  [{"type": "WhitespaceSplit"}], [{"type": "Punctuation", "behavior": "Contiguous"}, GPT2]):
        rest = [] if GPT2 in steps else [BYTES]
        yield f"then bytes: {[s['type'] for s in steps]}", "bytes", {
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": steps + rest}, "decoder": BYTE_DECODER}
    falcon = [{"type": "Punctuation", "behavior": "Contiguous"}, GPT2, {"type": "Digits", "individual_digits": False},
              SPLIT | {"pattern": {"Regex": "[0-9][0-9][0-9]"}}]
    yield "falcon", "bytes", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": falcon}, "decoder": BYTE_DECODER}
    digits = [{"type": "Digits", "individual_digits": True}, GPT2, {"type": "Digits", "individual_digits": False}]
    yield "digits on both sides", "bytes", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": digits},
                                            "decoder": BYTE_DECODER}
    for behavior in ("Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"):
        for invert in (False, True):
            for pattern in ({"String": "  "}, {"Regex": "\\s"}, {"Regex": "[\r\n]"}, {"Regex": "\\p{N}{1,3}"}):
                split = SPLIT | {"behavior": behavior, "invert": invert, "pattern": pattern}
                yield f"split {pattern} {behavior} {invert}", "bytes", {
                    "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, BYTES]}, "decoder": BYTE_DECODER}
        if behavior != "Contiguous":
            steps = [{"type": "Punctuation", "behavior": behavior}, BYTES]
            yield f"punctuation {behavior}", "bytes", {"pre_tokenizer": {"type": "Sequence", "pretokenizers": steps},
                                                       "decoder": BYTE_DECODER}
    yield "gemma", "chars-bytes", {"normalizer": SPACE, "decoder": LLAMA, "pre_tokenizer": SPLIT | {
        "pattern": {"String": " "}, "behavior": "MergedWithPrevious"}}
    yield "llama", "chars-bytes", {"normalizer": PREPEND, "decoder": STRIP}
    yield "llama, whole pieces", "chars-whole", {
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}, "decoder": STRIP}
    yield "unknown characters", "chars", {"normalizer": PREPEND, "decoder": NO_BYTES}
    yield "unknown runs", "chars-fused", {"normalizer": PREPEND, "decoder": NO_BYTES}
    runs = {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
                                                {"type": "Replace", "pattern": {"String": "hello"}, "content": ""}, SPACE]}
    yield "runs of spaces", "chars-bytes", {"normalizer": runs, "decoder": LLAMA}
    for model in ("chars-bytes", "unigram", "unigram-bytes"):
        for scheme in ("always", "first", "never"):
            for split in (True, False):
                if model != "unigram" and not (scheme == "first" and split):
                    continue
                meta = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split}
                decoder = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": scheme, "split": split}
                yield f"metaspace {model} {scheme} {split}", model, {
                    "pre_tokenizer": meta, "decoder": decoder if model == "unigram" else STRIP}
    for flags in ({}, {"lstrip": True}, {"rstrip": True}, {"lstrip": True, "rstrip": True}, {"single_word": True},
                  {"single_word": True, "lstrip": True, "rstrip": True}, {"normalized": True},
                  {"normalized": True, "rstrip": True, "lstrip": True}):
        for special in (False, True):
            first = size["bytes"]
            tokens = [added("<x>", first, special=special, **flags), added("<y>", first + 1, special=not special),
                      added("hello", first + 2, special=special, **flags), added("  ", first + 3, **flags)]
            yield f"added {flags} {special}", "bytes", byte_level | {"added_tokens": tokens}
            first = size["chars-bytes"]
            tokens = [added("<x>", first, special=special, **flags), added("<y>", first + 1, special=not special)]
            yield f"added, prepend {flags} {special}", "chars-bytes", {"normalizer": PREPEND, "decoder": STRIP,
                                                                       "added_tokens": tokens}
    first = size["unigram"]
    yield "added, first", "unigram", {
        "pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True},
        "decoder": {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True},
        "added_tokens": [added("<unk>", 0, special=True), added("</s>", 1, special=True), added("<x>", first)]}
    ends = [added("<s>", size["bytes"], special=True), added("</s>", size["bytes"] + 1, special=True)]
    first, second = ends[0]["id"], ends[1]["id"]
    special = {c: {"id": c, "ids": [i], "tokens": [c]} for c, i in (("<s>", first), ("</s>", second))}
    template = {"type": "TemplateProcessing", "special_tokens": special, "single": [
        {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
        {"SpecialToken": {"id": "</s>", "type_id": 0}}], "pair": [
            {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}]}
    offsets = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": False, "use_regex": True}
    for name, frame in (("template", template), ("sequence", {"type": "Sequence", "processors": [offsets, template]}),
                        ("bert", {"type": "BertProcessing", "sep": ["</s>", second], "cls": ["<s>", first]}),
                        ("roberta", {"type": "RobertaProcessing", "sep": ["</s>", second], "cls": ["<s>", first],
                                     "trim_offsets": True, "add_prefix_space": False})):
        yield f"frame {name}", "bytes", byte_level | {"added_tokens": ends, "post_processor": frame}


def main():
    made = make_models()
    for name, model in made.items():
        print(json.dumps({"model": name, "json": model}, separators=(",", ":")))
    rng = random.Random(1)
    for name, model, parts in variants(made):
        whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                 "pre_tokenizer": None, "post_processor": None, "decoder": None} | parts | {"model": made[model]}
        tokenizer = Tokenizer.from_str(json.dumps(whole))
        cases = []
        for _ in range(16):
            text = "".join(rng.choice(FRAGMENTS) for _ in range(rng.randint(1, 9)))
            tokenizer.encode_special_tokens = False
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            framed = tokenizer.encode(text, add_special_tokens=True).ids
            tokenizer.encode_special_tokens = True
            plain = tokenizer.encode(text, add_special_tokens=False).ids
            if name == "added, first" and 1 in plain:
                plain = None
            cases.append([text, ids, plain, framed, tokenizer.decode(ids, skip_special_tokens=False)])
        print(json.dumps({"name": name, "model": model, "parts": parts, "cases": cases}, separators=(",", ":")))


if __name__ == "__main__":
    main()
