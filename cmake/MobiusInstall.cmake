# The files that `cmake --install` copies. The layout is fixed (lib, not lib64 or a multiarch folder) and every
# file finds the others from its own place, so that the installed folder works when it is moved.

# Debug information and __FILE__ name sources relative to the checkout: nothing installed may tell
# where it was built. Debug builds keep full paths, for debuggers started anywhere.
target_compile_options(mobius_compile_options INTERFACE
  $<$<NOT:$<CONFIG:Debug>>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>)

mobius_install_targets(${MOBIUS_LIBDIR} mobius mobius_static)
install(DIRECTORY include/mobius DESTINATION include)

# pkg-config and CMake package. The targets are written by hand: what a program must link is less
# than what our own targets know.
configure_file(cmake/mobius.pc.in ${PROJECT_BINARY_DIR}/package/mobius.pc @ONLY)
configure_file(cmake/mobius-config.cmake.in
  ${PROJECT_BINARY_DIR}/package/mobius-config.cmake @ONLY)
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/mobius-config-version.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/mobius.pc
  DESTINATION ${MOBIUS_LIBDIR}/pkgconfig)
install(FILES
    ${PROJECT_BINARY_DIR}/package/mobius-config.cmake
    ${PROJECT_BINARY_DIR}/package/mobius-config-version.cmake
  DESTINATION ${MOBIUS_LIBDIR}/cmake/mobius)

mobius_install_wrappers(mobcc mobc++)

if(MOBIUS_TOOLS)
  set_target_properties(mobius_command PROPERTIES INSTALL_RPATH "$ORIGIN/../${MOBIUS_LIBDIR}")
  mobius_install_targets(bin mobius_command)
  set_target_properties(tune_link PROPERTIES INSTALL_RPATH "$ORIGIN/../../${MOBIUS_LIBDIR}")
  mobius_install_targets(libexec/mobius tune_link)
  # The instrument looks for all native programs in one folder.
  install(CODE [[
    set(folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/libexec/mobius")
    file(MAKE_DIRECTORY "${folder}")
    file(CREATE_LINK ../../bin/mobius "${folder}/mobius" SYMBOLIC)
  ]])
endif()

if(MOBIUS_BENCH)
  set_target_properties(micro suite_mobius suite_limits PROPERTIES
    INSTALL_RPATH "$ORIGIN/../../${MOBIUS_LIBDIR}")
  mobius_install_targets(libexec/mobius micro suite_mobius suite_limits)
  install(DIRECTORY bench/suite bench/turns DESTINATION share/mobius
    FILES_MATCHING PATTERN "*.c" PATTERN "*.h" PATTERN "*.upc")
  install(PROGRAMS tools/wrappers/instrument DESTINATION libexec/mobius)
  install(FILES tools/wrappers/start.py DESTINATION share/mobius/instrument)
  install(DIRECTORY tools/instrument/mobius_instrument DESTINATION share/mobius/instrument
    PATTERN __pycache__ EXCLUDE)
endif()

# The documents lie as in the checkout, with what their links lead to, so that the links hold. As a
# component they can be installed by themselves, without building anything.
set(documents share/doc/mobius)
install(FILES README.md ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md LICENSE
  DESTINATION ${documents} COMPONENT documents)
install(DIRECTORY apps docs examples DESTINATION ${documents} COMPONENT documents)
install(FILES bench/suite/README.md DESTINATION ${documents}/bench/suite COMPONENT documents)
install(FILES src/transport/ofi/endpoint.h
  DESTINATION ${documents}/src/transport/ofi COMPONENT documents)
install(CODE [[
  set(folder "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/doc/mobius")
  file(CREATE_LINK ../../../include "${folder}/include" SYMBOLIC)
]] COMPONENT documents)

# All that is installed, and what the commands that run or measure need.
get_property(installed GLOBAL PROPERTY MOBIUS_INSTALLED)
add_custom_target(mobius_installed DEPENDS ${installed})
