# Text to token ids and back, and the text of an answer while it streams.
set(INFERD_TOKENIZER_SOURCES
  nfc.cpp pretokenizer.cpp unicode_tables.cpp)
