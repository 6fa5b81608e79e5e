# Logs, events and bulk data of Tampu: find_package(tampu), then link tampu::tampu.
get_filename_component(_tampu_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET tampu::tampu)
  add_library(tampu::tampu SHARED IMPORTED)
  set_target_properties(tampu::tampu PROPERTIES
    IMPORTED_LOCATION "${_tampu_prefix}/lib/libtampu_log.so"
    IMPORTED_NO_SONAME TRUE
    INTERFACE_INCLUDE_DIRECTORIES "${_tampu_prefix}/include"
    INTERFACE_COMPILE_FEATURES "c_std_11;cxx_std_17")
endif()
unset(_tampu_prefix)
