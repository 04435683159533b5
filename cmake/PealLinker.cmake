# Links with LLVM's lld if it is installed: linking a test program takes a fifth of the time of GNU ld. Only
# for builds with tests, and only if the user has not chosen a linker.
if((PEAL_TESTS OR PEAL_FUZZ) AND NOT CMAKE_EXE_LINKER_FLAGS MATCHES "-fuse-ld")
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=lld PEAL_HAS_LLD)
  if(PEAL_HAS_LLD)
    add_link_options(-fuse-ld=lld)
  endif()
endif()
