# Installation: filled in with the CMake package.
