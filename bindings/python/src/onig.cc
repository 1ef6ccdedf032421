// Has no code: what counts is what it is linked with (CMakeLists.txt).
