# mobius_install_targets(DESTINATION TARGET...)
#
# Has targets installed into a folder of the prefix, and built by the target mobius_installed:
# `./mobius install` builds what it copies and nothing else, in the build tree that the tests use.
function(mobius_install_targets destination)
  install(TARGETS ${ARGN}
    RUNTIME DESTINATION ${destination}
    LIBRARY DESTINATION ${destination}
    ARCHIVE DESTINATION ${destination})
  set_property(GLOBAL APPEND PROPERTY MOBIUS_INSTALLED ${ARGN})
endfunction()

# mobius_install_wrappers(NAME...): installs the compilers of an interface, one script with many names.
function(mobius_install_wrappers)
  foreach(name IN LISTS ARGN)
    install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/wrappers/mobcc DESTINATION bin RENAME ${name})
  endforeach()
endfunction()
