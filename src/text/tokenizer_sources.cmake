# Text to token ids and back, and the text of an answer while it streams.
set(INFERD_TOKENIZER_SOURCES
  added_tokens.cpp bpe.cpp byte_level.cpp char_bpe.cpp nfc.cpp normalizer.cpp output_text.cpp piece_patterns.cpp
  piece_splitter.cpp pretokenizer.cpp stop_matcher.cpp stream_decoder.cpp token_table.cpp tokenizer.cpp
  tokenizer_build.cpp tokenizer_json.cpp tokenizer_json_parts.cpp unicode_tables.cpp unigram.cpp word_characters.cpp
  word_table.cpp)

inferd_test(bpe_test SOURCES bpe_test.cpp word_table_test.cpp LINKS inferd_text UNIT)
inferd_test(nfc_test SOURCES nfc_test.cpp normalizer_test.cpp tokenizer_test_data.cpp LINKS inferd_text ZLIB::ZLIB UNIT)
# PCRE2 (Debian: libpcre2-dev) is the oracle of this test and nothing else.
inferd_test(pretokenizer_test SOURCES pretokenizer_test.cpp tokenizer_test_data.cpp
  LINKS inferd_text ZLIB::ZLIB pcre2-8 UNIT)
inferd_test(output_text_test SOURCES output_text_test.cpp stop_matcher_test.cpp stream_decoder_test.cpp
  LINKS inferd_text UNIT)
inferd_test(tokenizer_test SOURCES tokenizer_test.cpp LINKS inferd_text)
inferd_test(tokenizer_fuzz_test SOURCES tokenizer_fuzz_test.cpp ../../fuzz/tokenizer_json_fuzz.cpp LINKS inferd_text UNIT)
inferd_test(encode_fuzz_test SOURCES encode_fuzz_test.cpp ../../fuzz/encode_fuzz.cpp LINKS inferd_text UNIT)
inferd_test(tokenizer_json_test SOURCES tokenizer_json_test.cpp LINKS inferd_text)
inferd_test(tokenizer_vectors_test SOURCES tokenizer_vectors_test.cpp LINKS inferd_text)
inferd_test(tokenizer_score_test SOURCES tokenizer_score_test.cpp LINKS inferd_text UNIT)
inferd_test(tokenizer_threads_test SOURCES tokenizer_threads_test.cpp LINKS inferd_text THREADS UNIT)
inferd_test(tokenizer_real_test SOURCES tokenizer_real_test.cpp tokenizer_test_data.cpp LINKS inferd_text ZLIB::ZLIB
  REAL_MODEL SERIAL)
# Other people's tokenizers, as tools/fetch_tokenizers.py puts them.
inferd_test(tokenizer_files_test SOURCES tokenizer_files_test.cpp tokenizer_test_data.cpp
  LINKS inferd_text ZLIB::ZLIB REAL_MODEL SERIAL)
