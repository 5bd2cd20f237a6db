# Compiler and linker flags of the whole tree. `sliceplan_warnings` is linked by every target with code of ours;
# generated code does not link it.

add_library(sliceplan_warnings INTERFACE)
target_compile_options(sliceplan_warnings INTERFACE -Wall -Wextra -Wpedantic -Werror)

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# A fused multiply-add rounds once where two instructions round twice: without it the same request gives the same digits
# on every processor.
add_compile_options(-ffp-contract=off)

# Compiling takes most of CI's time, and neither of these two would run long enough to pay for optimizing: the bodies of
# tests, and, under sanitizers, generated code, which is not ours to check either.
set(SLICEPLAN_TEST_BODY_OPTIONS -O0)
set(SLICEPLAN_GENERATED_CODE_OPTIONS "")

if(SLICEPLAN_SANITIZE)
  set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=all)
  set(SLICEPLAN_GENERATED_CODE_OPTIONS -O0 -fno-sanitize=all)
  add_compile_options(${sanitizers} -fno-omit-frame-pointer -g1)
  add_link_options(${sanitizers})
endif()

if(SLICEPLAN_TSAN)
  if(SLICEPLAN_SANITIZE)
    message(FATAL_ERROR "A program holds one of SLICEPLAN_TSAN and SLICEPLAN_SANITIZE")
  endif()
  # Generated code too: memory that only one side is seen to use looks like a race.
  add_compile_options(-fsanitize=thread -g1)
  add_link_options(-fsanitize=thread)
endif()

if(SLICEPLAN_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "SLICEPLAN_FUZZ needs clang: use the preset asan, or -DCMAKE_CXX_COMPILER=clang++-14")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

if(SLICEPLAN_COVERAGE)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    message(FATAL_ERROR "SLICEPLAN_COVERAGE needs gcc: gcovr reads gcc's counters")
  endif()
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
endif()
