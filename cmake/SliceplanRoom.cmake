# How a room, its tests, benchmarks and fuzz targets become CMake targets. Include paths start at the repository's root.

# Headers that take longer to read than the code that includes them: each target reads them once (PRECOMPILE). Every
# file includes what it uses all the same; -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON proves it.
set(SLICEPLAN_MESSAGES)
foreach(topic catalog collective measurement model_description operation serving sharding training)
  list(APPEND SLICEPLAN_MESSAGES <proto/sliceplan/v1/${topic}.pb.h>)
endforeach()
set(SLICEPLAN_TEST_HEADERS <gmock/gmock.h> <gtest/gtest.h>)

# sliceplan_room(NAME hardware SOURCES mesh.cc ... [DEPS absl::strings sliceplan::roofline ...] [PRIVATE_DEPS ...]
#                [PRECOMPILE <header> ...])
# Makes the static library `sliceplan_<name>`, alias `sliceplan::<name>`. DEPS are what the room's headers include.
function(sliceplan_room)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;DEPS;PRIVATE_DEPS;PRECOMPILE")
  sliceplan_check_arguments(sliceplan_room)
  set(target sliceplan_${ARG_NAME})
  add_library(${target} STATIC ${ARG_SOURCES})
  add_library(sliceplan::${ARG_NAME} ALIAS ${target})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
  target_link_libraries(${target} PUBLIC ${ARG_DEPS}
                        PRIVATE $<BUILD_INTERFACE:sliceplan_warnings> ${ARG_PRIVATE_DEPS})
  if(ARG_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ARG_PRECOMPILE})
  endif()
endfunction()

# sliceplan_test(NAME hardware_tests SOURCES mesh_test.cc ... [DEPS sliceplan::hardware ...] [PRECOMPILE <header> ...])
# One GoogleTest program and one ctest entry. The tests run in a new random order each time; a failing order is repeated
# with the seed that the program prints. Each run leaves its results in <build>/test-results/<name>.xml, where
# scripts/summary.py counts the single tests. Tests find their data through the definition SLICEPLAN_TEST_DATA_DIR.
function(sliceplan_test)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;DEPS;PRECOMPILE")
  sliceplan_check_arguments(sliceplan_test)
  if(NOT SLICEPLAN_TESTS)
    return()
  endif()
  find_package(GTest CONFIG REQUIRED)
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_options(${ARG_NAME} PRIVATE ${SLICEPLAN_TEST_BODY_OPTIONS})
  list(LENGTH ARG_SOURCES source_count)
  if(source_count GREATER 1)
    target_precompile_headers(${ARG_NAME} PRIVATE ${SLICEPLAN_TEST_HEADERS} ${ARG_PRECOMPILE})
  endif()
  target_compile_definitions(${ARG_NAME} PRIVATE SLICEPLAN_TEST_DATA_DIR="${PROJECT_SOURCE_DIR}/tests/data")
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} GTest::gmock GTest::gtest_main sliceplan_warnings)
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${ARG_NAME}
           COMMAND ${ARG_NAME} --gtest_shuffle --gtest_brief=1
                   --gtest_output=xml:${PROJECT_BINARY_DIR}/test-results/${ARG_NAME}.xml)
  set_tests_properties(${ARG_NAME} PROPERTIES TIMEOUT 300)
endfunction()

# sliceplan_bench(NAME planner_bench SOURCES ... [DEPS ...]): one Google Benchmark program under <build>/bench.
function(sliceplan_bench)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;DEPS")
  sliceplan_check_arguments(sliceplan_bench)
  if(NOT SLICEPLAN_BENCH)
    return()
  endif()
  find_package(benchmark CONFIG REQUIRED)
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} benchmark::benchmark_main sliceplan_warnings)
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
endfunction()

# sliceplan_fuzzer(NAME request_fuzzer SOURCES ... [DEPS ...]): one libFuzzer program under <build>/fuzz.
function(sliceplan_fuzzer)
  cmake_parse_arguments(PARSE_ARGV 0 ARG "" "NAME" "SOURCES;DEPS")
  sliceplan_check_arguments(sliceplan_fuzzer)
  if(NOT SLICEPLAN_FUZZ)
    return()
  endif()
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  target_include_directories(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${ARG_NAME} PRIVATE ${ARG_DEPS} sliceplan_warnings)
  target_link_options(${ARG_NAME} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${ARG_NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
endfunction()

# Refuses misspelt keywords and missing ones.
macro(sliceplan_check_arguments function)
  if(NOT ARG_NAME OR NOT ARG_SOURCES OR ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${function}: NAME and SOURCES are required; not understood: '${ARG_UNPARSED_ARGUMENTS}'")
  endif()
endmacro()
