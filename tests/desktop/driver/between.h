// What the driver sees, and changes, between the program and the library.
#pragma once

// Of the newest answer.
bool was_cancelled();
int steps_since_cancel();  // that ended after it
