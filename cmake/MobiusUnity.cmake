# mobius_unite(TARGET)
#
# Has the C++ sources of a target compiled several at a time (MOBIUS_UNITY): most of what one costs
# is the headers it includes, and what is instantiated of them. So names in anonymous namespaces
# must differ within a target. Builds for debugging compile each for itself, and so does
# clang-tidy (`./mobius lint`): a source includes what it uses.
function(mobius_unite target)
  if(NOT MOBIUS_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  # A class of a source is in a file that another includes, then.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
