# The chat-template half of this folder.
list(APPEND INFERD_TEXT_SOURCES
  chat_template.cpp jinja_access.cpp jinja_arguments.cpp jinja_builtins.cpp jinja_eval.cpp jinja_expression.cpp
  jinja_expression_parser.cpp jinja_filters.cpp jinja_filters_sequence.cpp jinja_filters_text.cpp jinja_format.cpp
  jinja_frames.cpp jinja_is.cpp jinja_lexer.cpp jinja_methods.cpp jinja_operators.cpp jinja_parser.cpp jinja_print.cpp jinja_runtime.cpp
  jinja_strings.cpp jinja_text.cpp jinja_text_methods.cpp jinja_unicode.cpp jinja_value.cpp)

inferd_test(chat_template_test SOURCES chat_template_test.cpp LINKS inferd_text THREADS)
inferd_test(jinja_test SOURCES jinja_vectors_test.cpp jinja_hostile_test.cpp LINKS inferd_text)
inferd_test(jinja_fuzz_test SOURCES jinja_fuzz_test.cpp ../../fuzz/jinja_fuzz.cpp LINKS inferd_text)
inferd_test(chat_template_golden_test SOURCES chat_template_golden_test.cpp chat_template_golden.cpp
  LINKS inferd_text inferd_test_support)
inferd_test(chat_template_model_test SOURCES chat_template_model_test.cpp chat_template_golden.cpp
  LINKS inferd_text inferd_test_support REAL_MODEL)
if(BUILD_TESTING)
  add_executable(jinja_lines jinja_lines.cpp)
  target_link_libraries(jinja_lines PRIVATE inferd_text)
endif()
