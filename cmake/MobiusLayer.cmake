# mobius_layer(NAME SOURCES file... [DEPENDS layer...] [LIBRARIES lib...])
#
# Declares one layer of the engine (ARCHITECTURE.md). Other code includes its headers as
# "NAME/header.h", and only if its target links mobius_NAME: the include path holds one link per
# layer, so an include of a layer that is missing in DEPENDS does not compile.
function(mobius_layer name)
  cmake_parse_arguments(layer "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  set(view ${PROJECT_BINARY_DIR}/layers/${name})
  file(MAKE_DIRECTORY ${view})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${view}/${name} SYMBOLIC)

  add_library(mobius_${name} OBJECT ${layer_SOURCES})
  target_include_directories(mobius_${name} PUBLIC ${view} ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(mobius_${name} PRIVATE mobius_compile_options ${layer_LIBRARIES})
  foreach(dependency IN LISTS layer_DEPENDS)
    # Headers only: the objects meet in libmobius, not in each other.
    target_include_directories(mobius_${name} PUBLIC
      $<TARGET_PROPERTY:mobius_${dependency},INTERFACE_INCLUDE_DIRECTORIES>)
  endforeach()
  mobius_unite(mobius_${name})
  set_property(GLOBAL APPEND PROPERTY MOBIUS_LAYERS mobius_${name})
endfunction()
