# The chat-template half of this folder.
list(APPEND INFERD_TEXT_SOURCES
  chat_template.cpp jinja_access.cpp jinja_arguments.cpp jinja_builtins.cpp jinja_eval.cpp jinja_expression.cpp
  jinja_expression_parser.cpp jinja_filters.cpp jinja_filters_sequence.cpp jinja_filters_text.cpp jinja_format.cpp
  jinja_frames.cpp jinja_is.cpp jinja_lexer.cpp jinja_methods.cpp jinja_operators.cpp jinja_parser.cpp
  jinja_print.cpp jinja_runtime.cpp jinja_strings.cpp jinja_text.cpp jinja_text_methods.cpp jinja_unicode.cpp
  jinja_value.cpp)

inferd_test(chat_template_test SOURCES chat_template_test.cpp LINKS inferd_text THREADS UNIT)
inferd_test(jinja_test SOURCES jinja_vectors_test.cpp jinja_hostile_test.cpp LINKS inferd_text)
inferd_test(jinja_fuzz_test SOURCES jinja_fuzz_test.cpp ../../fuzz/jinja_fuzz.cpp LINKS inferd_text UNIT)
inferd_test(chat_template_model_test SOURCES chat_template_model_test.cpp chat_template_golden.cpp
  LINKS inferd_text inferd_test_support REAL_MODEL)

if(BUILD_TESTING AND NOT INFERD_SANITIZE)
  # Random templates against the real jinja2 (Debian: python3-jinja2), where that is installed.
  add_executable(jinja_lines jinja_lines.cpp)
  target_link_libraries(jinja_lines PRIVATE inferd_text)
  find_program(INFERD_PYTHON python3)
  if(INFERD_PYTHON)
    get_filename_component(build "${CMAKE_BINARY_DIR}" NAME)
    add_test(NAME ${build}/jinja_live
      COMMAND "${INFERD_PYTHON}" "${CMAKE_SOURCE_DIR}/tools/compare_jinja.py" --program $<TARGET_FILE:jinja_lines>
              --count 1500 --seed 1)
    set_tests_properties(${build}/jinja_live PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300)
  endif()
endif()
