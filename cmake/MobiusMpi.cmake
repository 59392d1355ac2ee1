# mobius_find_mpis()
#
# Looks for the header of each binary interface of MPI for which fronts/mpi is compiled, and sets in the
# caller's scope, for each ABI of MOBIUS_MPI_ABIS:
#
#   MOBIUS_MPI_<abi>_INCLUDES   the folders to compile with; empty where there is none
#   MOBIUS_MPI_<abi>_ORIGIN     which MPI they are from, in words; or why there is none
#
# The MPIs are those of MOBIUS_MPICC (a list of compiler wrappers), those in PATH, and those that ./mobius
# has fetched from PyPI into .mobius/peers. The newest header of an ABI is taken: it knows the calls and
# types of the older ones, and a program of an older MPI never uses the others.
#
# Nothing of an MPI is linked: a front finds its calls in the MPI that the program has loaded.

set(MOBIUS_MPICC "" CACHE STRING "Compiler wrappers of MPIs to make fronts for, besides those in PATH")
set(MOBIUS_MPI_ABIS ompi mpich mpiabi)
set(MOBIUS_MPI_ompi_NAME "Open MPI 4.1 and 5")
set(MOBIUS_MPI_mpich_NAME "MPICH, Intel MPI, MVAPICH")
set(MOBIUS_MPI_mpiabi_NAME "the standard ABI of MPI 5.0")

# The folders that a compiler wrapper names with -I, and those of the system.
function(mobius_mpicc_includes mpicc result)
  set(${result} "" PARENT_SCOPE)
  execute_process(COMMAND ${mpicc} -show
    OUTPUT_VARIABLE shown ERROR_QUIET RESULT_VARIABLE failed TIMEOUT 20)
  if(failed)
    return()
  endif()
  separate_arguments(words UNIX_COMMAND "${shown}")
  set(folders)
  foreach(word IN LISTS words)
    if(word MATCHES "^-I(.+)$")
      list(APPEND folders "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  if(NOT folders AND EXISTS /usr/include/mpi.h)
    set(folders /usr/include)
  endif()
  set(${result} "${folders}" PARENT_SCOPE)
endfunction()

# Describes an MPI by its header: "ABI STANDARD NAME", where STANDARD is a number that grows; empty if the
# header is of an unknown MPI, or of one before MPI-3.
function(mobius_describe_mpi_header folders header result)
  set(${result} "" PARENT_SCOPE)
  set(source ${PROJECT_BINARY_DIR}/fronts/mpi/describe.c)
  file(WRITE ${source} "#include <${header}>
#if defined(OPEN_MPI) && defined(OMPI_MAJOR_VERSION)
described|from_openmpi|MPI_VERSION|MPI_SUBVERSION|OMPI_MAJOR_VERSION|OMPI_MINOR_VERSION|OMPI_RELEASE_VERSION|
#elif defined(I_MPI_VERSION)
described|from_intel|MPI_VERSION|MPI_SUBVERSION|I_MPI_VERSION|||
#elif defined(MPICH_VERSION)
described|from_mpich|MPI_VERSION|MPI_SUBVERSION|MPICH_VERSION|||
#elif defined(MPI_ABI_VERSION)
described|from_standard|MPI_VERSION|MPI_SUBVERSION|MPI_ABI_VERSION|MPI_ABI_SUBVERSION||
#endif
")
  list(TRANSFORM folders PREPEND -I)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -E -P ${folders} ${source}
    OUTPUT_VARIABLE text ERROR_QUIET RESULT_VARIABLE failed)
  if(failed OR NOT text MATCHES
     "described\\|from_([a-z]+)\\|([0-9]+)\\|([0-9]+)\\|([^|]+)\\|([^|]*)\\|([^|\n]*)\\|")
    return()
  endif()
  math(EXPR standard "${CMAKE_MATCH_2} * 100 + ${CMAKE_MATCH_3}")
  if(standard LESS 300)
    return()
  endif()
  set(kind ${CMAKE_MATCH_1})
  set(version "${CMAKE_MATCH_4}")
  foreach(part "${CMAKE_MATCH_5}" "${CMAKE_MATCH_6}")
    if(NOT part STREQUAL "")
      string(APPEND version ".${part}")
    endif()
  endforeach()
  string(REPLACE "\"" "" version "${version}")
  set(known_openmpi "ompi;Open MPI")
  set(known_intel "mpich;Intel MPI")
  set(known_mpich "mpich;MPICH")
  set(known_standard "mpiabi;the standard ABI, version")
  list(POP_FRONT known_${kind} abi name)
  set(${result} "${abi};${standard};${name} ${version}" PARENT_SCOPE)
endfunction()

function(mobius_find_mpis)
  set(mpiccs ${MOBIUS_MPICC})
  foreach(name mpicc mpicc.openmpi mpicc.mpich mpicc_abi)
    find_program(mobius_found_${name} ${name} NO_CACHE)
    if(mobius_found_${name})
      list(APPEND mpiccs ${mobius_found_${name}})
    endif()
  endforeach()
  file(GLOB fetched ${PROJECT_SOURCE_DIR}/.mobius/peers/*/bin/mpicc)
  list(APPEND mpiccs ${fetched})
  list(REMOVE_DUPLICATES mpiccs)

  foreach(abi IN LISTS MOBIUS_MPI_ABIS)
    set(best_${abi} 0)
    set(includes_${abi})
    set(origin_${abi} "no header of ${MOBIUS_MPI_${abi}_NAME} was found")
  endforeach()
  foreach(mpicc IN LISTS mpiccs)
    mobius_mpicc_includes(${mpicc} folders)
    foreach(header mpi.h mpi_abi.h)
      mobius_describe_mpi_header("${folders}" ${header} described)
      if(NOT described)
        continue()
      endif()
      list(POP_FRONT described abi standard name)
      if(standard GREATER best_${abi})
        set(best_${abi} ${standard})
        set(includes_${abi} ${folders})
        set(origin_${abi} "made with the header of ${name}")
      endif()
    endforeach()
  endforeach()
  # Sources include <mpi.h> whatever the ABI.
  if(includes_mpiabi)
    set(folder ${PROJECT_BINARY_DIR}/fronts/mpi/mpiabi)
    file(CONFIGURE OUTPUT ${folder}/mpi.h CONTENT "#include <mpi_abi.h>\n")
    list(PREPEND includes_mpiabi ${folder})
  endif()
  foreach(abi IN LISTS MOBIUS_MPI_ABIS)
    set(MOBIUS_MPI_${abi}_INCLUDES "${includes_${abi}}" PARENT_SCOPE)
    set(MOBIUS_MPI_${abi}_ORIGIN "${origin_${abi}}" PARENT_SCOPE)
  endforeach()
endfunction()
