// The kernels of the instruction set that this file is compiled for (AERIE_ISA names it).
#pragma once

#include "cpu/kernels.h"

namespace aerie::cpu::AERIE_ISA {

void convert(void* to, Float to_type, const void* from, Float from_type, size_t count);
void matmul(const MatmulTask& task);
void pack_columns(const PackTask& task, int first, int last);
void matmul_quant(const QuantMatmulTask& task);
void quantise(void* to, const float* from, int count);
void pack_weights(void* to, DType type, const float* from, int count);
void rms_norm(float* out, const float* x, const float* weight, int count, float epsilon);
void rope_append(const RopeTask& task);
void attention(const AttentionTask& task);
void attend_to_chunks(const AttentionTask& task, int first, int last);
void merge_chunks(const AttentionTask& task);
void gated(float* out, const float* gate, const float* up, int count, Activation activation);
void add(float* out, const float* a, const float* b, int count);
void noise(float* out, uint64_t seed, int position, int first, int count);
ArgMax argmax(const float* x, int count);
ArgMax argmax_noise(const float* x, const float* noise, float shift, float scale, int count);
void perturb(float* out, const float* x, const float* noise, float shift, float scale, int count);
double exp_sum(const float* x, float shift, float scale, int count);
void exp_all(float* out, const float* x, float shift, float scale, int count);
int ids_between(int32_t* ids, const float* x, float low, float high, int count);
void remove_below(float* x, float cut, int count);
int best(int32_t* ids, float* values, int k, const float* x, int count);

}  // namespace aerie::cpu::AERIE_ISA
