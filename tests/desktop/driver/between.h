// Functions between the program and the library: they replace some of the library's, call them, and
// record what the driver checks.
#pragma once

// Whether the newest answer was cancelled.
bool was_cancelled();
// Steps of the newest answer that ended after it was cancelled.
int steps_since_cancel();
