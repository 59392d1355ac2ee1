# Warnings, sanitizers and definitions shared by all targets.
add_library(mobius_compile_options INTERFACE)
target_compile_options(mobius_compile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wcast-align -Wformat=2 -Wundef -Wvla
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast>
  $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>)
target_compile_definitions(mobius_compile_options INTERFACE
  _GNU_SOURCE
  $<$<NOT:$<BOOL:${MOBIUS_CHECKS}>>:MOB_NO_CHECKS>)
if(MOBIUS_WERROR)
  target_compile_options(mobius_compile_options INTERFACE -Werror)
endif()
if(MOBIUS_SANITIZE)
  target_compile_options(mobius_compile_options INTERFACE
    -fsanitize=${MOBIUS_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(mobius_compile_options INTERFACE -fsanitize=${MOBIUS_SANITIZE})
endif()
# C callers may pass any number as an enumeration; the library checks it.
if(MOBIUS_SANITIZE MATCHES "undefined")
  target_compile_options(mobius_compile_options INTERFACE -fno-sanitize=enum)
endif()
# ThreadSanitizer does not model fences, and GCC warns about each. As far as threads of one process
# are concerned, the atomics beside a fence order the same accesses.
if(MOBIUS_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(mobius_compile_options INTERFACE -Wno-tsan)
endif()
find_package(Threads REQUIRED)
target_link_libraries(mobius_compile_options INTERFACE Threads::Threads)

# For a front whose calls each fill in a description of a transfer: GCC clears its two hundred bytes
# by 'rep stos', which takes some 40 cycles, a quarter of a small transfer.
function(mobius_clear_by_vectors target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(${target} PRIVATE
      -mmemset-strategy=vector_loop:256:noalign,libcall:-1:noalign)
  endif()
endfunction()
