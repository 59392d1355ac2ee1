# mobius_layer(NAME SOURCES file... [DEPENDS layer...] [LIBRARIES lib...])
#
# Declares one layer of the library (docs: ARCHITECTURE.md): the folder that calls this, src/NAME. Its
# headers are included as "NAME/header.h", and only by targets that link its target: the include path
# holds one link per layer, so an include of a layer that was not declared in DEPENDS does not compile.
# NAME may have a slash: the layer engine/rma is the target mobius_engine_rma.
function(mobius_layer name)
  cmake_parse_arguments(layer "" "" "SOURCES;DEPENDS;LIBRARIES" ${ARGN})
  string(REPLACE "/" "_" id ${name})
  set(view ${PROJECT_BINARY_DIR}/layers/${id})
  get_filename_component(parent ${view}/${name} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${view}/${name} SYMBOLIC)

  set(target mobius_${id})
  if(layer_SOURCES)
    add_library(${target} OBJECT ${layer_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE mobius_compile_options ${layer_LIBRARIES})
    mobius_unite(${target})
    set_property(GLOBAL APPEND PROPERTY MOBIUS_LAYERS ${target})
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(${target} ${scope} ${view} ${PROJECT_SOURCE_DIR}/include)
  foreach(dependency IN LISTS layer_DEPENDS)
    # Headers only: the objects meet in libmobius, not in each other.
    string(REPLACE "/" "_" dependency ${dependency})
    target_include_directories(${target} ${scope}
      $<TARGET_PROPERTY:mobius_${dependency},INTERFACE_INCLUDE_DIRECTORIES>)
  endforeach()
endfunction()
