// The exception of Tampu's C++ headers.
#ifndef TAMPU_FAILURE_HPP
#define TAMPU_FAILURE_HPP

#include <stdexcept>

namespace tampu {

// A failure of a call, with the reason that the C function gave.
struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

} // namespace tampu

#endif
