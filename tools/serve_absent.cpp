// `aerie serve` in a program that was built without Boost's headers.
#include "commands.h"
#include "core/error.h"

namespace aerie {

int run_serve(const ServeOptions&) {
    throw Error("this program was built without its server: that needs Boost's headers");
}

}  // namespace aerie
