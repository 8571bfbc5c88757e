# How this project declares libraries and tests. A folder under src/ is one library that links only
# the folders it may include; tools/check_layout.py checks the includes themselves.

set(INFERD_SANITIZE "" CACHE STRING "Sanitizers to build with, as -fsanitize= takes them; empty for none")
option(INFERD_FUZZ "Build the libFuzzer targets" OFF)

add_library(inferd_flags INTERFACE)
target_compile_options(inferd_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Woverloaded-virtual
  -Wimplicit-fallthrough -Wundef -Wno-missing-field-initializers -Werror
  # GCC 12 fuses even a multiply and an add written apart; docs/numerics.md needs the rounding that is written.
  -ffp-contract=off
  -fstack-protector-strong)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees uninitialised members in every moved std::variant; clang's analysis stays on.
  target_compile_options(inferd_flags INTERFACE -Wno-maybe-uninitialized)
endif()
target_include_directories(inferd_flags INTERFACE "${CMAKE_SOURCE_DIR}/src")
target_link_options(inferd_flags INTERFACE -fuse-ld=mold)

if(INFERD_FUZZ)
  # Coverage of everything, also where another program than a fuzzer is linked.
  target_compile_options(inferd_flags INTERFACE -fsanitize=fuzzer-no-link)
  target_link_options(inferd_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(INFERD_SANITIZE)
  target_compile_options(inferd_flags INTERFACE "-fsanitize=${INFERD_SANITIZE}" -fno-sanitize-recover=all)
  target_link_options(inferd_flags INTERFACE "-fsanitize=${INFERD_SANITIZE}")
else()
  # The program must start on any glibc >= 2.36 without a C++ runtime of the host's.
  target_compile_definitions(inferd_flags INTERFACE _GLIBCXX_ASSERTIONS _FORTIFY_SOURCE=2)
  target_link_options(inferd_flags INTERFACE -static-libstdc++ -static-libgcc -Wl,-z,relro,-z,now)
endif()

# inferd_library(base SOURCES a.cpp b.cpp LINKS inferd_other ...)
function(inferd_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(inferd_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(inferd_${name} PUBLIC inferd_flags ${ARG_LINKS})
endfunction()

# What every test includes, compiled once a build: it is half of the time of most of them. The options are what ccache
# needs to store compilations with precompiled headers (its manual, "Precompiled headers").
function(inferd_test_headers)
  if(TARGET inferd_test_headers)
    return()
  endif()
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/test_headers.cpp" CONTENT "int main() {}\n")
  add_executable(inferd_test_headers EXCLUDE_FROM_ALL "${CMAKE_BINARY_DIR}/test_headers.cpp")  # a program, as tests are
  target_link_libraries(inferd_test_headers PRIVATE inferd_flags GTest::gtest)
  target_compile_options(inferd_test_headers PRIVATE
    "$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>" "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
  target_precompile_headers(inferd_test_headers PRIVATE <gtest/gtest.h> <algorithm> <chrono> <filesystem> <functional>
    <map> <memory> <optional> <random> <span> <string> <thread> <vector>)
endfunction()

# All test programs of this build; the tsan build makes nothing else.
add_custom_target(inferd_tests)

# inferd_test(base_test SOURCES a_test.cpp LINKS inferd_base [UNIT] [THREADS] [REAL_MODEL] [TIMEOUT s])
# SERIAL: measures time, so nothing else runs beside it.
# UNIT: nothing in it depends on the compiler's optimiser or on how fast the code is, so the release build leaves it to
# the sanitizer builds. THREADS: starts threads, so the tsan build runs it. REAL_MODEL: needs the downloaded models, so only release runs it.
function(inferd_test name)
  cmake_parse_arguments(ARG "UNIT;THREADS;REAL_MODEL;WHOLE;SERIAL" "TIMEOUT" "SOURCES;LINKS;DEFINES" ${ARGN})
  foreach(source ${ARG_SOURCES})
    set_property(GLOBAL APPEND PROPERTY INFERD_TEST_SOURCES "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
  endforeach()
  if(NOT BUILD_TESTING)
    return()
  endif()
  if(INFERD_SANITIZE STREQUAL "thread" AND NOT ARG_THREADS)
    return()
  endif()
  if(ARG_REAL_MODEL AND INFERD_SANITIZE)
    return()
  endif()
  if(ARG_UNIT AND NOT INFERD_SANITIZE)
    return()
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  add_dependencies(inferd_tests ${name})
  target_link_libraries(${name} PRIVATE inferd_flags ${ARG_LINKS} GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${name} PRIVATE
    INFERD_SOURCE_DIR="${CMAKE_SOURCE_DIR}" INFERD_BINARY_DIR="${CMAKE_BINARY_DIR}" ${ARG_DEFINES})
  inferd_test_headers()
  target_precompile_headers(${name} REUSE_FROM inferd_test_headers)
  target_compile_options(${name} PRIVATE "$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>")
  get_filename_component(build "${CMAKE_BINARY_DIR}" NAME)  # ./dev test runs three builds: a name says which
  if(ARG_WHOLE)
    add_test(NAME ${build}/${name} COMMAND ${name})
    set_tests_properties(${build}/${name} PROPERTIES TIMEOUT ${ARG_TIMEOUT} RUN_SERIAL ${ARG_SERIAL})
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 TEST_PREFIX "${build}/${name}/" PROPERTIES TIMEOUT ${ARG_TIMEOUT}
      RUN_SERIAL ${ARG_SERIAL})
  endif()
endfunction()

# inferd_fuzzer(gguf_fuzz SOURCES gguf_fuzz.cpp LINKS inferd_formats): a libFuzzer program; only with INFERD_FUZZ.
function(inferd_fuzzer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE inferd_flags ${ARG_LINKS})
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
endfunction()

# A test that the build does not list does not exist: fail when a *_test.cpp on disk is no target.
function(inferd_check_every_test_is_listed)
  file(GLOB_RECURSE on_disk CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/src/*_test.cpp"
    "${CMAKE_SOURCE_DIR}/apps/*_test.cpp" "${CMAKE_SOURCE_DIR}/tests/*_test.cpp")
  get_property(listed GLOBAL PROPERTY INFERD_TEST_SOURCES)
  foreach(source ${on_disk})
    if(NOT source IN_LIST listed)
      message(FATAL_ERROR "${source} is a test that no target lists; add it to an inferd_test() call")
    endif()
  endforeach()
endfunction()
