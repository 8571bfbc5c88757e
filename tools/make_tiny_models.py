#!/usr/bin/env python3
"""Writes tests/golden/tiny: tiny random models of families that the golden files have no GGUF file of, with transformers'
logits and greedy continuations, in the form of the golden files' folder tiny/.

    tools/make_tiny_models.py --golden GOLDEN --out FOLDER

GOLDEN is the folder of the golden files; its make/ holds the scripts that this one builds on and the packages they need
(requirements.txt). Logits are computed in float64 and rounded. Two runs on one machine give the same bytes.
"""
import argparse
import json
import sys
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--golden", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    sys.path.insert(0, str(args.golden / "make"))
    import gguf
    import gguf_models
    import numpy as np
    import tiny_models
    import torch
    import transformers
    from float64 import float64
    from safetensors.torch import load_file

    torch.set_num_threads(1)
    types = gguf.GGMLQuantizationType
    prompts = tiny_models.make_prompts()
    small = dict(vocab_size=tiny_models.VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                 num_attention_heads=2, num_key_value_heads=1, rms_norm_eps=1e-5, max_position_embeddings=512,
                 bos_token_id=None, eos_token_id=2, pad_token_id=3)
    top = {v: k for k, v in gguf_models.TOP.items()}

    def stored(w):  # norms stay F32, matrices are F16
        w = w.float().numpy()
        return (w.astype(np.float32), types.F32) if w.ndim < 2 else (w.astype(np.float16), types.F16)

    def write(name, arch, config, tensors, keys):
        folder = args.out / name / "gguf"
        folder.mkdir(parents=True)
        w = gguf.GGUFWriter(folder / f"tiny-{name}-f16.gguf", arch)
        w.add_name(f"tiny {name}")
        w.add_file_type(1)
        w.add_context_length(config.max_position_embeddings)
        w.add_embedding_length(config.hidden_size)
        w.add_block_count(config.num_hidden_layers)
        w.add_feed_forward_length(config.intermediate_size)
        w.add_head_count(config.num_attention_heads)
        w.add_head_count_kv(config.num_key_value_heads)
        w.add_layer_norm_rms_eps(config.rms_norm_eps)
        for key, value in keys.items():
            (w.add_uint32 if isinstance(value, int) else w.add_float32)(f"{arch}.{key}", value)
        for key, (data, kind) in tensors.items():
            w.add_tensor(key, data, raw_dtype=kind)
        w.write_header_to_file()
        w.write_kv_data_to_file()
        w.write_tensors_to_file()
        w.close()

    def evaluate(name, variant, config, state, with_greedy=(0, 1, 2)):
        config._attn_implementation = "eager"
        f32 = tiny_models.all_logits(gguf_models.build(config, {k: v.float() for k, v in state.items()}), prompts)
        with float64():
            model = gguf_models.build(config, {k: v.double() for k, v in state.items()})
            f64 = tiny_models.all_logits(model, prompts)
            runs = [tiny_models.greedy(model, ids) if i in with_greedy else ([], []) for i, ids in enumerate(prompts)]
        folder = args.out / name
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / f"{variant}.logits.npy", f64.float().numpy())
        path = folder / "golden.json"
        golden = json.loads(path.read_text()) if path.exists() else {
            "versions": {"torch": torch.__version__, "transformers": transformers.__version__}, "prompts": prompts,
            "cu_seqlens": [0, *np.cumsum(tiny_models.LENGTHS).tolist()], "variants": {}}
        golden["variants"][variant] = {
            "float32_noise": float((f32 - f64).abs().max()), "logit_std": float(f64.std()),
            "greedy": [t for t, _ in runs], "margin": [m for _, m in runs]}
        path.write_text(json.dumps(golden) + "\n")

    def random_state(config, seed, zero_centred):
        config._attn_implementation = "eager"
        state = tiny_models.random_state(transformers.AutoModelForCausalLM.from_config(config), seed)
        for key in state:
            if zero_centred and "norm" in key:  # a norm of 1 + weight
                state[key] = state[key] - 1
        return {k: (v.half().float() if v.ndim > 1 else v) for k, v in state.items()}

    def gguf_tensors(state, layer, norm_offset=0):
        names = {v: k for k, v in layer.items()}
        tensors = {}
        for key, w in state.items():
            base, kind = key.rsplit(".", 1)
            if base.startswith("model.layers."):
                _, _, i, part = base.split(".", 3)
                name = f"blk.{i}.{names[part]}.{kind}"
            else:
                name = top[base] + ".weight"
            tensors[name] = stored(w + norm_offset if name.endswith("norm.weight") else w)
        return tensors

    def gemma(name, config, seed, keys, layer):
        state = random_state(config, seed, True)
        tensors = gguf_tensors({k: v for k, v in state.items() if k != "lm_head.weight"}, layer, 1)
        write(name, name, config, tensors, {"attention.key_length": 24, "attention.value_length": 24} | keys)
        evaluate(name, "f16", config, state)

    # Soft caps small enough to bend what random weights give, a scale that is not one of the head's size, and a window
    # of 8 on even layers.
    gemma("gemma2", transformers.Gemma2Config(
        **(small | {"num_hidden_layers": 4}), head_dim=24, query_pre_attn_scalar=10, attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0, sliding_window=8, tie_word_embeddings=True, rope_parameters=tiny_models.ROPE),
        301, {"attn_logit_softcapping": 2.0, "final_logit_softcapping": 3.0, "attention.sliding_window": 8,
              "attention.scale": 10 ** -0.5},
        {k: v for k, v in gguf_models.LAYER_GEMMA.items() if not k.endswith(("q_norm", "k_norm"))})
    gemma("gemma", transformers.GemmaConfig(
        **small, head_dim=24, tie_word_embeddings=True, rope_parameters=tiny_models.ROPE,
        hidden_act="gelu_pytorch_tanh"), 302, {}, gguf_models.LAYER)

    # Fused projections; LongRoPE on 12 of 16 dims, whose factors change over at 32 tokens; a window of 20. transformers
    # changes over in the middle of a greedy continuation, so only the long prompt has one.
    rng = np.random.default_rng(7)
    short = [round(float(x), 4) for x in 1 + rng.random(6)]
    long = [round(float(x), 4) for x in np.sort(1 + 15 * rng.random(6))]
    config = transformers.Phi3Config(
        **small, sliding_window=20, tie_word_embeddings=False, original_max_position_embeddings=32,
        rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": short, "long_factor": long,
                         "factor": 16.0, "original_max_position_embeddings": 32, "partial_rotary_factor": 0.75})
    state = random_state(config, 303, False)
    tensors = {"rope_factors_long.weight": (np.array(long, np.float32), types.F32),
               "rope_factors_short.weight": (np.array(short, np.float32), types.F32)} | gguf_tensors(state, {
                   "attn_qkv": "self_attn.qkv_proj", "attn_output": "self_attn.o_proj", "ffn_up": "mlp.gate_up_proj",
                   "ffn_down": "mlp.down_proj", "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"})
    write("phi3", "phi3", config, tensors, {
        "rope.dimension_count": 12, "attention.sliding_window": 20, "rope.scaling.original_context_length": 32,
        "rope.scaling.attn_factor": float(np.sqrt(1 + np.log(16) / np.log(32))), "rope.freq_base": 10000.0})
    evaluate("phi3", "f16", config, state, with_greedy=(2,))

    # The weights of the golden folder tiny/mistral/hf, whose logits there serve for the file.
    folder = args.golden / "tiny" / "mistral" / "hf"
    config = transformers.AutoConfig.from_pretrained(folder)
    state = load_file(folder / "model.safetensors")
    tensors = {k: stored(torch.from_numpy(v)) for k, v in tiny_models.gguf_names(config, state, "llama").items()}
    write("mistral", "llama", config, tensors,
          {"rope.dimension_count": 16, "attention.sliding_window": 8, "rope.freq_base": 10000.0})

    # Scalings of llama's rotation over the weights of tiny/llama/gguf/tiny-llama-f32.gguf: logits only.
    meta, weights = gguf_models.read(args.golden / "tiny" / "llama" / "gguf" / "tiny-llama-f32.gguf")
    state = gguf_models.state_dict_from(meta, weights)
    for scaling in ({"rope_type": "linear", "factor": 4.0},
                    {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 32}):
        config = transformers.LlamaConfig(**tiny_models.BASE, head_dim=16, tie_word_embeddings=False,
                                          rope_parameters={"rope_theta": 10000.0} | scaling)
        evaluate("llama-rope", scaling["rope_type"], config, state)


if __name__ == "__main__":
    main()
