# Writes ${OUTPUT}: the ${FILES} below ${ROOT} as string literals. Run as a script (cmake -P) by the build.
set(DELIMITER "sliceplan_data")
file(WRITE ${OUTPUT}.new "// Made by embed.cmake from the files in server/catalog/data.
#include \"server/catalog/embedded_files.h\"

namespace sliceplan::catalog {
namespace {

constexpr SourceFileText kFiles[] = {
")
foreach(name IN LISTS FILES)
  # Bytes between 0x00 and 0xff as they are: a raw literal needs no escapes.
  file(READ ${ROOT}/${name} text)
  string(FIND "${text}" ")${DELIMITER}\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${name} contains )${DELIMITER}\"")
  endif()
  file(APPEND ${OUTPUT}.new "    {\"${name}\", R\"${DELIMITER}(${text})${DELIMITER}\"},\n")
endforeach()
file(APPEND ${OUTPUT}.new "};

}  // namespace

absl::Span<const SourceFileText> EmbeddedFiles() { return kFiles; }

}  // namespace sliceplan::catalog
")
file(RENAME ${OUTPUT}.new ${OUTPUT})
