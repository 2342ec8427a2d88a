// Members of requests that other servers have and this one lacks.
#pragma once

#include "serve/requests/problem.h"
#include "serve/requests/request_fields.h"

namespace aerie {

// Accepts the values that ask for nothing, such as "tools": [], and the members that describe the
// caller. Throws Problem if a member would change the answer.
void check_other_members(RequestFields& fields);

// The error of a request that needs tools.
Problem no_tools(const std::string& param);

}  // namespace aerie
