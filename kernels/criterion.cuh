// Gini's criterion, as gputree/core/criteria.py traces it. A module of another criterion has its text here.

#pragma once

#include "common.cuh"

#define GT_FOLD_MAX 0
static __device__ __forceinline__ double gt_term(double x, double n, double X, double N) { return (x * x); }
static __device__ __forceinline__ double gt_branch(double s, double n, double N) { return gt_ratio(s, n); }
static __device__ __forceinline__ double gt_info(double n, double N) { return 0.0; }
static __device__ __forceinline__ double gt_final(double gain, double info, double N) { return gain; }
static __device__ __forceinline__ double gt_scale(double N, double X) { return N; }
static __device__ __forceinline__ double gt_gain_scale(double N, double X) { return N; }
