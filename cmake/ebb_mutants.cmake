# The copy of the sources in which bugs are planted: scripts/plant-bugs says how.
set(EBB_PLANTED ${CMAKE_BINARY_DIR}/mutants)

# ebb_plant(SOURCE...): those of the sources that the patches change are replaced by their copies, and the command
# that makes the copies is added. Sets ebb_planted_sources.
function(ebb_plant)
    file(GLOB patches CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/mutants/*.patch)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${patches})
    set(files)
    foreach(patch IN LISTS patches)
        file(STRINGS ${patch} lines REGEX "^\\+\\+\\+ b/")
        list(TRANSFORM lines REPLACE "^\\+\\+\\+ b/" "")
        list(APPEND files ${lines})
    endforeach()
    list(REMOVE_DUPLICATES files)
    list(TRANSFORM files PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE originals)
    list(TRANSFORM files PREPEND ${EBB_PLANTED}/ OUTPUT_VARIABLE copies)
    if(NOT TARGET ebb_planted)
        add_custom_command(OUTPUT ${copies}
            COMMAND ${PROJECT_SOURCE_DIR}/scripts/plant-bugs ${EBB_PLANTED}
            DEPENDS ${originals} ${patches} ${PROJECT_SOURCE_DIR}/scripts/plant-bugs VERBATIM)
        add_custom_target(ebb_planted DEPENDS ${copies})
    endif()
    set(sources)
    foreach(source IN LISTS ARGN)
        get_filename_component(source ${source} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
        if(source IN_LIST originals)
            string(REPLACE ${PROJECT_SOURCE_DIR}/ ${EBB_PLANTED}/ source ${source})
        endif()
        list(APPEND sources ${source})
    endforeach()
    set(ebb_planted_sources ${sources} PARENT_SCOPE)
endfunction()

# What is compiled with planted bugs: the copies of headers come first, and sites in traces are those of the originals.
function(ebb_plant_target target)
    add_dependencies(${target} ebb_planted)
    target_include_directories(${target} BEFORE PRIVATE ${EBB_PLANTED})
    target_compile_options(${target} PRIVATE -ffile-prefix-map=${EBB_PLANTED}/=)
endfunction()
