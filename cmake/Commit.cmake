# SPDX-License-Identifier: Apache-2.0
#
# Writes HEADER with the commit of SOURCE, where that is a checkout, or with
# COMMIT, which those give who build from a copy; leaves it alone when it says so
# already.
set(commit "${COMMIT}")
if(NOT commit)
  execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET
    RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    set(commit unknown)
  endif()
endif()
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define LAMINA_COMMIT \"${commit}\"\n")
