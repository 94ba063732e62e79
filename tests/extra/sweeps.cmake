# The sweeps over the fixtures and the lab's scenarios count polls by standing in for ebb_pump.
target_link_options(test_nth_stories PRIVATE -Wl,--wrap=ebb_pump)
target_link_libraries(test_nth_stories PRIVATE PkgConfig::JANSSON)
