# Writes OUTPUT: the page of FOLDER (page.html) as one text, with style and scripts in their places.
file(READ ${FOLDER}/page.html page)
set(parts "")
foreach(name model server stage page)
  file(READ ${FOLDER}/${name}.js part)
  string(APPEND parts ")sdx\"\nR\"sdx(${part}")  # literals of their own, which the compiler joins: it may complain of one over 64 KiB
endforeach()
file(READ ${FOLDER}/page.css style)
string(REPLACE "/*STYLE*/" ")sdx\"\nR\"sdx(${style})sdx\"\nR\"sdx(" page "${page}")
string(REPLACE "/*SCRIPT*/" "${parts})sdx\"\nR\"sdx(" page "${page}")
file(WRITE ${OUTPUT} "// Generated; do not edit.\n#include \"vision/page/assets.h\"\n\nnamespace sdx::faces::page {\n\nconst std::string_view kDocument =\n    R\"sdx(${page})sdx\";\n\n}  // namespace sdx::faces::page\n")
