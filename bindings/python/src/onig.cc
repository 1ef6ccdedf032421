// Has no code: it exists for the libraries that it is linked with (CMakeLists.txt).
