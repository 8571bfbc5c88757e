# Writes OUT with the commit this tree is at. Run at every build; the file is touched only when its text changes.
# cmake -DSOURCE=... -DOUT=... -DCOMPILER=... -P write_version.cmake
execute_process(COMMAND git -C "${SOURCE}" rev-parse --short=7 HEAD
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "unknown")
else()
  execute_process(COMMAND git -C "${SOURCE}" status --porcelain --untracked-files=no
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND commit "+")
  endif()
endif()
set(text "#include \"version.h\"

namespace inferd {

const std::string_view kCommit = \"${commit}\";
const std::string_view kCompiler = \"${COMPILER}\";

}  // namespace inferd
")
set(before "")
if(EXISTS "${OUT}")
  file(READ "${OUT}" before)
endif()
if(NOT before STREQUAL text)
  file(WRITE "${OUT}" "${text}")
endif()
