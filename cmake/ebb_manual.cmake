# The man pages and the completions of shells: the command writes them, from the tables of its help. The build of a
# sanitizer, or for another machine, can't be run here in any case, and is not what anybody installs.
set(EBB_MANUAL_DIR ${CMAKE_BINARY_DIR}/manual)
string(FIND "${CMAKE_C_FLAGS}" "-fsanitize" at)
if(CMAKE_CROSSCOMPILING OR NOT at EQUAL -1)
    return()
endif()
add_custom_command(OUTPUT ${EBB_MANUAL_DIR}.stamp
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${EBB_MANUAL_DIR}
    COMMAND ebb_cli help --write ${EBB_MANUAL_DIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${EBB_MANUAL_DIR}.stamp
    DEPENDS ebb_cli
    COMMENT "Writing the man pages and completions")
add_custom_target(ebb_manual ALL DEPENDS ${EBB_MANUAL_DIR}.stamp)
# Where the shells look below /usr is fixed; below another prefix it is the same place under its share.
install(DIRECTORY ${EBB_MANUAL_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR})
install(DIRECTORY ${EBB_MANUAL_DIR}/bash-completion ${EBB_MANUAL_DIR}/zsh ${EBB_MANUAL_DIR}/fish
    DESTINATION ${CMAKE_INSTALL_DATADIR})
