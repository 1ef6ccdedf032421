# -DFOLDER=… -DOUTPUT=… -DHEADER=… -DNAMESPACE=… -DVARIABLE=… -DSCRIPTS=a,b: writes OUTPUT, which defines VARIABLE as the page of FOLDER
# (page.html) in one string, with style (page.css) and scripts (a.js, b.js) inserted.
file(READ ${FOLDER}/page.html page)
set(parts "")
string(REPLACE "," ";" SCRIPTS "${SCRIPTS}")
foreach(name IN LISTS SCRIPTS)
  file(READ ${FOLDER}/${name}.js part)
  string(APPEND parts ")sdx\"\nR\"sdx(${part}")
endforeach()
file(READ ${FOLDER}/page.css style)
string(REPLACE "/*STYLE*/" ")sdx\"\nR\"sdx(${style})sdx\"\nR\"sdx(" page "${page}")
string(REPLACE "/*SCRIPT*/" "${parts})sdx\"\nR\"sdx(" page "${page}")
# All compilers that build this take literals of over 64 KiB, which the standard does not promise.
file(WRITE ${OUTPUT} "// Generated; do not edit.\n#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\nconst std::string_view ${VARIABLE} =\n    R\"sdx(${page})sdx\";\n\n}  // namespace ${NAMESPACE}\n")
