# mobius_unite(TARGET)
#
# Compiles the C++ sources of a target several at a time (MOBIUS_UNITY), because most of the cost of
# one source is the headers that it includes and their instantiations. Therefore names in anonymous
# namespaces must differ within a target. Debug builds compile each source alone, and so does
# clang-tidy (`./mobius lint`), so a source must include what it uses.
function(mobius_unite target)
  if(NOT MOBIUS_UNITY)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  # Then a class of one source is in a file that another source includes.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endfunction()
