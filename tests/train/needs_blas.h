// Skips all tests of the program on a system without a BLAS.
#pragma once

#include <gtest/gtest.h>

#include "core/error.h"
#include "cpu/training/blas.h"

namespace aerie::test {

class NeedsBlas : public testing::Environment {
  public:
    void SetUp() override {
        try {
            cpu::load_blas();
        } catch (const Error& error) {
            GTEST_SKIP() << "SKIPPED: " << error.what();
        }
    }
};
inline testing::Environment* const needs_blas = testing::AddGlobalTestEnvironment(new NeedsBlas);

}  // namespace aerie::test
